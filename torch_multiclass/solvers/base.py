"""What every solver gives back, and the frame it runs in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.ops.precision import undisturbed
from torch_multiclass.scorers.base import Scorer
from torch_multiclass.solvers.arguments import Arguments
from torch_multiclass.solvers.monitor import Interrupted, Monitor, warn
from torch_multiclass.solvers.problem import Problem, RowWeights, check_flag
from torch_multiclass.solvers.report import Report, Step

S = TypeVar("S", bound=Scorer)
R = TypeVar("R", bound=Report)
M = TypeVar("M", bound=Monitor)


class Fit(tuple[S, R], Generic[S, R]):
    """What was trained, and how it went: ``scorer, report = solver.fit(features, target)``.

    A pair with names; not a `NamedTuple`, which can be generic from Python 3.11 on only.

    Reference: the pair that each solver returns, whose own sources are with it.

    Example:
        >>> import torch
        >>> from torch_multiclass.solvers import BinaryLeastSquares
        >>> fit = BinaryLeastSquares().fit(torch.tensor([[1.0], [-1.0]]), torch.tensor([1, -1]))
        >>> fit.scorer, fit.report.converged
        (LinearScorer(in_features=1, num_classes=1, bias=False), True)
    """

    __slots__ = ()

    def __new__(cls, scorer: S, report: R) -> Fit[S, R]:
        """A scorer and a report."""
        return super().__new__(cls, (scorer, report))

    def __getnewargs__(self) -> tuple[S, R]:  # for pickle and deepcopy
        return self[0], self[1]

    def __repr__(self) -> str:
        return f"Fit(scorer={self.scorer!r}, report={self.report!r})"

    @property
    def scorer(self) -> S:
        """What was trained."""
        return self[0]

    @property
    def report(self) -> R:
        """How it went."""
        return self[1]


class Solver(check.Told, Arguments, ABC, Generic[M, S, R]):
    """Trains a scorer without gradients through a network.

    A solver says how its rows are labelled (`problem`), what watches it (`monitor`), what a pass over the rows does
    (`steps`), what its best weight is a scorer of (`scorer`) and what it reports (`report`); everything else is here
    and in the monitor: checks, row weights, the clock, the best so far, the history, progress, Ctrl-C and warnings.

    Args:
        bias: append a constant feature 1.
        max_passes: how often at most to go over the rows.
        generator: draws what is random; by default one seeded with 0, so fits repeat.
        progress: whether to print a line on standard error now and then; by default on a terminal, and only when the
            fit takes more than a few seconds.
        on_step: called with every measurement.

    Reference: the loop that solvers share; each names its own source.

    Example:
        >>> import torch
        >>> from torch_multiclass.solvers import DualSVM
        >>> solver = DualSVM(C=1.0)
        >>> scorer, report = solver.fit(torch.eye(3), torch.arange(3))
        >>> isinstance(solver, Solver), scorer(torch.eye(3)).argmax(1)
        (True, tensor([0, 1, 2]))
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Every way to fit is undisturbed by autocast and default devices, and a verb."""
        super().__init_subclass__(**options)
        for verb in ("fit", "partial_fit", "fit_stream"):
            if verb in vars(cls):
                setattr(cls, verb, check.Verb(undisturbed(vars(cls)[verb])))
        if "path" in vars(cls):  # a generator, which is undisturbed from fit to fit
            cls.path = check.Verb(vars(cls)["path"])  # type: ignore[attr-defined]

    def __init__(
        self,
        *,
        bias: bool,
        max_passes: int,
        generator: torch.Generator | None = None,
        progress: bool | None = None,
        on_step: Callable[[Step], None] | None = None,
    ) -> None:
        check_flag("bias", bias)
        check_flag("progress", progress, none=True)
        max_passes = check.whole("max_passes", max_passes)
        check.generator(generator)
        if on_step is not None and not callable(on_step):
            raise TypeError(f"on_step: got {on_step!r}; accepted is None or a function of a Step")
        self.bias, self.max_passes, self.generator = bias, max_passes, generator
        self.progress, self.on_step = progress, on_step

    @undisturbed
    def fit(self, features: Tensor, target: Tensor, *, weight: RowWeights | None = None) -> Fit[S, R]:
        """Train.

        Args:
            features: the rows, one device.
            target: their labels, integers; rows labelled -100 are left out.
            weight: how much the loss of each row counts, >= 0; 2 is the row twice, 0 leaves it out.

        Shape:
            features ``(N, D)``; target and weight ``(N)``.

        Returns:
            A scorer and a report. Ended from the keyboard (Ctrl-C), the best so far, with a warning, `Interrupted`; a
            second Ctrl-C while that is being put together, or one before the work has begun, propagates.

        Raises:
            ValueError: no rows, one class, or features that are not finite; weights that do not fit.
        """
        problem = self.problem(features, target, weight)
        return self.solve(problem, self.monitor(problem))

    def solve(self, problem: Problem, monitor: M) -> Fit[S, R]:
        """Run the steps, and make of the best they reach a scorer and a report."""
        with torch.no_grad():
            monitor.run(self.steps(problem, monitor))
            monitor.settle()
            fit = Fit(self.scorer(problem, monitor), self.report(problem, monitor))
        self.warn_if_interrupted(monitor)
        return fit

    def warn_if_interrupted(self, monitor: M) -> None:
        """Say that this is not what the fit would have come to."""
        if monitor.interrupted:
            warn(
                f"{type(self).__name__}: ended from the keyboard {self._state(monitor)}; this is the best it had",
                Interrupted,
            )

    @abstractmethod
    def problem(
        self, features: Tensor, target: Tensor, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> Problem:
        """The rows, checked, with signs or classes."""

    @abstractmethod
    def monitor(self, problem: Problem) -> M:
        """What watches the fit."""

    @abstractmethod
    def steps(self, problem: Problem, monitor: M) -> Iterator[None]:
        """The passes: yields before each, and gives what it reaches to the monitor."""

    @abstractmethod
    def scorer(self, problem: Problem, monitor: M) -> S:
        """The scorer of the monitor's best weight."""

    @abstractmethod
    def report(self, problem: Problem, monitor: M) -> R:
        """How it went."""

    def draws(self) -> torch.Generator:
        """The generator of one fit."""
        return torch.Generator().manual_seed(0) if self.generator is None else self.generator

    def _state(self, monitor: M) -> str:
        """How far the monitor has come, in words."""
        return f"after {monitor.passes} passes"
