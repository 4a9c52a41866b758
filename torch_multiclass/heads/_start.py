"""Where the training of a head starts: at what its loss knows before any example, and in which unit."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torch_multiclass.ops.margins import MarginLoss

_TIMES = 3.0  # the most that a gradient may exceed one of cross-entropy by
_REACH = 5.0  # of the margins that a training starts at


def step_scale(terms: float) -> float:
    r"""The scale of a loss that is a sum of so many terms, ``\min(1, 3 / \sqrt{n})``.

    Gradients of terms that are far from right add up as vectors do, to ``\sqrt{n}`` times that of one, while that of
    cross-entropy stays: a step size that suits cross-entropy then diverges for codes of many columns.
    """
    return min(1.0, _TIMES / math.sqrt(max(terms, 1.0)))


def constant_margins(loss: MarginLoss, share: Tensor) -> Tensor:
    r"""The margin that is best where nothing is known of an example, ``\arg\min_b p \ell(b) + (1 - p) \ell(-b)``.

    Args:
        loss: the binary loss.
        share: ``(L,)`` the probability ``p`` of +1 in each column.

    Of equal ones the nearest to 0; 0 for a loss that is not convex.
    """
    if not loss.convex:
        return torch.zeros_like(share)
    grid = torch.linspace(-_REACH, _REACH, 2001, dtype=torch.float64, device=share.device)
    grid = grid[grid.abs().argsort(stable=True)]
    ahead, behind = loss.value(grid), loss.value(-grid)
    best = {}
    for p in dict.fromkeys(share.double().tolist()):
        values = p * ahead + (1 - p) * behind
        best[p] = float(grid[(values <= values.amin() * (1 + 1e-9)).to(torch.uint8).argmax()])
    return torch.tensor([best[p] for p in share.double().tolist()], device=share.device)
