"""What the proximal-point methods share: the length of their steps, when a centre is found and when to give up."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_multiclass.solvers.gap import GapMonitor
from torch_multiclass.solvers.space import Space
from torch_multiclass.solvers.svm.duals import Hinge

NEWTON_STEPS = 30
"""Newton steps around one centre at most."""
INNER = 0.05
"""A centre is good enough when ``½ |grad F|^2`` is below this times the gap."""
SMALL, LARGE = 500, 2500
"""Linear systems solved outright: always, or where conjugate gradients failed."""
WORK = 1e10
"""Multiplications that setting up a system may take."""
FORCING = 0.1
"""How far conjugate gradients reduce the residual."""

_GROWTH, _LEAP = 2.0, 10.0
_QUICK = 3  # Newton steps
_LARGEST, _CROSSING, _ROUNDED = 1e6, 1e3, 1e10
_REVIEW, _PROGRESS = 40, 0.8
_SHORTEST = 1e-14


class StepSize:
    """``sigma``, how far the multipliers may go from their centre.

    It grows with every centre found, and leaps where the last was found in no time, until one was out of reach or its
    linear systems were too large to solve outright.
    """

    def __init__(self, space: Space, hinge: Hinge) -> None:
        typical = float((space.squared_norms * hinge.curvature).mean().clamp_min(1e-30))
        size = float(hinge.upper.mean())
        # enough to cross the polytopes many times over at margins of one, not so much that they are lost in rounding
        self._largest = min(max(_LARGEST / typical, _CROSSING * size), _ROUNDED * size)
        self.sigma = min(10 / typical, self._largest)
        self._growth = _LEAP

    def grow(self, steps: int) -> None:
        """A centre was found in so many Newton steps."""
        self.sigma = min(self.sigma * (self._growth if steps <= _QUICK else _GROWTH), self._largest)

    def stop_leaping(self) -> None:
        """A linear system is not solved outright: leap no more, conjugate gradients would not follow."""
        self._growth = _GROWTH

    def shrink(self) -> None:
        """A centre was not found."""
        self.sigma /= _LEAP
        self.stop_leaping()


def exhausted(monitor: GapMonitor, gaps: list[float]) -> bool:
    """Whether single precision is at its end: misled, or the last `_REVIEW` passes left more than `_PROGRESS` of the
    gap."""
    if monitor.misled:
        return True
    single = monitor.space.dtype != torch.float64
    return single and len(gaps) > _REVIEW and gaps[-1] > _PROGRESS * gaps[-1 - _REVIEW]


def root_of(increasing: Callable[[float], float]) -> float:
    """Where a function, negative at 0 and positive at 1, changes its sign, to one part in eight: geometric steps down,
    then halves."""
    low, high = 1 / 8, 1.0
    while increasing(low) > 0:
        if low < _SHORTEST:
            return low
        low, high = low / 8, low
    while high > 1.125 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if increasing(middle) <= 0 else (low, middle)
    return low
