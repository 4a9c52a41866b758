r"""Multi-class hinge losses under a group norm, by a proximal-point method with semismooth Newton steps.

The objective is ``R(W) + sum_i max_{b in B_i} b · t_i(W)`` with ``R(W) = ½ (sum_l |w_l|^p)^{2/p}``, which unless
``p = 2`` is neither smooth nor strongly convex. Both terms are smoothed around centres that follow the solution,

    ``F(W) = max_Y [<Y, W> - R*(Y) - |Y - Y0|^2 / (2 tau)] + |W - W0|^2 / (2 rho)
           + sum_i max_{b in B_i} [b · t_i(W) - |b - beta0_i|^2 / (2 sigma)]``,

a proximal-point step on the weights and on the multipliers of both terms at once. With ``Z = W + Y0/tau`` and ``u``
the proximal step of ``R/tau`` at ``Z`` the maximising ``Y`` is ``tau (Z - u)``; the maximising ``beta`` are feasible
for the true dual, ``sum_i cost_i · beta_i - ½ (sum_l |v_l|^q)^{2/q}``, which measures the gap. The gradient is
``Y - V + (W - W0)/rho``, ``V`` the image of ``alpha(beta)``, and Newton's matrix
``tau (I - du/dZ) + I/rho + sigma X^T T^T J T X``, ``J`` the derivative of the projection onto ``B``.

Reference: Rockafellar (1976), *Augmented Lagrangians and applications of the proximal point algorithm in convex
programming*, for the method of multipliers with a proximal term.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from torch_multiclass.ops.norms import shrink_group_norm, shrink_group_norm_slope
from torch_multiclass.solvers.gap import GapMonitor
from torch_multiclass.solvers.space import LinearSpace, Space
from torch_multiclass.solvers.svm.active_set import ActiveSet
from torch_multiclass.solvers.svm.duals import Hinge, hinge_of
from torch_multiclass.solvers.svm.proximal import (
    FORCING,
    INNER,
    LARGE,
    NEWTON_STEPS,
    WORK,
    StepSize,
    exhausted,
    root_of,
)
from torch_multiclass.solvers.systems import conjugate_gradient, solve_positive

_STIFF = 10.0  # tau at the start; it keeps its ratio to sigma
_STIFFEST = 1e6
_WEIGHTED = 1e-2  # tau / rho
_CG_STEPS = 250
_FLAT = 0.5  # a whole step is taken where the slope at its end is no steeper up than this was down
_HIDDEN = 1e-2  # share of the tolerance that rounding may take
_TINY = torch.finfo(torch.float32).tiny


class _Centre:
    """``beta0``, ``W0`` and ``Y0``, and how far a step may go from them."""

    def __init__(self, beta: Tensor, weight: Tensor, multipliers: Tensor, sigma: float, tau: float) -> None:
        self.beta, self.weight, self.multipliers, self.sigma, self.tau = beta, weight, multipliers, sigma, tau
        self.stiffness = _WEIGHTED / tau  # 1/rho


class _Point:
    """Everything about one ``W``."""

    def __init__(self, space: Space, hinge: Hinge, weight: Tensor, centre: _Centre, p: float) -> None:
        self.weight = weight
        self.margins = hinge.margins(space.scores(weight))
        self.beta = hinge.project(torch.add(centre.beta, self.margins, alpha=centre.sigma))
        self.image = space.image(hinge.alpha(self.beta))
        self.lifted = weight + centre.multipliers / centre.tau
        self.norms = space.class_squares(self.lifted).clamp_min(0).sqrt()
        self.shrunk = shrink_group_norm(self.norms, 1 / centre.tau, p)
        self.factors = self.shrunk / self.norms.clamp_min(_TINY)
        self.multipliers = centre.tau * space.scale_classes(self.lifted, (1 - self.factors).to(weight.dtype))
        self.gradient = self.multipliers - self.image + centre.stiffness * (weight - centre.weight)


def method_of_multipliers(monitor: GapMonitor) -> Iterator[None]:
    """Passes until the gap is proved or, in single precision, progress ends."""
    space, hinge, p = monitor.space, hinge_of(monitor), monitor.p
    size, gaps = StepSize(space, hinge), [monitor.gap]
    ratio, drifted = _STIFF / size.sigma, False
    beta, weight, multipliers = monitor.beta, monitor.weight, space.image(hinge.alpha(monitor.beta))
    while True:
        centre = _Centre(beta, weight, multipliers, size.sigma, min(ratio * size.sigma, _STIFFEST))
        point = _Point(space, hinge, weight, centre, p)
        for steps in range(NEWTON_STEPS):
            yield
            if _drifted(monitor, point):
                drifted = True  # from now on steps are kept short
                centre.weight, centre.multipliers = map(space.shortened, (centre.weight, centre.multipliers))
                point = _Point(space, hinge, space.shortened(point.weight), centre, p)
                if _drifted(monitor, point):
                    size.shrink()
                    break
            if monitor.see(point.weight, point.margins, point.beta, point.image):
                return
            gaps.append(monitor.gap)
            if exhausted(monitor, gaps):
                return
            if 0.5 * float(space.square(point.gradient)) <= INNER * (monitor.primal - monitor.dual):
                # computed anew, since the scores that go with the coefficients drift apart from them step by step
                beta, weight, multipliers = point.beta, space.adopt(point.weight), space.adopt(point.multipliers)
                size.grow(steps)
                break
            direction = _direction(space, hinge, point, centre, p)
            point = _search(space, hinge, point, space.shortened(direction) if drifted else direction, centre, p)
            monitor.measure_unfinished = partial(monitor.try_weight, point.weight, point.beta)
        else:  # out of reach
            size.shrink()


def _drifted(monitor: GapMonitor, point: _Point) -> bool:
    """Whether coefficients cancel each other so far that rounding hides what they make, and nothing can be proved by
    them: where rows depend on one another, they may grow without an end.
    """
    space, weight = monitor.space, point.weight
    squares, accepted = space.class_squares(weight), monitor.tol * max(1.0, abs(monitor.primal))
    hidden = monitor.regulariser(squares.clamp_min(0) + space.hidden(weight), monitor.p)
    if hidden - monitor.regulariser(squares, monitor.p) > _HIDDEN * accepted:
        return True
    return 0.5 * float(space.hidden(point.gradient).sum()) > INNER * accepted


def _direction(space: Space, hinge: Hinge, point: _Point, centre: _Centre, p: float) -> Tensor:
    """Newton's step. ``du/dZ`` scales each class by its factor across ``Z`` and by `coupled` more along it."""
    active = ActiveSet(space, hinge, point.beta)
    unit = space.scale_classes(point.lifted, (1 / point.norms.clamp_min(_TINY)).to(point.weight.dtype))
    own = centre.tau * (1 - point.factors) + centre.stiffness
    coupled = shrink_group_norm_slope(point.norms, point.shrunk, 1 / centre.tau, p) - torch.diag(point.factors)
    size = point.gradient.numel()
    if isinstance(space, LinearSpace) and size <= LARGE and active.count * size**2 <= WORK:
        along = torch.diag_embed(unit.double().mT).transpose(0, 1).reshape(size, len(unit))
        matrix = centre.sigma * active.second_moment(space) - centre.tau * along @ coupled @ along.mT
        matrix.diagonal().add_(own.repeat_interleave(unit.shape[1]))
        return -solve_positive(matrix, point.gradient.double().flatten()).view_as(unit).to(unit.dtype)

    def newton(vector: Tensor) -> Tensor:
        along = centre.tau * coupled @ space.class_products(unit, vector)
        losses = space.image(active.curvature(space.scores(vector, active.rows)), active.rows)
        return (
            space.scale_classes(vector, own.to(unit.dtype))
            - space.scale_classes(unit, along.to(unit.dtype))
            + centre.sigma * losses
        )

    goal = FORCING**2 * float(space.square(point.gradient))
    product = lambda left, right: space.class_products(left, right).sum()  # noqa: E731
    return conjugate_gradient(newton, -point.gradient, product, goal, _CG_STEPS)[0]


def _search(space: Space, hinge: Hinge, point: _Point, direction: Tensor, centre: _Centre, p: float) -> _Point:
    """The whole step where ``F`` still falls at its end or the gradient is much less, else to where ``F`` stops
    falling."""
    latest = point

    def derivative(length: float) -> float:
        nonlocal latest
        latest = _Point(space, hinge, point.weight + length * direction, centre, p)
        return float(space.class_products(latest.gradient, direction).sum())

    if derivative(1.0) <= _FLAT * abs(float(space.class_products(point.gradient, direction).sum())):
        return latest
    derivative(root_of(derivative))
    return latest
