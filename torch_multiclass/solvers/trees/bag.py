"""Members of their own draws of the rows, which vote: the draws, the threads, the out-of-bag error."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, Generic, NamedTuple, TypedDict, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.scorers.base import Scorer
from torch_multiclass.solvers.base import Fit, Solver
from torch_multiclass.solvers.monitor import Monitor
from torch_multiclass.solvers.problem import Problem, RowWeights
from torch_multiclass.solvers.report import Step
from torch_multiclass.solvers.trees.options import seed_of
from torch_multiclass.solvers.trees.report import ForestReport

S = TypeVar("S", bound=Scorer)
Made = TypeVar("Made", bound=Scorer, covariant=True)

Counts = NDArray[np.int32]
"""``(M)``: how often each row was drawn."""


class BagOptions(TypedDict, total=False):
    """The keyword arguments of everything that draws its rows, as in `RandomForest`."""

    sample: float
    replace: bool
    vote: str
    generator: torch.Generator | None
    progress: bool | None
    on_step: Callable[[Step], None] | None


class Member(NamedTuple):
    """One of those that vote, how often it saw each row, and the rows that it did not see with its class for each."""

    made: Any
    in_bag: Counts
    out: NDArray[np.intp]
    guess: NDArray[np.int64]
    interrupted: bool = False


class Members(ABC, Generic[Made]):
    """What the members of a bag are: trees, or scorers of any solver."""

    @abstractmethod
    def problem(self, features: Tensor, target: Tensor, weight: RowWeights | None, classes: int | None) -> Problem:
        """The rows, checked."""

    def rows(self, problem: Problem) -> Any:
        """What all members are made of, prepared once."""
        return problem

    def enough(self, rows: Any, in_bag: Counts) -> bool:
        """Whether a member can be made of a draw."""
        return True

    @abstractmethod
    def member(self, rows: Any, in_bag: Counts, draw: np.random.Generator) -> Member:
        """One, made of a draw."""

    @abstractmethod
    def scorer(self, problem: Problem, made: Sequence[Any]) -> Made:
        """All together."""


class BagMonitor(Monitor):
    """Keeps the members that are done."""

    done: list[Member]

    def settle(self) -> Tensor:
        """Nothing to choose from."""
        return torch.empty(0)


class Bag(Solver[BagMonitor, S, ForestReport], Generic[S]):
    """What all bags share; a subclass says what their `members` are.

    Args:
        trees: how many members.
        sample, replace, vote, generator, progress, on_step: as in `RandomForest`.
        jobs: how many are made at a time; None: as many as torch has threads.
    """

    members: Members[S]

    def __init__(
        self,
        trees: int,
        *,
        sample: float = 1.0,
        replace: bool = True,
        vote: str = "average",
        jobs: int | None = None,
        generator: torch.Generator | None = None,
        progress: bool | None = None,
        on_step: Callable[[Step], None] | None = None,
    ) -> None:
        trees = check.whole("trees", trees)
        super().__init__(bias=False, max_passes=trees, generator=generator, progress=progress, on_step=on_step)
        if not check.positive("sample", sample) <= 1:
            raise ValueError(f"sample: got {check.shown(sample)}; accepted is a number above 0 and at most 1")
        check.flag("replace", replace)
        check.choice("vote", vote, ("average", "majority"))
        if jobs is not None:
            jobs = check.whole("jobs", jobs)
        self.trees, self.sample, self.replace, self.vote, self.jobs = trees, float(sample), replace, vote, jobs

    def __repr__(self) -> str:
        return f"{type(self).__name__}(trees={self.trees}, vote={self.vote!r})"

    def fit(
        self,
        features: Tensor,
        target: Tensor,
        *,
        weight: RowWeights | None = None,
        num_classes: int | None = None,
    ) -> Fit[S, ForestReport]:
        """Make the members.

        Args:
            features: the rows, one device; trees are grown on the CPU.
            target: their labels, integers; rows labelled -100 are left out.
            weight: of each row, >= 0, times how often it is drawn; 0 leaves it out.
            num_classes: ``K``; by default one more than the largest label.

        Shape:
            features ``(N, D)``, NaN where a value is missing; target and weight ``(N)``.

        Returns:
            A scorer and a `ForestReport`. Ended from the keyboard, the members that are done, with a warning,
            `Interrupted`.

        Raises:
            ValueError: no rows, one class, features that are infinite.
        """
        problem = self.problem(features, target, weight, num_classes)
        return self.solve(problem, self.monitor(problem))

    def problem(
        self, features: Tensor, target: Tensor, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> Problem:
        return self.members.problem(features, target, weight, num_classes)

    def monitor(self, problem: Problem) -> BagMonitor:
        monitor = BagMonitor(type(self).__name__, self.max_passes, self.progress, self.on_step)
        monitor.done = []
        return monitor

    def steps(self, problem: Problem, monitor: BagMonitor) -> Iterator[None]:
        generator = self.draws()
        rows, seeds = self.members.rows(problem), [seed_of(generator) for _ in range(self.trees)]
        for member in self._made(rows, iter(seeds), len(problem.features)):
            monitor.done.append(member)
            yield
            monitor.note(math.nan, math.nan)
            if member.interrupted:
                raise KeyboardInterrupt

    def _made(self, rows: Any, seeds: Iterator[int], many: int) -> Iterator[Member]:
        """The members, several at a time; those that were begun are waited for, in the order of their draws."""
        jobs = torch.get_num_threads() if self.jobs is None else self.jobs
        yield self._member(rows, next(seeds), many)
        if jobs == 1:
            yield from (self._member(rows, seed, many) for seed in seeds)
            return
        with ThreadPoolExecutor(jobs) as pool:
            begun: list[Future[Member]] = [pool.submit(self._member, rows, s, many) for s in islice(seeds, 2 * jobs)]
            while begun:
                member = begun.pop(0).result()
                begun += [pool.submit(self._member, rows, seed, many) for seed in islice(seeds, 1)]
                yield member

    def _member(self, rows: Any, seed: int, many: int) -> Member:
        """One, of a draw of the rows that it can be made of."""
        draw, size = np.random.default_rng(seed), max(1, round(self.sample * many))
        for _ in range(100):
            drawn = draw.integers(many, size=size) if self.replace else draw.permutation(many)[:size]
            in_bag = np.bincount(drawn, minlength=many).astype(np.int32)
            if self.members.enough(rows, in_bag):
                return self.members.member(rows, in_bag, draw)
        raise ValueError(f"sample: 100 draws of {size} of {many} rows had one class each; accepted is a larger share")

    def scorer(self, problem: Problem, monitor: BagMonitor) -> S:
        return self.members.scorer(problem, [member.made for member in monitor.done])

    def report(self, problem: Problem, monitor: BagMonitor) -> ForestReport:
        rows = len(problem.features)
        votes = np.zeros((rows, problem.classes))
        for member in monitor.done:
            votes[member.out, member.guess] += 1
        labels, weight = problem.labels.clamp(min=0).cpu().numpy(), problem.weight.cpu().numpy()
        some = votes.any(1)
        wrong = weight[some & (votes.argmax(1) != labels)].sum()
        return ForestReport(
            iterations=monitor.passes,
            seconds=monitor.seconds,
            interrupted=monitor.interrupted,
            trees=len(monitor.done),
            oob_error=float(wrong / weight[some].sum()) if some.any() else float("nan"),
            oob_rows=int(some.sum()),
            in_bag=torch.from_numpy(np.stack([member.in_bag for member in monitor.done])),
        )

    def _state(self, monitor: BagMonitor) -> str:
        return f"after {monitor.passes} passes"
