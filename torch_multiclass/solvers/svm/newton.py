r"""Proximal-point iteration on the dual, each step by a semismooth Newton method.

With a centre ``beta0`` and ``sigma > 0``, a step maximises ``dual(beta) - |beta - beta0|^2 / (2 sigma)``. Its own
dual is the smooth, strongly convex

    ``F(W) = ½ |W|^2 + sum_i max_{b in B_i} [ b · t_i(W) - |b - beta0_i|^2 / (2 sigma) ]``,

whose maximisers ``beta(W) = proj(beta0 + sigma t(W))`` are feasible dual points, so that every evaluation measures the
true duality gap. ``grad F = W - V``, ``V`` the image of ``alpha(beta(W))``. With ``J`` the derivative of the
projection, the Newton step is ``dW = -(W - V) + image(c)``, where ``(I + sigma T^T J T K) c = sigma T^T J T g``
(``g`` the scores of ``W - V``) involves only the rows whose projection can move: it is solved outright where it is
small, else by conjugate gradients in the metric of feature space.

Reference: Li, Sun and Toh (2018), *A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso
problems*, whose scheme this is, with the hinge's polytopes in place of the l1 ball.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from torch_multiclass.solvers.monitor import Monitor
from torch_multiclass.solvers.space import LinearSpace, Space
from torch_multiclass.solvers.svm.active_set import Free, solve_positive
from torch_multiclass.solvers.svm.duals import Hinge
from torch_multiclass.solvers.svm.proximal import (
    FORCING,
    INNER,
    LARGE,
    NEWTON_STEPS,
    SMALL,
    WORK,
    Stride,
    root_of,
    spent,
)

_CG_STEPS = 50


class _Point:
    """Everything about one ``W``."""

    def __init__(self, space: Space, hinge: Hinge, weight: Tensor, centre: Tensor, sigma: float) -> None:
        self.weight = weight
        self.margins = hinge.margins(space.scores(weight), None)
        self.beta = hinge.project(torch.add(centre, self.margins, alpha=sigma), None)
        moved = (self.beta - centre).double()
        inner = (self.beta.double() * self.margins.double()).sum() - moved.square().sum() / (2 * sigma)
        self.value = 0.5 * float(space.square(weight)) + float(inner)


def polish(monitor: Monitor, max_passes: int) -> bool:
    """Run from the monitor's best dual point until the gap is proved (True), or passes or, in single precision,
    progress run out (False)."""
    space, hinge = monitor.space, monitor.hinge
    centre, weight = monitor.beta.clone(), monitor.weight.clone()
    stride, gaps = Stride(space, hinge), [monitor.gap]
    newton = _Newton(space, hinge, stride)
    while True:
        point = _Point(space, hinge, weight, centre, stride.sigma)
        for steps in range(NEWTON_STEPS):
            image = space.image(hinge.alpha(point.beta))
            monitor.passes += 1
            if monitor.see(point.weight, point.margins, point.beta, image):
                return True
            gaps.append(monitor.gap)
            if spent(monitor, gaps, max_passes):
                return False
            gradient = point.weight - image
            if 0.5 * float(space.square(gradient)) <= INNER * (monitor.primal - monitor.dual):
                centre, weight = point.beta, point.weight
                stride.lengthen(steps)
                break
            direction = newton.direction(point.beta, gradient, stride.sigma)
            point = _search(space, hinge, point, direction, gradient, centre, stride.sigma)
        else:  # out of reach: begin again at the best
            centre, weight = monitor.beta.clone(), monitor.weight.clone()
            stride.shorten()


class _Newton:
    """Solves for Newton's step: outright where the system is small, else by conjugate gradients while they do.

    With ``Z`` as in `Free`, Newton's matrix is ``I + sigma Z^T Z``, and the step by Woodbury's identity
    ``-g + Z^T (I + sigma Z Z^T)^{-1} sigma Z g``.
    """

    def __init__(self, space: Space, hinge: Hinge, stride: Stride) -> None:
        self.space, self.hinge, self.stride = space, hinge, stride
        self.outright = SMALL

    def direction(self, beta: Tensor, gradient: Tensor, sigma: float) -> Tensor:
        """The step at ``beta``, from the gradient there."""
        space, free = self.space, Free(self.space, self.hinge, beta)
        if free.count == 0:
            return -gradient
        entries = gradient.numel()
        if isinstance(space, LinearSpace) and entries < free.count and self._affordable(free, entries):
            matrix = _shifted(free.second_moment(space), sigma)
            return -solve_positive(matrix, gradient.double().flatten()).view_as(gradient).to(gradient.dtype)
        scores = space.scores(gradient, free.rows)
        if self._affordable(free, free.count):
            answer = solve_positive(_shifted(free.gram(), sigma), sigma * free.apply(scores))
            return space.image(free.spread(answer), free.rows) - gradient
        self.stride.beware()
        goal = FORCING**2 * float(space.square(gradient))
        gram = space.gram_product(free.rows)
        solution, solved = _conjugate_gradients(gram, free.curve, scores, sigma, goal)
        if not solved:
            self.outright = LARGE
        return space.image(solution, free.rows) - gradient

    def _affordable(self, free: Free, size: int) -> bool:
        return size <= self.outright and free.count * size**2 <= WORK


def _shifted(matrix: Tensor, sigma: float) -> Tensor:
    """``I + sigma A``, in place."""
    matrix.mul_(sigma).diagonal().add_(1)
    return matrix


def _conjugate_gradients(
    gram: Callable[[Tensor], Tensor],
    curve: Callable[[Tensor], Tensor],
    gradient: Tensor,
    sigma: float,
    goal: float,
) -> tuple[Tensor, bool]:
    """Coefficients ``c`` with ``(I + sigma curve gram) c = sigma curve gradient``, and whether the residual's squared
    length in feature space came below ``goal``. Vectors of feature space go as coefficients and scores side by side, so
    that a step costs one Gram product."""
    residual = sigma * curve(gradient)
    solution = torch.zeros_like(residual)
    scores = gram(residual)
    direction, direction_scores = residual, scores
    old = float((residual * scores).sum())
    for _ in range(_CG_STEPS):
        if old <= goal:
            return solution, True
        answer = curve(direction_scores)
        applied, applied_scores = direction + sigma * answer, direction_scores + sigma * gram(answer)
        curvature = float((direction * applied_scores).sum())
        if not curvature > 0:  # rounding has eaten the direction
            return solution, False
        length = old / curvature
        solution = solution + length * direction
        residual, scores = residual - length * applied, scores - length * applied_scores
        new = float((residual * scores).sum())
        direction, direction_scores = residual + (new / old) * direction, scores + (new / old) * direction_scores
        old = new
    return solution, old <= goal


def _search(
    space: Space, hinge: Hinge, point: _Point, direction: Tensor, gradient: Tensor, centre: Tensor, sigma: float
) -> _Point:
    """The whole step where it lowers ``F`` enough, else the length at which ``F`` stops falling: where the projection
    changes its mind soon, a Newton step is orders of magnitude too long."""
    # <grad F, d> and <W, d> by polarisation: a space knows only squares
    square = float(space.square(direction))
    slope = float(space.square(gradient + direction) - space.square(gradient)) / 2 - square / 2
    rounding = torch.finfo(point.weight.dtype).eps * abs(point.value)
    trial = _Point(space, hinge, point.weight + direction, centre, sigma)
    if trial.value <= point.value + 1e-4 * slope + rounding:
        return trial
    inner = float(space.square(point.weight + direction) - space.square(point.weight)) / 2 - square / 2
    tilt = hinge.tilt(space.scores(direction), None)

    def derivative(length: float) -> float:
        beta = hinge.project(torch.add(centre, point.margins + length * tilt, alpha=sigma), None)
        return inner + length * square + float((beta * tilt).double().sum())

    return _Point(space, hinge, point.weight + root_of(derivative) * direction, centre, sigma)
