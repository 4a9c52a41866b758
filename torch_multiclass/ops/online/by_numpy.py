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


def visit(state: State, rows: Rows, asked: Asked, steps: Tensor, rule: Rule, bias: bool, order: Tensor) -> None:
    """Visit the rows in turn."""
    answer = answers(state, asked, rule)
    if rows.offsets is None and state.exponents is None:
        _visit_dense(state, rows, answer, steps, bias, order)
    else:
        add = _adds(state) if state.exponents is None else _multiplies(state, rule)
        _visit_any(state, rows, answer, add, steps, bias, order)


def _visit_dense(state: State, rows: Rows, answer: Answer, steps: Tensor, bias: bool, order: Tensor) -> None:
    """Weights that are added to, on dense rows, with as few calls a row as there can be."""
    x = rows.values[order].double()
    features = (torch.cat([x, torch.ones(len(x), 1)], 1) if bias else x).numpy()
    seen = np.flatnonzero(features.any(1))
    weights = np.ascontiguousarray(state.weights.numpy().T)  # a row for each class, which is faster here
    drift = None if state.drift is None else np.ascontiguousarray(state.drift.numpy().T)
    padded, classes, drifts, used, into = np.empty(len(weights)), list(weights), [] if drift is None else list(drift), [], np.add
    scores, product = padded[: state.classes], _product(weights)
    order, before = order[torch.from_numpy(seen)], (seen + int(state.counts[0])).tolist()
    for x_i, i, step, visits in zip(features[seen], order.tolist(), steps[order].tolist(), before, strict=True):
        product(x_i, padded)
        found = answer(scores, i, x_i, step)
        if found is not None:
            used.append(found[0])
            for k, factor in found[1]:
                move = factor * x_i
                into(classes[k], move, classes[k])
                if drifts:
                    into(drifts[k], visits * move, drifts[k])
    state.weights.numpy()[:] = weights.T
    if state.drift is not None and drift is not None:
        state.drift.numpy()[:] = drift.T
    state.counts += torch.tensor([len(features), len(used), sum(used)])


def _product(weights: Array) -> Callable[[Array, Array], object]:
    """Writes ``weights · x``, ``(K)``, the classes summed alike."""
    return weights.dot if _even(weights.shape) else partial(_sums, weights.T)


def _visit_any(
    state: State, rows: Rows, answer: Answer, add: Add, steps: Tensor, bias: bool, order: Tensor
) -> None:
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
