r"""Proximal-point iteration on the dual, each step by a semismooth Newton method.

With a centre ``beta0`` and ``sigma > 0``, a step maximises ``dual(beta) - |beta - beta0|^2 / (2 sigma)``. Its own
dual is the smooth, strongly convex

    ``F(W) = ½ |W|^2 + sum_i max_{b in B_i} [ b · t_i(W) - |b - beta0_i|^2 / (2 sigma) ]``,

whose maximisers ``beta(W) = proj(beta0 + sigma t(W))`` are feasible dual points, so that every evaluation measures the
true duality gap. ``grad F = W - V``, ``V`` the image of ``alpha(beta(W))``. With ``J`` the derivative of the
projection, the Newton step is ``dW = -(W - V) + image(c)``, where ``(I + sigma T^T J T K) c = sigma T^T J T g``
(``g`` the scores of ``W - V``) involves only the rows whose projection can move, and is solved by conjugate
gradients in the metric of feature space.

Reference: Li, Sun and Toh (2018), *A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso
problems*, whose scheme this is, with the hinge's polytopes in place of the l1 ball.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from torch_multiclass.solvers._hinges import Hinge
from torch_multiclass.solvers._monitor import Monitor
from torch_multiclass.solvers._spaces import Space

_NEWTON_STEPS = 20
_CG_STEPS = 50
_FORCING = 0.1  # how far conjugate gradients reduce the residual
_INNER = 0.05  # a centre is good enough when ½ |grad F|^2 is below this times the gap
_GROWTH = 2.0
_LARGEST = 1e6


class _Point:
    """Everything about one ``W``."""

    def __init__(self, space: Space, hinge: Hinge, weight: Tensor, centre: Tensor, sigma: float) -> None:
        self.weight = weight
        self.margins = hinge.margins(space.scores(weight), None)
        self.beta = hinge.project(torch.add(centre, self.margins, alpha=sigma), None)
        moved = (self.beta - centre).double()
        inner = (self.beta.double() * self.margins.double()).sum() - moved.square().sum() / (2 * sigma)
        self.value = 0.5 * float(space.square(weight)) + float(inner)


def polish(space: Space, hinge: Hinge, monitor: Monitor, max_passes: int) -> bool:
    """Run from the monitor's best dual point until the gap is proved (True) or passes run out (False)."""
    centre = monitor.beta.clone()
    weight = monitor.weight.clone()
    typical = float((space.squared_norms * hinge.curvature).mean().clamp_min(1e-30))
    sigma = 10 / typical
    while True:
        point = _Point(space, hinge, weight, centre, sigma)
        for _ in range(_NEWTON_STEPS):
            image = space.image(hinge.alpha(point.beta))
            monitor.passes += 1
            if monitor.see(point.weight, point.margins, point.beta, image):
                return True
            if monitor.passes >= max_passes:
                return False
            gradient = point.weight - image
            slope = float(space.square(gradient))
            if 0.5 * slope <= _INNER * (monitor.primal - monitor.dual):
                break
            direction = _newton_direction(space, hinge, point.beta, gradient, sigma)
            point = _search(space, hinge, point, direction, gradient, centre, sigma)
        centre, weight = point.beta, point.weight
        sigma = min(sigma * _GROWTH, _LARGEST / typical)


def _newton_direction(space: Space, hinge: Hinge, beta: Tensor, gradient: Tensor, sigma: float) -> Tensor:
    free = hinge.free(beta)
    rows = (free > 0).any(1).nonzero().squeeze(1)
    if len(rows) == 0:
        return -gradient
    free = free.index_select(0, rows)
    gram = space.gram_product(rows)

    def curve(scores: Tensor) -> Tensor:
        """``T^T J T`` of scores: how the multipliers answer to them."""
        return hinge.untilt(hinge.slide(hinge.tilt(scores, rows), free), rows)

    scores = space.scores(gradient, rows)
    goal = _FORCING**2 * float(space.square(gradient))
    return space.image(_conjugate_gradients(gram, curve, scores, sigma, goal), rows) - gradient


def _conjugate_gradients(
    gram: Callable[[Tensor], Tensor], curve: Callable[[Tensor], Tensor], gradient: Tensor, sigma: float, goal: float
) -> Tensor:
    """Coefficients ``c`` with ``(I + sigma curve gram) c = sigma curve gradient``, until the residual's squared length
    in feature space is below ``goal``. Vectors of feature space go as coefficients and scores side by side, so that a
    step costs one Gram product."""
    residual = sigma * curve(gradient)
    solution = torch.zeros_like(residual)
    scores = gram(residual)
    direction, direction_scores = residual, scores
    old = float((residual * scores).sum())
    for _ in range(_CG_STEPS):
        if old <= goal:
            break
        answer = curve(direction_scores)
        applied, applied_scores = direction + sigma * answer, direction_scores + sigma * gram(answer)
        length = old / float((direction * applied_scores).sum())
        solution = solution + length * direction
        residual, scores = residual - length * applied, scores - length * applied_scores
        new = float((residual * scores).sum())
        direction, direction_scores = residual + (new / old) * direction, scores + (new / old) * direction_scores
        old = new
    return solution


def _search(
    space: Space, hinge: Hinge, point: _Point, direction: Tensor, gradient: Tensor, centre: Tensor, sigma: float
) -> _Point:
    """The first of the steps 1, ½, ¼, ... that lowers ``F`` enough."""
    # <grad F, d> by polarisation: a space knows only squares
    slope = float(space.square(gradient + direction) - space.square(gradient) - space.square(direction)) / 2
    length = 1.0
    while True:
        trial = _Point(space, hinge, point.weight + length * direction, centre, sigma)
        if trial.value <= point.value + 1e-4 * length * slope or length < 1e-3:
            return trial
        length /= 2
