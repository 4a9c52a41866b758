"""What the loop of the online learners works on: rows, what they ask for, the rule, and the weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

Array = np.ndarray[Any, Any]

ASKS = ("labels", "signs", "pairs")
RULES = ("conservative", "all", "uniform")
KINDS = ("perceptron", "passive_aggressive", "winnow", "winnow_binary")

ROUNDING = 1e-12
"""A hinge below this is one of 0."""

_LANES = 4
_HIGHEST = 600.0  # where weights of Winnow are written with another unit: exp of it is far from what overflows


class Rows(NamedTuple):
    """Rows of features, dense or compressed.

    Shape:
        values ``(N, D)``, or ``(M)`` with offsets ``(N + 1)`` and columns ``(M)``, ascending in each row.
    """

    values: Tensor
    width: int
    offsets: Tensor | None = None
    columns: Tensor | None = None

    def reader(self, bias: bool) -> Callable[[int], tuple[Array, Array | slice]]:
        """What gives a row's entries, float64, and where they stand; with a bias a last one, 1."""
        values = self.values.numpy()
        if self.offsets is None or self.columns is None:
            whole = slice(0, self.width + bias)
            if not bias:
                return lambda i: (values[i].astype(np.float64), whole)
            return lambda i: (np.append(values[i].astype(np.float64), 1.0), whole)
        offsets, columns = self.offsets.numpy(), self.columns.numpy()

        def read(i: int) -> tuple[Array, Array]:
            inside = slice(offsets[i], offsets[i + 1])
            x, at = values[inside].astype(np.float64), columns[inside]
            return (np.append(x, 1.0), np.append(at, self.width)) if bias else (x, at)

        return read


class Asked(NamedTuple):
    """What each row asks for: that its class be above all others, the classes of one sign above those of the other, or
    of each pair the first above the second.

    Shape:
        target ``(N)``, ``(N, K)`` int8, or ``(M, 2)``, those of row ``i`` from ``first[i]`` to ``first[i + 1]``.
    """

    kind: str
    target: Tensor
    first: Tensor | None = None


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
