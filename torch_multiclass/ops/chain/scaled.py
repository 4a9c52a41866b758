"""``log Z``, or ``log Z - s(labels)``, by the recursions in scaled probability space, and the way to its gradient."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from torch_multiclass.ops.chain import certificate
from torch_multiclass.ops.chain.arrays import NUMBERS, Array, array, at_labels, numbers, ordered_sums, quiet
from torch_multiclass.ops.chain.gold import Gold
from torch_multiclass.ops.chain.logspace import Gradients
from torch_multiclass.ops.chain.pieces import cut_batch
from torch_multiclass.ops.chain.plan import Cut
from torch_multiclass.ops.chain.recursion import (
    Probabilities,
    backward,
    forward,
    log_mass,
    probabilities,
    rescale_every,
)
from torch_multiclass.ops.chain.structure import Chain
from torch_multiclass.ops.chain.table import SAFE, Weights, tabulate

NEAR, A_STEP = 10.0, 0.1
"""Below so many nats, and so many for each position, float32 takes a loss from what differs from the gold labelling."""

SMALL_PART = 1e-3
"""Float64 does so below this share of what would cancel."""

SURE = 0.1
"""Up to here float32 has the digits of such a loss."""

CANCELLED = 0.04
"""A gradient for transitions, start or end below this share of what it sums has too few digits left in float32."""


def scaled(chain: Chain, labels: Tensor | None, weights: Weights, cut: Cut) -> Scaled:
    """The scaled recursion, with a certificate where the transitions alone do not vouch for it."""
    return Scaled(chain, labels, weights, cut, weights.forbids or weights.span > SAFE[weights.dtype])


class Scaled:
    """``value (B,)`` of a chain with one ``(K, K)`` matrix; ``sound (B,)`` says which are right."""

    @quiet
    def __init__(
        self, chain: Chain, labels: Tensor | None, weights: Weights, cut: Cut, certified: bool = False
    ) -> None:
        self.chain, self.labels, self.cancelled = chain, labels, False  # whether sums in `gradient` lost digits
        batch, steps, k = chain.emissions.shape
        lengths = None if chain.lengths is None else array(chain.lengths)
        pieces = cut_batch(batch, steps, lengths, cut)
        memory = np.empty((3, pieces.offsets[-1], k), NUMBERS[weights.dtype])
        probs = probabilities(pieces.gather(numbers(chain.emissions), memory[0]))
        every = rescale_every(weights.span, weights.dtype)
        if certified:
            certified = pieces.joints is not None or not certificate.shallow(len(pieces.offsets), probs.depth, weights)
            every = 4 if certified else len(pieces.offsets)
        self.done = forward(probs.x, memory[1:], weights, pieces, every)
        mass = log_mass(self.done)
        self.gold: Gold | None = None
        if labels is None:
            value = mass + self.taken_out(probs)
        else:
            self.gold = Gold.of(array(labels), pieces, k)
            value = self.loss(mass, probs)
        sound = np.isfinite(value)
        if self.done.entered is not None and pieces.joints is not None:
            left = self.done.alpha[pieces.final[pieces.joints.lead]] @ weights.moves
            sound &= certificate.agree(self.done.entered, left, pieces)
        if certified:
            sound &= self.certify(probs, mass)
        self.value, self.sound = torch.from_numpy(value), torch.from_numpy(sound)

    def taken_out(self, probs: Probabilities) -> Array:
        """What `forward` took out of all labellings alike, ``(B,)`` in float64."""
        move, first, last = self.done.weights.top
        found = self.done.pieces.sums(probs.shift + np.log(probs.sums.astype(np.float64)))
        if self.chain.lengths is None:
            return found + ((self.chain.emissions.shape[1] - 1) * move + first + last)
        lengths = array(self.chain.lengths)
        return found + np.where(lengths > 0, (lengths - 1) * move + first + last, 0)

    def loss(self, mass: Array, probs: Probabilities) -> Array:
        """``log Z - s(labels)``, ``(B,)`` in float64."""
        assert self.gold is not None
        pieces, weights = self.done.pieces, self.done.weights
        near = NEAR + A_STEP * pieces.steps
        if weights.dtype == torch.float64:
            near = SMALL_PART * float(np.abs(mass).max(initial=0, where=np.isfinite(mass)))
        mass = mass - self.gold.of_moves(weights, pieces.batch)
        value = mass - self.gold.of_emissions(probs.x, pieces)
        lowest, highest = float(value.min()), float(value.max())
        if lowest > near and highest < math.inf:  # the usual case, in one pass
            return value
        if not highest < math.inf:
            scores = pieces.gather(numbers(self.chain.emissions))
            exact = mass - self.gold.of_scores(scores, probs.shift, probs.sums, pieces)
            value = np.where(np.isfinite(value), value, exact)
        close = (value < near) & np.isfinite(mass)
        if bool(close.any()):
            value = np.where(close, self.gold.beside(self.done, close), value)
            if weights.dtype == torch.float32:
                self.sharpen(value, close & (value > SURE))
        return value

    def sharpen(self, value: Array, blunt: Array) -> None:
        """Compute the value of these sequences in float64."""
        rows = torch.from_numpy(np.flatnonzero(blunt))
        if len(rows) > 0 and self.labels is not None:
            chain = self.chain.rows(rows)
            wide = scaled(chain, self.labels[rows], tabulate(chain, torch.float64), Cut(chain.emissions.shape[1], 1, 0))
            value[blunt] = np.where(array(wide.sound), array(wide.value), np.nan)

    def certify(self, probs: Probabilities, mass: Array) -> Array:
        """``(B,)``: whether nothing that matters came near underflow, by `certificate`."""
        done, pieces, weights = self.done, self.done.pieces, self.done.weights
        k = weights.moves.shape[0]
        ended = certificate.all_ended_clear(done.total, pieces)
        divided = float(done.scales.min(initial=1))
        whole = probs.depth <= certificate.DEEP[done.x.itemsize] and bool(np.isfinite(mass).all())
        if whole and certificate.all_reached_clear(done.alpha, divided, pieces, weights):
            return ended
        floor = mass - certificate.MARGIN
        table = weights.log > np.where(np.isfinite(mass), floor, 0).min()
        own_floor = floor[pieces.owners]
        counts, lost = probs.x > np.exp(own_floor)[:, None], probs.x == 0
        if bool(lost.any()):
            scores = pieces.gather(numbers(self.chain.emissions))
            lost &= scores - scores.max(1, keepdims=True) > own_floor[:, None]
        counts[pieces.starting] &= table[k * k : -k]
        counts[pieces.ends] &= table[-k:]
        found = certificate.clear(done.alpha, self.divided())
        done.x[~found] = 0
        moves = table[: k * k].reshape(k, k)
        clear = certificate.all_possible_clear(counts, found, moves, pieces)
        clear &= pieces.sums(np.logical_or.reduce(lost, 1)) == 0
        return clear & ended

    def divided(self) -> Array:
        """``(N,)``: what was divided out of alpha at each place."""
        done, offsets = self.done, self.done.pieces.offsets
        out = np.ones(len(done.x), done.x.dtype)
        for n, scale in enumerate(done.scales, 1):
            low, high = offsets[n * done.every : n * done.every + 2]
            out[low:high] = scale[: high - low]
        return out

    def forget(self, rows: Tensor) -> None:
        """Take the ``rows`` of the batch out of what the gradient is made of."""
        done, gone = self.done, array(rows)
        places, pieces = np.isin(done.pieces.owners, gone), np.isin(done.pieces.sequence, gone)
        done.x[places] = done.alpha[places] = 0
        done.total[pieces] = done.scales[:, pieces] = 1

    @quiet
    def gradient(self, grad: Tensor) -> tuple[Gradients, Tensor | None]:
        """The gradient of ``sum(grad * value)``, and which rows of it are sound (None: all)."""
        pieces, dtype = self.done.pieces, NUMBERS.get(self.chain.emissions.dtype, np.dtype(np.float32))
        weight = array(grad).astype(self.done.x.dtype)
        unit = out_of_range(float(np.abs(weight).max()))
        unary, moves, sound = backward(self.done, weight if unit is None else weight / unit)
        if unit is not None:
            unary *= unit
            moves *= unit
        if self.gold is not None:
            gold = at_labels(unary.shape[1], self.gold.labels)
            unary.put(gold, 0)  # p - 1 of the gold label is what the others have, with all their digits
            unary.put(gold, -ordered_sums(unary))
            counts = self.gold.counts(weight, len(moves))
            moves = moves - counts
        first, last = unary[pieces.starting], unary[pieces.ends]
        start, end = np.add.reduce(first, 0), np.add.reduce(last, 0)
        if self.gold is not None and unary.itemsize == 4:
            self.cancelled = cancelled(moves, counts)
            if pieces.batch > 1:
                self.cancelled |= cancelled(start, first) or cancelled(end, last)
        parts = pieces.scatter(unary, dtype), *(part.astype(dtype, copy=False) for part in (moves, start, end))
        found = tuple(map(torch.from_numpy, parts))
        return found, None if sound is None else torch.from_numpy(sound)  # type: ignore[return-value]


def cancelled(total: Array, parts: Array) -> bool:
    """Whether a sum is small beside what it sums."""
    return float(np.abs(total).max()) < CANCELLED * float(np.abs(parts).max())


def out_of_range(size: float) -> float | None:
    """The size of an incoming gradient if it is to be taken out, so that products with it stay within range."""
    return size if 0 < size < 1e-6 or 1e6 < size < math.inf else None
