"""The loop without the native library: what it computes, and the oracle of its tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from torch_multiclass.ops.online.records import ROUNDING, Array, Asked, Rows, Rule, State


@np.errstate(over="ignore", invalid="ignore")  # what overflows is infinite, as in the library
def visit(state: State, rows: Rows, asked: Asked, steps: Tensor, rule: Rule, bias: bool, order: Tensor) -> None:
    """Visit the rows in turn."""
    if (rule.kind, rule.rule, asked.kind) == ("perceptron", "conservative", "labels") and rows.offsets is None:
        return _dense_perceptron(state, rows, asked.target, steps, bias, order)
    weights, classes = state.weights.numpy(), np.arange(state.classes)
    for i, step in zip(order.tolist(), steps[order].tolist(), strict=True):
        x, at = rows.row(i)
        if bias:
            x = np.append(x, 1.0)
            at = slice(0, rows.width + 1) if isinstance(at, slice) else np.append(at, rows.width)
        if x.any():
            scores = _sums(weights[at], x)[: state.classes]
            change, used = _change(rule, state, scores, *asked.of(i, classes), x, step)
            if used:
                _add(state, rule, x, at, change)
                state.counts[1] += 1
                state.counts[2] += used
        state.counts[0] += 1


def _dense_perceptron(state: State, rows: Rows, labels: Tensor, steps: Tensor, bias: bool, order: Tensor) -> None:
    """The multi-class perceptron, with as few calls a row as there can be."""
    x = rows.values[order].double()
    features = (torch.cat([x, torch.ones(len(x), 1)], 1) if bias else x).numpy()
    seen = np.flatnonzero(features.any(1))
    weights = np.ascontiguousarray(state.weights.numpy().T)  # a row for each class, which is faster here
    drifts = None if state.drift is None else state.drift.numpy().T
    scores, classes = np.empty(len(weights)), list(weights)
    product: Callable[..., object] = weights.dot if _even(weights.shape) else partial(_sums, weights.T)
    add, subtract, argmax, lowest, updates = np.add, np.subtract, scores[: state.classes].argmax, -np.inf, 0
    order, before = order[torch.from_numpy(seen)], (seen + int(state.counts[0])).tolist()
    for x_i, y, step, visits in zip(features[seen], labels[order].tolist(), steps[order].tolist(), before, strict=True):
        product(x_i, scores)
        z = argmax()
        if z == y:
            own, scores[y] = scores[y], lowest
            z = argmax()
            if scores[z] < own:
                continue
        move = x_i if step == 1 else step * x_i
        w_y, w_z = classes[y], classes[z]
        add(w_y, move, w_y)
        subtract(w_z, move, w_z)
        if drifts is not None:
            move = visits * move
            drifts[y] += move
            drifts[z] -= move
        updates += 1
    state.weights.numpy()[:] = weights.T
    state.counts += torch.tensor([len(features), updates, updates])


def _sums(weights: Array, x: Array, out: Array | None = None) -> Array:
    """``x · weights``, ``(D, K)``, the columns alike."""
    sums: Array = np.einsum("d,dk->k", x, weights, out=out)
    return sums


def _even(shape: tuple[int, ...]) -> bool:
    """Whether a matrix of this shape times a vector, by whatever library NumPy has, adds up every row in one order."""
    draws = np.random.default_rng(0).normal(size=(8, 2, shape[1]))
    products = (np.tile(w, (shape[0], 1)).dot(x) for x, w in draws)
    return all(bool((found == found[0]).all()) for found in products)


def _change(
    rule: Rule, state: State, scores: Array, above: Array, below: Array, paired: bool, x: Array, step: float
) -> tuple[Array, int]:
    """What to add to each class, as a multiple of the row, and how many preferences ask for it."""
    change = np.zeros(len(scores))
    if rule.kind == "winnow_binary":
        assert state.shift is not None
        positive = above[0] == 1
        guess = scores[1] - scores[0] >= rule.threshold * rule.ratio ** -float(state.shift)
        change[:] = (-step, step) if positive else (step, -step)
        return change, int(guess != positive)
    if len(above) == 0 or len(below) == 0:
        return change, 0
    if rule.rule == "conservative":
        if paired:
            worst = (scores[above] - scores[below]).argmin()
            a, b = above[worst], below[worst]
        else:
            a, b = above[scores[above].argmin()], below[scores[below].argmax()]
        margin = float(scores[a] - scores[b])
        if rule.kind == "passive_aggressive":
            loss = 1 - margin
            if not loss > ROUNDING:
                return change, 0
            step = min(step, loss / (2 * float(x @ x)))
        elif margin > 0:
            return change, 0
        change[a], change[b] = step, -step
        return change, 1
    if paired:
        violated = scores[above] <= scores[below]
        np.add.at(change, above[violated], 1)
        np.subtract.at(change, below[violated], 1)
    else:
        violated = scores[above][:, None] <= scores[below]
        change[above] += violated.sum(1)
        change[below] -= violated.sum(0)
    used = int(violated.sum())
    return (step / used if rule.rule == "uniform" and used else step) * change, used


def _add(state: State, rule: Rule, x: Array, at: Array | slice, change: Array) -> None:
    """Move classes along a row, or of Winnow their exponents."""
    weights, moved = state.weights.numpy(), np.flatnonzero(change)
    if state.exponents is None or state.shift is None:
        for k in moved:
            move = change[k] * x
            weights[at, k] += move
            if state.drift is not None:
                state.drift.numpy()[at, k] += float(state.counts[0]) * move
        return
    exponents, shift = state.exponents.numpy(), state.shift
    for k in moved:
        exponents[at, k] += change[k] * x
    real = exponents[:, : state.classes]
    if real.max() - float(shift) > rule.top:  # the largest weight becomes 1
        shift.fill_(real.max())
        weights[:, : state.classes] = _powers(rule.ratio, real - float(shift))
        return
    for k in moved:
        weights[at, k] = _powers(rule.ratio, exponents[at, k] - float(shift))


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
