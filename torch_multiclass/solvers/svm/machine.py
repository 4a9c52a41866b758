"""Support vector machines that prove how good they are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.costs import Cost, ZeroOne, as_cost
from torch_multiclass.kernels import GramFunction, Kernel, Linear, as_kernel, check_definite
from torch_multiclass.scorers.features import NystromFeatures
from torch_multiclass.solvers._scorers import as_scorer, check_weak_duality, settle
from torch_multiclass.solvers.base import Fit, Report, Step, relative_gap
from torch_multiclass.solvers.monitor import Monitor
from torch_multiclass.solvers.problem import (
    check_constant,
    check_exponent,
    check_memory_limit,
    check_rows,
    check_signs,
    check_size,
    check_weight,
    one_label,
)
from torch_multiclass.solvers.space import KernelSpace, LinearSpace, Space
from torch_multiclass.solvers.svm.ascent import ascend
from torch_multiclass.solvers.svm.duals import BinaryHinge, CrammerSinger, Hinge, WestonWatkins
from torch_multiclass.solvers.svm.group_norm import descend
from torch_multiclass.solvers.svm.newton import polish

__all__ = ["DualSVM"]

_SINGLE_PRECISION = 1e-4  # a smaller relative gap is worked for in float64
_STRONG = 1e5  # so is a C |Phi(x)|^2 above this
_SAMPLE, _CHUNK = 256, 4096  # rows looked at, and mapped at a time
_SMALL = 2_000_000  # Newton's method works in float64 at once where no more numbers than these describe the rows


class DualSVM:
    r"""The multi-class SVM, to a certified relative duality gap.

    Minimises ``P = ½ sum_l |w_l|^2 + C sum_i xi_i`` with ``xi_i = max_l [L(y_i, l) + f_l(x_i) - f_{y_i}(x_i)]`` (or,
    for Weston and Watkins, ``sum_{l != y_i} [L(y_i, l) + f_l(x_i) - f_{y_i}(x_i)]_+``), ``f_l(x) = w_l · Phi(x)``,
    through its dual ``-sum_{il} L(y_i, l) alpha_{il} - ½ sum_{ij} (alpha_i · alpha_j) K(x_i, x_j)``. The report
    holds both values, so the scorer is proved to be within ``gap`` of the optimum.

    Args:
        C: the weight of the losses, > 0.
        kernel: ``"linear"``, a kernel, or a function that returns a Gram block, which is called in the features' own
            dtype (half precision as float32).
        tol: the relative gap ``(P - dual) / max(1, |P|)`` to reach; absolute where ``P`` is below 1, so ask for
            less there. Below 1e-4 the work is done in float64.
        loss: ``"crammer_singer"`` or ``"weston_watkins"``.
        binary: one score and ``xi_i = [1 - y_i f(x_i)]_+``; the target is integers, ±1, or 0/1 with 1 for +1.
        p: regularise by half the squared group norm ``(sum_l |w_l|^p)^{2/p}``, ``p >= 1`` or infinity.
        cost: ``L``: a name, a ``(K, K)`` matrix, one matrix for each example, or a cost object.
        weight: of each class's examples, ``(K)``; multiplies ``C``.
        bias: append a constant feature 1. Its weights are regularised like any other.
        landmarks: use this many rows, drawn by ``generator``, as landmarks of a Nyström approximation of the kernel.
        max_passes: how often at most to go over the rows, Newton steps included.
        generator: draws the order of the rows and the landmarks; by default one seeded with 0, so fits repeat.
        memory_limit: bytes that the Gram matrix may take; by default 80 % of what is free.
        on_step: called with every measurement of primal and dual.

    Shape:
        features ``(N, D)``; target ``(N)``; the scorer's scores ``(N, K)``, or ``(N, 1)`` of a binary machine.

    Raises:
        ValueError: ``C`` outside 1e-30..1e30; no rows; one class; features that are not finite; a kernel that is not
            positive semi-definite, as far as the fit sees.
        MemoryError: a Gram matrix that would not fit, before it is allocated.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.3.1 and exercise 9.2.

    Example:
        >>> import torch
        >>> x = torch.tensor([[0.0, 1.0], [1.0, 0.0], [-1.0, -1.0], [0.2, 1.1]])
        >>> scorer, report = DualSVM(C=10.0, tol=1e-4).fit(x, torch.tensor([0, 1, 2, 0]))
        >>> scorer(x).argmax(1)
        tensor([0, 1, 2, 0])
        >>> report.dual <= report.primal <= report.dual + 1e-4 * max(1, report.primal)
        True
    """

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
        bias: bool = False,
        landmarks: int | None = None,
        max_passes: int = 2000,
        generator: torch.Generator | None = None,
        memory_limit: int | None = None,
        on_step: Callable[[Step], None] | None = None,
    ) -> None:
        C = check_constant("C", C)
        check.positive("tol", tol)
        check.choice("loss", loss, ["crammer_singer", "weston_watkins"])
        check.whole("max_passes", max_passes)
        if landmarks is not None:
            check.whole("landmarks", landmarks)
        check_memory_limit(memory_limit)
        check_exponent(p)
        self.C, self.tol, self.loss, self.binary, self.p = C, tol, loss, binary, p
        self.kernel, self.cost = as_kernel(kernel), as_cost(cost)
        if binary and not isinstance(self.cost, ZeroOne):
            raise ValueError("cost: got a matrix with binary=True; accepted is 'zero_one', and weight for the classes")
        self.weight = None if weight is None else check_weight(weight)
        check.generator(generator)
        if on_step is not None and not callable(on_step):
            raise TypeError(f"on_step: got {on_step!r}; accepted is None or a function of a Step")
        if not isinstance(bias, bool):
            raise TypeError(f"bias: got {bias!r}; accepted is True or False")
        self.bias, self.landmarks, self.max_passes = bias, landmarks, max_passes
        self.generator, self.memory_limit, self.on_step = generator, memory_limit, on_step

    def __repr__(self) -> str:
        return (
            f"DualSVM(C={self.C:g}, kernel={self.kernel!r}, tol={self.tol:g}, loss={self.loss!r}, binary={self.binary})"
        )

    def fit(
        self,
        features: Tensor,
        target: Tensor,
        *,
        num_classes: int | None = None,
        warm_start: Report | Fit[Report] | None = None,
    ) -> Fit[Report]:
        """Train.

        Args:
            features: the rows, one device.
            target: their labels, integers; rows labelled -100 are left out.
            num_classes: ``K``; by default one more than the largest label.
            warm_start: a fit of the same rows, or its report, whose multipliers, scaled by the ratio of the two ``C``,
                and weights are where to begin.

        Shape:
            features ``(N, D)``; target ``(N)``.

        Returns:
            A `LinearScorer`, `KernelScorer` or `NystromScorer`, and a `Report`, which is true of the scorer as it is
            stored: in the features' dtype (float32 for half precision), or in float64 where rounding to it would lose
            the tolerance. A scorer takes features of a narrower dtype than its own. Ended from the keyboard, the best
            so far with its gap; while the Gram matrix is still being computed there is none, and the interrupt
            propagates.

        Raises:
            ValueError: no rows, one class, or features that are not finite; a warm start of other rows; a kernel that
                is not positive semi-definite.
            MemoryError: a Gram matrix that would not fit.
        """
        features, target = check_rows(features, target)
        warm = warm_start.report if isinstance(warm_start, Fit) else warm_start
        if warm is not None and not isinstance(warm, Report):
            raise TypeError(f"warm_start: got {type(warm_start).__name__}; accepted is a Fit or its Report")
        return next(iter(self._fits(features, target, num_classes, [self.C], warm)))

    def path(
        self, features: Tensor, target: Tensor, Cs: Iterable[float] | Tensor, *, num_classes: int | None = None
    ) -> Iterator[Fit[Report]]:
        """One fit for each ``C``, each started at the solution of the one before; the Gram matrix is computed once.

        A growing path is also the way to a hard margin: at ``C = 1e6`` and more a fit from nothing may not get there.

        Ended from the keyboard, the fit at hand is the last, the best so far with its gap.

        Shape:
            features ``(N, D)``; target ``(N)``; Cs any number of values.

        Raises:
            ValueError, TypeError: as `fit`; a ``C`` that is not positive.

        Example:
            >>> import torch
            >>> x, y = torch.randn(30, 2), torch.arange(30) % 3
            >>> [report.C for _, report in DualSVM().path(x, y, [0.1, 1.0])]
            [0.1, 1.0]
        """
        features, target = check_rows(features, target)
        values: object = Cs.flatten().tolist() if isinstance(Cs, Tensor) else Cs
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise TypeError(f"Cs: got {Cs!r}; accepted are several numbers > 0, for example [0.1, 1.0]")
        return self._fits(features, target, num_classes, [check_constant("Cs", C) for C in values], None)

    def _fits(
        self, features: Tensor, target: Tensor, num_classes: int | None, Cs: list[float], warm: Report | None
    ) -> Iterator[Fit[Report]]:
        labels, classes = self._labels(target, num_classes)
        generator = torch.Generator().manual_seed(0) if self.generator is None else self.generator
        with torch.no_grad():
            dtype = self._precision(features, max(Cs, default=1.0))
            space, mapped = self._space(features, dtype, generator)
        for C in Cs:
            with torch.no_grad():
                exact = self._hinge(labels, classes, C, torch.float64)
                hinge = exact if space.dtype == torch.float64 else self._hinge(labels, classes, C, space.dtype)
                monitor = Monitor(space, hinge, self.tol, self.p, self.on_step, exact)
                interrupted = self._run(monitor, generator, warm, C)
                self._compact(monitor, warm.primal if warm is not None and warm.C == C else float("inf"))
                kept = features.dtype if mapped is None else mapped.root.dtype
                weight, primal, dual = settle(monitor.weight, kept, self.tol, monitor.certify, monitor.computed)
                check_weak_duality(monitor.space, primal, dual)
                report = self._report(monitor, weight, primal, dual, interrupted, C)
                scorer = as_scorer(monitor.space, weight, self.bias, mapped)
            yield Fit(scorer, report)
            if interrupted:
                return
            warm, space = report, monitor.space

    def _labels(self, target: Tensor, num_classes: int | None) -> tuple[Tensor, int]:
        """Class indices or signs, and the number of classes (of signs, two)."""
        if self.binary:
            return check_signs(target), 2
        if bool((target == target[0]).all()):
            raise one_label(int(target[0]))
        classes = int(target.max()) + 1 if num_classes is None else num_classes
        check.whole("num_classes", classes, least=2)
        check.label_range("target", target, classes, validate_args=True)
        check_size(len(target), classes, target.device)
        present = target.bincount(minlength=classes) > 0
        if not bool(present.all()):
            absent = (~present).nonzero().squeeze(1).tolist()
            warnings.warn(f"target: no row has the label {', '.join(map(str, absent))}", UserWarning, stacklevel=4)
        return target, classes

    def _hinge(self, labels: Tensor, classes: int, C: float, dtype: torch.dtype) -> Hinge:
        upper = torch.full((len(labels), 1), C, device=labels.device, dtype=dtype)
        if self.weight is not None:
            check.shape("weight", self.weight, (classes,), "one for each class")
            index = (labels > 0).long() if self.binary else labels
            upper = upper * self.weight.to(upper)[index][:, None]
            check_constant("C times weight", float(self.weight.max()) * C)
        if self.binary:
            return BinaryHinge(labels.to(dtype), upper)
        cost = None
        if not isinstance(self.cost, ZeroOne):
            cost = deepcopy(self.cost).to(labels.device).rows(labels, classes, dtype)
        kind = CrammerSinger if self.loss == "crammer_singer" else WestonWatkins
        return kind(labels, classes, upper, cost)

    def _precision(self, features: Tensor, C: float) -> torch.dtype:
        """Single where the tolerance and the strength of the losses allow."""
        strength = C * float(self.kernel.diagonal(features[:_SAMPLE]).double().mean())
        single = self.tol >= _SINGLE_PRECISION and strength <= _STRONG and 1 / _STRONG <= C
        return torch.float32 if single else torch.float64

    def _space(
        self, features: Tensor, dtype: torch.dtype, generator: torch.Generator
    ) -> tuple[Space, NystromFeatures | None]:
        mapped = None
        if self.landmarks is not None:
            chosen = torch.randperm(len(features), generator=generator)[: self.landmarks].to(features.device)
            dtype = torch.promote_types(features.dtype, dtype)
            mapped = NystromFeatures(features[chosen], self.kernel, dtype=dtype)
            features = torch.cat([mapped(part) for part in torch.split(features, _CHUNK)])
        elif not isinstance(self.kernel, Linear):
            check_definite(self.kernel, features, generator=torch.Generator().manual_seed(0))
            return KernelSpace(self.kernel, features, dtype, self.bias, self.memory_limit), None
        if self.bias:
            features = torch.cat([features, features.new_ones(len(features), 1)], 1)
        return LinearSpace(features, dtype), mapped

    def _run(self, monitor: Monitor, generator: torch.Generator, warm: Report | None, C: float) -> bool:
        """Solve, the best being in the monitor; whether the keyboard ended it."""
        if warm is not None:
            self._check_warm_start(monitor, warm)
        try:
            if monitor.begin() or (warm is not None and self._begin_at(monitor, warm, C)):
                return False
            if self.p != 2:
                self._precisely(monitor, descend)
            elif not ascend(monitor, generator, self.max_passes) and monitor.passes < self.max_passes:
                self._precisely(monitor, polish)
        except KeyboardInterrupt:
            return True
        return False

    def _precisely(self, monitor: Monitor, method: Callable[[Monitor, int], bool]) -> None:
        """Run Newton's method, in double precision where that is cheap or single precision does not get there."""
        if monitor.space.dtype != torch.float64:
            fast = monitor.space.size > _SMALL and not monitor.misled
            if fast and (method(monitor, self.max_passes) or monitor.passes >= self.max_passes):
                return
            try:
                monitor.widen()
            except MemoryError:  # of a Gram matrix twice the size: the best so far is what there is
                return
        method(monitor, self.max_passes)

    @staticmethod
    def _check_warm_start(monitor: Monitor, warm: Report) -> None:
        rows, outputs = monitor.space.rows, monitor.hinge.outputs
        if warm.rows != rows or warm.alpha.shape[1] != outputs:
            raise ValueError(
                f"warm_start: is of {warm.rows} rows and {warm.alpha.shape[1]} outputs, but this fit has "
                f"{rows} and {outputs}; accepted is the report of a fit of the same rows"
            )

    @staticmethod
    def _begin_at(monitor: Monitor, warm: Report, C: float) -> bool:
        """Measure the multipliers of another fit, scaled to this ``C`` (most rows at a bound) and as they are (none, as
        in separable rows), with their image and with its weight."""
        space, hinge = monitor.space, monitor.hinge
        alpha = torch.zeros(space.rows, hinge.outputs, device=space.device, dtype=space.dtype)
        alpha[warm.support.to(space.device)] = warm.alpha.to(alpha)
        beta = hinge.from_alpha(alpha)
        if monitor.try_weight(space.image(hinge.alpha(beta)), beta):
            return True
        beta = hinge.from_alpha(alpha * (C / warm.C))
        done = False
        zero = space.zero(hinge.outputs)
        if warm.weight.shape == zero.shape[-2:]:
            weight = warm.weight.to(zero)
            done = monitor.try_weight(space.adopt(torch.stack([weight] * 2)) if zero.ndim == 3 else weight, beta)
        return done or monitor.try_weight(space.image(hinge.alpha(beta)), beta)

    def _report(
        self, monitor: Monitor, weight: Tensor, primal: float, dual: float, interrupted: bool, C: float
    ) -> Report:
        gap = relative_gap(primal, dual)
        if gap > self.tol and not interrupted:
            warnings.warn(
                f"{type(self).__name__}: the gap is {gap:.2e} after {monitor.passes} passes, above tol={self.tol:g}; "
                "a larger max_passes, scaled features or a path of growing C would help",
                UserWarning,
                stacklevel=4,
            )
        alpha = monitor.exact.alpha(monitor.feasible())
        support = (alpha != 0).any(1).nonzero().squeeze(1)
        return Report(
            primal=primal,
            dual=dual,
            gap=gap,
            converged=gap <= self.tol,
            interrupted=interrupted,
            iterations=monitor.passes,
            seconds=monitor.seconds,
            history=monitor.history,
            support=support,
            alpha=alpha[support],
            weight=weight[0].clone() if weight.ndim == 3 else weight,
            C=C,
            rows=monitor.space.rows,
        )

    def _compact(self, monitor: Monitor, at_most: float) -> None:
        """Prefer the dual point's own weight, the sparser expansion, where it is as good as was asked for."""
        if isinstance(monitor.space, LinearSpace) or self.p != 2:
            return
        space, hinge = monitor.space, monitor.hinge
        image = space.image(hinge.alpha(monitor.feasible().to(space.dtype)))
        losses = hinge.loss(hinge.margins(space.scores(image), None), None)
        primal = monitor.regulariser(space.class_squares(image), 2) + float(losses.double().sum())
        if primal <= at_most and relative_gap(primal, monitor.dual) <= max(0.9 * self.tol, monitor.gap):
            monitor.weight = image
