"""Binary learners with a smooth loss, certified like the SVM: the learners behind an output code."""

from __future__ import annotations

import time
import warnings

import torch
from torch import Tensor

from torch_multiclass import _validation as check
from torch_multiclass.kernels import GramFunction, Kernel, Linear, as_kernel, check_definite, gram
from torch_multiclass.scorers.kernel import KernelScorer
from torch_multiclass.scorers.linear import LinearScorer
from torch_multiclass.solvers.base import Fit, Report, Step, relative_gap
from torch_multiclass.solvers.dual import check_rows, check_signs

__all__ = ["BinaryLeastSquares", "BinaryLogistic"]


class _Smooth:
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
        check.positive("C", C)
        check.positive("tol", tol)
        check.whole("max_passes", max_passes)
        self.C, self.tol, self.kernel, self.bias = C, tol, as_kernel(kernel), bias
        self.max_passes, self.memory_limit = max_passes, memory_limit

    def __repr__(self) -> str:
        return f"{type(self).__name__}(C={self.C:g}, kernel={self.kernel!r}, tol={self.tol:g})"

    def _loss(self, margins: Tensor) -> Tensor:
        raise NotImplementedError

    def _slopes(self, margins: Tensor) -> tuple[Tensor, Tensor]:
        """``-loss'`` and ``loss''``."""
        raise NotImplementedError

    def _conjugate(self, beta: Tensor) -> Tensor:
        """``-loss*(-beta)``: the least of ``loss(z) + beta z`` over ``z``."""
        raise NotImplementedError

    @torch.no_grad()
    def fit(self, features: Tensor, target: Tensor) -> Fit[Report]:
        """Train.

        Args:
            features: the rows.
            target: ±1, or 0/1 with 1 for +1; rows labelled -100 are left out.

        Shape:
            features ``(N, D)``; target ``(N)``.

        Returns:
            A scorer with one score, and a `Report`.
        """
        features, target = check_rows(features, target)
        signs = check_signs(target).double()
        work = features.double()
        explicit = isinstance(self.kernel, Linear)
        if explicit:
            basis = torch.cat([work, torch.ones_like(work[:, :1])], 1) if self.bias else work
        else:
            check_definite(self.kernel, work, generator=torch.Generator().manual_seed(0))
            basis = gram(self.kernel, work, limit=self.memory_limit)
            basis = basis.add_(1) if self.bias else basis
        best, report = self._newton(basis, signs, explicit)
        if explicit:
            inner = basis.shape[1] - self.bias
            linear = LinearScorer(inner, 1, self.bias, device=features.device, dtype=features.dtype)
            linear.weight.copy_(best[None, :inner])
            if linear.bias is not None:
                linear.bias.copy_(best[inner:])
            return Fit(linear, report)
        scorer = KernelScorer(features, 1, self.kernel, bias=self.bias)
        scorer.coefficients.copy_(best[:, None])
        if scorer.bias is not None:
            scorer.bias.fill_(float(best.sum()))
        return Fit(scorer, report)

    def _newton(self, basis: Tensor, signs: Tensor, explicit: bool) -> tuple[Tensor, Report]:
        """Damped Newton. ``w`` holds weights (``explicit``: ``f = X w``) or coefficients (``f = K w``), and
        ``beta``, the
        slopes at ``w``, a feasible dual point at any time."""
        started = time.perf_counter()
        w = basis.new_zeros(basis.shape[1])
        history: list[Step] = []
        best, best_primal, best_dual, best_beta = w, torch.inf, -torch.inf, torch.zeros_like(signs)
        interrupted = False
        try:
            for passes in range(self.max_passes):
                scores = basis @ w
                primal = self._primal(w, scores, signs, explicit)
                beta, curvature = self._slopes(signs * scores)
                alpha = self.C * beta * signs
                image = basis.mT @ alpha if explicit else alpha
                square = float(image @ image) if explicit else float(alpha @ (basis @ alpha))
                dual = self.C * float(self._conjugate(beta).sum()) - 0.5 * square
                history.append(Step(passes, time.perf_counter() - started, primal, dual))
                if primal < best_primal:
                    best, best_primal = w, primal
                if dual > best_dual:
                    best_dual, best_beta = dual, beta
                if relative_gap(best_primal, best_dual) <= self.tol:
                    break
                # gradient w - image; Newton's matrix I + C X^T H X, or in coefficients I + C H K
                curve = self.C * curvature
                matrix = basis.mT @ (curve[:, None] * basis) if explicit else curve[:, None] * basis
                matrix.diagonal().add_(1)
                step = torch.linalg.solve(matrix, image - w)
                gradient = (w - image) if explicit else basis @ (w - image)
                slope, length = float(gradient @ step), 1.0
                moved = basis @ step
                while length > 1e-10:
                    lower = self._primal(w + length * step, scores + length * moved, signs, explicit)
                    if lower <= primal + 1e-4 * length * slope:
                        break
                    length /= 2
                w = w + length * step
        except KeyboardInterrupt:
            interrupted = True
        gap = relative_gap(best_primal, best_dual)
        if gap > self.tol and not interrupted:
            warnings.warn(
                f"{type(self).__name__}: the gap is {gap:.2e} after {len(history)} passes, above tol={self.tol:g}; "
                "a larger max_passes would help",
                UserWarning,
                stacklevel=3,
            )
        alpha = (self.C * best_beta * signs)[:, None]
        support = (alpha != 0).any(1).nonzero().squeeze(1)
        report = Report(
            primal=best_primal,
            dual=best_dual,
            gap=gap,
            converged=gap <= self.tol,
            interrupted=interrupted,
            iterations=len(history),
            seconds=time.perf_counter() - started,
            history=history,
            support=support,
            alpha=alpha[support],
            C=self.C,
            rows=len(signs),
        )
        return best, report

    def _primal(self, w: Tensor, scores: Tensor, signs: Tensor, explicit: bool) -> float:
        square = w @ w if explicit else w @ scores
        return float(0.5 * square + self.C * self._loss(signs * scores).sum())


class BinaryLogistic(_Smooth):
    r"""Regularised logistic regression, ``½ |w|^2 + C sum_i log(1 + exp(-2 y_i f(x_i)))``, to a certified gap.

    ``P(y = 1 | x) = sigmoid(2 f(x))``. The dual of the losses is an entropy, ``C sum_i H(beta_i/2)`` with
    ``H(u) = -u log u - (1 - u) log(1 - u)``. All work is done in float64.

    Args:
        C: the weight of the losses, > 0.
        kernel: ``"linear"``, a kernel, or a function that returns a Gram block.
        tol: the relative duality gap to reach.
        bias: append a constant feature 1, regularised like any other.
        max_passes: Newton steps at most.
        memory_limit: bytes that the Gram matrix may take.

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
        tol: the relative duality gap to reach.
        bias: append a constant feature 1, regularised like any other.
        max_passes: Newton steps at most; one is exact.
        memory_limit: bytes that the Gram matrix may take.

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
