"""Binary learners with a smooth loss, certified like the SVM: the learners behind an output code."""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.kernels import GramFunction, Kernel, Linear, as_kernel, check_definite
from torch_multiclass.solvers._scorers import as_scorer, check_weak_duality, settle
from torch_multiclass.solvers.base import Fit, Report, Step, relative_gap
from torch_multiclass.solvers.problem import check_constant, check_memory_limit, check_rows, check_signs
from torch_multiclass.solvers.space import KernelSpace, LinearSpace, Space
from torch_multiclass.solvers.svm.active_set import solve_positive

__all__ = ["BinaryLeastSquares", "BinaryLogistic"]

_SHORTEST = 1e-10


class _Smooth(ABC):
    """``½ |w|^2 + C sum_i loss(y_i f(x_i))``, ``f(x) = w · Phi(x)``, with a loss of whose conjugate much is known."""

    def __init__(
        self,
        C: float = 1.0,
        kernel: str | Kernel | GramFunction = "linear",
        tol: float = 1e-3,
        *,
        bias: bool = False,
        max_passes: int = 100,
        memory_limit: int | None = None,
    ) -> None:
        self.C = check_constant("C", C)
        check.positive("tol", tol)
        check.whole("max_passes", max_passes)
        self.tol, self.kernel, self.bias = tol, as_kernel(kernel), bias
        self.max_passes, self.memory_limit = max_passes, check_memory_limit(memory_limit)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(C={self.C:g}, kernel={self.kernel!r}, tol={self.tol:g})"

    @abstractmethod
    def _loss(self, margins: Tensor) -> Tensor:
        """``loss(z)``."""

    @abstractmethod
    def _slopes(self, margins: Tensor) -> tuple[Tensor, Tensor]:
        """``-loss'`` and ``loss''``."""

    @abstractmethod
    def _conjugate(self, beta: Tensor) -> Tensor:
        """``-loss*(-beta)``: the least of ``loss(z) + beta z`` over ``z``; 0 for ``beta = 0``."""

    @torch.no_grad()
    def fit(self, features: Tensor, target: Tensor) -> Fit[Report]:
        """Train.

        Args:
            features: the rows.
            target: integers, ±1, or 0/1 with 1 for +1; rows labelled -100 are left out.

        Shape:
            features ``(N, D)``; target ``(N)``.

        Returns:
            A scorer with one score, and a `Report`, which is true of the scorer as it is stored: in the features' dtype
            (float32 for half precision), or in float64 where rounding to it would lose the tolerance. A scorer takes
            features of a narrower dtype than its own. Ended from the keyboard, the best so far with its gap; while the
            Gram matrix is still being computed there is none, and the interrupt propagates.

        Raises:
            ValueError: no rows, one class, or features that are not finite; a kernel that is not positive
                semi-definite.
            MemoryError: a Gram matrix that would not fit.
        """
        features, target = check_rows(features, target)
        signs = check_signs(target).double()[:, None]
        descent = _Descent(self, self._space(features), signs)
        interrupted = False
        try:
            descent.run(self.max_passes)
        except KeyboardInterrupt:
            interrupted = True
        weight, primal, dual = settle(descent.weight, features.dtype, self.tol, descent.certify, descent.computed)
        check_weak_duality(descent.space, primal, dual)
        return Fit(as_scorer(descent.space, weight, self.bias), descent.report(weight, primal, dual, interrupted))

    def _space(self, features: Tensor) -> Space:
        if not isinstance(self.kernel, Linear):
            check_definite(self.kernel, features, generator=torch.Generator().manual_seed(0))
            return KernelSpace(self.kernel, features, torch.float64, self.bias, self.memory_limit)
        rows = torch.cat([features, features.new_ones(len(features), 1)], 1) if self.bias else features
        return LinearSpace(rows, torch.float64)


class _Point(NamedTuple):
    """One measurement: a weight, its scores and primal, the slopes there as a dual point, and the losses' curvature."""

    weight: Tensor
    scores: Tensor
    primal: float
    image: Tensor
    curvature: Tensor


class _Descent:
    """Damped Newton, and the best weight and dual point it has seen: the losses' slopes are feasible at any time."""

    def __init__(self, learner: _Smooth, space: Space, signs: Tensor) -> None:
        self.learner, self.space, self.signs = learner, space, signs
        self.started = time.perf_counter()
        self.history: list[Step] = []
        self.weight, self.beta = space.zero(1), torch.zeros_like(signs)
        self.primal, self.dual = self._primal(self.weight, self.beta), 0.0

    def run(self, max_passes: int) -> None:
        """Until the gap is small or passes run out."""
        weight = self.weight
        for _ in range(max_passes):
            point = self._measure(weight)
            if relative_gap(self.primal, self.dual) <= self.learner.tol:
                return
            gradient = point.weight - point.image
            weight = self._search(point, gradient, self._direction(gradient, point.curvature))

    def _measure(self, weight: Tensor) -> _Point:
        scores = self.space.scores(weight)
        primal = self._primal(weight, scores)
        beta, curvature = self.learner._slopes(self.signs * scores)
        image = self.space.image(self._alpha(beta))
        dual = self._dual(beta, float(self.space.square(image)))
        if primal < self.primal:
            self.primal, self.weight = primal, weight
        if dual > self.dual:
            self.dual, self.beta = dual, beta
        self.history.append(Step(len(self.history), time.perf_counter() - self.started, primal, dual))
        return _Point(weight, scores, primal, image, self.learner.C * curvature)

    def _primal(self, weight: Tensor, scores: Tensor) -> float:
        losses = self.learner._loss(self.signs * scores)
        return float(0.5 * self.space.square(weight) + self.learner.C * losses.sum())

    def _dual(self, beta: Tensor, square: float) -> float:
        return self.learner.C * float(self.learner._conjugate(beta).sum()) - 0.5 * square

    def _alpha(self, beta: Tensor) -> Tensor:
        return self.learner.C * beta * self.signs

    def _direction(self, gradient: Tensor, curvature: Tensor) -> Tensor:
        """``-(I + X^T H X)^{-1} g``, or, where there are fewer rows than features,
        ``X^T H^{1/2} (I + H^{1/2} K H^{1/2})^{-1} H^{1/2} X g - g``."""
        space = self.space
        if isinstance(space, LinearSpace) and space.features.shape[1] < space.rows:
            matrix = space.features.mT @ (curvature * space.features)
            matrix.diagonal().add_(1)
            return -solve_positive(matrix, gradient[0])[None]
        root = curvature.sqrt()
        matrix = root * space.gram_matrix(torch.arange(space.rows, device=space.device)) * root.mT
        matrix.diagonal().add_(1)
        answer = solve_positive(matrix, (root * space.scores(gradient)).squeeze(1))
        return space.image(root * answer[:, None]) - gradient

    def _search(self, point: _Point, gradient: Tensor, direction: Tensor) -> Tensor:
        """The first of the steps 1, ½, ¼, ... that lowers the primal enough."""
        square = self.space.square
        slope = float(square(gradient + direction) - square(gradient) - square(direction)) / 2  # by polarisation
        moved, length = self.space.scores(direction), 1.0
        while length > _SHORTEST:
            lower = self._primal(point.weight + length * direction, point.scores + length * moved)
            if lower <= point.primal + 1e-4 * length * slope:
                break
            length /= 2
        return point.weight + length * direction

    def certify(self, weight: Tensor) -> tuple[float, float]:
        """The primal at a weight of any dtype, and the best dual."""
        scores, squares, image_squares = self.space.exact(weight, self._alpha(self.beta))
        losses = self.learner._loss(self.signs * scores)
        primal = float(0.5 * squares.sum() + self.learner.C * losses.sum())
        return primal, self._dual(self.beta, float(image_squares.sum()))

    def computed(self, weight: Tensor) -> float:
        """The primal at a weight with its scores in its own precision."""
        return self._primal(weight, self.space.evaluated(weight).double())

    def report(self, weight: Tensor, primal: float, dual: float, interrupted: bool) -> Report:
        """How it ended."""
        gap, tol = relative_gap(primal, dual), self.learner.tol
        if gap > tol and not interrupted:
            warnings.warn(
                f"{type(self.learner).__name__}: the gap is {gap:.2e} after {len(self.history)} passes, above "
                f"tol={tol:g}; a larger max_passes would help",
                UserWarning,
                stacklevel=4,
            )
        alpha = self._alpha(self.beta)
        support = (alpha != 0).any(1).nonzero().squeeze(1)
        return Report(
            primal=primal,
            dual=dual,
            gap=gap,
            converged=gap <= tol,
            interrupted=interrupted,
            iterations=len(self.history),
            seconds=time.perf_counter() - self.started,
            history=self.history,
            support=support,
            alpha=alpha[support],
            weight=weight[0].clone() if weight.ndim == 3 else weight,
            C=self.learner.C,
            rows=self.space.rows,
        )


class BinaryLogistic(_Smooth):
    r"""Regularised logistic regression, ``½ |w|^2 + C sum_i log(1 + exp(-2 y_i f(x_i)))``, to a certified gap.

    ``P(y = 1 | x) = sigmoid(2 f(x))``. The dual of the losses is an entropy, ``C sum_i H(beta_i/2)`` with
    ``H(u) = -u log u - (1 - u) log(1 - u)``. All work is done in float64.

    Args:
        C: the weight of the losses, > 0.
        kernel: ``"linear"``, a kernel, or a function that returns a Gram block.
        tol: the duality gap to reach, relative to the primal where that is above 1.
        bias: append a constant feature 1, regularised like any other.
        max_passes: Newton steps at most.
        memory_limit: bytes that the Gram matrix may take.

    Shape:
        features ``(N, D)``; target ``(N)``, integers, ±1 or 0/1; the scorer's scores ``(N, 1)``.

    Raises:
        ValueError: ``C`` or ``tol`` that are not positive; what `fit` refuses.

    Reference: Allwein, Schapire and Singer (2000), §2.

    Example:
        >>> import torch
        >>> x, y = torch.tensor([[1.0], [2.0], [-1.5]]), torch.tensor([1, 1, -1])
        >>> scorer, report = BinaryLogistic(tol=1e-6).fit(x, y)
        >>> (scorer(x) > 0).squeeze(1)
        tensor([ True,  True, False])
    """

    def _loss(self, margins: Tensor) -> Tensor:
        return torch.nn.functional.softplus(-2 * margins)

    def _slopes(self, margins: Tensor) -> tuple[Tensor, Tensor]:
        wrong = torch.sigmoid(-2 * margins)
        return 2 * wrong, 4 * wrong * torch.sigmoid(2 * margins)

    def _conjugate(self, beta: Tensor) -> Tensor:
        share = beta / 2
        return -torch.xlogy(share, share) - torch.xlogy(1 - share, 1 - share)


class BinaryLeastSquares(_Smooth):
    r"""Regularised least squares on signs, ``½ |w|^2 + C sum_i (1 - y_i f(x_i))^2``: one linear system.

    Args:
        C: the weight of the losses, > 0.
        kernel: ``"linear"``, a kernel, or a function that returns a Gram block.
        tol: the duality gap to reach, relative to the primal where that is above 1.
        bias: append a constant feature 1, regularised like any other.
        max_passes: Newton steps at most; one is exact.
        memory_limit: bytes that the Gram matrix may take.

    Shape:
        features ``(N, D)``; target ``(N)``, integers, ±1 or 0/1; the scorer's scores ``(N, 1)``.

    Raises:
        ValueError: ``C`` or ``tol`` that are not positive; what `fit` refuses.

    Reference: Allwein, Schapire and Singer (2000), §2.

    Example:
        >>> import torch
        >>> x, y = torch.tensor([[1.0], [2.0], [-1.5]]), torch.tensor([1, 1, -1])
        >>> BinaryLeastSquares(tol=1e-9).fit(x, y).scorer.weight
        Parameter containing:
        tensor([[0.5806]], requires_grad=True)
    """

    def _loss(self, margins: Tensor) -> Tensor:
        return (1 - margins).square()

    def _slopes(self, margins: Tensor) -> tuple[Tensor, Tensor]:
        return 2 * (1 - margins), torch.full_like(margins, 2.0)

    def _conjugate(self, beta: Tensor) -> Tensor:
        return beta - beta.square() / 4
