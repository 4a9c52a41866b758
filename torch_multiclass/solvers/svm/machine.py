"""Support vector machines that prove how good they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.costs import Cost, ZeroOne, as_cost, trusted
from torch_multiclass.kernels import GramFunction, Kernel, Precomputed
from torch_multiclass.ops.sparse_rows import is_sparse, take_rows
from torch_multiclass.scorers.features import NystromFeatures
from torch_multiclass.solvers.base import Fit
from torch_multiclass.solvers.certified import CertifiedSolver, WarmStart
from torch_multiclass.solvers.gap import GapMonitor
from torch_multiclass.solvers.kernel_space import KernelSpace
from torch_multiclass.solvers.problem import (
    Problem,
    RowWeights,
    check_class_weight,
    check_exponent,
    check_flag,
)
from torch_multiclass.solvers.report import Certificate, Step
from torch_multiclass.solvers.space import Bias, LinearSpace, Machine, Space
from torch_multiclass.solvers.sparse_space import SparseSpace
from torch_multiclass.solvers.svm.ascent import dual_ascent
from torch_multiclass.solvers.svm.duals import BinaryHinge, CrammerSinger, Hinge, WestonWatkins, hinge_of
from torch_multiclass.solvers.svm.group_norm import method_of_multipliers
from torch_multiclass.solvers.svm.hard_margin import hard_margin
from torch_multiclass.solvers.svm.newton import augmented_lagrangian
from torch_multiclass.solvers.warm_start import report_of

__all__ = ["DualSVM"]

_SINGLE_PRECISION = 1e-4  # a smaller relative gap is worked for in float64
_STRONG = 1e5  # so is a C |Phi(x)|^2 above this
_SAMPLE, _CHUNK = 256, 4096  # rows looked at, and mapped at a time
_SMALL = 2_000_000  # Newton's method works in float64 at once where no more numbers than these describe the rows


class DualSVM(CertifiedSolver):
    r"""The multi-class SVM, to a certified relative duality gap.

    Minimises ``P = ½ sum_l |w_l|^2 + C sum_i xi_i`` with ``xi_i = max_l [L(y_i, l) + f_l(x_i) - f_{y_i}(x_i)]`` (or,
    for Weston and Watkins, ``sum_{l != y_i} [L(y_i, l) + f_l(x_i) - f_{y_i}(x_i)]_+``), ``f_l(x) = w_l · Phi(x)``,
    through its dual ``-sum_{il} L(y_i, l) alpha_{il} - ½ sum_{ij} (alpha_i · alpha_j) K(x_i, x_j)``. The report
    holds both values, so the scorer is proved to be within ``gap`` of the optimum.

    Args:
        C: the weight of the losses, > 0; infinity is a hard margin, of separable rows.
        kernel: ``"linear"``, ``"gaussian"`` or ``"laplacian"`` (those of ``gamma = 1``), a kernel, or a function that
            returns a Gram block, which is called in the features' own dtype (half precision as float32);
            ``"precomputed"`` where the features are the Gram matrix, as in `kernels.Precomputed`.
        tol: the relative gap ``(P - dual) / max(1, |P|)`` to reach; absolute where ``P`` is below 1, so ask for
            less there. Below 1e-4 the work is done in float64.
        loss: ``"crammer_singer"`` or ``"weston_watkins"``.
        binary: one score and ``xi_i = [1 - y_i f(x_i)]_+``; the target is integers, ±1, or 0/1 with 1 for +1.
        p: regularise by half the squared group norm ``(sum_l |w_l|^p)^{2/p}``, ``p >= 1`` or infinity.
        cost: ``L``: a name, a ``(K, K)`` matrix, one matrix for each example, or a cost object.
        weight: of each class's examples, ``(K)``; multiplies ``C``, as the weights of the rows given to `fit` do.
        bias: append a constant feature 1, whose weights are regularised like any other; or ``"free"``: a bias that the
            norm does not charge, as that of libsvm, with ``sum_i alpha_{il} = 0`` in the dual; of ``p = 2`` alone.
        landmarks: use this many rows, drawn by ``generator``, as landmarks of a Nyström approximation of the kernel.
        max_passes: how often at most to go over the rows, Newton steps included.
        generator: draws the order of the rows and the landmarks; by default one seeded with 0, so fits repeat.
        memory_limit: bytes that the Gram matrix may take; by default 80 % of what is free.
        progress: whether to print a line on standard error now and then; by default on a terminal, and only when the
            fit takes more than a few seconds.
        on_step: called with every measurement of primal and dual.

    Shape:
        features ``(N, D)``, also sparse (CSR, of torch or SciPy) with the linear kernel; target ``(N)``; the scorer's
        scores ``(N, K)``, or ``(N, 1)`` of a binary machine.

    Raises:
        ValueError: ``C`` outside 1e-30..1e30; rows that no hard margin separates; no rows; one class; features that are
            not finite; a kernel that is not positive semi-definite, as far as the fit sees.
        MemoryError: a Gram matrix that would not fit, before it is allocated.

    Reference: Crammer and Singer (2001), *On the algorithmic implementation of multiclass kernel-based vector
    machines*; Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.3.1 and exercise 9.2.

    Example:
        >>> import torch
        >>> x = torch.tensor([[0.0, 1.0], [1.0, 0.0], [-1.0, -1.0], [0.2, 1.1]])
        >>> scorer, report = DualSVM(C=10.0, tol=1e-4).fit(x, torch.tensor([0, 1, 2, 0]))
        >>> scorer(x).argmax(1)
        tensor([0, 1, 2, 0])
        >>> report.dual <= report.primal <= report.dual + 1e-4 * max(1, report.primal)
        True
    """

    changes = ("p", "cost", "weight", "bias", "landmarks")
    hard = True

    def __init__(
        self,
        C: float = 1.0,
        kernel: str | Kernel | GramFunction = "linear",
        tol: float = 1e-3,
        *,
        loss: str = "crammer_singer",
        binary: bool = False,
        p: float = 2.0,
        cost: str | Tensor | Sequence[Sequence[float]] | Cost = "zero_one",
        weight: Tensor | Sequence[float] | None = None,
        bias: Bias = False,
        landmarks: int | None = None,
        max_passes: int = 2000,
        generator: torch.Generator | None = None,
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
            generator=generator,
            memory_limit=memory_limit,
            progress=progress,
            on_step=on_step,
        )
        loss = check.named("loss", loss, ["crammer_singer", "weston_watkins"])
        check_flag("binary", binary)
        if landmarks is not None:
            landmarks = check.whole("landmarks", landmarks)
            if isinstance(self.kernel, Precomputed):
                raise ValueError(f"landmarks: got {landmarks} with kernel='precomputed'; accepted is None")
        check_exponent(p)
        if bias == "free" and p != 2:
            raise ValueError(f"bias: got 'free' with p={p:g}; accepted with it is p=2")
        self.loss, self.binary, self.p, self.cost, self.landmarks = loss, binary, p, as_cost(cost), landmarks
        if binary and type(self.cost).rows is not ZeroOne.rows:
            raise ValueError("cost: got a matrix with binary=True; accepted is 'zero_one', and weight for the classes")
        self.weight = None if weight is None else check_class_weight(weight)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, loss={self.loss!r}, binary={self.binary})"

    def fit(
        self,
        features: Tensor,
        target: Tensor,
        *,
        weight: RowWeights | None = None,
        num_classes: int | None = None,
        warm_start: WarmStart | None = None,
    ) -> Fit[Machine, Certificate]:
        """Train.

        Args:
            features: the rows, one device.
            target: their labels, integers; rows labelled -100 are left out.
            weight: how much the loss of each row counts, >= 0; 2 is the row twice, 0 leaves it out.
            num_classes: ``K``; by default one more than the largest label.
            warm_start: a fit of the same rows, or its report, whose multipliers, scaled by the ratio of the two ``C``,
                and weights are where to begin.

        Shape:
            features ``(N, D)``; target and weight ``(N)``.

        Returns:
            A `LinearScorer`, `KernelScorer` or `NystromScorer`, and a `Certificate`, which is true of the scorer as it
            is stored: in the features' dtype (float32 for half precision), or in float64 where rounding to it would
            lose the tolerance. A scorer takes features of a narrower dtype than its own. Ended from the keyboard, the
            best so far with its gap, and a warning, `Interrupted`; while the Gram matrix is still being computed there
            is none, and the interrupt propagates, as does a second one.

        Raises:
            ValueError: no rows, one class, or features that are not finite; a warm start of other rows; a kernel that
                is not positive semi-definite.
            MemoryError: a Gram matrix that would not fit.
        """
        problem = self.problem(features, target, weight, num_classes)
        return next(self._fits(problem, [self.C], report_of(warm_start, Certificate)))

    def path(
        self,
        features: Tensor,
        target: Tensor,
        Cs: Iterable[float] | Tensor,
        *,
        weight: RowWeights | None = None,
        num_classes: int | None = None,
    ) -> Iterator[Fit[Machine, Certificate]]:
        """One fit for each ``C``, each started at the solution of the one before; the Gram matrix is computed once.

        A growing path may end at infinity, a hard margin, which begins at the fit before it.

        Ended from the keyboard, the fit at hand is the last, the best so far with its gap.

        Shape:
            features ``(N, D)``; target and weight ``(N)``; Cs any number of values.

        Raises:
            ValueError, TypeError: as `fit`; a ``C`` that is not positive.

        Example:
            >>> import torch
            >>> x, y = torch.eye(3).repeat(10, 1), torch.arange(30) % 3
            >>> [report.C for _, report in DualSVM().path(x, y, [0.1, 1.0])]
            [0.1, 1.0]
        """
        problem = self.problem(features, target, weight, num_classes)
        if isinstance(Cs, Tensor):
            check.floating("Cs", Cs)
            check.with_values("Cs", Cs)
        values: object = Cs.flatten().tolist() if isinstance(Cs, Tensor) else Cs
        if isinstance(values, str) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
            raise TypeError(f"Cs: got {Cs!r}; accepted are several numbers > 0, for example [0.1, 1.0]")
        return self._fits(problem, [self.check_strength("Cs", C) for C in values])

    def hard_fit(self, problem: Problem, warm: Certificate | None) -> Fit[Machine, Certificate]:
        length = float(self.squared_lengths(problem).double().mean()) ** 0.5
        return hard_margin(self, problem, max(length, 1e-12), warm)

    def problem(
        self, features: Tensor, target: Tensor, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> Problem:
        if self.binary:
            return Problem.binary(features, target, weight, sparse=True)
        problem = Problem.multiclass(features, target, weight, num_classes, sparse=True)
        if self.bias_kind == "free":
            absent = (problem.labels.bincount(minlength=problem.classes) == 0).nonzero().squeeze(1).tolist()
            if absent:  # its bias would go to minus infinity
                raise ValueError(f"target: no row has the label {absent[0]}; accepted with bias='free' are all labels")
        return problem

    def losses(self, problem: Problem, dtype: torch.dtype) -> Hinge:
        upper = problem.strengths(self.C, self.weight).to(dtype)
        if self.binary:
            return BinaryHinge(problem.labels.to(dtype), upper)
        cost = None
        if type(self.cost).rows is not ZeroOne.rows:
            cost = trusted(deepcopy(self.cost).to(upper.device)).rows(problem.labels, problem.classes, dtype)
        kind = CrammerSinger if self.loss == "crammer_singer" else WestonWatkins
        return kind(problem.labels, problem.classes, upper, cost)

    def space(self, problem: Problem, Cs: Sequence[float]) -> Space:
        """In single precision where the tolerance and the strength of the losses allow."""
        features, constant = problem.features, self.constant(problem, Cs)
        least = float(problem.strengths(min(Cs), self.weight).min())
        most = float(problem.strengths(max(Cs), self.weight).max())
        strongest = most * float(self.squared_lengths(problem).double().mean())
        single = self.tol >= _SINGLE_PRECISION and strongest <= _STRONG and least >= 1 / _STRONG
        dtype = torch.float32 if single else torch.float64
        if self.landmarks is not None and is_sparse(features):
            raise ValueError("landmarks: given with sparse features; accepted with them are dense ones")
        if self.landmarks is None:
            return self.space_of(problem, dtype, constant)
        chosen = torch.randperm(len(features), generator=self.draws())[: self.landmarks].to(features.device)
        dtype = torch.promote_types(features.dtype, dtype)
        mapped = NystromFeatures(features[chosen], self.kernel, dtype=dtype)
        rows = torch.cat([mapped(part) for part in torch.split(features, _CHUNK)])
        return LinearSpace(rows, dtype, constant, mapped)

    def squared_lengths(self, problem: Problem) -> Tensor:
        """``|Phi(x)|^2`` of the first rows."""
        features, kernel = problem.features, self.kernel_of(problem)
        if is_sparse(features):
            features = take_rows(features, torch.arange(min(_SAMPLE, features.shape[0]), device=features.device))
            return features.values().square().sum()[None] / features.shape[0]
        return kernel.diagonal(features[:_SAMPLE])

    def monitor(self, problem: Problem, space: Space | None = None, warm: Certificate | None = None) -> GapMonitor:
        monitor = super().monitor(problem, space, warm)
        monitor.sparse = isinstance(monitor.space, KernelSpace) and self.p == 2
        return monitor

    def begin_at(self, monitor: GapMonitor, alpha: Tensor, weight: Tensor | None, ratio: float) -> bool:
        """Measure the multipliers of another fit, scaled to this ``C`` (most rows at a bound) and as they are (none, as
        in separable rows), with their image and with its weight."""
        hinge, image = hinge_of(monitor), monitor.space.image
        beta = hinge.from_alpha(alpha)
        if monitor.try_weight(image(hinge.alpha(beta)), beta):
            return True
        beta = hinge.from_alpha(alpha * ratio)
        if weight is not None and monitor.try_weight(weight, beta):
            return True
        return monitor.try_weight(image(hinge.alpha(beta)), beta)

    def passes(self, problem: Problem, monitor: GapMonitor) -> Iterator[None]:
        """Dual ascent, then a proximal-point method: Newton's steps cost more, and get there where ascent does not."""
        if self.p == 2 and not isinstance(monitor.space, SparseSpace):
            yield from dual_ascent(monitor, self.draws())
            if monitor.done:
                return
        method = augmented_lagrangian if self.p == 2 else method_of_multipliers
        if monitor.space.dtype != torch.float64:
            if monitor.space.size > _SMALL and not monitor.misled:  # single precision first, where double is dear
                yield from method(monitor)
                if monitor.done:
                    return
            try:
                monitor.widen()
            except MemoryError:  # of a Gram matrix twice the size: the best so far is what there is
                return
        yield from method(monitor)
