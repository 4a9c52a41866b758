"""Stochastic sub-gradient descent for the multi-class hinge, on the same rows: Pegasos."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from torch_multiclass.ops import _native
from torch_multiclass.ops._native import pointer
from torch_multiclass.ops.online.loop import ONLINE, fields
from torch_multiclass.ops.online.records import Array, Asked, Rows, Rule, State

Slope = list[tuple["Array | slice", "int | slice", Array]]
"""Parts of it: at some features, of some classes, what is added."""

pack_pegasos = struct.Struct(f"{ONLINE}q2d2q").pack
"""The fields of ``TmPegasos`` in ``native/online.h``."""


@dataclass
class Descent:
    """``W``, and the average of the second half of its steps, or, where nobody knows how many there will be, one in
    which a step counts as much as its number."""

    state: State
    average: Tensor
    """``(D, P)``."""
    strength: float
    """Of the regulariser."""
    expected: int
    """How many steps there will be, 0 where nobody knows."""
    steps: Tensor
    """``(2)``: how many there were, and how many are in the average."""

    @classmethod
    def zero(cls, classes: int, width: int, strength: float, expected: int) -> Descent:
        """Where it begins."""
        state = State.zero(classes, width)
        return cls(state, torch.zeros_like(state.weights), strength, expected, torch.zeros(2, dtype=torch.int64))

    @property
    def taken(self) -> int:
        """How many steps there were."""
        return int(self.steps[0])

    def result(self) -> Tensor:
        """``(K, D)``: the average, or the last step as long as there is none."""
        found = self.average if int(self.steps[1]) else self.state.weights
        return found[:, : self.state.classes].mT.contiguous()


def descend(descent: Descent, rows: Rows, asked: Asked, shares: Tensor, bias: bool, order: Tensor, batch: int) -> None:
    """A step for each ``batch`` of the rows ``order (n)``, in turn; ``shares (N)`` says how much each counts."""
    library, state = _native.library(), descent.state
    if library is None:
        slopes = _of_dense if rows.offsets is None else _of_compressed
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is infinite, as in the library
            for slope in slopes(state, rows, asked.target[order].numpy(), shares[order].numpy(), bias, order, batch):
                _step(descent, slope)
        return
    work = _native.room(rows.width + bias + 2 * state.weights.shape[1] + batch, dtype=torch.float64)
    packed = pack_pegasos(
        *fields(state, rows, asked, shares, Rule("perceptron"), bias, order, work),
        *(
            batch,
            descent.strength,
            float(descent.expected),
            pointer(descent.average, torch.float64),
            pointer(descent.steps, torch.int64),
        ),
    )
    library.function("tm_pegasos")(packed)


# ----------------------------------------------------------------------------------------- without the native library


def _step(descent: Descent, slope: Slope) -> None:
    """``W <- (1 - 1/t) W - slope/(lambda t)``, then back into the ball."""
    weights, average = descent.state.weights.numpy(), descent.average.numpy()
    taken, averaged = descent.steps.tolist()
    taken += 1
    weights *= 1 - 1 / taken
    for at, k, part in slope:
        weights[at, k] -= part / (descent.strength * taken)
    flat = weights.reshape(-1)
    norm, most = math.sqrt(flat.dot(flat)), math.sqrt(2 / descent.strength)
    if norm > most:
        weights *= most / norm
    if descent.expected == 0 or 2 * taken > descent.expected:
        averaged += 1
        average += (2 / (averaged + 1) if descent.expected == 0 else 1 / averaged) * (weights - average)
    descent.steps[:] = torch.tensor([taken, averaged])


def _of_dense(
    state: State, rows: Rows, labels: Array, shares: Array, bias: bool, order: Tensor, batch: int
) -> Iterator[Slope]:
    """The slope of the loss of each batch, at the weights of that moment."""
    values = rows.values[order].double()
    x = (torch.cat([values, torch.ones(len(values), 1)], 1) if bias else values).numpy()
    weights, number, whole = state.weights.numpy(), np.arange(batch), slice(None)
    for begin in range(0, len(x), batch):
        part, y = x[begin : begin + batch], labels[begin : begin + batch]
        number, share = number[: len(y)], shares[begin : begin + batch] / len(y)
        losses = part.dot(weights)[:, : state.classes] + 1
        losses[number, y] -= 1
        signs = np.zeros((len(y), weights.shape[1]))
        signs[number, (losses - losses[number, y, None]).argmax(1)] = share
        signs[number, y] -= share
        yield [(whole, whole, part.T.dot(signs))]


def _of_compressed(
    state: State, rows: Rows, labels: Array, shares: Array, bias: bool, order: Tensor, batch: int
) -> Iterator[Slope]:
    """Likewise, in parts."""
    weights, read, numbers = state.weights.numpy(), rows.reader(bias), order.tolist()
    for begin in range(0, len(numbers), batch):
        found: Slope = []
        chosen = slice(begin, begin + batch)
        for i, y, share in zip(numbers[chosen], labels[chosen].tolist(), shares[chosen].tolist(), strict=True):
            x, at = read(i)
            losses = x.dot(weights[at])[: state.classes] + 1
            losses[y] -= 1
            worst = int((losses - losses[y]).argmax())
            if worst != y:
                part = share / len(numbers[chosen]) * x
                found += [(at, worst, part), (at, y, -part)]
        yield found
