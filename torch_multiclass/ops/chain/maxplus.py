"""The best labelling on the CPU: keep the max values only, and find the best predecessors again along the path.

Long sequences are cut in pieces that run side by side. The values of two chains that started differently soon differ
by a constant only, and a constant changes no argmax: a piece starts some steps early, and is right if its first values
then differ by a constant from those its neighbour ends with. Reading back likewise starts some steps late, and is
right if it meets its neighbour's path.

All this is in NumPy, but for the sums, which torch adds faster where they are many.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from torch_multiclass.checks import IGNORE
from torch_multiclass.ops.chain import plan
from torch_multiclass.ops.chain.arrays import MANY, PLAIN, Array, array, largest, numbers, quiet
from torch_multiclass.ops.chain.pieces import Pieces, cut_batch
from torch_multiclass.ops.chain.structure import Chain

VECTOR = 16
"""Numbers that are computed at once; what is left over is done one by one, which takes as long."""

SMALL = 8.0
"""Up to here, what the transitions share is not taken out."""


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
    if lengths is not None and not lengths.any():
        return torch.full((batch, steps), IGNORE), torch.from_numpy(top)
    for cut in plan.viterbi_cuts(batch, steps, num_labels):
        pieces = cut_batch(batch, steps, lengths, cut)
        found = Search(pieces, *parts).path()
        if found is not None:
            break
    assert found is not None  # in one piece a path is always found
    path, top[pieces.sequence[pieces.ending]] = found
    return torch.from_numpy(pieces.scatter(path, np.dtype(np.int64), IGNORE)), torch.from_numpy(top)


def levelled(transitions: Array, start: Array, end: Array) -> list[Array]:
    """The scores less what all labellings share, where that is large: sums over time would lose digits to it."""
    parts = [transitions, start, end]
    if abs(float(transitions.max())) <= SMALL:
        return parts
    best = [part.max((0, 1) if part is transitions else -1, keepdims=True) for part in parts]
    return [part - finite(top) for part, top in zip(parts, best, strict=True)]


def finite(top: Array) -> Array:
    """What is to be taken out: 0 where that is not finite."""
    top[~np.isfinite(top)] = 0
    return top


class MaxProduct:
    """``out(k) = max_j (values(j) + W(j, k))`` for many values at once.

    The label that is reduced comes first in memory, so that the maximum runs along whole vectors: along the rows, or
    along the labels, whichever fill them better. What is added to fill them means nothing.
    """

    def __init__(self, transitions: Array, rows: int) -> None:
        k = len(transitions)
        self.large = k * k * rows >= MANY
        self.wide = k * self.whole(rows) < rows * self.whole(k)
        self.labels = k if self.wide else self.whole(k)
        self.matrix = np.zeros((k, self.labels), transitions.dtype)
        self.matrix[:, :k] = transitions
        self.matrix = self.matrix[:, :, None] if self.wide else self.matrix[:, None, :]
        self.added = torch.from_numpy(self.matrix)
        self.memory = np.empty(k * math.prod(self.shape(rows)), transitions.dtype)
        self.count = -1

    def whole(self, count: int) -> int:
        """The count in whole vectors, where it is worth while."""
        return -(-count // VECTOR) * VECTOR if self.large else count

    def shape(self, count: int) -> tuple[int, int]:
        """Of the values of so many rows: labels come first where these are wide."""
        return (self.labels, self.whole(count)) if self.wide else (count, self.labels)

    def resize(self, count: int) -> None:
        """Set up the sums for so many rows."""
        self.count, shape = count, (len(self.matrix), *self.shape(count))
        self.sums = self.memory[: math.prod(shape)].reshape(shape)
        self.written = torch.from_numpy(self.sums)

    def blank(self, count: int) -> Array:
        """Values of so many rows, to be set."""
        return np.zeros(self.shape(count), self.memory.dtype)

    def rows(self, values: Array, count: int) -> Array:
        """``(n, K)`` of these."""
        return values[:, :count].T if self.wide else values[:, : len(self.matrix)]

    def __call__(self, values: Array, count: int) -> Array:
        """The maxima for the first rows, of which there are so many."""
        if count != self.count:
            self.resize(count)
        if self.wide:
            each = values[:, None, : self.sums.shape[2]]
        else:
            each = values[:count, : len(self.matrix)].T[:, :, None]
        if self.large:
            torch.add(torch.from_numpy(each), self.added, out=self.written)
        else:
            np.add(each, self.matrix, out=self.sums)
        return np.maximum.reduce(self.sums, 0)  # type: ignore[no-any-return]


class Search:
    """``v_t(k) = e_t(k) + max_j (v_{t-1}(j) + W(j, k))`` over the pieces of a batch, and the path back."""

    def __init__(self, pieces: Pieces, emissions: Array, transitions: Array, start: Array, end: Array) -> None:
        self.pieces = pieces
        self.into = np.ascontiguousarray(transitions.T)
        self.step = MaxProduct(transitions, len(pieces.sequence))
        # measured from the largest at each position, which keeps the digits of values added up over time
        if self.step.wide and pieces.rows is None:  # as the values lie in memory
            scores = np.array(emissions.transpose(1, 2, 0), order="C")
            scores -= finite(np.maximum.reduce(scores, 1, keepdims=True))
            self.scores = [own.T for own in scores]
            self.scores[-1] += end
        else:
            scores = pieces.gather(emissions)
            scores -= finite(largest(scores))[:, None]
            scores[pieces.ends] += end if end.ndim == 1 else end[pieces.sequence[pieces.ending]]
            self.scores = pieces.by_step(scores)
        self.scores[0][pieces.starting] += start if start.ndim == 1 else start[pieces.sequence[pieces.starting]]
        self.values: list[Array] = []  # of each step, (n, K)
        self.best = np.zeros(len(pieces.sequence), scores.dtype)

    def path(self) -> tuple[Array, Array] | None:
        """The labels ``(N,)``, and the best value at the end of each sequence; None where pieces do not meet."""
        path = self.read_back() if self.fill() else None
        return None if path is None else (path, self.best[self.pieces.ending])

    def fill(self) -> bool:
        """Compute the values, up to a constant for each piece; whether all were entered as their neighbour was left."""
        first, *later = self.scores
        values = self.step.blank(len(first))
        own = self.step.rows(values, len(first))
        own[:] = first
        joints = self.pieces.joints
        if joints is not None:
            entry = self.advance(joints.lead, joints.warm)
            own[joints.follow] += self.step.rows(self.step(entry, len(joints.lead)), len(joints.lead))
        self.values = [own]
        for scores in later:
            values = self.step(values, len(scores))
            own = self.step.rows(values, len(scores))
            own += scores
            self.values.append(own)
        return joints is None or agreed(self.step.rows(entry, len(joints.lead)), self.values[-1][joints.lead])

    def advance(self, lead: Array, warm: int) -> Array:
        """Warm up: values after the last steps of the pieces that lead."""
        values = self.step.blank(len(lead))
        self.step.rows(values, len(lead))[:] = self.scores[-warm][lead]
        for scores in self.scores[1 - warm :] if warm > 1 else []:
            values = self.step(values, len(lead))
            own = self.step.rows(values, len(lead))
            own += scores[lead]
        return values

    def read_back(self) -> Array | None:
        """The path ``(N,)``; None if a piece does not meet its neighbour's."""
        pieces = self.pieces
        path = np.empty(pieces.offsets[-1], np.int64)
        ahead = self.retreat()
        space = np.empty((len(pieces.sequence), len(self.into)), self.into.dtype)
        after = path[:0]
        for values, labels in zip(reversed(self.values), reversed(pieces.by_step(path)), strict=True):
            count = len(after)
            if count > 0:
                score = self.into.take(after, 0, out=space[:count], mode="clip")
                score += values[:count]
                score.argmax(1, out=labels[:count])
            if len(labels) > count:  # pieces that end here
                last = values[count:]
                if count == 0 and pieces.joints is not None:
                    last[pieces.joints.lead] += self.into[ahead]
                labels[count:] = last.argmax(1)
                self.best[count : len(labels)] = last.max(1)
            after = labels
        met = pieces.joints is None or np.array_equal(after[pieces.joints.follow], ahead)
        return path if met else None

    def retreat(self) -> Array:
        """The first label of each piece that follows another, read back from some steps later."""
        joints = self.pieces.joints
        if joints is None:
            return np.zeros(0, np.int64)
        count, labels = 0, np.empty(len(joints.follow), np.int64)
        for i in range(joints.warm - 1, -1, -1):
            at = self.pieces.step_of(i, joints.follow) - self.pieces.offsets[i]
            own = self.values[i][at]
            if count > 0:
                own[:count] += self.into[labels[:count]]
            own.argmax(1, out=labels[: len(at)])
            count = len(at)
        return labels


def agreed(entry: Array, left: Array) -> bool:
    """Whether values ``(n, K)`` differ by a constant for each row, but for rounding."""
    same = (entry == -np.inf) & (left == -np.inf)
    apart = np.where(same, np.nan, entry - left)
    high, low = np.fmax.reduce(apart, 1, initial=-np.inf), np.fmin.reduce(apart, 1, initial=np.inf)
    size = np.where(np.isfinite(left), np.abs(left), 0).max(1)
    rounding = 16 * np.finfo(left.dtype).eps * size
    return bool(((high - low <= rounding) | same.all(1)).all())
