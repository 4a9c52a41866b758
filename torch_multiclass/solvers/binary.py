"""Binary learners with a smooth loss, certified like the SVM: the learners behind an output code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, TypedDict

import torch
from torch import Tensor
from typing_extensions import Unpack

from torch_multiclass.kernels import GramFunction, Kernel
from torch_multiclass.ops.margins import MarginLoss, MarginLossLike, as_margin_loss
from torch_multiclass.solvers.certified import CertifiedSolver
from torch_multiclass.solvers.gap import GapMonitor
from torch_multiclass.solvers.losses import Losses
from torch_multiclass.solvers.problem import Problem, RowWeights
from torch_multiclass.solvers.report import Step
from torch_multiclass.solvers.space import Bias, LinearSpace, Space
from torch_multiclass.solvers.systems import solve_positive

__all__ = ["BinaryLearner", "BinaryLeastSquares", "BinaryLogistic"]

_SHORTEST = 1e-10


class MarginLosses(Losses):
    r"""``C_i l(z_i)`` of the margins ``z_i = y_i f(x_i)``; ``beta_i = -l'(z_i)`` is a dual point at any weight.

    ``alpha_i = C_i beta_i y_i``, and the dual of a row is ``-C_i l*(-beta_i)``.
    """

    outputs = 1

    def __init__(self, kind: MarginLoss, signs: Tensor, strengths: Tensor) -> None:
        self.kind, self.signs, self.strengths = kind, signs[:, None], strengths

    def margins(self, scores: Tensor, rows: Tensor | None = None) -> Tensor:
        return (self.signs if rows is None else self.signs[rows]) * scores

    def loss(self, margins: Tensor, rows: Tensor | None = None) -> Tensor:
        return ((self.strengths if rows is None else self.strengths[rows]) * self.kind.value(margins)).squeeze(1)

    def dual(self, beta: Tensor) -> Tensor:
        return -(self.strengths * self.kind.conjugate(-beta)).squeeze(1)

    def alpha(self, beta: Tensor, rows: Tensor | None = None) -> Tensor:
        factors = self.strengths * self.signs
        return (factors if rows is None else factors[rows]) * beta

    def project(self, beta: Tensor, rows: Tensor | None = None) -> Tensor:
        """What it is: slopes are feasible."""
        return beta

    def start(self) -> Tensor:
        return torch.zeros_like(self.strengths)

    def balance(self, beta: Tensor, margins: Tensor | None = None) -> Tensor:
        """The slopes of the sign that has more of them are scaled down, which every conjugate here allows."""
        alpha = self.alpha(beta.double())
        up, down = float(alpha.clamp_min(0).sum()), float(-alpha.clamp_max(0).sum())
        if up == down:
            return beta
        more, factor = (alpha > 0, down / up) if up > down else (alpha < 0, up / down)
        return torch.where(more, factor * beta, beta)


class BinaryLearner(CertifiedSolver):
    r"""Minimises ``½ |w|^2 + C sum_i l(y_i f(x_i))`` for a smooth convex loss ``l`` of the margin, to a certified gap.

    With the conjugate ``l*`` and any ``u_i``, ``-C sum_i l*(u_i) - ½ |C sum_i u_i y_i Phi(x_i)|^2`` is a lower bound;
    the slopes ``u_i = l'(y_i f(x_i))`` attain it at the optimum. Damped Newton steps, in float64.

    Args:
        loss: ``"logistic"``, ``"squared"``, ``"squared_hinge"``, ``"exponential"``, or any `MarginLoss` that is smooth
            and convex.
        C: the weight of the losses, > 0.
        kernel: ``"linear"``, a kernel, or a function that returns a Gram block.
        tol: the duality gap to reach, relative to the primal where that is above 1.
        bias: append a constant feature 1, regularised like any other; or ``"free"``: a bias that the norm does not
            charge.
        max_passes: Newton steps at most.
        memory_limit: bytes that the Gram matrix may take.
        progress: whether to print a line on standard error now and then; by default on a terminal, and only when the
            fit takes more than a few seconds.
        on_step: called with every measurement of primal and dual.

    Shape:
        features ``(N, D)``; target ``(N)``, integers, ±1 or 0/1; the scorer's scores ``(N, 1)``.

    Raises:
        ValueError: ``C`` or ``tol`` that are not positive; a loss that is not smooth and convex; what `fit` refuses.

    Reference: Allwein, Schapire and Singer (2000), §2; for the dual Mohri, Rostamizadeh and Talwalkar, *Foundations of
    Machine Learning*, appendix B.

    Example:
        >>> import torch
        >>> x, y = torch.tensor([[1.0], [2.0], [-1.5]]), torch.tensor([1, 1, -1])
        >>> scorer, report = BinaryLearner("squared_hinge", tol=1e-6).fit(x, y)
        >>> (scorer(x) > 0).squeeze(1), report.converged
        (tensor([ True,  True, False]), True)
    """

    proof = "a loss (a `MarginLoss`) that is convex, with the conjugate and the slope of its value"

    def __init__(
        self,
        loss: MarginLossLike,
        C: float = 1.0,
        kernel: str | Kernel | GramFunction = "linear",
        tol: float = 1e-3,
        *,
        bias: Bias = False,
        max_passes: int = 100,
        memory_limit: int | None = None,
        progress: bool | None = None,
        on_step: Callable[[Step], None] | None = None,
    ) -> None:
        super().__init__(
            C,
            kernel,
            tol,
            bias=bias,
            max_passes=max_passes,
            memory_limit=memory_limit,
            progress=progress,
            on_step=on_step,
        )
        self.loss = as_margin_loss(loss)
        if not (self.loss.smooth and self.loss.convex):
            raise ValueError(
                f"loss: {self.loss.name!r} is not smooth and convex; accepted are losses that are, such as 'logistic' "
                "(and DualSVM for the hinge)"
            )

    def problem(
        self, features: Tensor, target: Tensor, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> Problem:
        return Problem.binary(features, target, weight, sparse=True)

    def losses(self, problem: Problem, dtype: torch.dtype) -> MarginLosses:
        return MarginLosses(self.loss, problem.labels.to(dtype), problem.strengths(self.C).to(dtype))

    def begin_at(self, monitor: GapMonitor, alpha: Tensor, weight: Tensor | None, ratio: float) -> bool:
        """Measure the weight of another fit; its slopes are the dual point."""
        if weight is None:
            return False
        measure(monitor, weight)
        return monitor.done

    def passes(self, problem: Problem, monitor: GapMonitor) -> Iterator[None]:
        """Damped Newton steps."""
        weight = monitor.weight
        while True:
            yield
            point = measure(monitor, weight)
            if monitor.done:
                return
            gradient = monitor.space.charged(point.weight) - point.image
            weight = _search(monitor, point, gradient, _newton(monitor.space, gradient, point.curvature))
            monitor.measure_unfinished = partial(measure, monitor, weight)


class LearnerOptions(TypedDict, total=False):
    """The keyword arguments of the learners with a name of their own, as in `BinaryLearner`."""

    bias: Bias
    max_passes: int
    memory_limit: int | None
    progress: bool | None
    on_step: Callable[[Step], None] | None


class _Point(NamedTuple):
    """A weight, its margins and primal, the image of the slopes there, and the losses' curvature."""

    weight: Tensor
    margins: Tensor
    primal: float
    image: Tensor
    curvature: Tensor


def measure(monitor: GapMonitor, weight: Tensor) -> _Point:
    """Show the monitor a weight, with the slopes there for a dual point."""
    space, losses = monitor.space, monitor.losses
    assert isinstance(losses, MarginLosses)
    margins = losses.margins(space.scores(weight))
    beta = -losses.kind.slope(margins)
    image = space.image(losses.alpha(beta))
    monitor.see(weight, margins, beta, image)
    curvature = losses.strengths * losses.kind.curvature(margins)
    return _Point(weight, margins, monitor.history[-1].primal, image, curvature)


def _newton(space: Space, gradient: Tensor, curvature: Tensor) -> Tensor:
    """``-(I + X^T H X)^{-1} g``, or, where there are fewer rows than features,
    ``X^T H^{1/2} (I + H^{1/2} K H^{1/2})^{-1} H^{1/2} X g - g``."""
    if isinstance(space, LinearSpace) and space.features.shape[1] < space.rows:
        matrix = space.features.mT @ (curvature * space.features)
        matrix.diagonal().add_(1)
        return -solve_positive(matrix, gradient[0])[None]
    root = curvature.sqrt()
    matrix = root * space.gram_matrix(torch.arange(space.rows, device=space.device)) * root.mT
    matrix.diagonal().add_(1)
    answer = solve_positive(matrix, (root * space.scores(gradient)).squeeze(1))
    return space.image(root * answer[:, None]) - gradient


def _search(monitor: GapMonitor, point: _Point, gradient: Tensor, direction: Tensor) -> Tensor:
    """The first of the steps 1, ½, ¼, ... that lowers the primal enough."""
    square = monitor.space.square
    slope = float(square(gradient + direction) - square(gradient) - square(direction)) / 2  # by polarisation
    moved, length = monitor.losses.margins(monitor.space.scores(direction)), 1.0
    while length > _SHORTEST:
        lower = monitor.objective(point.weight + length * direction, point.margins + length * moved)
        if lower <= point.primal + 1e-4 * length * slope:
            break
        length /= 2
    return point.weight + length * direction


class BinaryLogistic(BinaryLearner):
    r"""Regularised logistic regression, ``½ |w|^2 + C sum_i log(1 + exp(-2 y_i f(x_i)))``, to a certified gap.

    ``P(y = 1 | x) = sigmoid(2 f(x))``. The dual of the losses is an entropy, ``C sum_i H(beta_i/2)`` with
    ``H(u) = -u log u - (1 - u) log(1 - u)``. All work is done in float64.

    Args:
        C, kernel, tol, options: as in `BinaryLearner`.

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

    def __init__(
        self,
        C: float = 1.0,
        kernel: str | Kernel | GramFunction = "linear",
        tol: float = 1e-3,
        **options: Unpack[LearnerOptions],
    ) -> None:
        super().__init__("logistic", C, kernel, tol, **options)


class BinaryLeastSquares(BinaryLearner):
    r"""Regularised least squares on signs, ``½ |w|^2 + C sum_i (1 - y_i f(x_i))^2``: one linear system.

    Args:
        C, kernel, tol, options: as in `BinaryLearner`; one Newton step is exact.

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

    def __init__(
        self,
        C: float = 1.0,
        kernel: str | Kernel | GramFunction = "linear",
        tol: float = 1e-3,
        **options: Unpack[LearnerOptions],
    ) -> None:
        super().__init__("squared", C, kernel, tol, **options)
