"""The loop without the native library: what it computes, and the oracle of its tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from torch_multiclass.ops.online.records import ROUNDING, Array, Asked, Rows, Rule, State


def visit(state: State, rows: Rows, asked: Asked, steps: Tensor, rule: Rule, bias: bool, order: Tensor) -> None:
    """Visit the rows in turn."""
    if (rule.kind, rule.rule, asked.kind) == ("perceptron", "conservative", "labels") and rows.offsets is None:
        return _dense_perceptron(state, rows, asked.target, steps, bias, order)
    weights, ask = state.weights.numpy(), _asker(rule, state, asked.kind != "pairs")
    for i in order.tolist():
        x, at = rows.row(i)
        if bias:
            x = np.append(x, 1.0)
            at = slice(0, rows.width + 1) if isinstance(at, slice) else np.append(at, rows.width)
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
