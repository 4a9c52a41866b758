"""The best labelling on the CPU: keep the max values only, and find the best predecessors again along the path.

Long sequences are cut in pieces that run side by side. The values of two chains that started differently soon differ
by a constant only, and a constant changes no argmax: a piece starts some steps early, and is right if its first values
then differ by a constant from those its neighbour ends with. Reading back likewise starts some steps late, and is
right if it meets its neighbour's path.

Sums of many numbers are in float32. Where the best two predecessors on the path are closer than rounding can tell, the
sequence is done again in float64.

All this is in NumPy, but for the sums, which torch adds faster where they are many.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_multiclass.checks import IGNORE
from torch_multiclass.ops.chain import plan
from torch_multiclass.ops.chain.arrays import MANY, PLAIN, Array, array, empty, largest, numbers, quiet, subtract
from torch_multiclass.ops.chain.pieces import Pieces, cut_batch
from torch_multiclass.ops.chain.structure import Chain

VECTOR = 16
"""Numbers that are computed at once; what is left over is done one by one, which takes as long."""

SMALL = 8.0
"""Up to here, what the transitions share is not taken out."""

ROUNDING = 4
"""Units of rounding of the largest value, within which two paths are not told apart."""


def takes(chain: Chain) -> bool:
    """Whether this is for chains of this kind: plain tensors on the CPU, one matrix, something to decode."""
    plain = chain.emissions.is_cpu and chain.transitions.dim() == 2 and 0 not in chain.emissions.shape
    return plain and all(part is None or type(part) in PLAIN for part in chain)


@quiet
def max_path(chain: Chain) -> tuple[Tensor, Tensor]:
    """The best labels ``(B, T)``, -100 past the length, and the best of the values at the end, ``(B,)``.

    The values are the scores but for a constant, and -inf where no labelling is legal; 0 for an empty sequence.
    """
    batch, steps, num_labels = chain.emissions.shape
    lengths = None if chain.lengths is None else array(chain.lengths)
    parts = [numbers(part) for part in chain[:4]]
    if batch * num_labels**2 < MANY:  # float64 costs no more
        parts = [part.astype(np.float64) for part in parts]
    parts[1:] = levelled(*parts[1:])
    top = np.zeros(batch, parts[0].dtype)
    for cut in plan.viterbi_cuts(batch, steps, num_labels):
        pieces = cut_batch(batch, steps, lengths, cut)
        if len(pieces.length) == 0:
            return torch.full((batch, steps), IGNORE), torch.from_numpy(top)
        found = Search(pieces, *parts).path()
        if found is not None:
            break
    assert found is not None  # in one piece a path is always found
    path, top[pieces.sequence[pieces.ending]], close = found
    labels, best = torch.from_numpy(placed(path, pieces)), torch.from_numpy(top)
    if len(close) > 0:
        again = torch.from_numpy(np.unique(pieces.owners[close]))
        labels[again], exact = max_path(rows_of(chain, again).double())
        best[again] = exact.to(best.dtype)
    return labels, best


def rows_of(chain: Chain, rows: Tensor) -> Chain:
    """Some sequences of the chain."""
    start, end = (part[rows] if part.dim() == 2 else part for part in (chain.start, chain.end))
    lengths = None if chain.lengths is None else chain.lengths[rows]
    return Chain(chain.emissions[rows], chain.transitions, start, end, lengths)


def placed(path: Array, pieces: Pieces) -> Array:
    """Labels ``(size, P)`` of the pieces where they stand in the batch ``(B, T)``, -100 elsewhere."""
    if pieces.begin is None:
        return np.array(path.T, order="C")
    labels = np.full((pieces.batch, pieces.steps), IGNORE)
    if pieces.joints is None:
        labels[pieces.sequence, : len(path)] = path.T
    else:
        labels.reshape(-1)[pieces.rows] = path[np.arange(len(path))[:, None] < pieces.length]
    return labels


def levelled(transitions: Array, start: Array, end: Array) -> list[Array]:
    """The scores less what all labellings share, where that is large: sums over time would lose digits to it."""
    parts = [transitions, start, end]
    if abs(float(transitions.max())) <= SMALL:
        return parts
    best = [part.max((0, 1) if part is transitions else -1, keepdims=True) for part in parts]
    return [part - finite(top) for part, top in zip(parts, best, strict=True)]


def dense(pieces: Pieces, emissions: Array) -> Array:
    """``(B, T, K)`` as ``(size, P, K)``; what is past the end of a piece means nothing."""
    size, k = len(pieces.counts), emissions.shape[2]
    if pieces.joints is None:
        own = emissions if pieces.begin is None else emissions[pieces.sequence, :size]
        return own.swapaxes(0, 1)
    assert pieces.begin is not None
    rows = pieces.begin + np.arange(size)[:, None]
    return emissions.reshape(-1, k).take(rows, 0, mode="clip")


def finite(top: Array) -> Array:
    """What is to be taken out: 0 where that is not finite."""
    top[~np.isfinite(top)] = 0
    return top


class MaxProduct:
    """``max_j (values(j) + W(j, k))`` for many values at once.

    The label that is reduced comes first in memory, so that the maximum runs along whole vectors: along the rows, or
    along the labels, whichever fill them better. What is added to fill them means nothing.
    """

    def __init__(self, transitions: Array, rows: Array) -> None:
        """For so many rows, step by step."""
        k, most = len(transitions), int(rows[0])
        self.large = k * k * most >= MANY
        share = 1.25 if most > rows[-1] else 1.15  # where steps differ, wide values have to be laid out one by one
        self.wide = share * k * self.whole(rows).sum() < self.whole(k) * rows.sum()
        labels = k if self.wide else self.whole(k)
        matrix = np.zeros((k, labels), transitions.dtype)
        matrix[:, :k] = transitions
        self.matrix = matrix[:, :, None] if self.wide else matrix[:, None, :]
        self.added = torch.from_numpy(self.matrix)
        self.memory = empty(k * labels * (self.whole(most) if self.wide else most), matrix.dtype)
        self.held = 0

    def whole(self, count: Any) -> Any:
        """The count in whole vectors, where it is worth while."""
        return -(-count // VECTOR) * VECTOR if self.large else count

    def block(self, rows: Array) -> Array:
        """Values ``(n, K)`` as they are to lie in memory: ``(K, n)`` where they are wide."""
        if not self.wide:
            return rows
        block: Array = self.blocks(rows[None])[0]
        return block

    def blocks(self, rows: Array) -> Array:
        """``(size, n, K)`` likewise, a copy."""
        size, count, k = rows.shape
        if not self.wide:
            return np.array(rows, order="C")
        out = empty((size, k, self.whole(count)), rows.dtype)
        out[:, :, count:] = 0
        out[:, :, :count] = rows.transpose(0, 2, 1)
        return out

    def rows(self, block: Array, count: int) -> Array:
        """The inverse."""
        return block[:, :count].T if self.wide else block

    def hold(self, count: int) -> None:
        """Set up the sums for so many rows."""
        self.held, (k, *_) = count, self.matrix.shape
        shape = (k, k, count) if self.wide else (k, count, self.matrix.shape[2])
        self.sums = self.memory[: math.prod(shape)].reshape(shape)
        self.written = torch.from_numpy(self.sums)

    def __call__(self, block: Array, count: int) -> Array:
        """The maxima for the first rows, of which there are so many."""
        if self.wide:
            count = self.whole(count)
        each = block[:, None, :count] if self.wide else block[:count].T[:, :, None]
        if self.large:
            if count != self.held:
                self.hold(count)
            torch.add(torch.from_numpy(each), self.added, out=self.written)
            found: Array = np.maximum.reduce(self.sums, 0)
        else:
            found = np.maximum.reduce(each + self.matrix, 0)
        return found if self.wide else found[:, : len(self.matrix)]


class Search:
    """``v_t(k) = e_t(k) + max_j (v_{t-1}(j) + W(j, k))`` over the pieces of a batch, and the path back."""

    def __init__(self, pieces: Pieces, emissions: Array, transitions: Array, start: Array, end: Array) -> None:
        self.pieces = pieces
        self.into = np.ascontiguousarray(transitions.T)
        self.step = MaxProduct(transitions, pieces.counts)
        self.blocks = self.laid(emissions, end if end.ndim == 1 else end[pieces.sequence[pieces.ending]])
        self.values = [self.step.rows(*given) for given in zip(self.blocks, pieces.counts.tolist(), strict=True)]
        self.values[0][pieces.starting] += start if start.ndim == 1 else start[pieces.sequence[pieces.starting]]

    def laid(self, emissions: Array, end: Array) -> list[Array]:
        """The scores of each step as they are to lie in memory, a copy, measured from the largest label of each
        position; what the last labels score is added.
        """
        pieces, step = self.pieces, self.step
        if pieces.begin is not None and step.large and not step.wide:
            rows = pieces.gather(emissions)
            subtract(rows, finite(largest(rows)))
            rows[pieces.ends] += end
            return pieces.by_step(rows)
        blocks = step.blocks(dense(pieces, emissions))
        by_label = blocks if step.wide else blocks.reshape(-1, blocks.shape[2])
        subtract(by_label, finite(largest(by_label)))
        counts = pieces.counts.tolist()
        if step.wide:
            own = [block[:, : step.whole(n)] for block, n in zip(blocks, counts, strict=True)]
            blocks = blocks.swapaxes(1, 2)
        else:
            own = [block[:n] for block, n in zip(blocks, counts, strict=True)]
        blocks[pieces.length[pieces.ending] - 1, np.arange(len(pieces.length))[pieces.ending]] += end
        return own

    def last(self) -> Array:
        """``(P, K)``: the values at the last position of each piece."""
        if self.pieces.begin is None:
            return self.values[-1]
        counts = [*self.pieces.counts.tolist(), 0]
        parts = [values[n:] for values, n in zip(self.values, counts[1:], strict=True) if n < len(values)]
        return np.concatenate(parts[::-1])

    def path(self) -> tuple[Array, Array, Array] | None:
        """The labels ``(size, P)``, the best value at the end of each sequence, and the places where the path has a
        rival that rounding cannot tell from it; None where pieces do not meet.
        """
        if not self.fill():
            return None
        last = self.last()
        # what rounding cannot tell apart in float32: paths that meet again differ for a few steps
        self.apart = 0.0
        if last.dtype == np.float32:
            self.apart = ROUNDING * float(np.finfo(np.float32).eps) * max(top_of(last), top_of(self.into))
        path = self.read_back(last)
        if path is None:
            return None
        close = rivalled(self.chosen_by, self.apart) if self.apart else np.zeros(0, np.int64)
        return path, np.maximum.reduce(last, 1)[self.pieces.ending], close

    def fill(self) -> bool:
        """Make values of the scores, up to a constant for each piece; whether all were entered as their neighbour was
        left.
        """
        joints = self.pieces.joints
        if joints is not None:
            entry = self.advance(joints.lead, joints.warm)
            entered = self.step.rows(self.step(entry, len(joints.lead)), len(joints.lead))
            self.values[0][joints.follow] += entered
        for before, after, values in zip(self.blocks, self.blocks[1:], self.values[1:], strict=False):
            after += self.step(before, len(values))
        return joints is None or agreed(self.step.rows(entry, len(joints.lead)), self.values[-1][joints.lead])

    def advance(self, lead: Array, warm: int) -> Array:
        """Warm up: values after the last steps of the pieces that lead."""
        first, *later = self.values[-warm:]
        block = self.step.block(first[lead])
        for values in later:
            block = self.step(block, len(lead))
            own = self.step.rows(block, len(lead))
            own += values[lead]
        return block

    def read_back(self, last: Array) -> Array | None:
        """The path ``(size, P)`` from the last values; None if a piece does not meet its neighbour's."""
        joints, ahead = self.pieces.joints, self.retreat()
        if joints is not None:
            last[joints.lead] += self.into[ahead]
        best, path = last.argmax(1), np.full((len(self.values), len(last)), IGNORE)
        after, looked_at = path[0, :0], self.apart > 0
        self.chosen_by = empty((self.pieces.offsets[-1], last.shape[1]), last.dtype) if looked_at else last[:0]
        spaces = reversed(self.pieces.by_step(self.chosen_by)) if looked_at else itertools.repeat(np.empty_like(last))
        for values, row, space in zip(reversed(self.values), path[::-1], spaces, strict=False):
            count, labels = len(after), row[: len(values)]
            if count > 0:
                score = self.into.take(after, 0, out=space[:count], mode="clip")
                score += values[:count]
                score.argmax(1, out=labels[:count])
            if len(labels) > count:  # pieces that end here
                labels[count:] = best[count : len(labels)]
                if looked_at:
                    space[count : len(labels)] = last[count : len(labels)]
            after = labels
        met = joints is None or np.array_equal(after[joints.follow], ahead)
        return path if met else None

    def retreat(self) -> Array:
        """The first label of each piece that follows another, read back from some steps later."""
        joints = self.pieces.joints
        if joints is None:
            return np.zeros(0, np.int64)
        before, labels = 0, np.empty(len(joints.follow), np.int64)
        for i, count in reversed(list(enumerate(self.pieces.active(joints.follow, joints.warm)))):
            own = self.values[i][joints.follow[:count]]
            if before > 0:
                own[:before] += self.into[labels[:before]]
            own.argmax(1, out=labels[:count])
            before = count
        return labels


def rivalled(scores: Array, apart: float) -> Array:
    """The rows of ``(N, K)`` that have a second label as good as the best but for so much."""
    close = scores >= (largest(scores) - apart)[:, None]
    if np.count_nonzero(close) == len(scores):
        return np.zeros(0, np.int64)
    return np.flatnonzero(close.sum(1) > 1)


def top_of(values: Array) -> float:
    """The largest finite number, whatever its sign."""
    return float(np.abs(values, where=np.isfinite(values), out=np.zeros_like(values)).max())


def agreed(entry: Array, left: Array) -> bool:
    """Whether values ``(n, K)`` differ by a constant for each row, but for rounding."""
    same = (entry == -np.inf) & (left == -np.inf)
    apart = np.where(same, np.nan, entry - left)
    high, low = np.fmax.reduce(apart, 1, initial=-np.inf), np.fmin.reduce(apart, 1, initial=np.inf)
    size = np.where(np.isfinite(left), np.abs(left), 0).max(1)
    rounding = 16 * np.finfo(left.dtype).eps * size
    return bool(((high - low <= rounding) | same.all(1)).all())
