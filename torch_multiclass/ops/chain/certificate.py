"""What a scaled recursion has to show before it is believed: that nothing which matters was lost to underflow.

All factors are at most 1 and the emission probabilities of a position sum to 1, so all paths over one emission or one
move together weigh no more than that emission or move. What lies `MARGIN` nats below ``Z`` is no part of it: it counts
as forbidden, like -inf. A label is *possible* at a position if its emission counts and a move that counts leads there
from a label with a clear ``alpha``. If all that is possible is clear, then by induction from the start everything that
counts has all its digits, and the rest does not count.

The backward vectors are bounded by the forward ones: where ``alpha`` is clear, ``alpha * beta <= 1`` bounds ``beta``.
What is not clear is to be taken out of the backward recursion.
"""

from __future__ import annotations

import torch
from torch import Tensor

CLEAR = {torch.float32: 1e-30, torch.float64: 1e-290}
"""What is at least this large has all its digits, and so has its quotient with anything up to 1."""

MARGIN = 40.0
"""So many nats below the total, a score is no part of it."""

AGREEMENT = {torch.float32: 4e-6, torch.float64: 1e-12}
"""How far, relatively, the entry of a chunk may lie from the end of the chunk before."""


def clear(alpha: Tensor, scales: Tensor, every: int) -> Tensor:
    """Where ``alpha`` had all its digits: before the ``scales`` of each ``every``-th step were divided out of it."""
    found = alpha >= CLEAR[alpha.dtype]
    torch.ge(alpha[every::every], CLEAR[alpha.dtype] / scales, out=found[every::every])
    return found


def all_possible_clear(counts: Tensor, found: Tensor, moves: Tensor, batch: int) -> Tensor:
    """``(B,)``: whether every possible label is clear.

    Args:
        counts: ``(size, chunks * B, K)``, whether an emission (with start and end) counts.
        found: the same shape, from `clear`.
        moves: ``(K, K)``, which moves count.
    """
    before, moves = found.to(torch.float32), moves.to(torch.float32)
    missed = counts & ~found
    missed[1:] &= (before[:-1].flatten(0, 1) @ moves > 0).view_as(missed[1:])
    if missed.shape[1] > batch:
        missed[0, batch:] &= before[-1, :-batch] @ moves > 0
    return ~missed.any(2).any(0).view(-1, batch).any(0)


def distance(one: Tensor, other: Tensor) -> Tensor:
    """Hilbert's projective distance of positive vectors; entries that are zero in both do not count."""
    ratio = torch.where((one == 0) & (other == 0), torch.nan, one / other)
    top = torch.where(ratio.isnan(), 0, ratio).amax(1)
    low = torch.where(ratio.isnan(), torch.inf, ratio).amin(1)
    return torch.where(top > 0, top / low - 1, 0)


def agree(entered: Tensor, left: Tensor, batch: int) -> Tensor:
    """``(B,)``: whether chunks were entered as the ones before them were left, all ``((chunks - 1) * B, K)``."""
    return distance(entered, left).view(-1, batch).amax(0) <= AGREEMENT[left.dtype]
