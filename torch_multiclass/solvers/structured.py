"""What the solvers that know planes only share: arguments, examples, the watch over the gap, and the report."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.costs import as_cost
from torch_multiclass.functional.structured import CostLike
from torch_multiclass.kernels import GramFunction, Kernel, Linear, as_kernel, check_definite
from torch_multiclass.losses.structured import M3NLoss, SVMStructLoss
from torch_multiclass.scorers.base import Scorer
from torch_multiclass.solvers.base import Fit, Solver
from torch_multiclass.solvers.kernel_space import KernelSpace
from torch_multiclass.solvers.labelled import Labelled
from torch_multiclass.solvers.monitor import Monitor
from torch_multiclass.solvers.objective import Dual, Objective, Point
from torch_multiclass.solvers.parametric import Parametric
from torch_multiclass.solvers.problem import Problem, RowWeights, check_constant, check_memory_limit
from torch_multiclass.solvers.report import Certificate, Step, relative_gap
from torch_multiclass.solvers.sequences import Examples, Sequences
from torch_multiclass.solvers.space import Constant, LinearSpace
from torch_multiclass.solvers.verdict import proves, warn_of_gap
from torch_multiclass.solvers.warm_start import check_same_rows, report_of

__all__ = ["PlaneCertificate", "PlaneMonitor", "StructuredSolver"]

_ROUNDING = 1e-12
_SAME = 1e-9  # a relative gap that is as good as none
_SHORTER = 30  # quarters of a weight tried
_SINGLE_PRECISION = 1e-4  # for a smaller relative gap a Gram matrix is in float64

LOSSES = {"m3n": M3NLoss, "svmstruct": SVMStructLoss}


@dataclass(frozen=True, kw_only=True)
class PlaneCertificate(Certificate):
    """How `FrankWolfe` or `CuttingPlane` ended.

    ``primal`` and ``dual`` are in float64, the first of the scorer as it is stored. Of sequences the rows are the
    positions of all of them in one list, ``N T``; ``alpha`` are the multipliers of their scores, from which the
    emissions of the dual point are ``sum_i alpha_i Phi(x_i)``. With a scorer of one's own, ``support`` are examples,
    and ``alpha`` the shares of the planes that each keeps.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.5, and appendix B for weak
    duality.

    Example:
        >>> import torch
        >>> from torch_multiclass.solvers import FrankWolfe
        >>> report = FrankWolfe(C=0.1, tol=1e-6).fit(torch.tensor([[[1.0], [-1.0]]]), torch.tensor([[0, 1]])).report
        >>> report.dual <= report.primal, report.converged
        (True, True)
    """

    planes: Any = field(repr=False, default=None)
    """The planes with their shares, for a warm start."""
    point: Point | None = field(repr=False, default=None)
    """All weights, for a warm start."""


class PlaneMonitor(Monitor):
    """Keeps the best weight seen, and the dual point, whose value only grows.

    The gap counts relative to the larger of 1 and the primal, or to the objective of the weight 0 where that is less.
    """

    weight: Point  # type: ignore[assignment]
    kept: Dual
    begin_from: PlaneCertificate | None = None

    def __init__(self, objective: Objective[Any], tol: float, name: str, solver: StructuredSolver) -> None:
        super().__init__(name, solver.max_passes, solver.progress, solver.on_step)
        self.objective, self.tol = objective, tol
        self.weight, self.kept = objective.zero(), solver.dual(objective)
        self.at_zero = objective.exact(self.weight)[1]

    def see(self, point: Point, losses: Tensor) -> float:
        """Take note of a weight and its losses; its primal."""
        primal = self.objective.primal(point, losses)
        if primal <= self.primal:
            self.primal, self.weight = primal, point
        return primal

    def measure(self, primal: float, point: Point) -> bool:
        """Take note of the dual point, of this weight; whether the gap is small."""
        dual = self.kept.linear() - 0.5 * self.objective.inner(point, point)
        self.dual = max(self.dual, dual)
        self.note(primal, dual)
        gap = self.relative(self.primal, self.dual)
        return gap <= self.tol and (self.weight.any() or gap <= _SAME) and self._proved()

    def relative(self, primal: float, dual: float) -> float:
        """The gap over the larger of 1 and the primal, or over the primal of the weight 0 where that is less."""
        gap = relative_gap(primal, dual)
        return gap if self.at_zero >= 1 else gap / self.at_zero if self.at_zero > 0 else max(gap, 0.0)

    def _proved(self) -> bool:
        """Whether the gap is small on exact rows too, which may differ from a Gram matrix in single precision."""
        return self.relative(self._exact_primal(self.weight)[0], self.exact_dual()) <= self.tol

    def exact_dual(self) -> float:
        """In float64 on exact rows."""
        self.kept = self.kept.anew()
        return self.kept.linear() - 0.5 * self.objective.exact(self.kept.point())[0]

    def _exact_primal(self, point: Point) -> tuple[float, float]:
        """The primal in float64, and with the losses as a scorer in the weight's dtype computes them."""
        square, losses, computed = self.objective.exact(point)
        return 0.5 * square + losses, 0.5 * square + computed

    def settle(self) -> Point:  # type: ignore[override]
        """The best weight as it is to be stored; `primal` and `dual` become those of it.

        It is rounded to the dtype of the features, or left in float64 where rounding would lose the tolerance.
        """
        self.dual = self.exact_dual()
        if not self.weight.any():
            self._leave_zero()
        rounded = self.weight.map(lambda part: part.to(self.objective.dtype))
        self.primal, computed = self._exact_primal(rounded)
        if relative_gap(max(self.primal, computed), self.dual) > self.tol:
            wide = self._exact_primal(self.weight)[0]
            if relative_gap(wide, self.dual) <= self.tol:
                rounded, self.primal = self.weight, wide
        if self.primal > self.at_zero * (1 + _ROUNDING):
            rounded, self.primal = rounded.map(torch.zeros_like), self.at_zero
        self.weight = rounded
        return rounded

    def _leave_zero(self) -> None:
        """Take the dual point's weight instead of 0, as much of it as is no worse: 0 tells nothing apart."""
        point = self.kept.point()
        for _ in range(_SHORTER):
            if self._exact_primal(point)[0] <= self.at_zero * (1 + _ROUNDING):
                self.weight = point
                return
            point = point.map(lambda part: part / 4)


class StructuredSolver(Solver[PlaneMonitor, Scorer, PlaneCertificate]):
    r"""Minimises ``½ (|W|^2 + (|transitions|^2 + |start|^2 + |end|^2) / s^2) + C sum_i loss_i``.

    Args:
        C: the weight of the losses, a sum over examples.
        loss: ``"m3n"``, ``max_y [L(y*, y) + s(y) - s(y*)]``, or ``"svmstruct"``,
            ``max_y L(y*, y) [1 + s(y) - s(y*)]_+``.
        cost: ``L``, summed over positions: Hamming by default, a name, a ``(K, K)`` matrix, one for each example, or a
            cost object.
        kernel: of the features at a position: ``"linear"``, a kernel, or a function that returns a Gram block.
        transition_scale: ``s``; the larger, the less transitions, start and end are regularised.
        bias: append a constant feature 1, regularised like any other.
        tol: the relative gap to reach.
        scorer: of any structure, linear in its parameters: instead of a `LinearScorer` or a `ChainScorer` a copy of it
            is trained, by planes in its parameters: its ``forward`` gets parameters and features in float64. Those that
            do not multiply features count as transitions; what is added to the scores and has no parameter may stay.
        memory_limit, max_passes, generator, progress, on_step: as in `CertifiedSolver`.
    """

    wider, proof = "a smaller C", "a scorer linear in its parameters"
    single = True  # whether a Gram matrix may be in single precision, where the tolerance is not small

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "m3n",
        cost: CostLike | None = None,
        kernel: str | Kernel | GramFunction = "linear",
        transition_scale: float = 1.0,
        bias: bool = False,
        tol: float = 1e-3,
        scorer: Scorer | None = None,
        max_passes: int = 1000,
        generator: torch.Generator | None = None,
        memory_limit: int | None = None,
        progress: bool | None = None,
        on_step: Callable[[Step], None] | None = None,
    ) -> None:
        super().__init__(bias=bias, max_passes=max_passes, generator=generator, progress=progress, on_step=on_step)
        self.C = check_constant("C", C)
        loss = check.named("loss", loss, LOSSES)
        self.tol = check.positive("tol", tol)
        self.loss, self.cost = loss, None if cost is None else as_cost(cost)
        self.kernel, self.memory_limit = as_kernel(kernel), check_memory_limit(memory_limit)
        self.transition_scale = check_constant("transition_scale", transition_scale)
        if scorer is not None and not isinstance(scorer, Scorer):
            raise TypeError(f"scorer: got {check.came(scorer)}; accepted is None or a scorer linear in its parameters")
        if scorer is not None and (bias or not isinstance(self.kernel, Linear)):
            raise ValueError("scorer: given with a kernel or a bias; accepted is a scorer that has them itself")
        self.template = scorer

    def __repr__(self) -> str:
        scale = "" if self.transition_scale == 1 else f", transition_scale={self.transition_scale:g}"
        return (
            f"{type(self).__name__}(C={self.C:g}, loss={self.loss!r}, kernel={self.kernel!r}{scale}, tol={self.tol:g})"
        )

    def fit(
        self,
        features: Tensor,
        target: Tensor,
        *,
        mask: Tensor | None = None,
        lengths: Tensor | None = None,
        num_classes: int | None = None,
        weight: RowWeights | None = None,
        warm_start: PlaneCertificate | Fit[Scorer, PlaneCertificate] | None = None,
        **structure: Tensor,
    ) -> Fit[Scorer, PlaneCertificate]:
        """Train.

        Args:
            features: rows with a label each, or sequences; what stands in the padding changes nothing.
            target: labels, -100 where there is none. A sequence without labels is left out; in others every position
                that counts has one.
            mask, lengths: which positions count; by default all.
            num_classes: ``K``; by default one more than the largest label.
            weight: how much the loss of each row or sequence counts, >= 0; 2 is the example twice, 0 leaves it out.
            warm_start: a fit of the same examples, or its report, at which to begin.
            structure: what else the scorer given takes, such as ``parents=``, one entry for each example.

        Shape:
            features ``(N, D)`` with target ``(N)``, or ``(N, T, D)`` with ``(N, T)``; mask ``(N, T)``; lengths and
            weight ``(N)``.

        Returns:
            A `LinearScorer`, a `KernelScorer`, a `ChainScorer` of either, or a copy of the scorer given; and a
            `PlaneCertificate`. Ended from the keyboard, the best so far with its gap, and a warning, `Interrupted`.

        Raises:
            ValueError: no examples, one class, features that are not finite where they count, a position that counts
                and has no label, labels that the scorer forbids; a cost without a common unit for ``"svmstruct"``, or
                scores without exact slack rescaling; a kernel that is not positive semi-definite; a warm start of
                other examples.
            TypeError: a scorer whose scores are not linear in its parameters.
            MemoryError: a Gram matrix that would not fit.
        """
        with torch.no_grad():
            if self.template is not None:
                problem: Problem = Examples.made(features, target, weight, mask, lengths, structure)
            elif structure:
                raise TypeError(f"{next(iter(structure))}: is for scorers that take it; accepted with scorer=")
            else:
                problem = Sequences.made(features, target, weight, num_classes, mask, lengths)
            monitor = self.monitor(problem)
        monitor.begin_from = self._checked(monitor, problem, warm_start)
        return self.solve(problem, monitor)

    def _checked(self, monitor: PlaneMonitor, problem: Problem, warm_start: object) -> PlaneCertificate | None:
        warm = report_of(warm_start, PlaneCertificate)
        if warm is None:
            return None
        assert warm.point is not None
        if type(warm.planes) is not type(monitor.kept):
            raise ValueError(f"warm_start: is of another solver or structure; accepted is one of {type(self).__name__}")
        outputs, own = (point.parts[0].shape[-2:] for point in (warm.point, monitor.weight))
        check_same_rows(warm, outputs[0], problem, own[0])
        if outputs != own:
            raise ValueError(
                f"warm_start: is of {outputs[1]} features, but this fit has {own[1]}; accepted is the report of a fit "
                "of the same rows"
            )
        return warm

    def problem(
        self, features: Tensor, target: Tensor, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> Problem:
        return Sequences.made(features, target, weight, num_classes, None, None)

    def objective(self, problem: Problem) -> Objective[Any]:
        """What is minimised."""
        strength = problem.strengths(self.C)[:, 0].cpu()
        cost = None if self.cost is None else deepcopy(self.cost).cpu()
        scale = self.transition_scale**2
        if isinstance(problem, Examples):
            assert self.template is not None
            loss = functools.partial(LOSSES[self.loss], reduction="sum")
            return Parametric(problem, deepcopy(self.template), loss, cost, strength, scale)
        assert isinstance(problem, Sequences)
        features, constant = problem.features.cpu(), Constant(float(self.bias))
        if isinstance(self.kernel, Linear):
            space: LinearSpace | KernelSpace = LinearSpace(features, torch.float64, constant)
        else:
            check_definite(self.kernel, features, generator=torch.Generator().manual_seed(0))
            dtype = torch.float32 if self.single and self.tol >= _SINGLE_PRECISION else torch.float64
            space = KernelSpace(self.kernel, features, dtype, constant, self.memory_limit)
        return Labelled(problem, space, self.loss, cost, strength, scale)

    def monitor(self, problem: Problem) -> PlaneMonitor:
        return PlaneMonitor(self.objective(problem), self.tol, type(self).__name__, self)

    @abstractmethod
    def dual(self, objective: Objective[Any]) -> Dual:
        """No planes as yet."""

    def begin(self, monitor: PlaneMonitor, warm: PlaneCertificate) -> bool:
        """Take over where another fit has ended; whether that is good enough."""
        assert warm.point is not None
        monitor.kept = monitor.kept.begun_at(warm.planes, self.C / warm.C)
        point = warm.point.map(torch.Tensor.double)
        return monitor.measure(monitor.see(point, monitor.objective.planes(point)[0]), monitor.kept.point())

    def scorer(self, problem: Problem, monitor: PlaneMonitor) -> Scorer:
        return monitor.objective.scorer(monitor.weight)

    def report(self, problem: Problem, monitor: PlaneMonitor) -> PlaneCertificate:
        """The certificate; warns where it is not what was asked for."""
        primal, dual = monitor.primal, monitor.dual
        gap = relative_gap(primal, dual)
        if not monitor.interrupted:
            zero = not monitor.weight.any() and monitor.relative(primal, dual) > _SAME
            warn_of_gap(self, monitor.passes, gap, zero)
        alpha = monitor.kept.multipliers()
        support = (alpha != 0).any(1).nonzero().squeeze(1)
        return PlaneCertificate(
            primal=primal,
            dual=dual,
            gap=gap,
            converged=proves(gap, self.tol),
            interrupted=monitor.interrupted,
            iterations=monitor.passes,
            seconds=monitor.seconds,
            history=monitor.history,
            support=monitor.objective.support(alpha).cpu()[support],
            alpha=alpha[support],
            weight=monitor.objective.stored(monitor.weight),
            C=self.C,
            rows=problem.given,
            planes=monitor.kept,
            point=monitor.weight,
        )

    def _state(self, monitor: PlaneMonitor) -> str:
        return f"{super()._state(monitor)} with the gap {relative_gap(monitor.primal, monitor.dual):.2e}"
