r"""Proximal-point iteration on the dual, each step by a semismooth Newton method.

With a centre ``beta0`` and ``sigma > 0``, a step maximises ``dual(beta) - |beta - beta0|^2 / (2 sigma)``. Its own
dual is the smooth, strongly convex

    ``F(W) = ½ |W|^2 + sum_i max_{b in B_i} [ b · t_i(W) - |b - beta0_i|^2 / (2 sigma) ]``,

whose maximisers ``beta(W) = proj(beta0 + sigma t(W))`` are feasible dual points, so that every evaluation measures the
true duality gap. ``grad F = W - V``, ``V`` the image of ``alpha(beta(W))``. With ``J`` the derivative of the
projection, the Newton step is ``dW = -(W - V) + image(c)``, where ``(I + sigma T^T J T K) c = sigma T^T J T g``
(``g`` the scores of ``W - V``) involves only the rows whose projection can move: it is solved outright where it is
small, else by conjugate gradients in the metric of feature space.

A bias that is free has no square of its own: of the weight of its constant feature ``F`` takes the square of how far it
has moved from its value at the centre, a proximal step on it as on the multipliers.

Reference: Li, Sun and Toh (2018), *A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso
problems*, whose scheme this is, with the hinge's polytopes in place of the l1 ball.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from torch_multiclass.solvers.gap import GapMonitor
from torch_multiclass.solvers.space import LinearSpace, Space
from torch_multiclass.solvers.svm.active_set import ActiveSet
from torch_multiclass.solvers.svm.duals import Hinge, hinge_of
from torch_multiclass.solvers.svm.proximal import (
    FORCING,
    INNER,
    LARGE,
    NEWTON_STEPS,
    SMALL,
    WORK,
    StepSize,
    exhausted,
    root_of,
)
from torch_multiclass.solvers.systems import conjugate_gradient, solve_positive

_CG_STEPS = 50


class _Centre:
    """``beta0`` and ``sigma``, and where the bias is free a weight ``b0`` of it from which it may not go far."""

    def __init__(self, space: Space, beta: Tensor, weight: Tensor, sigma: float) -> None:
        self.beta, self.sigma = beta, sigma
        self.bias = space.along_bias(space.bias_part(weight)) if space.constant.free else None

    def moved(self, weight: Tensor) -> Tensor:
        """What a square is taken of: the weight, with the bias only as far as it has moved."""
        return weight if self.bias is None else weight - self.bias


class _Point:
    """Everything about one ``W``."""

    def __init__(self, space: Space, hinge: Hinge, weight: Tensor, centre: _Centre) -> None:
        self.weight, self.charged = weight, centre.moved(weight)
        self.margins = hinge.margins(space.scores(weight))
        self.beta = hinge.project(torch.add(centre.beta, self.margins, alpha=centre.sigma))
        moved = (self.beta - centre.beta).double()
        inner = (self.beta.double() * self.margins.double()).sum() - moved.square().sum() / (2 * centre.sigma)
        self.value = 0.5 * float(space.square(self.charged)) + float(inner)


def augmented_lagrangian(monitor: GapMonitor) -> Iterator[None]:
    """Passes from the monitor's best dual point until the gap is proved or, in single precision, progress ends."""
    space, hinge = monitor.space, hinge_of(monitor)
    beta, weight = monitor.beta.clone(), monitor.weight.clone()
    size, gaps = StepSize(space, hinge), [monitor.gap]
    newton = _Newton(space, hinge, size)
    while True:
        centre = _Centre(space, beta, weight, size.sigma)
        point = _Point(space, hinge, weight, centre)
        for steps in range(NEWTON_STEPS):
            yield
            image = space.image(hinge.alpha(point.beta))
            if monitor.see(point.weight, point.margins, point.beta, image):
                return
            gaps.append(monitor.gap)
            if exhausted(monitor, gaps):
                return
            gradient = point.charged - image
            if 0.5 * float(space.square(gradient)) <= INNER * (monitor.primal - monitor.dual):
                beta, weight = point.beta, point.weight
                size.grow(steps)
                break
            direction = newton.direction(point.beta, gradient, size.sigma)
            point = _search(space, hinge, point, direction, gradient, centre)
            monitor.measure_unfinished = partial(monitor.try_weight, point.weight, point.beta)
        else:  # out of reach: begin again at the best
            beta, weight = monitor.beta.clone(), monitor.weight.clone()
            size.shrink()


class _Newton:
    """Solves for Newton's step: outright where the system is small, else by conjugate gradients while they do.

    With ``Z`` as in `ActiveSet`, Newton's matrix is ``I + sigma Z^T Z``, and the step by Woodbury's identity
    ``-g + Z^T (I + sigma Z Z^T)^{-1} sigma Z g``.
    """

    def __init__(self, space: Space, hinge: Hinge, size: StepSize) -> None:
        self.space, self.hinge, self.size = space, hinge, size
        self.outright = SMALL

    def direction(self, beta: Tensor, gradient: Tensor, sigma: float) -> Tensor:
        """The step at ``beta``, from the gradient there."""
        space, active = self.space, ActiveSet(self.space, self.hinge, beta)
        if active.count == 0:
            return -gradient
        entries = gradient.numel()
        if isinstance(space, LinearSpace) and entries < active.count and self._affordable(active, entries):
            matrix = _shifted(active.second_moment(space), sigma)
            return -solve_positive(matrix, gradient.double().flatten()).view_as(gradient).to(gradient.dtype)
        scores = space.scores(gradient, active.rows)
        if self._affordable(active, active.count):
            answer = solve_positive(_shifted(active.gram(), sigma), sigma * active.products(scores))
            return space.image(active.coefficients(answer), active.rows) - gradient
        self.size.stop_leaping()
        return space.image(self._iterate(active, scores, sigma, float(space.square(gradient))), active.rows) - gradient

    def _iterate(self, active: ActiveSet, scores: Tensor, sigma: float, square: float) -> Tensor:
        """Coefficients ``c`` with ``(I + sigma T^T J T K) c = sigma T^T J T g``, roughly.

        Vectors of feature space go as coefficients and scores, one upon the other, so that a step costs one Gram
        product.
        """
        gram = self.space.gram_product(active.rows)

        def matrix(vector: Tensor) -> Tensor:
            answer = active.curvature(vector[1])
            return torch.add(vector, torch.stack([answer, gram(answer)]), alpha=sigma)

        right = sigma * active.curvature(scores)
        solution, solved = conjugate_gradient(
            matrix,
            torch.stack([right, gram(right)]),
            lambda left, right: (left[0] * right[1]).sum(),
            goal=FORCING**2 * square,
            steps=_CG_STEPS,
        )
        if not solved:
            self.outright = LARGE
        return solution[0]

    def _affordable(self, active: ActiveSet, size: int) -> bool:
        return size <= self.outright and active.count * size**2 <= WORK


def _shifted(matrix: Tensor, sigma: float) -> Tensor:
    """``I + sigma A``, in place."""
    matrix.mul_(sigma).diagonal().add_(1)
    return matrix


def _search(space: Space, hinge: Hinge, point: _Point, direction: Tensor, gradient: Tensor, centre: _Centre) -> _Point:
    """The whole step where it lowers ``F`` enough, else the length at which ``F`` stops falling: where the projection
    changes its mind soon, a Newton step is orders of magnitude too long."""
    # <grad F, d> and <W, d> by polarisation: a space knows only squares
    square = float(space.square(direction))
    slope = float(space.square(gradient + direction) - space.square(gradient)) / 2 - square / 2
    rounding = torch.finfo(point.weight.dtype).eps * abs(point.value)
    trial = _Point(space, hinge, point.weight + direction, centre)
    if trial.value <= point.value + 1e-4 * slope + rounding:
        return trial
    inner = float(space.square(point.charged + direction) - space.square(point.charged)) / 2 - square / 2
    change = hinge.differences(space.scores(direction))

    def derivative(length: float) -> float:
        beta = hinge.project(torch.add(centre.beta, point.margins + length * change, alpha=centre.sigma))
        return inner + length * square + float((beta * change).double().sum())

    return _Point(space, hinge, point.weight + root_of(derivative) * direction, centre)
