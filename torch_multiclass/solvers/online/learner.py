"""The frame of the online learners: passes over rows at hand, or batches of a stream."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from typing_extensions import TypedDict

from torch_multiclass import checks as check
from torch_multiclass.ops.online import Rule, State, pieces
from torch_multiclass.scorers.chain import ChainScorer
from torch_multiclass.scorers.linear import LinearScorer
from torch_multiclass.solvers.arguments import known
from torch_multiclass.solvers.base import Fit, Solver
from torch_multiclass.solvers.monitor import Monitor, warn
from torch_multiclass.solvers.online.examples import Examples, Features, labels_asked, opened
from torch_multiclass.solvers.problem import Problem, RowWeights
from torch_multiclass.solvers.report import Report


@dataclass(frozen=True, kw_only=True)
class Mistakes(Report):
    """How an online learner ended.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §8.3, for what bounds the updates.

    Example:
        >>> import torch
        >>> from torch_multiclass.solvers import Perceptron
        >>> report = Perceptron().fit(torch.eye(3), torch.arange(3)).report
        >>> report.mistakes, report.updates, report.passes, report.converged
        ([3, 0], 3, 2, True)
    """

    mistakes: list[int]
    """Of each pass, how many of its visits changed the weights."""
    updates: int
    """Their sum."""
    preference_updates: int
    """How many violated preferences the updates were for; of class labels under the conservative rule as many."""
    passes: int
    """Over the rows, or batches of a stream."""
    converged: bool
    """Whether the last pass changed nothing."""
    rule: str
    """What was done about violated preferences: ``"conservative"``, ``"uniform"`` or ``"all"``, whose updates
    `torch_multiclass.bounds.mistakes` bounds; ``"passive_aggressive"`` or ``"winnow"``."""
    equal_steps: bool
    """Whether the rows all had the same weight."""


class Watch(Monitor):
    """Knows what has been learned, which is always the best so far, and counts the updates of each pass."""

    state: State
    sequential: bool
    """Whether it learns of sequences."""
    marks: list[int]
    steps: tuple[float, float] = (math.inf, 0.0)
    """The shortest and the longest so far."""

    @property
    def mistakes(self) -> list[int]:
        """The updates of each pass, one that was interrupted included."""
        ends = [*self.marks[1:], self.state.updates]
        return [end - begin for begin, end in zip(self.marks, ends, strict=True)]

    def settle(self) -> Tensor:
        self.weight = self.state.result()
        return self.weight


class Passes(TypedDict, total=False):
    """Keyword arguments of every online learner."""

    shuffle: bool
    bias: bool
    max_passes: int
    generator: torch.Generator | None
    progress: bool | None


class OnlineOptions(Passes, total=False):
    """Those of the additive ones."""

    averaged: bool


class OnlineLearner(Solver[Watch, "LinearScorer | ChainScorer", Mistakes]):
    """Visits rows in turn; each may change the weights of a few classes by a multiple of the row.

    Args:
        averaged: give the mean of the weights after each visit, whether it changed them or not.
        shuffle: draw a new order for each pass; by default it is the given one.
        bias: append a constant feature 1.
        max_passes: how often at most to go over the rows.
        generator: draws the orders; by default one seeded with 0, so fits repeat.
        progress: as in `Solver`.
    """

    def __init__(
        self,
        *,
        averaged: bool = False,
        shuffle: bool = False,
        bias: bool = False,
        max_passes: int = 100,
        generator: torch.Generator | None = None,
        progress: bool | None = None,
    ) -> None:
        super().__init__(bias=bias, max_passes=max_passes, generator=generator, progress=progress)
        check.flag("averaged", averaged)
        check.flag("shuffle", shuffle)
        self.averaged, self.shuffle = averaged, shuffle
        self._stream: Watch | None = None

    def fit(
        self, features: Features, target: Tensor, *, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> Fit[LinearScorer | ChainScorer, Mistakes]:
        """Train on rows at hand, until a pass changes nothing or there have been ``max_passes``.

        Args:
            features: the rows: a dense tensor, one of layout ``torch.sparse_csr``, or a CSR matrix of SciPy.
            target: their labels, integers; rows labelled -100 are left out.
            weight: a multiple of the step of each row, >= 0; 0 leaves it out. A step of 2 is not the row twice, which
                would be looked at again in between.
            num_classes: ``K``; by default one more than the largest label.

        Shape:
            features ``(N, D)``; target and weight ``(N)``.

        Raises:
            ValueError: no rows, one class, or features that are not finite; weights that do not fit.
        """
        problem = self.problem(features, target, weight, num_classes)
        return self.solve(problem, self.monitor(problem))

    def partial_fit(
        self, features: Features, target: Tensor, *, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> Fit[LinearScorer | ChainScorer, Mistakes]:
        """Visit the rows of one more batch of a stream once, from where the batch before has left off.

        What a stream has taught is kept in the learner, apart from `fit`, until `reset`.

        Args:
            features, target, weight: as in `fit`; a batch may lack classes, or rows.
            num_classes: ``K``, at the first batch; by default one more than its largest label.

        Returns:
            The scorer so far, and how the stream has gone, a batch being a pass.

        Raises:
            ValueError: what `fit` raises; a label or a width other than the first batch had.
        """
        return self.go_on(self.batch(features, target, weight, self.known_classes(num_classes)))

    def known_classes(self, given: int | None) -> int | None:
        """``K`` of the stream, where it has begun."""
        if self._stream is None:
            return given
        began = self._stream.state.classes
        if given not in (None, began):
            raise ValueError(
                f"num_classes: got {given!r}, but the stream began with {began}; accepted is None or that, and `reset` "
                "begins anew"
            )
        return began

    def go_on(self, problem: Examples) -> Fit[LinearScorer | ChainScorer, Mistakes]:
        """Visit the rows of a batch."""
        stream = self._stream
        if stream is None:
            stream = self.monitor(problem)
            stream.max_passes = 2**63 - 1
        elif problem.sequential != stream.sequential:
            given, began = ("sequences" if one.sequential else "rows" for one in (problem, stream))
            raise ValueError(
                f"features: are {given}, but the stream began with {began}; accepted are those, and `reset` begins anew"
            )
        elif len(stream.state.weights) != problem.height(self.bias):
            width = problem.rows.width + len(stream.state.weights) - problem.height(self.bias)
            raise ValueError(f"features: got {problem.rows.width} a row; accepted are {width}, as in the first batch")
        stream.interrupted = False
        with torch.no_grad():
            stream.run(self.one_pass(problem, stream))
            stream.settle()
            self._stream = stream
            fit = Fit(self.scorer(problem, stream), self.report(problem, stream))
        self.warn_if_interrupted(stream)
        return fit

    def reset(self) -> None:
        """Forget what `partial_fit` has learned."""
        self._stream = None

    @property
    @abstractmethod
    def rule(self) -> Rule:
        """What to do about preferences that are violated."""

    @property
    @abstractmethod
    def rate(self) -> float:
        """The step of a row of weight 1."""

    def problem(
        self, features: Features, target: Tensor, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> Examples:
        dense, compressed = opened(features)
        return Examples.of(Problem.multiclass(dense, target, weight, num_classes), compressed, labels_asked(target))

    def batch(
        self, features: Features, target: Tensor, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> Examples:
        """The rows of a batch: as `problem`, but there need be no rows and no two classes."""
        dense, compressed = opened(features)
        problem = Problem.labelled(dense, target, weight)
        if num_classes is None:
            num_classes = max(int(problem.labels.max()) + 1, 2) if len(problem.labels) else 2
        num_classes = check.whole("num_classes", num_classes, least=2)
        begins = self._stream is None
        check.label_range("target", problem.labels, num_classes, validate_args=True, all_there=begins)
        return Examples.of(replace(problem, classes=num_classes), compressed, labels_asked(target))

    def monitor(self, problem: Problem) -> Watch:
        assert isinstance(problem, Examples)
        monitor = Watch(type(self).__name__, self.max_passes, self.progress)
        monitor.marks, monitor.sequential, monitor.state = (
            [],
            problem.sequential,
            self.start(problem.classes, problem.height(self.bias)),
        )
        return monitor

    def start(self, classes: int, width: int) -> State:
        """Where the learner begins."""
        return State.zero(classes, width, averaged=self.averaged)

    def steps(self, problem: Problem, monitor: Watch) -> Iterator[None]:
        assert isinstance(problem, Examples)
        generator = self.draws()
        while True:
            yield from self.one_pass(problem, monitor, generator)
            if monitor.mistakes[-1] == 0:
                return

    def one_pass(self, problem: Examples, monitor: Watch, generator: torch.Generator | None = None) -> Iterator[None]:
        """Visit the rows once."""
        yield
        monitor.marks.append(monitor.state.updates)
        order, steps = problem.visits, self.rate * problem.steps
        if len(order):
            (low, high), seen = monitor.steps, steps[order]
            monitor.steps = min(low, float(seen.min())), max(high, float(seen.max()))
        if self.shuffle:
            order = order[torch.randperm(len(order), generator=self.draws() if generator is None else generator)]
        for piece in pieces(order, monitor.state.weights.numel()):
            problem.visit(monitor.state, steps, self.rule, self.bias, piece)

    def scorer(self, problem: Problem, monitor: Watch) -> LinearScorer | ChainScorer:
        assert isinstance(problem, Examples)
        return problem.scorer(monitor.weight, self.bias)

    def report(self, problem: Problem, monitor: Watch) -> Mistakes:
        """What happened; warns where passes have run out."""
        mistakes, counts = monitor.mistakes, monitor.state.counts.tolist()
        converged = not monitor.interrupted and bool(mistakes) and mistakes[-1] == 0
        if not converged and monitor.passes == monitor.max_passes and not monitor.interrupted:
            open_to_mean = not self.averaged and "averaged" in known(type(self))
            warn(
                f"{type(self).__name__}: {mistakes[-1]} updates in the last of {monitor.passes} passes (max_passes); "
                "perhaps no weights separate these rows"
                + (", and averaged=True then gives better ones than the last" if open_to_mean else "")
            )
        return Mistakes(
            mistakes=mistakes,
            updates=counts[1],
            preference_updates=counts[2],
            passes=monitor.passes,
            converged=converged,
            rule=self.rule.rule if self.rule.kind == "perceptron" else self.rule.kind.removesuffix("_binary"),
            equal_steps=monitor.steps[0] >= monitor.steps[1],
            iterations=monitor.passes,
            seconds=monitor.seconds,
            interrupted=monitor.interrupted,
        )
