"""Decision trees: grown best first, pruned by cost and complexity."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.ops.splits.codes import Codes, Floats, encode
from torch_multiclass.ops.splits.grow import Grown, Growth, best_first
from torch_multiclass.ops.splits.impurity import IMPURITIES
from torch_multiclass.ops.splits.levels import LevelSearch
from torch_multiclass.ops.splits.prune import pruned, pruning_path
from torch_multiclass.ops.splits.questions import QuestionSearch
from torch_multiclass.ops.splits.records import Limits, Search
from torch_multiclass.ops.splits.tree import Tree
from torch_multiclass.scorers.ensemble import TreeScorer
from torch_multiclass.solvers.base import Fit, Solver
from torch_multiclass.solvers.monitor import Monitor
from torch_multiclass.solvers.problem import Problem, RowWeights
from torch_multiclass.solvers.report import Step
from torch_multiclass.solvers.trees.options import (
    TreeOptions,
    check_loss,
    number_or_none,
    seed_of,
    with_leaf_values,
)
from torch_multiclass.solvers.trees.report import TreeReport

__all__ = ["DecisionTree"]

ENDLESS = 2**62


class GrowthMonitor(Monitor):
    """Keeps the tree as far as it has grown, and what is known of where to prune it."""

    growth: Growth
    strength: float = 0.0
    validation: list[tuple[float, float]]
    trees: tuple[Grown, Grown] | None = None
    """As grown, and pruned."""

    def settle(self) -> Tensor:
        """Nothing to choose from."""
        return torch.empty(0)


class DecisionTree(Solver[GrowthMonitor, TreeScorer, TreeReport]):
    r"""A binary tree of questions, each of which lowers the impurity of its node most.

    The open node and question with the largest decrease ``F(n) - sum_sides |side| / |n| F(side)`` are split at every
    round, counted by the node's share of the rows. Differences below 1e-12 are none: then the oldest node, the kind of
    question in the order below, the lowest feature, the lowest threshold, missing values as yes. A question is allowed
    if both sides have rows and it lowers by ``min_decrease`` at least, 0 included; pure nodes are leaves.

    Args:
        impurity: ``"gini"``, ``"entropy"`` (base 2), ``"misclassification"`` or ``"kearns_mansour"``,
            ``2 √(p (1 - p))`` for two classes and ``sum_l √(p_l (1 - p_l))`` for more.
        max_leaves, max_depth: where to stop; ``max_depth=0`` leaves the root alone.
        min_leaf: how much weight each side must have at least; 1 asks for a row, whatever its weight.
        min_decrease: how much a question must lower the impurity at least, counted as the nodes are.
        weighted: whether nodes count by their share; False is the rule as printed.
        look_ahead: 2 chooses by the question's own decrease and the best ones of both children, by their shares. It
            tries every pair, so it is for small data, or for few ``bins``.
        questions: some of ``"threshold"`` (``x_j <= a``), ``"subset"`` (of the categories of a feature),
            ``"hyperplane"`` (``w · x <= a``, for differences of class means and random ``w``) and ``"sphere"``
            (``|x - c| <= a``, for rows ``c``).
        categorical: the features whose values are numbers of categories. All subsets are tried for up to ten
            categories at a node; for two classes those in the order of their shares are enough; else those in the
            order of the first principal component of the class shares, and each category against the rest.
        draws: how many random directions and centres are tried at a node.
        bins: None tries every threshold; 256, say, puts the values of a feature into so many bins of equal weight.
        prune: the strength at which to prune, or ``"cv"`` for the one with the least error by cross-validation, of
            those ``√(s_k s_{k+1})`` between the strengths of the path; of equal ones that of the smaller tree.
        prune_impurity: by which the path is made, the one of growing by default.
        folds: of the cross-validation. Strengths count for the weight of the rows of a fold.
        loss: makes a binary learner, with one margin: ``"squared"`` has ``p_+ - p_-`` at a leaf, ``"logistic"`` and
            ``"exponential"`` ``½ log((n_+ + ½) / (n_- + ½))``.
        generator: draws directions, centres and folds; by default one seeded with 0.
        progress, on_step: as in `Solver`; a pass is a level of this tree or of one of a fold, and has no
            objective, which is NaN.

    Shape:
        features ``(N, D)``, NaN where a value is missing: each question learns on which side these belong, and where
        it has seen none, or a category that it has not seen, that is the heavier side. target ``(N)``. The scorer's
        scores are class shares ``(*, K)``, or a margin ``(*, 1)``.

    Raises:
        ValueError: options that are none of these; what `fit` refuses.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.3.3, figure 9.3 and (9.15);
    Breiman, Friedman, Olshen and Stone (1984), *Classification and regression trees*; for the margins and the last
    impurity Allwein, Schapire and Singer (2000), §2.

    Example:
        >>> import torch
        >>> x, y = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), torch.tensor([0, 1, 1, 0])
        >>> scorer, report = DecisionTree().fit(x, y)
        >>> scorer(x).argmax(1), report.leaves
        (tensor([0, 1, 1, 0]), 4)
        >>> print(report.text())
        x0 <= 0.5 (4 rows, decrease 0, missing: yes)
        ├─ yes: x1 <= 0.5 (2 rows, decrease 0.5, missing: yes)
        │  ├─ yes: class 0 (100 % of 1 rows)
        │  └─ no: class 1 (100 % of 1 rows)
        └─ no: x1 <= 0.5 (2 rows, decrease 0.5, missing: yes)
           ├─ yes: class 1 (100 % of 1 rows)
           └─ no: class 0 (100 % of 1 rows)
    """

    def __init__(
        self,
        impurity: str = "gini",
        *,
        max_leaves: int | None = None,
        max_depth: int | None = None,
        min_leaf: float = 1,
        min_decrease: float = 0.0,
        weighted: bool = True,
        look_ahead: int = 1,
        questions: Sequence[str] = ("threshold", "subset"),
        categorical: Sequence[int] = (),
        draws: int = 10,
        bins: int | None = None,
        prune: float | str | None = None,
        prune_impurity: str | None = None,
        folds: int = 10,
        loss: str | None = None,
        generator: torch.Generator | None = None,
        progress: bool | None = None,
        on_step: Callable[[Step], None] | None = None,
    ) -> None:
        super().__init__(bias=False, max_passes=ENDLESS, generator=generator, progress=progress, on_step=on_step)
        self.options = TreeOptions(
            impurity, max_leaves, max_depth, min_leaf, min_decrease, weighted, look_ahead, questions, categorical,
            draws, bins,
        )  # fmt: skip
        number_or_none("prune", prune, ["cv"])
        if prune_impurity is not None:
            check.choice("prune_impurity", prune_impurity, IMPURITIES)
        folds = check.whole("folds", folds, least=2)
        check_loss(loss)
        self.prune, self.folds, self.loss = prune, folds, loss
        self.prune_impurity = impurity if prune_impurity is None else prune_impurity

    def __repr__(self) -> str:
        return f"DecisionTree({self.options.impurity!r}, prune={self.prune!r}, loss={self.loss!r})"

    def fit(
        self,
        features: Tensor,
        target: Tensor,
        *,
        weight: RowWeights | None = None,
        num_classes: int | None = None,
    ) -> Fit[TreeScorer, TreeReport]:
        """Grow, and prune if asked to.

        Args:
            features: the rows, one device; the work is done on the CPU.
            target: their labels, integers; rows labelled -100 are left out.
            weight: of each row, >= 0; 2 is the row twice, 0 leaves it out.
            num_classes: ``K``; by default one more than the largest label.

        Shape:
            features ``(N, D)``; target and weight ``(N)``.

        Returns:
            A `TreeScorer` and a `TreeReport`. Ended from the keyboard, the levels that are done, with a warning,
            `Interrupted`.

        Raises:
            ValueError: no rows, one class, features that are infinite, a category that is no whole number.
        """
        problem = self.problem(features, target, weight, num_classes)
        return self.solve(problem, self.monitor(problem))

    def problem(
        self, features: Tensor, target: Tensor, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> Problem:
        if self.loss is None:
            problem = Problem.multiclass(features, target, weight, num_classes, missing=True)
        else:
            problem = Problem.binary(features, target, weight, missing=True)
        self.options.check_categories(problem.features)
        return problem

    def monitor(self, problem: Problem) -> GrowthMonitor:
        monitor = GrowthMonitor(type(self).__name__, self.max_passes, self.progress, self.on_step)
        monitor.validation = []
        return monitor

    def steps(self, problem: Problem, monitor: GrowthMonitor) -> Iterator[None]:
        """The levels, then the folds."""
        generator = self.draws()
        table = Rows(problem, self.options)
        monitor.growth = table.growth(np.arange(table.rows), seed_of(generator))
        yield from steps_of(monitor.growth, monitor)
        if self.prune == "cv":
            yield from self._validate(table, monitor, generator)
        elif self.prune is not None:
            monitor.strength = float(self.prune)

    def _validate(self, table: Rows, monitor: GrowthMonitor, generator: torch.Generator) -> Iterator[None]:
        """The error of each strength between two of the path, over folds that growing did not see."""
        grown = ordered(monitor.growth, self.options)
        strengths = pruning_path(grown.tree, self.prune_impurity).strengths
        between = np.append(np.sqrt(strengths[:-1] * strengths[1:]), np.inf)
        folds = min(self.folds, table.rows)
        fold = torch.randperm(table.rows, generator=generator).numpy() % folds
        wrong = np.zeros(len(between))
        for number in range(folds):
            seen = np.flatnonzero(fold != number)
            growth = table.growth(seen, seed_of(generator))
            yield from steps_of(growth, monitor)
            part = ordered(growth, self.options)
            path = pruning_path(part.tree, self.prune_impurity)
            held = np.flatnonzero(fold == number)
            share = table.weights[seen].sum() / table.weights.sum()
            for at, strength in enumerate(between):
                tree = pruned(part, path, strength * share).tree
                wrong[at] += table.error(tree, held)
        errors = wrong / table.weights.sum()
        monitor.validation = list(zip(between.tolist(), errors.tolist(), strict=True))
        best = np.flatnonzero(errors <= errors.min() + 1e-12)[-1]
        monitor.strength = float(between[best])

    def _trees(self, monitor: GrowthMonitor) -> tuple[Grown, Grown]:
        """The tree as grown, and pruned."""
        if monitor.trees is None:
            grown = ordered(monitor.growth, self.options)
            kept = grown
            if self.prune is not None:
                kept = pruned(grown, pruning_path(grown.tree, self.prune_impurity), monitor.strength)
            monitor.trees = grown, kept
        return monitor.trees

    def scorer(self, problem: Problem, monitor: GrowthMonitor) -> TreeScorer:
        tree = with_leaf_values(self._trees(monitor)[1].tree, self.loss)
        return TreeScorer(tree, device=problem.features.device, dtype=problem.features.dtype)

    def report(self, problem: Problem, monitor: GrowthMonitor) -> TreeReport:
        grown, kept = self._trees(monitor)
        return TreeReport(
            iterations=monitor.passes,
            seconds=monitor.seconds,
            interrupted=monitor.interrupted,
            grown=kept,
            unpruned=grown,
            impurity=self.prune_impurity,
            strength=monitor.strength,
            validation=monitor.validation,
        )

    def _state(self, monitor: GrowthMonitor) -> str:
        return f"after {monitor.passes} passes"


class Rows:
    """The rows of a problem as arrays, and their codes, made once."""

    def __init__(self, problem: Problem, options: TreeOptions) -> None:
        self.options = options
        self.features = problem.features.cpu().numpy()
        labels = problem.labels.cpu()
        self.labels = (labels.clamp(min=0) if problem.classes == 2 else labels).numpy().astype(np.int32)
        self.weights: Floats = problem.weight.cpu().numpy()
        self.classes = problem.classes
        self.codes: Codes = encode(self.features, options.bins, self.weights)

    @property
    def rows(self) -> int:
        """``M``."""
        return len(self.features)

    def search(self, tries: int | None = None, weights: Floats | None = None) -> Search:
        """What finds questions."""
        options, weights = self.options, self.weights if weights is None else weights
        base = LevelSearch(self.codes, self.labels, weights, self.classes, options.impurity, options.min_leaf, tries)
        if options.plain:
            return base
        kinds, among = options.questions, options.categorical
        return QuestionSearch(base, self.features, kinds, among, options.draws, options.look_ahead)

    def growth(self, rows: NDArray[np.integer[Any]], seed: int) -> Growth:
        """A tree of some rows, not grown yet."""
        return grow_from(self.search(), rows, seed, self.options)

    def error(self, tree: Tree, rows: NDArray[np.integer[Any]]) -> float:
        """The weight of the rows that a tree, by the class with most weight at their leaves, gets wrong."""
        scorer = TreeScorer(tree, dtype=torch.from_numpy(self.features[:0]).dtype)
        guess = scorer(torch.from_numpy(self.features[rows])).argmax(1).numpy()
        return float(self.weights[rows][guess != self.labels[rows]].sum())


def grow_from(search: Search, rows: NDArray[np.integer[Any]], seed: int, options: TreeOptions) -> Growth:
    """A tree of some rows, not grown yet."""
    root = search.root(rows.astype(np.int32), seed)
    limits = Limits(options.min_decrease, float(root.sums.sum()) if options.weighted else 0.0, options.deepest)
    return Growth(search, root, limits)


def steps_of(growth: Growth, monitor: Monitor) -> Iterator[None]:
    """Grow level by level, as deep as may be; there is no objective to be measured."""
    while growth.open:
        yield
        growth.step()
        monitor.note(math.nan, math.nan)


def ordered(growth: Growth, options: TreeOptions) -> Grown:
    """The tree in the order of best-first growth, of at most so many leaves."""
    return best_first(growth.grown(), options.weighted, options.max_leaves)
