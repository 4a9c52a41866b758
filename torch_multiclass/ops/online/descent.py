"""Stochastic sub-gradient descent for the multi-class hinge, on the same rows: Pegasos."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from torch_multiclass.ops import _native
from torch_multiclass.ops.online.loop import ONLINE, fields
from torch_multiclass.ops.online.records import Array, Asked, Rows, Rule, State

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
        for begin in range(0, len(order), batch):
            step(descent, rows, asked, shares, bias, order[begin : begin + batch].tolist())
        return
    work = torch.empty(rows.width + bias + 2 * state.weights.shape[1] + batch, dtype=torch.float64)
    packed = pack_pegasos(
        *fields(state, rows, asked, shares, Rule("perceptron"), bias, order, work),
        *(batch, descent.strength, float(descent.expected), descent.average.data_ptr(), descent.steps.data_ptr()),
    )
    library.function("tm_pegasos")(packed)


@np.errstate(over="ignore", invalid="ignore")  # what overflows is infinite, as in the library
def step(descent: Descent, rows: Rows, asked: Asked, shares: Tensor, bias: bool, chosen: list[int]) -> None:
    """``W <- (1 - 1/t) W - slope/(lambda t)``, then back into the ball, by NumPy."""
    weights, average, classes = descent.state.weights.numpy(), descent.average.numpy(), descent.state.classes
    taken, averaged = descent.steps.tolist()
    taken += 1
    moves: list[tuple[Array | slice, Array, int, int]] = []
    for i in chosen:
        x, at = rows.row(i)
        if bias:
            x = np.append(x, 1.0)
            at = slice(0, rows.width + 1) if isinstance(at, slice) else np.append(at, rows.width)
        scores, y = (x @ weights[at])[:classes], int(asked.target[i])
        losses = scores - scores[y] + 1
        losses[y] = 0
        moves.append((at, float(shares[i]) * x, y, int(losses.argmax())))
    weights *= 1 - 1 / taken
    for at, x, y, worst in moves:
        if worst != y:
            move = x / (descent.strength * taken * len(chosen))
            weights[at, y] += move
            weights[at, worst] -= move
    weights *= min(1.0, (2 / descent.strength) ** 0.5 / max(float(np.linalg.norm(weights)), 1e-30))
    if descent.expected == 0 or 2 * taken > descent.expected:
        averaged += 1
        average += (2 / (averaged + 1) if descent.expected == 0 else 1 / averaged) * (weights - average)
    descent.steps[:] = torch.tensor([taken, averaged])
