"""Many trees, each of its own draw of the rows, which vote: bagging, random forests, random trees."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import NamedTuple, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import Unpack

from torch_multiclass import checks as check
from torch_multiclass.ops.splits.chance import ChanceSearch
from torch_multiclass.ops.splits.codes import Floats
from torch_multiclass.ops.splits.descend import pack, summed
from torch_multiclass.ops.splits.levels import LevelSearch
from torch_multiclass.ops.splits.records import Search
from torch_multiclass.ops.splits.tree import Tree
from torch_multiclass.options import known_keywords
from torch_multiclass.scorers.ensemble import EnsembleScorer
from torch_multiclass.solvers.base import Fit, Solver
from torch_multiclass.solvers.monitor import Monitor
from torch_multiclass.solvers.problem import Problem, RowWeights
from torch_multiclass.solvers.report import Step
from torch_multiclass.solvers.trees.options import TreeOptions, check_features_tried, leaf_values, seed_of, tried
from torch_multiclass.solvers.trees.report import ForestReport
from torch_multiclass.solvers.trees.tree import Rows, grow_from, ordered

__all__ = ["Bagging", "RandomForest", "RandomTrees"]


class ForestOptions(TypedDict, total=False):
    """The keyword arguments of every forest, as in `RandomForest`."""

    impurity: str
    max_leaves: int | None
    max_depth: int | None
    min_leaf: float
    min_decrease: float
    bins: int | None
    sample: float
    replace: bool
    vote: str
    jobs: int | None
    generator: torch.Generator | None
    progress: bool | None
    on_step: Callable[[Step], None] | None


FOREST_OPTIONS = tuple(ForestOptions.__annotations__)


class Grown(NamedTuple):
    """A tree of a forest, how often it saw each row, and the rows that it did not see with its class for each."""

    tree: Tree
    in_bag: NDArray[np.int32]
    out: NDArray[np.intp]
    guess: NDArray[np.intp]


class ForestMonitor(Monitor):
    """Keeps the trees that are done."""

    done: list[Grown]
    table: Rows

    def settle(self) -> Tensor:
        """Nothing to choose from."""
        return torch.empty(0)


class _Forest(Solver[ForestMonitor, EnsembleScorer, ForestReport]):
    """What all forests share: the draws, the threads, the votes."""

    per = "split"

    def __init__(
        self,
        trees: int = 100,
        features: int | float | str | None = None,
        *,
        impurity: str = "gini",
        max_leaves: int | None = None,
        max_depth: int | None = None,
        min_leaf: float = 1,
        min_decrease: float = 0.0,
        bins: int | None = None,
        sample: float = 1.0,
        replace: bool = True,
        vote: str = "average",
        jobs: int | None = None,
        generator: torch.Generator | None = None,
        progress: bool | None = None,
        on_step: Callable[[Step], None] | None = None,
    ) -> None:
        check.whole("trees", trees)
        super().__init__(bias=False, max_passes=trees, generator=generator, progress=progress, on_step=on_step)
        self.options = TreeOptions(impurity, max_leaves, max_depth, min_leaf, min_decrease, bins=bins)
        check_features_tried(features)
        if not check.positive("sample", sample) <= 1:
            raise ValueError(f"sample: got {check.shown(sample)}; accepted is a number above 0 and at most 1")
        check.flag("replace", replace)
        check.choice("vote", vote, ("average", "majority"))
        if jobs is not None:
            check.whole("jobs", jobs)
        self.trees, self.features, self.sample, self.replace = trees, features, float(sample), replace
        self.vote, self.jobs = vote, jobs

    def __repr__(self) -> str:
        return f"{type(self).__name__}(trees={self.trees}, vote={self.vote!r})"

    def fit(
        self,
        features: Tensor,
        target: Tensor,
        *,
        weight: RowWeights | None = None,
        num_classes: int | None = None,
    ) -> Fit[EnsembleScorer, ForestReport]:
        """Grow the trees.

        Args:
            features: the rows, one device; the work is done on the CPU.
            target: their labels, integers; rows labelled -100 are left out.
            weight: of each row, >= 0, times how often it is drawn; 0 leaves it out.
            num_classes: ``K``; by default one more than the largest label.

        Shape:
            features ``(N, D)``, NaN where a value is missing; target and weight ``(N)``.

        Returns:
            An `EnsembleScorer` and a `ForestReport`. Ended from the keyboard, the trees that are done, with a warning,
            `Interrupted`.

        Raises:
            ValueError: no rows, one class, features that are infinite.
        """
        problem = self.problem(features, target, weight, num_classes)
        return self.solve(problem, self.monitor(problem))

    def problem(
        self, features: Tensor, target: Tensor, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> Problem:
        return Problem.multiclass(features, target, weight, num_classes, missing=True)

    def monitor(self, problem: Problem) -> ForestMonitor:
        monitor = ForestMonitor(type(self).__name__, self.max_passes, self.progress, self.on_step)
        monitor.done = []
        return monitor

    def steps(self, problem: Problem, monitor: ForestMonitor) -> Iterator[None]:
        """The trees, several at a time; those that were begun are waited for, in the order of their draws."""
        generator = self.draws()
        table = Rows(problem, self.options)
        seeds = iter([seed_of(generator) for _ in range(self.trees)])
        jobs = torch.get_num_threads() if self.jobs is None else self.jobs
        monitor.done.append(self._grow(table, next(seeds)))
        yield
        monitor.note(math.nan, math.nan)
        with ThreadPoolExecutor(jobs) as pool:
            begun: list[Future[Grown]] = [pool.submit(self._grow, table, s) for s in islice(seeds, 2 * jobs)]
            while begun:
                monitor.done.append(begun.pop(0).result())
                begun += [pool.submit(self._grow, table, seed) for seed in islice(seeds, 1)]
                yield
                monitor.note(math.nan, math.nan)

    def _grow(self, table: Rows, seed: int) -> Grown:
        """A tree of a draw of the rows."""
        draw = np.random.default_rng(seed)
        many = max(1, round(self.sample * table.rows))
        drawn = draw.integers(table.rows, size=many) if self.replace else draw.permutation(table.rows)[:many]
        in_bag = np.bincount(drawn, minlength=table.rows).astype(np.int32)
        seen = np.flatnonzero(in_bag).astype(np.int32)
        search = self._search(table, table.weights * in_bag, draw)
        growth = grow_from(search, seen, int(draw.integers(2**62)), self.options)
        while growth.open:
            growth.step()
        tree = growth.grown().tree if self.options.max_leaves is None else ordered(growth, self.options).tree
        tree = tree.with_values(leaf_values(tree.values, None))
        out = np.flatnonzero(in_bag == 0)
        rows = torch.from_numpy(table.features[out])
        shares = summed(rows, pack([tree], rows.dtype), None, tree.nodes)
        if self.vote == "majority":
            votes = np.zeros_like(tree.values)
            votes[np.arange(tree.nodes), tree.values.argmax(1)] = 1
            tree = tree.with_values(votes)
        return Grown(tree, in_bag, out, shares.argmax(1).numpy())

    def _search(self, table: Rows, weights: Floats, draw: np.random.Generator) -> Search:
        """What finds the questions of a tree."""
        tries = tried(self.features, table.codes.features)
        if self.per == "tree":
            return _SomeFeatures(table, weights, np.sort(draw.permutation(table.codes.features)[:tries]))
        return table.search(tries, weights)

    def scorer(self, problem: Problem, monitor: ForestMonitor) -> EnsembleScorer:
        trees = [grown.tree for grown in monitor.done]
        return EnsembleScorer(trees, device=problem.features.device, dtype=problem.features.dtype)

    def report(self, problem: Problem, monitor: ForestMonitor) -> ForestReport:
        rows = len(problem.features)
        votes = np.zeros((rows, problem.classes))
        for grown in monitor.done:
            votes[grown.out, grown.guess] += 1
        labels, weight = problem.labels.cpu().numpy(), problem.weight.cpu().numpy()
        some = votes.any(1)
        wrong = weight[some & (votes.argmax(1) != labels)].sum()
        return ForestReport(
            iterations=monitor.passes,
            seconds=monitor.seconds,
            interrupted=monitor.interrupted,
            trees=len(monitor.done),
            oob_error=float(wrong / weight[some].sum()) if some.any() else float("nan"),
            oob_rows=int(some.sum()),
            in_bag=torch.from_numpy(np.stack([grown.in_bag for grown in monitor.done])),
        )

    def _state(self, monitor: ForestMonitor) -> str:
        return f"after {monitor.passes} passes"


class _SomeFeatures(LevelSearch):
    """Thresholds of the features that were drawn for a whole tree."""

    def __init__(self, table: Rows, weights: Floats, features: NDArray[np.intp]) -> None:
        options, codes = table.options, table.codes.take(features)
        super().__init__(codes, table.labels, weights, table.classes, options.impurity, options.min_leaf)
        self.drawn, self.width = features, table.codes.features

    def finished(self, tree: Tree) -> Tree:
        feature = np.where(tree.feature >= 0, self.drawn[tree.feature], -1)
        return replace(tree, feature=feature, features=self.width)


class Bagging(_Forest):
    r"""Trees of bootstrap draws of the rows, by all features; their votes are averaged, or counted.

    Args:
        trees: how many.
        options: as in `RandomForest`.

    Shape:
        features ``(N, D)``, NaN where a value is missing; target ``(N)``; the scorer's scores ``(*, K)``.

    Raises:
        ValueError: options that are none of these; what `fit` refuses.

    Reference: Breiman (1996), *Bagging predictors*.

    Example:
        >>> import torch
        >>> x = torch.arange(40.0)[:, None]
        >>> scorer, report = Bagging(trees=20).fit(x, (x[:, 0] > 15).long())
        >>> scorer(torch.tensor([[3.0], [33.0]])).argmax(1), report.in_bag.shape, report.oob_error
        (tensor([0, 1]), torch.Size([20, 40]), 0.025)
    """

    def __init__(self, trees: int = 100, **options: Unpack[ForestOptions]) -> None:
        known_keywords(type(self), options, FOREST_OPTIONS)
        super().__init__(trees, None, **options)


class RandomForest(_Forest):
    r"""Trees of bootstrap draws of the rows, which try a few random features at each split.

    Args:
        trees: how many.
        features: how many features are tried: ``"sqrt"``, ``⌊√D⌋``, a number, a share, or None, all. Where none of
            those has a question, more are tried, one by one.
        per: ``"split"`` draws them at every split, ``"tree"`` once for a tree.
        impurity, max_leaves, max_depth, min_leaf, min_decrease, bins: of each tree, as in `DecisionTree`.
        sample: how many rows are drawn, as a share of all.
        replace: whether a row may be drawn again.
        vote: ``"average"`` gives the mean of the class shares, ``"majority"`` the share of the trees that vote for a
            class.
        jobs: how many trees are grown at a time, by default as many as torch has threads. The forest is the same.
        generator: draws rows and features; by default one seeded with 0.
        progress, on_step: as in `Solver`; a pass is a tree, and has no objective, which is NaN.

    Shape:
        features ``(N, D)``, NaN where a value is missing; target ``(N)``; the scorer's scores ``(*, K)``.

    Raises:
        ValueError: options that are none of these; what `fit` refuses.

    Reference: Breiman (2001), *Random forests*.

    Example:
        >>> import torch
        >>> x = torch.arange(40.0)[:, None]
        >>> scorer, report = RandomForest(trees=16, vote="majority").fit(x, (x[:, 0] > 15).long())
        >>> scorer(torch.tensor([[3.0], [33.0]]))
        tensor([[1., 0.],
                [0., 1.]])
    """

    def __init__(
        self,
        trees: int = 100,
        features: int | float | str | None = "sqrt",
        *,
        per: str = "split",
        **options: Unpack[ForestOptions],
    ) -> None:
        known_keywords(type(self), options, FOREST_OPTIONS)
        super().__init__(trees, features, **options)
        check.choice("per", per, ("split", "tree"))
        self.per = per


class RandomTrees(_Forest):
    r"""Trees whose questions are drawn without a look at the labels: a feature that varies at the node, and a threshold
    uniform between its smallest and its largest value there. Labels count at the leaves, which are pure if not bounded.

    Args:
        trees: how many.
        options: as in `RandomForest`; by default each tree has all rows.

    Shape:
        features ``(N, D)``, NaN where a value is missing; target ``(N)``; the scorer's scores ``(*, K)``.

    Raises:
        ValueError: options that are none of these; what `fit` refuses.

    Reference: Fan, Wang, Yu and Ma (2003), *Is random model better?*; Geurts, Ernst and Wehenkel (2006), *Extremely
    randomized trees*, for totally random ones.

    Example:
        >>> import torch
        >>> x = torch.arange(40.0)[:, None]
        >>> scorer, report = RandomTrees(trees=20).fit(x, (x[:, 0] > 15).long())
        >>> scorer(torch.tensor([[3.0], [33.0]])).argmax(1), report.oob_rows
        (tensor([0, 1]), 0)
    """

    def __init__(self, trees: int = 100, **options: Unpack[ForestOptions]) -> None:
        known_keywords(type(self), options, FOREST_OPTIONS)
        super().__init__(trees, None, **{"replace": False, **options})  # type: ignore[arg-type]

    def _search(self, table: Rows, weights: Floats, draw: np.random.Generator) -> Search:
        options = table.options
        shared = table.codes, table.labels, weights, table.classes, options.impurity, options.min_leaf
        return ChanceSearch(table.features, *shared)
