"""Stochastic sub-gradient descent for the multi-class SVM: no certificate on the way, but rows may stream."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.scorers.linear import LinearScorer
from torch_multiclass.solvers.base import Fit, Solver
from torch_multiclass.solvers.monitor import Monitor
from torch_multiclass.solvers.problem import Problem, RowWeights, check_constant
from torch_multiclass.solvers.report import Report
from torch_multiclass.solvers.space import linear_scorer

__all__ = ["Pegasos", "PegasosReport"]


@dataclass(frozen=True, kw_only=True)
class PegasosReport(Report):
    """How the descent ended. There is no dual and so no gap."""

    primal: float | None
    """``lambda/2 |W|^2`` plus the mean loss, where the rows were at hand."""


class _Descent:
    """``W``, and the average of the second half of its steps, or, where nobody knows how many there will be, one in
    which a step counts as much as its number."""

    def __init__(self, weight: Tensor, strength: float, steps: int | None) -> None:
        self.weight, self.strength, self.steps = weight, strength, steps
        self.average, self.taken, self.averaged = weight, 0, 0

    def step(self, features: Tensor, target: Tensor, shares: Tensor) -> None:
        """``W <- (1 - 1/t) W - slope/(lambda t)``, then back into the ball."""
        self.taken += 1
        weight, strength = self.weight.to(features), self.strength
        slopes = _slopes(features @ weight.mT, target) * shares.to(features)[:, None]
        weight = (1 - 1 / self.taken) * weight - slopes.mT @ features / (strength * self.taken * len(features))
        norm = weight.double().norm().clamp_min(1e-30)
        self.weight = weight * ((2 / strength) ** 0.5 / norm).clamp_max(1).to(weight)
        if self.steps is None or 2 * self.taken > self.steps:
            self.averaged += 1
            share = 2 / (self.averaged + 1) if self.steps is None else 1 / self.averaged
            self.average = torch.lerp(self.average.to(weight), self.weight, share)

    @property
    def result(self) -> Tensor:
        """The average, or the last step as long as there is none."""
        return self.average if self.averaged else self.weight


class _Watch(Monitor):
    """Knows the descent, whose result is always the best so far."""

    descent: _Descent

    def settle(self) -> Tensor:
        self.weight = self.descent.result
        return self.weight


class Pegasos(Solver["_Watch", LinearScorer, PegasosReport]):
    r"""Minimises ``lambda/2 |W|^2 + (1/m) sum_i max_l [1[l != y_i] + f_l(x_i) - f_{y_i}(x_i)]`` by steps
    ``1/(lambda t)``.

    With ``lambda = 1/(C m)`` it is the problem of `DualSVM` divided by ``C m``; of weighted rows the mean is the
    weighted one, and ``m`` the sum of the weights. After each step ``W`` is scaled back into the ball of radius
    ``sqrt(2/lambda)``, which contains the optimum; the result averages the second half of the steps.

    Args:
        C: as in `DualSVM`; sets ``lambda = 1/(C m)``.
        regularisation: ``lambda`` itself instead, needed for `fit_stream`.
        epochs: passes over the rows.
        batch_size: rows a step.
        bias: append a constant feature 1, regularised like any other.
        generator: draws the order of the rows; by default one seeded with 0.
        progress: whether to print a line on standard error now and then; by default on a terminal, and only when the
            fit takes more than a few seconds.

    Shape:
        features ``(N, D)``; target ``(N)``; the scorer's scores ``(N, K)``.

    Raises:
        ValueError: constants that are not positive; what `fit` and `fit_stream` refuse.

    Reference: Shalev-Shwartz, Singer, Srebro and Cotter (2011), *Pegasos: primal estimated sub-gradient
    solver for SVM*.

    Example:
        >>> import torch
        >>> x = torch.tensor([[0.0, 1.0], [1.0, 0.0], [-1.0, -1.0]]).repeat(20, 1)
        >>> scorer, report = Pegasos(C=1.0).fit(x, torch.arange(60) % 3)
        >>> scorer(x[:3]).argmax(1)
        tensor([0, 1, 2])
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        regularisation: float | None = None,
        epochs: int = 20,
        batch_size: int = 32,
        bias: bool = False,
        generator: torch.Generator | None = None,
        progress: bool | None = None,
    ) -> None:
        check.whole("epochs", epochs)
        super().__init__(bias=bias, max_passes=epochs, generator=generator, progress=progress)
        self.C = check_constant("C", C)
        if regularisation is not None:
            regularisation = check_constant("regularisation", regularisation)
        check.whole("batch_size", batch_size)
        self.regularisation, self.epochs, self.batch_size = regularisation, epochs, batch_size

    def __repr__(self) -> str:
        return f"Pegasos(C={self.C:g}, regularisation={self.regularisation}, epochs={self.epochs})"

    def fit(
        self, features: Tensor, target: Tensor, *, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> Fit[LinearScorer, PegasosReport]:
        """Train on rows at hand.

        Args:
            features: the rows; half precision is worked on in float32, and so is the scorer.
            target: their labels, integers; rows labelled -100 are left out.
            weight: how much the loss of each row counts, >= 0; 2 is the row twice, 0 leaves it out.
            num_classes: ``K``; by default one more than the largest label.

        Shape:
            features ``(N, D)``; target and weight ``(N)``.

        Raises:
            ValueError: no rows, one class, or features that are not finite.
        """
        problem = self.problem(features, target, weight, num_classes)
        return self.solve(problem, self.monitor(problem))

    def fit_stream(
        self, batches: Iterable[tuple[Tensor, Tensor]], in_features: int, num_classes: int
    ) -> Fit[LinearScorer, PegasosReport]:
        """Train on batches that come once; needs ``regularisation``. A batch without labelled rows is passed over.

        Args:
            batches: pairs of features and target.
            in_features: ``D``.
            num_classes: ``K``.

        Shape:
            of each batch, features ``(B, D)`` and target ``(B)``.

        Raises:
            ValueError: no batch with labelled rows; a batch of another width.
        """
        if self.regularisation is None:
            raise ValueError("regularisation: got None; accepted for a stream is a number > 0")
        if isinstance(batches, Tensor) or not isinstance(batches, Iterable):
            raise TypeError(f"batches: got {type(batches).__name__}; accepted are pairs of features and target")
        check.whole("in_features", in_features)
        check.whole("num_classes", num_classes, least=2)
        monitor = _Watch(type(self).__name__, sys.maxsize, self.progress)
        monitor.descent = _Descent(torch.zeros(num_classes, in_features + self.bias), self.regularisation, None)
        with torch.no_grad():
            monitor.run(self._stream(batches, monitor.descent, in_features, num_classes))
            if monitor.descent.taken == 0 and not monitor.interrupted:
                raise ValueError("batches: none had a labelled row; accepted is at least one that has")
            scorer = linear_scorer(monitor.settle(), self.bias)
        self.warn_if_interrupted(monitor)
        return Fit(scorer, self._report(monitor, None))

    def problem(
        self, features: Tensor, target: Tensor, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> Problem:
        return Problem.multiclass(features, target, weight, num_classes)

    def monitor(self, problem: Problem) -> _Watch:
        monitor = _Watch(type(self).__name__, self.epochs, self.progress)
        rows, width = problem.features.shape
        zero = problem.features.new_zeros(problem.classes, width + self.bias)
        monitor.descent = _Descent(zero, self._lambda(problem), self.epochs * -(-rows // self.batch_size))
        return monitor

    def steps(self, problem: Problem, monitor: _Watch) -> Iterator[None]:
        features, labels, generator = self._rows(problem.features), problem.labels, self.draws()
        shares = problem.weight / problem.weight.mean()
        for _ in range(self.epochs):
            yield
            for rows in torch.split(torch.randperm(len(features), generator=generator), self.batch_size):
                rows = rows.to(features.device)
                monitor.descent.step(features[rows], labels[rows], shares[rows])

    def _stream(
        self, batches: Iterable[tuple[Tensor, Tensor]], descent: _Descent, in_features: int, classes: int
    ) -> Iterator[None]:
        """A pass is a batch."""
        for number, batch in enumerate(batches):
            yield
            features, target, weight = _checked(number, batch, in_features, classes)
            if len(features):
                descent.step(self._rows(features), target, weight)

    def scorer(self, problem: Problem, monitor: _Watch) -> LinearScorer:
        return linear_scorer(monitor.weight, self.bias)

    def report(self, problem: Problem, monitor: _Watch) -> PegasosReport:
        squares = monitor.weight.double().square().sum()
        losses = _losses(self._rows(problem.features) @ monitor.weight.mT, problem.labels).double()
        mean = (problem.weight * losses).sum() / problem.weight.sum()
        return self._report(monitor, float(self._lambda(problem) / 2 * squares + mean))

    def _report(self, monitor: _Watch, primal: float | None) -> PegasosReport:
        return PegasosReport(
            primal=primal,
            iterations=monitor.descent.taken,
            seconds=monitor.seconds,
            interrupted=monitor.interrupted,
        )

    def _lambda(self, problem: Problem) -> float:
        """``1/(C m)``, or what was given."""
        return 1 / (self.C * float(problem.weight.sum())) if self.regularisation is None else self.regularisation

    def _rows(self, features: Tensor) -> Tensor:
        """The features with their constant."""
        return torch.cat([features, torch.ones_like(features[:, :1])], 1) if self.bias else features


def _checked(
    number: int, batch: tuple[Tensor, Tensor], in_features: int, classes: int
) -> tuple[Tensor, Tensor, Tensor]:
    """A batch's labelled rows; what is wrong with it names it."""
    if not isinstance(batch, (tuple, list)) or len(batch) != 2:
        raise TypeError(f"batches: batch {number} is a {type(batch).__name__}; accepted is a pair, features and target")
    try:
        problem = Problem.labelled(*batch)
        check.label_range("target", problem.labels, classes, validate_args=True)
    except (TypeError, ValueError) as wrong:
        raise type(wrong)(f"batches: batch {number}: {wrong}") from wrong
    if problem.features.shape[1] != in_features:
        shape = tuple(batch[0].shape)
        raise ValueError(f"batches: batch {number} has features of shape {shape}; accepted is (B, {in_features})")
    return problem.features, problem.labels, problem.weight


def _augmented(scores: Tensor, target: Tensor) -> Tensor:
    """``1[l != y] + f_l - f_y``."""
    label = target[:, None]
    return (scores - scores.gather(1, label) + 1).scatter_(1, label, 0.0)


def _losses(scores: Tensor, target: Tensor) -> Tensor:
    return _augmented(scores, target).amax(1)


def _slopes(scores: Tensor, target: Tensor) -> Tensor:
    """The sub-gradient in the scores: ``e_worst - e_y``, which is 0 where the label itself is the worst."""
    worst = torch.nn.functional.one_hot(_augmented(scores, target).argmax(1), scores.shape[1])
    return (worst - torch.nn.functional.one_hot(target, scores.shape[1])).to(scores.dtype)
