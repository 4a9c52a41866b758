"""The table of a chain's transitions that the scaled recursions share, and what their values are measured from."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass.ops.chain.structure import Chain

SAFE = {torch.float32: 33.0, torch.float64: 330.0}
"""How many nats the transitions may span for the recursion to be right whatever the emissions."""

TINY = {torch.float32: 1e-37, torch.float64: 1e-307}
"""Below this a probability has lost digits."""


class Weights(NamedTuple):
    """Transitions, start (the last row) and end (the last column) in one ``(K+1, K+1)`` table."""

    log: Tensor  # in float64, so that what is added up step after step has no error of its own
    prob: Tensor
    moves: Tensor
    top: tuple[float, float, float]  # what was taken out of transitions, start and end
    span: float  # between the largest and the smallest finite entry
    forbids: bool  # whether an entry is -inf


def tabulate(chain: Chain, dtype: torch.dtype) -> Weights:
    """The table of a chain with one transition matrix, its blocks each or all together brought down to 0 at most."""
    width = chain.emissions.shape[2] + 1
    moves, first, last = (part.double() for part in chain[1:4])
    inner = torch.cat([moves, last[:, None]], 1)
    log = torch.cat([inner.flatten(), first, first[:1]]).view(width, width)
    low, high = (bound.item() for bound in log.aminmax())
    forbids = low == -math.inf
    if width > 2 and high - low <= SAFE[torch.float32]:  # with one label, nothing but ones is left
        top = (high, high, high)
        log.sub_(high)
    else:
        blocks = log[:-1, :-1], log[-1, :-1], log[:-1, -1]
        top = (blocks[0].max().item(), blocks[1].max().item(), blocks[2].max().item())
        for block, high in zip(blocks, top, strict=True):
            block.sub_(high)
        low, high = log.masked_fill(log == -torch.inf, 0).min().item(), 0.0
    if chain.lengths is not None:
        log[-1, -1] = 0  # where the path of a gold labelling stays after its end
    prob = log.exp().to(dtype)
    return Weights(log, prob, prob[:-1, :-1], top, high - low, forbids)


def from_tops(chain: Chain, emissions: Tensor, probs: Tensor, weights: Weights) -> Tensor:
    """What `forward` took out of all labellings alike, ``(B,)`` in float64."""
    each = emissions.amax(2).double() - probs.amax(2).double().log()
    move, first, last = weights.top
    if chain.lengths is None:
        return each.sum(1) + ((emissions.shape[1] - 1) * move + first + last)
    tops = torch.where(chain.lengths > 0, (chain.lengths.double() - 1) * move + first + last, 0)
    return torch.where(chain.inside(), each, 0).sum(1) + tops


def from_gold(
    path: Tensor, kept: Tensor | None, moves: Tensor, emissions: Tensor, probs: Tensor, *, exact: bool = False
) -> Tensor:
    """The log of the gold labelling's mass as `forward` measures it, ``(B,)`` in float64.

    -inf, unless ``exact``, also where one of its emission probabilities has lost digits.

    Args:
        path: ``(B, T + 2)``, the gold labels between two labels "outside", ``K``, which also stands past a length.
        kept: ``(B, T)``, whether a position lies inside its sequence; None where all do.
        moves: ``(B, T + 1)``, the table's log for each move of the path.
        emissions, probs: ``(B, T, K)``.
    """
    labels = path[:, 1:-1]
    gold = (labels if kept is None else labels.clamp_max(probs.shape[2] - 1))[..., None]
    if exact:  # differences first: emissions may be large
        depth = emissions.gather(2, gold)[..., 0] - emissions.amax(2)
        chosen = depth.double() + probs.amax(2).double().log_()
    else:
        chosen = torch.threshold(probs.gather(2, gold)[..., 0], TINY[probs.dtype], 0).double().log_()
    return moves.sum(1) + (chosen if kept is None else torch.where(kept, chosen, 0)).sum(1)


def filled(mass: Tensor) -> Tensor:
    """The mass to divide by: 1 where there is none."""
    return mass.masked_fill_(mass == 0, 1)


def beside_gold(alpha: Tensor, moves: Tensor, gold: Tensor, after: Tensor) -> Tensor:
    """``- log p(gold)`` position by position, ``(size, rows)``: nothing cancels, however small it is.

    Read backwards a chain is a Markov chain, ``p(y_t = j | y_{t+1}) ~ alpha_t(j) W(j, y_{t+1})``, and minus the log of
    what this gives the gold label is ``log1p`` of what it gives the others, over its own.

    Args:
        alpha: ``(size, rows, K)``, with the end where a sequence ends, 0 after it.
        moves: ``(K, K)``.
        gold, after: ``(size, rows)``, the label here and at the next position, ``K`` past the last.
    """
    into = torch.cat([moves.t(), torch.ones_like(moves[:1])])
    joint = into.index_select(0, after.flatten()).view_as(alpha).mul_(alpha)
    gold = gold.clamp_max(alpha.shape[2] - 1)[..., None]
    own = filled(joint.gather(2, gold))
    return joint.scatter_(2, gold, 0).sum(2, keepdim=True).div_(own).log1p_().squeeze(2)
