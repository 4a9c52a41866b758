"""Support vector machines that prove how good they are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn

from torch_multiclass import _validation as check
from torch_multiclass.costs import Cost, ZeroOne, as_cost
from torch_multiclass.kernels import GramFunction, Kernel, Linear, as_kernel, check_definite, gram
from torch_multiclass.scorers.kernel import KernelScorer, NystromFeatures, NystromScorer
from torch_multiclass.scorers.linear import LinearScorer
from torch_multiclass.solvers._ascent import ascend
from torch_multiclass.solvers._group_norm import proximal_gradient
from torch_multiclass.solvers._hinges import BinaryHinge, CrammerSinger, Hinge, WestonWatkins
from torch_multiclass.solvers._monitor import Monitor
from torch_multiclass.solvers._newton import polish
from torch_multiclass.solvers._spaces import KernelSpace, LinearSpace, Space
from torch_multiclass.solvers.base import Fit, Report, Step, relative_gap

__all__ = ["DualSVM"]

_SINGLE_PRECISION = 1e-4  # a smaller relative gap is worked for in float64


class DualSVM:
    r"""The multi-class SVM, to a certified relative duality gap.

    Minimises ``P = ½ sum_l |w_l|^2 + C sum_i xi_i`` with ``xi_i = max_l [L(y_i, l) + f_l(x_i) - f_{y_i}(x_i)]`` (or,
    for Weston and Watkins, ``sum_{l != y_i} [L(y_i, l) + f_l(x_i) - f_{y_i}(x_i)]_+``), ``f_l(x) = w_l · Phi(x)``,
    through its dual ``-sum_{il} L(y_i, l) alpha_{il} - ½ sum_{ij} (alpha_i · alpha_j) K(x_i, x_j)``. The report
    holds both values, so the scorer is proved to be within ``gap`` of the optimum.

    Args:
        C: the weight of the losses, > 0.
        kernel: ``"linear"``, a kernel, or a function that returns a Gram block.
        tol: the relative gap ``(P - dual) / max(1, |P|)`` to reach. Below 1e-4 the work is done in float64.
        loss: ``"crammer_singer"`` or ``"weston_watkins"``.
        binary: one score and ``xi_i = [1 - y_i f(x_i)]_+``; the target is ±1, or 0/1 with 1 for +1.
        p: regularise by half the squared group norm ``(sum_l |w_l|^p)^{2/p}``, ``p >= 1`` or infinity.
        cost: ``L``: a name, a ``(K, K)`` matrix, one matrix for each example, or a cost object.
        weight: of each class's examples, ``(K)``; multiplies ``C``.
        bias: append a constant feature 1. Its weights are regularised like any other.
        landmarks: use this many rows, drawn by ``generator``, as landmarks of a Nyström approximation of the kernel.
        max_passes: how often at most to go over the rows.
        generator: draws the order of the rows and the landmarks; by default one seeded with 0, so fits repeat.
        memory_limit: bytes that the Gram matrix may take; by default 80 % of what is free.
        on_step: called with every measurement of primal and dual.

    Raises:
        ValueError: ``C <= 0``; no rows; one class; features that are not finite; a kernel that is not positive
            semi-definite, as far as the fit sees.
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
        check.positive("C", C)
        check.positive("tol", tol)
        check.choice("loss", loss, ["crammer_singer", "weston_watkins"])
        check.whole("max_passes", max_passes)
        if landmarks is not None:
            check.whole("landmarks", landmarks)
        if not p >= 1:
            raise ValueError(f"p: got {p!r}; accepted is a number >= 1, or infinity")
        self.C, self.tol, self.loss, self.binary, self.p = C, tol, loss, binary, p
        self.kernel, self.cost = as_kernel(kernel), as_cost(cost)
        if binary and not isinstance(self.cost, ZeroOne):
            raise ValueError("cost: got a matrix with binary=True; accepted is 'zero_one', and weight for the classes")
        self.weight = None if weight is None else torch.as_tensor(weight)
        self.bias, self.landmarks, self.max_passes = bias, landmarks, max_passes
        self.generator, self.memory_limit, self.on_step = generator, memory_limit, on_step

    def __repr__(self) -> str:
        return (
            f"DualSVM(C={self.C:g}, kernel={self.kernel!r}, tol={self.tol:g}, loss={self.loss!r}, binary={self.binary})"
        )

    def fit(
        self, features: Tensor, target: Tensor, *, num_classes: int | None = None, warm_start: Report | None = None
    ) -> Fit[Report]:
        """Train.

        Args:
            features: the rows, one device.
            target: their labels; rows labelled -100 are left out.
            num_classes: ``K``; by default one more than the largest label.
            warm_start: the report of a fit of the same rows, whose multipliers, scaled by the ratio of the two ``C``,
                are where to begin.

        Shape:
            features ``(N, D)``; target ``(N)``.

        Returns:
            A `LinearScorer`, `KernelScorer` or `NystromScorer`, and a `Report`. Ended from the keyboard, the best so
            far with its gap.
        """
        features, target = check_rows(features, target)
        return next(iter(self._fits(features, target, num_classes, [self.C], warm_start)))

    def path(
        self, features: Tensor, target: Tensor, Cs: Iterable[float], *, num_classes: int | None = None
    ) -> Iterator[Fit[Report]]:
        """One fit for each ``C``, each started at the solution of the one before; the Gram matrix is computed once.

        Example:
            >>> import torch
            >>> x, y = torch.randn(30, 2), torch.arange(30) % 3
            >>> [report.C for _, report in DualSVM().path(x, y, [0.1, 1.0])]
            [0.1, 1.0]
        """
        features, target = check_rows(features, target)
        Cs = list(Cs)
        for C in Cs:
            check.positive("Cs", C)
        return self._fits(features, target, num_classes, Cs, None)

    def _fits(
        self, features: Tensor, target: Tensor, num_classes: int | None, Cs: list[float], warm: Report | None
    ) -> Iterator[Fit[Report]]:
        labels, classes = self._labels(target, num_classes)
        generator = torch.Generator().manual_seed(0) if self.generator is None else self.generator
        dtype = torch.float64 if self.tol < _SINGLE_PRECISION else torch.float32
        with torch.no_grad():
            space, mapped = self._space(features, dtype, generator)
        for C in Cs:
            with torch.no_grad():
                hinge = self._hinge(labels, classes, C, dtype)
                monitor = Monitor(space, hinge, self.tol, self.p, self.on_step)
                if warm is not None:
                    self._begin_at(monitor, warm, C)
                report = self._solve(space, hinge, monitor, generator, C)
                scorer = self._scorer(monitor, features, mapped)
            yield Fit(scorer, report)
            warm = report

    def _labels(self, target: Tensor, num_classes: int | None) -> tuple[Tensor, int]:
        """Class indices or signs, and the number of classes (of signs, two)."""
        if self.binary:
            return check_signs(target), 2
        classes = int(target.max()) + 1 if num_classes is None else num_classes
        check.whole("num_classes", classes, least=2)
        check.label_range("target", target, classes, validate_args=True)
        present = target.bincount(minlength=classes) > 0
        if int(present.sum()) < 2:
            raise ValueError(f"target: every row has the label {int(target[0])}; accepted are at least two classes")
        if not bool(present.all()):
            absent = (~present).nonzero().squeeze(1).tolist()
            warnings.warn(f"target: no row has the label {', '.join(map(str, absent))}", UserWarning, stacklevel=4)
        return target, classes

    def _hinge(self, labels: Tensor, classes: int, C: float, dtype: torch.dtype) -> Hinge:
        upper = torch.full((len(labels), 1), C, device=labels.device, dtype=dtype)
        if self.weight is not None:
            check.shape("weight", self.weight, (classes,), "one for each class")
            if not bool((self.weight > 0).all()):
                raise ValueError(f"weight: has the entry {float(self.weight.min()):g}; accepted are numbers > 0")
            index = (labels > 0).long() if self.binary else labels
            upper = upper * self.weight.to(upper)[index][:, None]
        if self.binary:
            return BinaryHinge(labels.to(dtype), upper)
        cost = None
        if not isinstance(self.cost, ZeroOne):
            cost = deepcopy(self.cost).to(labels.device).rows(labels, classes, dtype)
        kind = CrammerSinger if self.loss == "crammer_singer" else WestonWatkins
        return kind(labels, classes, upper, cost)

    def _space(
        self, features: Tensor, dtype: torch.dtype, generator: torch.Generator
    ) -> tuple[Space, NystromFeatures | None]:
        work = features.to(dtype)
        mapped = None
        if self.landmarks is not None:
            chosen = torch.randperm(len(work), generator=generator)[: self.landmarks].to(work.device)
            mapped = NystromFeatures(work[chosen], self.kernel)
            work = torch.cat([mapped(part) for part in torch.split(work, 4096)])
        elif not isinstance(self.kernel, Linear):
            check_definite(self.kernel, work, generator=torch.Generator().manual_seed(0))
            matrix = gram(self.kernel, work, limit=self.memory_limit)
            return KernelSpace(matrix.add_(1) if self.bias else matrix), None
        return LinearSpace(torch.cat([work, work.new_ones(len(work), 1)], 1) if self.bias else work), mapped

    def _begin_at(self, monitor: Monitor, warm: Report, C: float) -> None:
        space, hinge = monitor.space, monitor.hinge
        if warm.rows != space.rows or warm.alpha.shape[1] != hinge.outputs:
            raise ValueError(
                f"warm_start: is of {warm.rows} rows and {warm.alpha.shape[1]} outputs, but this fit has "
                f"{space.rows} and "
                f"{hinge.outputs}; accepted is the report of a fit of the same rows"
            )
        alpha = torch.zeros(space.rows, hinge.outputs, device=space.device, dtype=space.dtype)
        alpha[warm.support.to(space.device)] = warm.alpha.to(alpha) * (C / warm.C)
        beta = hinge.from_alpha(alpha)
        image = space.image(hinge.alpha(beta))
        monitor.see(image, hinge.margins(space.scores(image), None), beta, image)

    def _solve(self, space: Space, hinge: Hinge, monitor: Monitor, generator: torch.Generator, C: float) -> Report:
        interrupted = False
        try:
            if self.p != 2:
                proximal_gradient(space, hinge, monitor, self.max_passes)
            elif not ascend(space, hinge, monitor, generator, self.max_passes) and monitor.passes < self.max_passes:
                polish(space, hinge, monitor, self.max_passes)
        except KeyboardInterrupt:
            interrupted = True
        self._compact(monitor)
        primal, dual = monitor.certify()
        gap = relative_gap(primal, dual)
        if gap > self.tol and not interrupted:
            warnings.warn(
                f"{type(self).__name__}: the gap is {gap:.2e} after {monitor.passes} passes, above tol={self.tol:g}; "
                "a larger max_passes or scaled features would help",
                UserWarning,
                stacklevel=5,
            )
        alpha = hinge.alpha(hinge.project(monitor.beta, None))
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
            C=C,
            rows=space.rows,
        )

    def _compact(self, monitor: Monitor) -> None:
        """Prefer the dual point's own weight, the sparser expansion, where it is as good as was asked for."""
        if isinstance(monitor.space, LinearSpace) or self.p != 2:
            return
        space, hinge = monitor.space, monitor.hinge
        image = space.image(hinge.alpha(hinge.project(monitor.beta, None)))
        losses = hinge.loss(hinge.margins(space.scores(image), None), None)
        primal = monitor.regulariser(space.class_squares(image), 2) + float(losses.double().sum())
        if relative_gap(primal, monitor.dual) <= max(0.9 * self.tol, monitor.gap):
            monitor.weight = image

    def _scorer(self, monitor: Monitor, features: Tensor, mapped: NystromFeatures | None) -> nn.Module:
        weight, outputs = monitor.weight, monitor.hinge.outputs
        if isinstance(monitor.space, KernelSpace):
            coefficients = weight[0]
            support = (coefficients != 0).any(1)
            scorer = KernelScorer(features[support], outputs, self.kernel, bias=self.bias)
            scorer.coefficients.copy_(coefficients[support])
            if scorer.bias is not None:
                scorer.bias.copy_(coefficients.sum(0))
            return scorer
        inner = weight.shape[1] - self.bias
        linear = LinearScorer(inner, outputs, self.bias, device=features.device, dtype=features.dtype)
        linear.weight.copy_(weight[:, :inner])
        if linear.bias is not None:
            linear.bias.copy_(weight[:, -1])
        if mapped is None:
            return linear
        return NystromScorer(mapped.to(features.dtype), outputs, linear=linear)


def check_rows(features: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The rows to train on: finite features, and targets that are not -100."""
    check.floating("features", features)
    check.class_indices("target", target)
    if features.ndim != 2:
        raise ValueError(f"features: got shape {tuple(features.shape)}; accepted is (N, D), one row an example")
    check.shape("target", target, (len(features),), "one label a row")
    check.same_device("target", target, "features", features)
    features, target = features.detach(), target.detach().long()
    kept = target != check.IGNORE
    if not bool(kept.all()):
        features, target = features[kept], target[kept]
    if len(features) == 0:
        raise ValueError("features: there are no rows; accepted is at least one row of two classes")
    if not bool(features.isfinite().all()):
        bad = (~features.isfinite()).any(1).nonzero()[0].item()
        raise ValueError(f"features: row {bad} has an entry that is not finite; accepted are finite features")
    return features, target


def check_signs(target: Tensor) -> Tensor:
    """Binary labels as ±1: they are given as ±1, or as 0/1."""
    values = torch.unique(target).tolist()
    if set(values) <= {-1, 1}:
        signs = target
    elif set(values) <= {0, 1}:
        signs = 2 * target - 1
    else:
        raise ValueError(f"target: has the labels {values[:5]} with a binary learner; accepted are -1/1 and 0/1")
    if len(values) < 2:
        raise ValueError(f"target: every row has the label {values[0]}; accepted are two classes")
    return signs
