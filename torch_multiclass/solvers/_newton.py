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
from torch_multiclass.solvers._spaces import LinearSpace, Space

_NEWTON_STEPS = 30
_CG_STEPS, _CG_MORE = 50, 250
_BLOCK = 2048
_FORCING = 0.1  # how far conjugate gradients reduce the residual
_INNER = 0.05  # a centre is good enough when ½ |grad F|^2 is below this times the gap
_GROWTH, _LEAP = 2.0, 10.0  # of sigma; it leaps where the last centre was found in no time
_QUICK = 3  # Newton steps
_LARGEST = 1e6
_SMALL, _LARGE = 500, 2500  # systems solved outright: always, or where conjugate gradients failed
_WORK = 1e10  # multiplications that setting up a system may take
_SHORTEST = 1e-14
_REVIEW, _PROGRESS = 40, 0.8  # in single precision, give up where so many passes leave more than this of the gap


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
    typical = float((space.squared_norms * hinge.curvature).mean().clamp_min(1e-30))
    sigma, largest = 10 / typical, max(_LARGEST / typical, 1e3 * float(hinge.upper.mean()))
    newton = _Newton(space, hinge)
    gaps: list[float] = []
    leap = _LEAP
    while True:
        point = _Point(space, hinge, weight, centre, sigma)
        for steps in range(_NEWTON_STEPS):
            image = space.image(hinge.alpha(point.beta))
            monitor.passes += 1
            if monitor.see(point.weight, point.margins, point.beta, image):
                return True
            gaps.append(monitor.gap)
            if monitor.passes >= max_passes or (space.dtype != torch.float64 and _stalled(gaps)):
                return False
            gradient = point.weight - image
            slope = float(space.square(gradient))
            if 0.5 * slope <= _INNER * (monitor.primal - monitor.dual):
                centre, weight = point.beta, point.weight
                sigma = min(sigma * (leap if steps <= _QUICK else _GROWTH), largest)
                break
            direction = newton.direction(point.beta, gradient, sigma)
            point = _search(space, hinge, point, direction, gradient, centre, sigma)
        else:  # too long a step: start it afresh from the best, and shorter
            centre, weight = monitor.beta.clone(), monitor.weight.clone()
            sigma, leap = sigma / _LEAP, _GROWTH


def _stalled(gaps: list[float]) -> bool:
    """Whether single precision gets no further."""
    return len(gaps) > _REVIEW and gaps[-1] > _PROGRESS * gaps[-1 - _REVIEW]


class _Newton:
    """Solves for Newton's step: outright where the system is small, else by conjugate gradients while they do."""

    def __init__(self, space: Space, hinge: Hinge) -> None:
        self.space, self.hinge = space, hinge
        self.outright, self.limit = _SMALL, _CG_STEPS

    def direction(self, beta: Tensor, gradient: Tensor, sigma: float) -> Tensor:
        space, hinge = self.space, self.hinge
        free = hinge.free(beta)
        rows = (free > 0).any(1).nonzero().squeeze(1)
        if len(rows) == 0:
            return -gradient
        free = free.index_select(0, rows)
        direction = self._outright(rows, free, gradient, sigma)
        if direction is not None:
            return direction
        gram = space.gram_product(rows)

        def curve(scores: Tensor) -> Tensor:
            """``T^T J T`` of scores: how the multipliers answer to them."""
            return hinge.untilt(hinge.slide(hinge.tilt(scores, rows), free), rows)

        goal = _FORCING**2 * float(space.square(gradient))
        solution, solved = _conjugate_gradients(gram, curve, space.scores(gradient, rows), sigma, goal, self.limit)
        if not solved:
            self.outright, self.limit = _LARGE, _CG_MORE
        return space.image(solution, rows) - gradient

    def _outright(self, rows: Tensor, free: Tensor, gradient: Tensor, sigma: float) -> Tensor | None:
        """With ``Z`` the ``T^T J e_c`` of the free coordinates ``c`` in feature space, Newton's matrix is
        ``I + sigma Z^T Z``: factored as it is, or, smaller, as ``I + sigma Z Z^T`` by Woodbury's identity."""
        space, hinge = self.space, self.hinge
        count, entries = int((free > 0).sum()), gradient.numel()
        explicit = isinstance(space, LinearSpace) and entries < count
        least = entries if explicit else count
        if least > self.outright or count * least**2 > _WORK:
            return None
        row, coordinate = free.nonzero(as_tuple=True)
        unit = torch.nn.functional.one_hot(coordinate, free.shape[1]).to(free.dtype)
        effect = hinge.untilt(hinge.slide(unit, free.index_select(0, row)), rows.index_select(0, row)).double()
        if explicit:
            matrix = sigma * _second_moment(effect, space.features.index_select(0, rows[row]).double())
            matrix.diagonal().add_(1)
            return -_solve(matrix, gradient.double().flatten()).view_as(gradient).to(gradient.dtype)
        gram = space.gram_matrix(rows).double()[row][:, row] * (effect @ effect.mT)
        gram.mul_(sigma).diagonal().add_(1)
        right = sigma * (effect * space.scores(gradient, rows).double().index_select(0, row)).sum(1)
        answer = _solve(gram, right)
        spread = effect.new_zeros(free.shape).index_add_(0, row, effect * answer[:, None])
        return space.image(spread.to(gradient.dtype), rows) - gradient


def _second_moment(effect: Tensor, features: Tensor) -> Tensor:
    """``Z^T Z`` for the rows ``effect_c ⊗ x_c`` of ``Z``, a block of them at a time."""
    size = effect.shape[1] * features.shape[1]
    total = effect.new_zeros(size, size)
    for part, rows in zip(torch.split(effect, _BLOCK), torch.split(features, _BLOCK), strict=True):
        z = (part[:, :, None] * rows[:, None, :]).reshape(len(part), size)
        total.addmm_(z.mT, z)
    return total


def _solve(matrix: Tensor, right: Tensor) -> Tensor:
    """The solution of a symmetric system, positive definite but for rounding."""
    lower, failed = torch.linalg.cholesky_ex(matrix)
    if bool(failed):
        answer: Tensor = torch.linalg.lstsq(matrix.cpu(), right[:, None].cpu(), driver="gelsd").solution
        return answer.squeeze(1).to(right.device)
    return torch.cholesky_solve(right[:, None], lower).squeeze(1)


def _conjugate_gradients(
    gram: Callable[[Tensor], Tensor],
    curve: Callable[[Tensor], Tensor],
    gradient: Tensor,
    sigma: float,
    goal: float,
    limit: int,
) -> tuple[Tensor, bool]:
    """Coefficients ``c`` with ``(I + sigma curve gram) c = sigma curve gradient``, until the residual's squared length
    in feature space is below ``goal`` (True) or ``limit`` steps are taken (False). Vectors of feature space go as coefficients and scores side by side, so that a
    step costs one Gram product."""
    residual = sigma * curve(gradient)
    solution = torch.zeros_like(residual)
    scores = gram(residual)
    direction, direction_scores = residual, scores
    old = float((residual * scores).sum())
    for _ in range(limit):
        if old <= goal:
            return solution, True
        answer = curve(direction_scores)
        applied, applied_scores = direction + sigma * answer, direction_scores + sigma * gram(answer)
        length = old / float((direction * applied_scores).sum())
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

    return _Point(space, hinge, point.weight + _root(derivative, 1.0) * direction, centre, sigma)


def _root(increasing: Callable[[float], float], high: float) -> float:
    """Where a function, negative at 0 and positive at ``high``, changes its sign, to one part in eight: geometric
    steps down, then halves."""
    low = high / 8
    while increasing(low) > 0:
        if low < _SHORTEST:
            return low
        low, high = low / 8, low
    while high > 1.125 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if increasing(middle) <= 0 else (low, middle)
    return low
