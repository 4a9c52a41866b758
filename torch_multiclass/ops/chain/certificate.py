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

import numpy as np

from torch_multiclass.ops.chain.arrays import Array, least
from torch_multiclass.ops.chain.pieces import Pieces
from torch_multiclass.ops.chain.table import Weights

CLEAR = {4: 1e-30, 8: 1e-290}
"""By the size of a number: what is at least this large has all its digits, and so has its quotient with up to 1."""

DEEP = {4: 60.0, 8: 600.0}
"""So many nats below the start no number is lost."""

MARGIN = 40.0
"""So many nats below the total, a score is no part of it."""

AGREEMENT = {4: 4e-6, 8: 1e-12}
"""How far, relatively, the entry of a piece may lie from the end of the piece before."""

SOON = 8
"""Steps after which what can be reached is to be reached."""


def shallow(steps: int, depth: float, weights: Weights) -> bool:
    """Whether no labelling that is legal is lost, however improbable, with emissions of ``exp(-depth)`` at least."""
    return steps * depth + (steps + 1) * weights.span <= DEEP[weights.moves.itemsize]


def clear(alpha: Array, scale: Array) -> Array:
    """Where ``alpha (N, K)`` had all its digits: before the ``scale (N,)`` was divided out of it."""
    found: Array = alpha >= (CLEAR[alpha.itemsize] / scale)[:, None]
    return found


def within_reach(weights: Weights) -> list[Array]:
    """Which labels moves can reach at each step, up to the first from which on these are the same; [] if none is soon.

    Where no emission is forbidden this does not depend on the emissions.
    """
    legal = (weights.log_moves > -np.inf).astype(np.float32)
    reached = [weights.start > 0]
    while len(reached) < SOON:
        then = reached[-1].astype(np.float32) @ legal > 0
        if bool((then == reached[-1]).all()):
            return reached
        reached.append(then)
    return []


def all_reached_clear(alpha: Array, divided: float, pieces: Pieces, weights: Weights) -> bool:
    """Whether all that moves can reach is clear, which is more than has to be, and one look at ``alpha``.

    No emission is to be forbidden; ``divided`` is the smallest number that was divided out of
    ``alpha``.
    """
    reached, bound = within_reach(weights), CLEAR[alpha.itemsize] / divided
    if not reached or len(reached) >= len(pieces.offsets):
        return False
    *early, always = reached
    held = least(alpha[pieces.offsets[len(early)] :])[always]
    for i, labels in enumerate(early):
        mass = alpha[pieces.starting_at(i)]
        held = np.append(held, mass[:, labels])
        if pieces.joints is not None:
            held = np.append(held, alpha[pieces.step_of(i, pieces.joints.follow)][:, always])
    return bool((held >= bound).all())


def all_possible_clear(counts: Array, found: Array, moves: Array, pieces: Pieces) -> Array:
    """``(B,)``: whether every possible label is clear.

    Args:
        counts: ``(N, K)``, whether an emission (with start and end) counts.
        found: the same shape, from `clear`.
        moves: ``(K, K)``, which moves count.
        pieces: the places.
    """
    before, moves = found.astype(np.float32), moves.astype(np.float32)
    missed = counts & ~found
    missed[pieces.later] &= before[pieces.prior] @ moves > 0
    if pieces.joints is not None:
        lead, follow = pieces.joints.lead, pieces.joints.follow
        missed[follow] &= before[pieces.final[lead]] @ moves > 0
    clear: Array = pieces.sums(np.logical_or.reduce(missed, 1)) == 0
    return clear


def all_ended_clear(total: Array, pieces: Pieces) -> Array:
    """``(B,)``: whether the mass ``(P,)`` of each sequence, with its end, has all its digits."""
    clear: Array = np.bincount(pieces.sequence, total < CLEAR[total.itemsize], pieces.batch) == 0
    return clear


def distance(one: Array, other: Array) -> Array:
    """Hilbert's projective distance of positive vectors ``(n, K)``; entries that are zero in both do not count."""
    ratio = one / other
    top, low = np.fmax.reduce(ratio, 1, initial=0), np.fmin.reduce(ratio, 1, initial=np.inf)
    return np.where(top > 0, top / low - 1, 0)


def agree(entered: Array, left: Array, pieces: Pieces) -> Array:
    """``(B,)``: whether pieces were entered as the ones before them were left, both for each joint ``(n, K)``."""
    assert pieces.joints is not None
    apart = distance(entered, left) > AGREEMENT[left.itemsize]
    agreed: Array = np.bincount(pieces.sequence[pieces.joints.follow], apart, pieces.batch) == 0
    return agreed
