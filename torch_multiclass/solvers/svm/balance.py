r"""Dual points of machines whose bias is free: ``sum_i alpha_i = 0``, exactly, at the least cost.

What the multipliers of a class sum up to beyond 0 goes to the classes that fall short of it, within rows: each row has
room for some of it and asks a price, the margin of the class that receives over that of the class that gives, which to
first order is what the dual loses. Rows with a multiplier between its bounds ask nothing at the optimum.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Offers = Callable[[Tensor, int, int], tuple[Tensor, Tensor]]
"""Of ``beta``, a class that gives and one that takes: each row's room and its price, ``(N)``."""
Moves = Callable[[Tensor, int, int, Tensor, Tensor], None]
"""Moves an amount of some rows, in place."""

_FEW = 1024  # rows looked at first
_ROUNDING = 1e-12  # of sums over the rows


def balanced(beta: Tensor, start: Tensor, excess: Tensor, offers: Offers, moves: Moves) -> Tensor:
    """The dual point moved so that each class gives its excess ``(K)``, which sums to 0 over the classes.

    Where the rows have no room between two classes that need it, half the way to the point ``start``, at which nothing
    is in excess, there is more of it, and less to move.
    """
    while True:
        moved = beta.clone()
        if all(_flow(moved, *trade, offers, moves) for trade in _trades(excess)):
            return moved
        beta, excess = (beta + start) / 2, excess / 2


def _trades(excess: Tensor) -> list[tuple[int, int, float]]:
    """Who gives how much to whom: the largest first, and fewer of them than classes."""
    left, trades = excess.tolist(), []
    giving = sorted((k for k, value in enumerate(left) if value > 0), key=lambda k: -left[k])
    taking = sorted((k for k, value in enumerate(left) if value < 0), key=lambda k: left[k])
    while giving and taking:
        amount = min(left[giving[0]], -left[taking[0]])
        trades.append((giving[0], taking[0], amount))
        left[giving[0]] -= amount
        left[taking[0]] += amount
        (giving if left[giving[0]] <= 0 else taking).pop(0)
    return trades


def _flow(beta: Tensor, giver: int, taker: int, amount: float, offers: Offers, moves: Moves) -> bool:
    """Move the amount, in place, the cheapest rows first; whether there was room."""
    room, price = offers(beta, giver, taker)
    rows, parts, left = fill(room.double(), price, amount)
    moves(beta, giver, taker, rows, parts.to(beta.dtype))
    return left <= 0


def fill(room: Tensor, price: Tensor, amount: float) -> tuple[Tensor, Tensor, float]:
    """The rows that take part, the cheapest first, how much of the amount each takes, and how much is left."""
    price = torch.where(room > 0, price, torch.inf)
    for few in (min(_FEW, len(price)), len(price)):
        rows = price.topk(few, largest=False).indices
        before = room[rows].cumsum(0) - room[rows]
        parts = torch.minimum(room[rows], (amount - before).clamp_min(0))
        left = amount - float(parts.sum())
        if left <= 0:
            break
    taking = parts > 0
    enough = left <= _ROUNDING * (amount + float(room.sum()))
    return rows[taking], parts[taking], 0.0 if enough else left


def middle(kinks: Tensor, gains: Tensor, falls: Tensor) -> Tensor:
    """The middle of where a convex function of one number is least: its slope is ``-sum falls`` at first, and gains at
    each kink."""
    kinks, order = kinks.sort()
    slopes = gains.double()[order].cumsum(0) - falls.double().sum()  # above each kink
    rounding = _ROUNDING * float(gains.double().sum())
    first = int((slopes < -rounding).sum())
    last = min(int((slopes <= rounding).sum()), len(kinks) - 1)
    return (kinks[min(first, len(kinks) - 1)] + kinks[last]) / 2
