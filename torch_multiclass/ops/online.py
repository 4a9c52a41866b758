"""The loop of the online learners: visit a row, compare its scores, move the weights of a few classes along the row.

By the native library, or by NumPy. Both add up the scores of all classes in the same order, so that classes of equal
weights have equal scores, to the last bit: a tie is a mistake.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from torch_multiclass.ops import _native
from torch_multiclass.ops._native import pointer

Array = np.ndarray[Any, Any]

ASKS = ("labels", "signs", "pairs")
RULES = ("conservative", "all", "uniform")
KINDS = ("perceptron", "passive_aggressive", "winnow", "winnow_binary")

ROUNDING = 1e-12
"""A hinge below this is one of 0."""

_LANES = 4
_HIGHEST = 600.0  # where weights of Winnow are written with another unit: exp of it is far from what overflows

pack_online = struct.Struct("@16q3d6q").pack
"""The fields of ``TmOnline`` in ``native/online.h``."""


class Rows(NamedTuple):
    """Rows of features, dense or compressed.

    Shape:
        values ``(N, D)``, or ``(M)`` with offsets ``(N + 1)`` and columns ``(M)``, ascending in each row.
    """

    values: Tensor
    width: int
    offsets: Tensor | None = None
    columns: Tensor | None = None

    def row(self, i: int) -> tuple[Array, Array | slice]:
        """A row's entries, float64, and where they stand."""
        if self.offsets is None or self.columns is None:
            return self.values[i].double().numpy(), slice(0, self.width)
        inside = slice(int(self.offsets[i]), int(self.offsets[i + 1]))
        return self.values[inside].double().numpy(), self.columns[inside].numpy()


class Asked(NamedTuple):
    """What each row asks for: that its class be above all others, the classes of one sign above those of the other, or
    of each pair the first above the second.

    Shape:
        target ``(N)``, ``(N, K)`` int8, or ``(M, 2)``, those of row ``i`` from ``first[i]`` to ``first[i + 1]``.
    """

    kind: str
    target: Tensor
    first: Tensor | None = None

    def of(self, i: int, classes: int) -> list[tuple[int, int]]:
        """The preferences of a row, in order."""
        if self.kind == "labels":
            y = int(self.target[i])
            return [(y, z) for z in range(classes) if z != y]
        if self.kind == "signs":
            signs = self.target[i]
            above, below = ((signs > 0).nonzero(), (signs < 0).nonzero())
            return [(int(a), int(b)) for a in above for b in below]
        assert self.first is not None
        return [(int(a), int(b)) for a, b in self.target[int(self.first[i]) : int(self.first[i + 1])]]


class Rule(NamedTuple):
    """How a learner answers to preferences that are violated."""

    kind: str
    rule: str = "conservative"
    threshold: float = 0.0
    ratio: float = 1.0

    @property
    def top(self) -> float:
        """The highest exponent that ``ratio`` is raised to."""
        return _HIGHEST / float(np.log(self.ratio)) if self.ratio > 1 else 0.0


@dataclass
class State:
    """The weights and what belongs to them, float64, the classes of a feature side by side.

    Shape:
        weights ``(D, P)``, ``P >= K`` a multiple of 4; drift and exponents likewise; counts ``(3)``.
    """

    classes: int
    weights: Tensor
    counts: Tensor
    """Visits, updates, and preferences used."""
    drift: Tensor | None = None
    """The sum over updates of what each added times the visits before it: of the mean over all visits."""
    exponents: Tensor | None = None
    """Of Winnow: ``weights = ratio^(exponents - shift)``."""
    shift: Tensor | None = None

    @classmethod
    def zero(cls, classes: int, width: int, *, averaged: bool = False, exponents: bool = False) -> State:
        """Where learners begin; the weights of Winnow are 1."""
        weights = torch.zeros(width, -(-classes // _LANES) * _LANES, dtype=torch.float64)
        state = cls(classes, weights, torch.zeros(3, dtype=torch.int64))
        if averaged:
            state.drift = torch.zeros_like(weights)
        if exponents:
            weights[:, :classes] = 1
            state.exponents, state.shift = torch.zeros_like(weights), torch.zeros(1, dtype=torch.float64)
        return state

    @property
    def updates(self) -> int:
        """How many visits changed a weight."""
        return int(self.counts[1])

    def result(self) -> Tensor:
        """``(K, D)``: the weights, or their mean over all visits."""
        weights = self.weights
        if self.drift is not None and int(self.counts[0]):
            weights = weights - self.drift / self.counts[0]
        return weights[:, : self.classes].mT.contiguous()


def visit(state: State, rows: Rows, asked: Asked, steps: Tensor, rule: Rule, bias: bool, order: Tensor) -> None:
    """Visit the rows ``order (n)`` in turn; ``steps (N)``, float64, says how far each moves."""
    library = _native.library()
    if library is None:
        return by_numpy(state, rows, asked, steps, rule, bias, order)
    work = torch.empty(rows.width + bias + 2 * state.weights.shape[1], dtype=torch.float64)
    wide = rows.values.dtype == torch.float64
    first, drift, exponents, shift = map(pointer, (asked.first, state.drift, state.exponents, state.shift))
    fields = (
        *(rows.values.data_ptr(), pointer(rows.offsets), pointer(rows.columns), wide, rows.width, bias),
        *(order.data_ptr(), len(order), ASKS.index(asked.kind), asked.target.data_ptr(), first, steps.data_ptr()),
        *(state.classes, state.weights.shape[1], RULES.index(rule.rule), KINDS.index(rule.kind)),
        *(rule.threshold, rule.ratio, rule.top, state.weights.data_ptr(), drift, exponents, shift),
        *(state.counts.data_ptr(), work.data_ptr()),
    )
    library.function("tm_online")(pack_online(*fields))


# --------------------------------------------------------------------------------------------------------- by NumPy


def by_numpy(state: State, rows: Rows, asked: Asked, steps: Tensor, rule: Rule, bias: bool, order: Tensor) -> None:
    """`visit` without the library."""
    if (rule.kind, rule.rule, asked.kind) == ("perceptron", "conservative", "labels") and rows.offsets is None:
        return _dense_perceptron(state, rows, asked.target, steps, bias, order)
    weights, ask = state.weights.numpy(), _asker(rule, state, asked.kind != "pairs")
    for i in order.tolist():
        x, at = rows.row(i)
        if bias:
            x, at = (
                np.append(x, 1.0),
                (slice(0, rows.width + 1) if isinstance(at, slice) else np.append(at, rows.width)),
            )
        if x.any():
            scores = _sums(x, weights[at])[: state.classes]
            changes, used = ask(scores, asked.of(i, state.classes), x, float(steps[i]))
            if used:
                _add(state, rule, x, at, changes)
                state.counts[1:] += torch.tensor([1, used])
        state.counts[0] += 1


def _dense_perceptron(state: State, rows: Rows, labels: Tensor, steps: Tensor, bias: bool, order: Tensor) -> None:
    """The multi-class perceptron, with as few calls a row as there can be."""
    x = rows.values[order].double()
    features = (torch.cat([x, torch.ones(len(x), 1)], 1) if bias else x).numpy()
    seen = np.flatnonzero(features.any(1))
    weights, scores = state.weights.numpy(), np.empty(state.weights.shape[1])
    columns, real = list(weights.T), scores[: state.classes]
    drifts = None if state.drift is None else list(state.drift.numpy().T)
    product = np.dot if _even(weights.shape) else _sums
    add, subtract, argmax, lowest, updates = np.add, np.subtract, real.argmax, -np.inf, 0
    order, before = order[torch.from_numpy(seen)], (seen + int(state.counts[0])).tolist()
    for x_i, y, step, visits in zip(features[seen], labels[order].tolist(), steps[order].tolist(), before, strict=True):
        product(x_i, weights, scores)
        z = argmax()
        if z == y:
            own, real[y] = real[y], lowest
            z = argmax()
            if real[z] < own:
                continue
        move = x_i if step == 1 else step * x_i
        add(columns[y], move, columns[y])
        subtract(columns[z], move, columns[z])
        if drifts is not None:
            drifts[y] += visits * move
            drifts[z] -= visits * move
        updates += 1
    state.counts += torch.tensor([len(features), updates, updates])


def _sums(x: Array, weights: Array, out: Array | None = None) -> Array:
    """``x · weights``, the columns alike."""
    sums: Array = np.einsum("d,dk->k", x, weights, out=out)
    return sums


def _even(shape: tuple[int, ...]) -> bool:
    """Whether the product of this shape, by whatever library NumPy has, adds up every column in the same order."""
    draws = np.random.default_rng(0).normal(size=(8, 2, shape[0]))
    products = (np.dot(x, np.repeat(w[:, None], shape[1], 1)) for x, w in draws)
    return all(bool((found == found[0]).all()) for found in products)


Pairs = list[tuple[int, int]]

Changes = tuple[dict[int, float], int]

Ask = Callable[[Array, Pairs, Array, float], Changes]
"""From the scores, the preferences, the row and its step to the changes of classes and how many preferences asked."""


def _asker(rule: Rule, state: State, every_pair: bool) -> Ask:
    """``every_pair``: whether each class above is to be above each class below."""

    def binary(scores: Array, pairs: Pairs, x: Array, step: float) -> Changes:
        assert state.shift is not None
        positive = pairs[0][0] == 1
        guess = scores[1] - scores[0] >= rule.threshold * rule.ratio ** -float(state.shift)
        step = step if positive else -step
        return {1: step, 0: -step}, int(guess != positive)

    def conservative(scores: Array, pairs: Pairs, x: Array, step: float) -> Changes:
        if not pairs:
            return {}, 0
        if every_pair:
            a, b = min(pairs, key=lambda pair: (scores[pair[0]], -scores[pair[1]]))
        else:
            a, b = min(pairs, key=lambda pair: scores[pair[0]] - scores[pair[1]])
        margin = float(scores[a] - scores[b])
        if rule.kind == "passive_aggressive":
            loss = 1 - margin
            if not loss > ROUNDING:
                return {}, 0
            step = min(step, loss / (2 * float(x @ x)))
        elif margin > 0:
            return {}, 0
        return {a: step, b: -step}, 1

    def every(scores: Array, pairs: Pairs, x: Array, step: float) -> Changes:
        violated = [(a, b) for a, b in pairs if scores[a] <= scores[b]]
        share, changes = step / max(len(violated), 1) if rule.rule == "uniform" else step, dict[int, float]()
        for a, b in violated:
            changes[a] = changes.get(a, 0.0) + share
            changes[b] = changes.get(b, 0.0) - share
        return changes, len(violated)

    if rule.kind == "winnow_binary":
        return binary
    return conservative if rule.rule == "conservative" else every


def _add(state: State, rule: Rule, x: Array, at: Array | slice, changes: dict[int, float]) -> None:
    """Move classes along a row, or of Winnow their exponents."""
    weights = state.weights.numpy()
    if state.exponents is None or state.shift is None:
        for k, change in changes.items():
            move = change * x
            weights[at, k] += move
            if state.drift is not None:
                state.drift.numpy()[at, k] += float(state.counts[0]) * move
        return
    exponents, shift = state.exponents.numpy(), state.shift
    for k, change in changes.items():
        exponents[at, k] += change * x
        weights[at, k] = _powers(rule.ratio, exponents[at, k] - float(shift))
    real = exponents[:, : state.classes]
    if real.max() - float(shift) > rule.top:  # the largest weight becomes 1
        shift.fill_(real.max())
        weights[:, : state.classes] = _powers(rule.ratio, real - float(shift))


def _powers(ratio: float, exponents: Array) -> Array:
    """``ratio^exponents`` as the C library has them; NumPy's own may be a few digits off."""
    return np.array([ratio**exponent for exponent in exponents.ravel().tolist()]).reshape(exponents.shape)


def pieces(order: Tensor, cells: int) -> Iterator[Tensor]:
    """The visits in parts that take a fraction of a second each, between which the keyboard is listened to."""
    size = max(256, 2**24 // max(cells, 1))
    for begin in range(0, len(order), size):
        yield order[begin : begin + size]
