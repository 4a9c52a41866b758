"""The one-slack cutting plane method for structured machines."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from torch_multiclass.solvers.objective import Dual, Objective, Point
from torch_multiclass.solvers.problem import Problem
from torch_multiclass.solvers.structured import PlaneMonitor, StructuredSolver

__all__ = ["Bundle", "CuttingPlane"]

_PATIENCE = 50  # rounds that a plane stays unused, and that may change nothing
_NEAR = 0.1  # how far from the best weight to the latest a plane is sought
_CUT = 0.1  # of what the risk is above the planes at the latest weight, a plane is to make up for
_PART = 1e-3  # of the gap, to which the quadratic program is solved
_RIDGE = 1e-13
_LEAST, _SMALL = 1e-14, 1e-9

Floats = NDArray[np.float64]


class CuttingPlane(StructuredSolver):
    r"""The structured SVM by cutting planes of the whole risk, to a certified relative duality gap.

    Minimises what `FrankWolfe` does. A round finds the worst labelling of every example, whose planes add up to one of
    ``R(w) = C sum_i loss_i``, with slope ``g_r`` and offset ``b_r``; then ``w = -sum_r a_r g_r`` for the ``a >= 0``
    with ``sum_r a_r <= 1`` that maximise ``sum_r a_r b_r - ½ |w|^2``, a quadratic program that is solved to a
    thousandth of the gap. It looks for them a tenth of the way from the best weight so far to ``w``, which takes a
    third of the rounds, and at ``w`` itself where that hardly cuts it off. A plane that is not used for 50 rounds is
    dropped. Few rounds, each over all examples at once: for small ``C``. A fit that rounding keeps where it is for 50
    rounds ends there, and says how large the gap is.

    Args:
        C, loss, cost, kernel, transition_scale, bias, tol, scorer: as in `FrankWolfe`.
        max_passes: how many rounds at most.
        generator: unused; nothing is drawn.
        memory_limit, progress, on_step: as in `FrankWolfe`.

    Shape:
        features ``(N, D)`` and target ``(N)``, or ``(N, T, D)`` and ``(N, T)`` with mask ``(N, T)`` or lengths ``(N)``.

    Raises:
        ValueError: constants that are not positive, a loss that is none; what `fit` refuses.

    Reference: Joachims, Finley and Yu (2009), *Cutting-plane training of structural SVMs*, algorithm 3; Mohri,
    Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, (9.22) and (9.23).

    Example:
        >>> import torch
        >>> words = torch.tensor([[[1.0], [-1.0]]])  # one word of two letters
        >>> scorer, report = CuttingPlane(C=0.1, tol=1e-6).fit(words, torch.tensor([[0, 1]]))
        >>> round(report.primal, 4)
        0.13
    """

    single = False  # planes add up all rows, and what little is between two of them decides

    def steps(self, problem: Problem, monitor: PlaneMonitor) -> Iterator[None]:
        objective = monitor.objective
        if monitor.begin_from is not None and self.begin(monitor, monitor.begin_from):
            return
        still, seen, shares = 0, math.inf, np.empty(0)
        while True:
            bundle, point = monitor.kept, monitor.kept.point()
            assert isinstance(bundle, Bundle)
            losses, found = objective.planes(point)
            risk, best = float(losses @ objective.strength), monitor.weight
            primal = monitor.see(point, losses)
            if monitor.passes:
                near = best.mixed(point, _NEAR)
                losses, found_near = objective.planes(near)
                primal = min(primal, monitor.see(near, losses))
            if monitor.measure(primal, point):
                return
            before, seen, shares = (seen, shares), monitor.primal, bundle.shares[bundle.shares > 0]
            still = still + 1 if seen == before[0] and np.array_equal(shares, before[1]) else 0
            if still == _PATIENCE:  # what is left to gain is less than rounding
                return
            yield
            tol, lower = (monitor.primal - monitor.dual) * _PART, bundle.risk()
            if monitor.passes > 1:
                bundle = bundle.with_plane(found_near, tol)
                if bundle.value(point) < lower + _CUT * (risk - lower):
                    bundle = bundle.with_plane(found, tol)
            else:
                bundle = bundle.with_plane(found, tol)
            monitor.kept = bundle

    def dual(self, objective: Objective[Any]) -> Bundle:
        return Bundle(objective)


@dataclass(frozen=True)
class Bundle(Dual):
    """Planes of the risk, the plane 0 first: products ``(R, R)`` of their slopes, offsets and shares ``(R)``."""

    objective: Objective[Any]
    found: tuple[Any, ...] = (None,)
    points: tuple[Point | None, ...] = (None,)
    """What each plane pulls the weight to, minus its slope."""
    offsets: Floats = field(default_factory=lambda: np.zeros(1))
    shares: Floats = field(default_factory=lambda: np.ones(1))
    products: Floats = field(default_factory=lambda: np.zeros((1, 1)))
    unused: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    def with_plane(self, found: Any, tol: float) -> Bundle:
        """One more plane, and the shares that are best then."""
        point, offset = self.objective.pull(found, self.objective.strength)
        column = [0.0, *(self.objective.inner(p, point) for p in self.points if p is not None)]
        own = self.objective.inner(point, point)
        products = np.block([[self.products, np.array(column)[:, None]], [np.array([column]), np.array([[own]])]])
        offsets = np.append(self.offsets, offset)
        shares = best_shares(products, offsets, np.append(self.shares, 0.0), tol)
        unused = np.where(shares > 0, 0, np.append(self.unused, 0) + 1)
        stays = (unused <= _PATIENCE) | (np.arange(len(shares)) == 0)
        keep = np.flatnonzero(stays)
        founds, points = (*self.found, found), (*self.points, point)
        return Bundle(
            self.objective,
            tuple(founds[i] for i in keep),
            tuple(points[i] for i in keep),
            offsets[keep],
            shares[keep],
            products[np.ix_(keep, keep)],
            unused[keep],
        )

    def risk(self) -> float:
        """What the planes say of the risk at their weight: ``sum a b - |w|^2``."""
        return self.linear() - float(self.shares @ self.products @ self.shares)

    def value(self, point: Point) -> float:
        """The latest plane at a weight."""
        latest = self.points[-1]
        return float(self.offsets[-1]) - (0.0 if latest is None else self.objective.inner(latest, point))

    def point(self) -> Point:
        total = self.objective.zero()
        for point, share in zip(self.points, self.shares, strict=True):
            if point is not None and share > 0:
                total = total.plus(point, float(share))
        return total

    def linear(self) -> float:
        return float(self.shares @ self.offsets)

    def anew(self) -> Bundle:
        shares = self.shares.clip(min=0)
        return replace(self, shares=shares / shares.sum())

    def multipliers(self) -> Tensor:
        used = [r for r in range(1, len(self.shares)) if self.shares[r] > 0]
        total = self.objective.multipliers(None, self.objective.strength)
        for r in used:
            total = total + self.objective.multipliers(self.found[r], float(self.shares[r]) * self.objective.strength)
        return total

    def begun_at(self, other: Dual, ratio: float) -> Bundle:
        """The other's planes, scaled as the risk is, with its shares."""
        assert isinstance(other, Bundle)
        points = tuple(None if point is None else point.map(lambda part: part * ratio) for point in other.points)
        return replace(
            other,
            objective=self.objective,
            points=points,
            offsets=other.offsets * ratio,
            products=other.products * ratio**2,
        )


def best_shares(products: Floats, offsets: Floats, shares: Floats, tol: float) -> Floats:
    r"""The ``a >= 0``, ``sum a = 1``, that maximise ``a · offsets - ½ a^T products a``, to within ``tol``.

    An active set method: the optimum over the planes in use, by their equations; from it a plane that would have a
    negative share goes, or the most promising one comes.

    Example:
        >>> best_shares(np.eye(2), np.array([0.5, 0.0]), np.array([1.0, 0.0]), 1e-9).round(3).tolist()
        [0.75, 0.25]
    """
    shares = shares.copy()
    sizes, used = np.abs(products), shares > 0
    for _ in range(100 + 20 * len(shares)):
        slope = offsets - products @ shares
        best = int(slope.argmax())
        gain = float(slope[best] - shares @ slope)
        rounding = _LEAST * (np.abs(offsets) + sizes @ shares)
        if gain <= max(tol, float(rounding[best] + shares @ rounding)):
            break
        used[best], before = True, shares
        while True:
            goal = _unconstrained(products, offsets, used)
            leaving = used & (goal < 0)
            if not leaving.any():
                shares = goal
                break
            ratio = shares[leaving] / (shares[leaving] - goal[leaving])
            step = float(ratio.min())
            shares = shares + step * (goal - shares)
            gone = np.flatnonzero(leaving)[ratio <= step]
            shares[gone], used[gone] = 0.0, False
        shares = np.where(used, shares.clip(min=0), 0.0)
        shares /= shares.sum()
        used, move = shares > 0, shares - before
        if move @ slope <= 0.5 * float(move @ products @ move):  # what is left is less than rounding
            return before
    return shares


def _unconstrained(products: Floats, offsets: Floats, used: NDArray[np.bool_]) -> Floats:
    """The optimum over the planes in use with ``sum a = 1`` alone.

    In units of how long each plane is: a share of a plane far from the others, or of one in features that are large,
    may be small beside 1 without being nothing.
    """
    index = np.flatnonzero(used)
    inner = products[np.ix_(index, index)]
    squares = np.diag(inner)
    least = max(_SMALL * float(np.abs(offsets).max()), _LEAST**2 * float(squares.mean()), 1e-200)
    unit = 1 / np.sqrt(squares.clip(min=least))
    system = np.zeros((len(index) + 1,) * 2)
    system[:-1, :-1] = unit[:, None] * inner * unit + _RIDGE * np.eye(len(index))
    system[:-1, -1] = system[-1, :-1] = unit
    solved = np.linalg.solve(system, np.append(unit * offsets[index], 1.0))
    goal = np.zeros(len(used))
    goal[index] = unit * solved[:-1]
    return goal
