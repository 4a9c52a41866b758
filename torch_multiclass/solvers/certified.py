"""Solvers that prove how good they are: the losses over a feature space, with a dual."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import ClassVar

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.kernels import GramFunction, Kernel, Linear, Precomputed, as_kernel, check_definite
from torch_multiclass.kernels.gram import not_definite
from torch_multiclass.ops.precision import undisturbed
from torch_multiclass.ops.sparse_rows import is_sparse
from torch_multiclass.solvers.arguments import known
from torch_multiclass.solvers.base import Fit, Solver
from torch_multiclass.solvers.gap import GapMonitor
from torch_multiclass.solvers.kernel_space import KernelSpace
from torch_multiclass.solvers.losses import Losses
from torch_multiclass.solvers.problem import Problem, RowWeights, check_constant, check_memory_limit
from torch_multiclass.solvers.report import Certificate, Step, relative_gap
from torch_multiclass.solvers.space import Bias, Constant, LinearSpace, Machine, Space
from torch_multiclass.solvers.sparse_space import SparseSpace
from torch_multiclass.solvers.verdict import proves, warn_of_gap
from torch_multiclass.solvers.warm_start import check_same_rows, report_of

_ROUNDING = 1e-6
_REACH = 10.0  # a free bias that a dual point can ask for in one step, were all its multipliers of one sign
_SAME = 1e-6  # a zero scorer within this of the optimum is the optimum

WarmStart = Certificate | Fit[Machine, Certificate]


class CertifiedSolver(Solver[GapMonitor, Machine, Certificate]):
    """Minimises ``R(w) + C sum_i loss_i(f(x_i))``, ``f_l(x) = w_l · Phi(x)``, to a certified relative duality gap.

    Args:
        C: the weight of the losses, > 0.
        kernel: ``"linear"``, a kernel, or a function that returns a Gram block.
        tol: the gap to reach.
        memory_limit: bytes that the Gram matrix may take; by default 80 % of what is free.
        bias: append a constant feature 1; ``"free"``, one whose weight the norm leaves out.
        max_passes, generator, progress, on_step: as in `Solver`.
    """

    p: float = 2.0
    """The exponent of the group norm."""
    wider, proof = "a path of growing C", "a convex loss, and a cost of values >= 0"
    changes: ClassVar[tuple[str, ...]] = ("bias",)
    """Arguments of what is learned that ``repr`` shows where they are not as usual."""
    hard: bool = False
    """Whether ``C`` may be infinite."""

    def __init__(
        self,
        C: float,
        kernel: str | Kernel | GramFunction,
        tol: float,
        *,
        bias: Bias,
        max_passes: int,
        generator: torch.Generator | None = None,
        memory_limit: int | None = None,
        progress: bool | None = None,
        on_step: Callable[[Step], None] | None = None,
    ) -> None:
        if not isinstance(bias, bool) and not (isinstance(bias, str) and bias == "free"):
            raise TypeError(f"bias: got {bias!r}; accepted is True, False or 'free'")
        super().__init__(
            bias=bool(bias), max_passes=max_passes, generator=generator, progress=progress, on_step=on_step
        )
        self.bias_kind: Bias = bias
        self.C = self.check_strength("C", C)
        self.tol = check.positive("tol", tol)
        self.kernel, self.memory_limit = as_kernel(kernel), check_memory_limit(memory_limit)

    def __repr__(self) -> str:
        given, usual = self._named(), known(type(self))
        more = [name for name in self.changes if name in given and repr(given[name]) != repr(usual[name])]
        told = "".join(f", {name}={check.shown(given[name])}" for name in more)
        return f"{type(self).__name__}(C={self.C:g}, kernel={self.kernel!r}, tol={self.tol:g}{told})"

    def check_strength(self, name: str, C: object) -> float:
        """A ``C``: a number, or of solvers that have a hard margin infinity."""
        infinite = self.hard and isinstance(C, float) and C > 0 and math.isinf(C)
        try:
            return math.inf if infinite else check_constant(name, C)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{error}, or math.inf: a hard margin") if self.hard else error from None

    def fit(
        self,
        features: Tensor,
        target: Tensor,
        *,
        weight: RowWeights | None = None,
        warm_start: WarmStart | None = None,
    ) -> Fit[Machine, Certificate]:
        """Train.

        Args:
            features: the rows, one device.
            target: their labels, integers; rows labelled -100 are left out.
            weight: how much the loss of each row counts, >= 0; 2 is the row twice, 0 leaves it out.
            warm_start: a fit of the same rows, or its report, at which to begin.

        Shape:
            features ``(N, D)``; target and weight ``(N)``.

        Returns:
            A scorer, and a `Certificate`, which is true of the scorer as it is stored: in the features' dtype (float32
            for half precision), or in float64 where rounding to it would lose the tolerance. A scorer takes features of
            a narrower dtype than its own. Ended from the keyboard, the best so far with its gap, and a warning,
            `Interrupted`; before the work has begun, while the Gram matrix is being computed, there is no best, and the
            interrupt propagates, as does a second one.

        Raises:
            ValueError: no rows, one class, or features that are not finite; a kernel that is not positive
                semi-definite; a warm start of other rows.
            MemoryError: a Gram matrix that would not fit.
        """
        problem = self.problem(features, target, weight)
        return next(self._fits(problem, [self.C], report_of(warm_start, Certificate)))

    def _fits(
        self, problem: Problem, Cs: Iterable[float], warm: Certificate | None = None
    ) -> Iterator[Fit[Machine, Certificate]]:
        """A fit for each ``C``, each begun at the one before; the space is made once."""
        Cs = list(Cs)
        finite = [C for C in Cs if not math.isinf(C)]
        with torch.no_grad():
            space = undisturbed(self.space)(problem, finite) if finite else None
        for C in Cs:
            fit, space = self._fit_at(C, problem, space, warm)
            yield fit
            if fit.report.interrupted:
                return
            warm = fit.report

    @undisturbed  # each by itself: whoever goes over the fits has the word in between
    def _fit_at(
        self, C: float, problem: Problem, space: Space | None, warm: Certificate | None
    ) -> tuple[Fit[Machine, Certificate], Space | None]:
        """The fit for one ``C``, and the space that it ended in."""
        solver = copy(self)
        solver.C = C
        if math.isinf(C):
            return solver.hard_fit(problem, warm), space
        with torch.no_grad():
            monitor = solver.monitor(problem, space, warm)
        return solver.solve(problem, monitor), monitor.space

    def hard_fit(self, problem: Problem, warm: Certificate | None) -> Fit[Machine, Certificate]:
        """The fit whose ``C`` is infinite, of solvers that have one."""
        raise NotImplementedError

    @abstractmethod
    def losses(self, problem: Problem, dtype: torch.dtype) -> Losses:
        """The rows' losses times ``C``."""

    @abstractmethod
    def passes(self, problem: Problem, monitor: GapMonitor) -> Iterator[None]:
        """The `steps` from what the monitor has seen so far."""

    def begin_at(self, monitor: GapMonitor, alpha: Tensor, weight: Tensor | None, ratio: float) -> bool:
        """Measure where another fit has ended: its multipliers, its weight, and the ratio of the two ``C``."""
        return weight is not None and monitor.try_weight(weight, monitor.beta)

    def space(self, problem: Problem, Cs: Sequence[float]) -> Space:
        """The feature space, for strengths between the least and the largest of these; here in float64."""
        return self.space_of(problem, torch.float64, self.constant(problem, Cs))

    def constant(self, problem: Problem, Cs: Sequence[float]) -> Constant:
        """What feature the bias is the weight of. Of a free one multipliers move as much as they sum up to."""
        if self.bias_kind != "free":
            return Constant(float(self.bias_kind))
        return Constant(0.0, free=True, least=_REACH / (min(Cs) * float(problem.weight.sum())))

    def kernel_of(self, problem: Problem) -> Kernel:
        """The kernel for the rows that count, of those given; a sparse row has the linear one only."""
        if is_sparse(problem.features) and not isinstance(self.kernel, Linear):
            raise ValueError(f"features: are sparse with kernel={self.kernel!r}; accepted with it are dense features")
        if isinstance(self.kernel, Precomputed):
            self.kernel.check_square(problem.features, problem.positions, problem.given)
        return self.kernel.at(problem.positions)

    def space_of(self, problem: Problem, dtype: torch.dtype, constant: Constant) -> Space:
        """The kernel's space with these rows."""
        features = problem.features
        if is_sparse(features):
            self.kernel_of(problem)
            return SparseSpace(features, dtype, constant)
        if isinstance(self.kernel, Linear):
            return LinearSpace(features, dtype, constant)
        kernel = self.kernel_of(problem)
        check_definite(kernel, features, generator=torch.Generator().manual_seed(0))
        return KernelSpace(kernel, features, dtype, constant, self.memory_limit)

    def monitor(self, problem: Problem, space: Space | None = None, warm: Certificate | None = None) -> GapMonitor:
        space = self.space(problem, [self.C]) if space is None else space
        exact = self.losses(problem, torch.float64)
        monitor = GapMonitor(
            space,
            exact if space.dtype == torch.float64 else self.losses(problem, space.dtype),
            self.tol,
            self.p,
            exact=exact,
            name=type(self).__name__,
            max_passes=self.max_passes,
            progress=self.progress,
            on_step=self.on_step,
        )
        if warm is not None:
            check_same_rows(warm, warm.alpha.shape[1], problem, monitor.losses.outputs)
            monitor.begin_from = warm
            if warm.C == self.C:
                monitor.at_most = min(monitor.at_most, warm.primal)
        return monitor

    def steps(self, problem: Problem, monitor: GapMonitor) -> Iterator[None]:
        if monitor.begin() or self._begin_warm(problem, monitor):
            return
        yield from self.passes(problem, monitor)

    def _begin_warm(self, problem: Problem, monitor: GapMonitor) -> bool:
        warm, space = monitor.begin_from, monitor.space
        if warm is None:
            return False
        alpha = torch.zeros(warm.rows, monitor.losses.outputs, device=space.device, dtype=space.dtype)
        alpha[warm.support.to(space.device)] = warm.alpha.to(alpha)
        weight = space.restored(warm.weight.to(alpha))
        return self.begin_at(monitor, alpha[problem.positions], weight, self.C / warm.C)

    def scorer(self, problem: Problem, monitor: GapMonitor) -> Machine:
        return monitor.space.scorer(monitor.weight)

    def report(self, problem: Problem, monitor: GapMonitor) -> Certificate:
        """The certificate; warns where it is not what was asked for."""
        check_weak_duality(monitor.space, monitor.primal, monitor.dual)
        if not monitor.interrupted:
            self.warn_of_gap(monitor, relative_gap(monitor.primal, monitor.dual))
        return self.certificate(problem, monitor)

    def certificate(self, problem: Problem, monitor: GapMonitor) -> Certificate:
        """What the monitor has come to."""
        primal, dual = monitor.primal, monitor.dual
        gap = relative_gap(primal, dual)
        alpha = monitor.exact.alpha(monitor.feasible())
        support = (alpha != 0).any(1).nonzero().squeeze(1)
        return Certificate(
            primal=primal,
            dual=dual,
            gap=gap,
            converged=proves(gap, self.tol),
            interrupted=monitor.interrupted,
            iterations=monitor.passes,
            seconds=monitor.seconds,
            history=monitor.history,
            support=problem.positions[support],
            alpha=alpha[support],
            weight=monitor.space.saved(monitor.weight),
            C=self.C,
            rows=problem.given,
        )

    def warn_of_gap(self, monitor: GapMonitor, gap: float) -> None:
        """Say that the gap is larger than asked for or below 0, or the scorer 0."""
        zero = not bool(monitor.weight.any()) and monitor.relative(monitor.primal, monitor.dual) > _SAME
        warn_of_gap(self, monitor.passes, gap, zero)

    def _state(self, monitor: GapMonitor) -> str:
        return f"{super()._state(monitor)} with the gap {relative_gap(monitor.primal, monitor.dual):.2e}"


def check_weak_duality(space: Space, primal: float, dual: float) -> None:
    """Raise where a dual above the primal shows that a user's kernel is none."""
    own = isinstance(space, KernelSpace) and not space.kernel.definite
    if own and relative_gap(primal, dual) < -_ROUNDING:
        raise not_definite(f"the dual objective {dual:.8g} exceeds the primal {primal:.8g}")
