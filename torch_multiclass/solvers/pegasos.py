"""Stochastic sub-gradient descent for the multi-class SVM: no certificate on the way, but rows may stream."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.ops.online import Descent, descend, pieces
from torch_multiclass.scorers.linear import LinearScorer
from torch_multiclass.solvers.base import Fit, Solver
from torch_multiclass.solvers.monitor import Monitor
from torch_multiclass.solvers.online.examples import Examples, Features, labels_asked, opened
from torch_multiclass.solvers.problem import Problem, RowWeights, check_constant
from torch_multiclass.solvers.report import Report
from torch_multiclass.solvers.space import linear_scorer

__all__ = ["Pegasos", "PegasosReport"]


@dataclass(frozen=True, kw_only=True)
class PegasosReport(Report):
    """How the descent ended. There is no dual and so no gap.

    Reference: Shalev-Shwartz, Singer, Srebro and Cotter (2011), *Pegasos*.

    Example:
        >>> import torch
        >>> from torch_multiclass.solvers import Pegasos
        >>> report = Pegasos().fit(torch.eye(3), torch.arange(3)).report
        >>> type(report).__name__, report.interrupted
        ('PegasosReport', False)
    """

    primal: float | None
    """``lambda/2 |W|^2`` plus the mean loss, where the rows were at hand."""


class _Watch(Monitor):
    """Knows the descent, whose result is always the best so far."""

    descent: Descent
    like: Tensor
    """Of the dtype and on the device that the scorer is to have."""

    def settle(self) -> Tensor:
        self.weight = self.descent.result()
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
        epochs = check.whole("epochs", epochs)
        super().__init__(bias=bias, max_passes=epochs, generator=generator, progress=progress)
        self.C = check_constant("C", C)
        if regularisation is not None:
            regularisation = check_constant("regularisation", regularisation)
        batch_size = check.whole("batch_size", batch_size)
        self.regularisation, self.epochs, self.batch_size = regularisation, epochs, batch_size

    def __repr__(self) -> str:
        return f"Pegasos(C={self.C:g}, regularisation={self.regularisation}, epochs={self.epochs})"

    def fit(
        self, features: Features, target: Tensor, *, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> Fit[LinearScorer, PegasosReport]:
        """Train on rows at hand.

        Args:
            features: the rows: a dense tensor, one of layout ``torch.sparse_csr``, or a CSR matrix of SciPy; of half
                precision the scorer is float32.
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
        self, batches: Iterable[tuple[Features, Tensor]], in_features: int, num_classes: int
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
            raise TypeError(f"batches: got {check.came(batches)}; accepted are pairs of features and target")
        in_features = check.whole("in_features", in_features)
        num_classes = check.whole("num_classes", num_classes, least=2)
        monitor = _Watch(type(self).__name__, sys.maxsize, self.progress)
        monitor.descent = Descent.zero(num_classes, in_features + self.bias, self.regularisation, 0)
        monitor.like = torch.empty(0)
        with torch.no_grad():
            monitor.run(self._stream(batches, monitor, in_features, num_classes))
            if monitor.descent.taken == 0 and not monitor.interrupted:
                raise ValueError("batches: none had a labelled row; accepted is at least one that has")
            scorer = linear_scorer(monitor.settle().to(monitor.like), self.bias)
        self.warn_if_interrupted(monitor)
        return Fit(scorer, self._report(monitor, None))

    def problem(
        self, features: Features, target: Tensor, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> Examples:
        dense, compressed = opened(features)
        return Examples.of(Problem.multiclass(dense, target, weight, num_classes), compressed, labels_asked(target))

    def monitor(self, problem: Problem) -> _Watch:
        assert isinstance(problem, Examples)
        monitor = _Watch(type(self).__name__, self.epochs, self.progress)
        expected = self.epochs * -(-len(_visits(problem)[0]) // self.batch_size)
        monitor.descent = Descent.zero(problem.classes, problem.height(self.bias), self._lambda(problem), expected)
        monitor.like = problem.features[:0]
        return monitor

    def steps(self, problem: Problem, monitor: _Watch) -> Iterator[None]:
        assert isinstance(problem, Examples)
        (visits, shares), generator = _visits(problem), self.draws()
        for _ in range(self.epochs):
            yield
            order = visits[torch.randperm(len(visits), generator=generator)]
            for piece in pieces(order, problem.height(self.bias) * problem.classes, self.batch_size):
                self._descend(monitor.descent, problem, shares, piece, self.batch_size)

    def _descend(self, descent: Descent, problem: Examples, shares: Tensor, order: Tensor, batch: int) -> None:
        descend(descent, problem.rows, problem.asked, shares, self.bias, order, batch)

    def _stream(
        self, batches: Iterable[tuple[Features, Tensor]], monitor: _Watch, in_features: int, classes: int
    ) -> Iterator[None]:
        """A pass is a batch, and a step."""
        for number, batch in enumerate(batches):
            yield
            problem = _checked(number, batch, in_features, classes)
            if len(problem.visits):
                monitor.like = problem.features[:0]
                self._descend(monitor.descent, problem, problem.steps, problem.visits, len(problem.visits))

    def scorer(self, problem: Problem, monitor: _Watch) -> LinearScorer:
        return linear_scorer(monitor.weight.to(problem.features), self.bias)

    def report(self, problem: Problem, monitor: _Watch) -> PegasosReport:
        assert isinstance(problem, Examples)
        squares = monitor.weight.square().sum()
        labels, weight = problem.labels.cpu(), problem.weight.cpu()
        mean = (weight * _losses(problem.scores(monitor.weight, self.bias), labels)).sum() / weight.sum()
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


def _visits(problem: Examples) -> tuple[Tensor, Tensor]:
    """The rows to go over, those of large weight several times, and how much each visit of a row counts: 1 in the mean
    and 2 at most, so that no step is long because of a single row."""
    shares = problem.steps / problem.weight.mean().cpu()
    times = shares.ceil().clamp_min(1)
    visits = problem.visits.repeat_interleave(times[problem.visits].long())
    return visits, shares / times * (len(visits) / len(problem.visits))


def _checked(number: int, batch: tuple[Features, Tensor], in_features: int, classes: int) -> Examples:
    """A batch's labelled rows; what is wrong with it names it."""
    if not isinstance(batch, (tuple, list)) or len(batch) != 2:
        raise TypeError(f"batches: batch {number} is a {type(batch).__name__}; accepted is a pair, features and target")
    try:
        dense, compressed = opened(batch[0])
        problem = Examples.of(Problem.labelled(dense, batch[1]), compressed, labels_asked(batch[1]))
        check.label_range("target", problem.labels, classes, validate_args=True)
    except (TypeError, ValueError) as wrong:
        raise type(wrong)(f"batches: batch {number}: {wrong}") from wrong
    if problem.rows.width != in_features:
        shape = tuple(batch[0].shape)
        raise ValueError(f"batches: batch {number} has features of shape {shape}; accepted is (B, {in_features})")
    return problem


def _losses(scores: Tensor, target: Tensor) -> Tensor:
    """``max_l 1[l != y] + f_l - f_y``."""
    label = target[:, None]
    return (scores - scores.gather(1, label) + 1).scatter_(1, label, 0.0).amax(1)
