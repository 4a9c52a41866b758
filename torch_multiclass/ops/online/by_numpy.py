"""The loop without the native library: what it computes, and the oracle of its tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from torch_multiclass.ops.online.answers import Answer, answers
from torch_multiclass.ops.online.records import Array, Asked, Rows, Rule, State

Add = Callable[[Array, "Array | slice", Sequence[tuple[int, float]], int], None]
"""Moves classes along a row, whose entries stand at some features, after some visits."""


@np.errstate(over="ignore", invalid="ignore")  # what overflows is infinite, as in the library
def visit(state: State, rows: Rows, asked: Asked, steps: Tensor, rule: Rule, bias: bool, order: Tensor) -> None:
    """Visit the rows in turn."""
    if rows.offsets is not None or state.exponents is not None:
        add = _adds(state) if state.exponents is None else _multiplies(state, rule)
        _visit_any(state, rows, answers(state, asked, rule), add, steps, bias, order)
    elif (rule.kind, rule.rule, asked.kind) == ("perceptron", "conservative", "labels"):
        _visit_perceptron(state, rows, asked.target, steps, bias, order)
    else:
        _visit_dense(state, rows, answers(state, asked, rule), steps, bias, order)


class _Dense:
    """Dense rows to visit and weights that are added to, laid out for as few and short calls a row as there can be."""

    def __init__(self, state: State, rows: Rows, bias: bool, order: Tensor) -> None:
        x = rows.values[order].double()
        features = (torch.cat([x, torch.ones(len(x), 1)], 1) if bias else x).numpy()
        seen = np.flatnonzero(features.any(1))
        self.state, self.visits = state, len(features)
        self.features, self.order = features[seen], order[torch.from_numpy(seen)]
        self.before = (seen + int(state.counts[0])).tolist()
        """Visits before each."""
        self.weights = np.ascontiguousarray(state.weights.numpy().T)  # a row for each class
        self.drift = None if state.drift is None else np.ascontiguousarray(state.drift.numpy().T)
        self.classes, self.drifts = list(self.weights), [] if self.drift is None else list(self.drift)
        self.padded = np.empty(len(self.weights))
        self.scores = self.padded[: state.classes]
        even = _even(self.weights.shape)
        self.product: Callable[..., object] = self.weights.dot if even else partial(_sums, self.weights.T)
        """Writes the scores of all classes."""

    def finish(self, updates: int, used: int) -> None:
        """Put back what was learned."""
        self.state.weights.numpy()[:] = self.weights.T
        if self.state.drift is not None and self.drift is not None:
            self.state.drift.numpy()[:] = self.drift.T
        self.state.counts += torch.tensor([self.visits, updates, used])


def _visit_perceptron(state: State, rows: Rows, labels: Tensor, steps: Tensor, bias: bool, order: Tensor) -> None:
    """`_visit_dense` of the commonest answer, spelled out, which takes two thirds of the time."""
    dense = _Dense(state, rows, bias, order)
    product, padded, scores, argmax = dense.product, dense.padded, dense.scores, dense.scores.argmax
    classes, drifts, add, subtract, lowest, updates = dense.classes, dense.drifts, np.add, np.subtract, -np.inf, 0
    given = zip(dense.features, labels[dense.order].tolist(), steps[dense.order].tolist(), dense.before, strict=True)
    for x, y, step, visits in given:
        product(x, padded)
        z = argmax()
        if z == y:
            own, scores[y] = scores[y], lowest
            z = argmax()
            if scores[z] < own:
                continue
        move = x if step == 1 else step * x
        w_y, w_z = classes[y], classes[z]
        add(w_y, move, w_y)
        subtract(w_z, move, w_z)
        if drifts:
            move = visits * move
            d_y, d_z = drifts[y], drifts[z]
            add(d_y, move, d_y)
            subtract(d_z, move, d_z)
        updates += 1
    dense.finish(updates, updates)


def _visit_dense(state: State, rows: Rows, answer: Answer, steps: Tensor, bias: bool, order: Tensor) -> None:
    """Weights that are added to, on dense rows."""
    dense = _Dense(state, rows, bias, order)
    product, padded, scores, classes, drifts = dense.product, dense.padded, dense.scores, dense.classes, dense.drifts
    used = []
    given = zip(dense.features, dense.order.tolist(), steps[dense.order].tolist(), dense.before, strict=True)
    for x, i, step, visits in given:
        product(x, padded)
        found = answer(scores, i, x, step)
        if found is not None:
            used.append(found[0])
            for k, factor in found[1]:
                move = factor * x
                classes[k] += move
                if drifts:
                    drifts[k] += visits * move
    dense.finish(len(used), sum(used))


def _visit_any(state: State, rows: Rows, answer: Answer, add: Add, steps: Tensor, bias: bool, order: Tensor) -> None:
    """Any weights, on any rows."""
    weights, row, counts = state.weights.numpy(), rows.reader(bias), state.counts.tolist()
    try:
        for i, step in zip(order.tolist(), steps[order].tolist(), strict=True):
            x, at = row(i)
            if x.any():
                found = answer(_sums(weights[at], x)[: state.classes], i, x, step)
                if found is not None:
                    add(x, at, found[1], counts[0])
                    counts[1] += 1
                    counts[2] += found[0]
            counts[0] += 1
    finally:  # what an interrupt leaves is whole
        state.counts[:] = torch.tensor(counts)


def _sums(weights: Array, x: Array, out: Array | None = None) -> Array:
    """``x · weights``, ``(D, K)``, the columns alike."""
    sums: Array = np.einsum("d,dk->k", x, weights, out=out)
    return sums


def _even(shape: tuple[int, ...]) -> bool:
    """Whether a matrix of this shape times a vector, by whatever library NumPy has, adds up every row in one order."""
    draws = np.random.default_rng(0).normal(size=(8, 2, shape[1]))
    products = (np.tile(w, (shape[0], 1)).dot(x) for x, w in draws)
    return all(bool((found == found[0]).all()) for found in products)


def _adds(state: State) -> Add:
    """Of the additive learners."""
    weights, drift = state.weights.numpy(), None if state.drift is None else state.drift.numpy()

    def add(x: Array, at: Array | slice, moves: Sequence[tuple[int, float]], visits: int) -> None:
        for k, factor in moves:
            move = factor * x
            weights[at, k] += move
            if drift is not None:
                drift[at, k] += visits * move

    return add


def _multiplies(state: State, rule: Rule) -> Add:
    """Of Winnow, whose exponents are added to; a weight over the top makes another unit, in which the largest is 1."""
    assert state.exponents is not None
    assert state.shift is not None
    weights, exponents, shift = state.weights.numpy(), state.exponents.numpy(), state.shift

    def add(x: Array, at: Array | slice, moves: Sequence[tuple[int, float]], visits: int) -> None:
        highest = -np.inf
        for k, factor in moves:
            exponents[at, k] += factor * x
            highest = max(highest, exponents[at, k].max())
        if highest - float(shift) > rule.top:
            real = exponents[:, : state.classes]
            shift.fill_(real.max())
            weights[:, : state.classes] = _powers(rule.ratio, real - float(shift))
            return
        for k, _ in moves:
            weights[at, k] = _powers(rule.ratio, exponents[at, k] - float(shift))

    return add


def _powers(ratio: float, exponents: Array) -> Array:
    """``ratio^exponents`` as the C library has them; NumPy's own may be a few digits off."""
    return np.array([ratio**exponent for exponent in exponents.ravel().tolist()]).reshape(exponents.shape)


# ----------------------------------------------------------------------------------------------------------- chains


@np.errstate(over="ignore", invalid="ignore")  # what overflows is infinite, as in the library
def visit_chains(
    state: State, rows: Rows, asked: Asked, steps: Tensor, allowed: Tensor | None, bias: bool, order: Tensor
) -> None:
    """Visit sequences in turn: the best labelling against the gold one."""
    assert asked.first is not None
    weights, classes = state.weights.numpy(), state.classes
    begin, first, labels = rows.width + bias, asked.first.tolist(), asked.target.numpy()
    for i in order.tolist():
        gold = labels[first[i] : first[i + 1]]
        if len(gold):
            x = rows.values[first[i] : first[i + 1]].double().numpy()
            x = np.append(x, np.ones((len(x), 1)), 1) if bias else x
            moves = weights[begin:] if allowed is None else weights[begin:] + allowed.numpy()
            emissions = np.einsum("td,dk->tk", x, weights[:begin])
            path = _best_labels(emissions[:, :classes], moves[:, :classes])
            if (path != gold).any():
                _change_chain(state, x, gold, path, float(steps[i]))
                state.counts[1:] += 1
        state.counts[0] += 1


def _best_labels(emissions: Array, moves: Array) -> Array:
    """Ties go to the lowest last label, then backwards."""
    back, values = np.zeros(emissions.shape, dtype=np.int64), emissions[0] + moves[-2]
    for t in range(1, len(emissions)):
        sums = values[:, None] + moves[:-2]
        back[t] = sums.argmax(0)
        values = sums.max(0) + emissions[t]
    path = np.empty(len(emissions), dtype=np.int64)
    path[-1] = (values + moves[-1]).argmax()
    for t in range(len(path) - 1, 0, -1):
        path[t - 1] = back[t, path[t]]
    return path


def _change_chain(state: State, x: Array, gold: Array, path: Array, step: float) -> None:
    """Move the weights along what the gold labelling counts and against what the best one does, where they differ."""
    begin, start, end = x.shape[1], state.classes, state.classes + 1
    for t in np.flatnonzero(gold != path):
        _shift(state, slice(0, begin), gold[t], path[t], step * x[t])
    moved = (gold[1:] != path[1:]) | (gold[:-1] != path[:-1])
    for t in np.flatnonzero(moved):
        _shift(state, begin + gold[t], gold[t + 1], None, step)
        _shift(state, begin + path[t], None, path[t + 1], step)
    if gold[0] != path[0]:
        _shift(state, begin + start, gold[0], path[0], step)
    if gold[-1] != path[-1]:
        _shift(state, begin + end, gold[-1], path[-1], step)


def _shift(state: State, at: int | slice, up: int | None, down: int | None, move: Array | float) -> None:
    """Add to the weights of one class, and take from those of another."""
    visits = float(state.counts[0])
    for table, scaled in ((state.weights, move), (state.drift, visits * move)):
        if table is not None:
            if up is not None:
                table.numpy()[at, up] += scaled
            if down is not None:
                table.numpy()[at, down] -= scaled
