"""Many trees, each of its own draw of the rows, which vote: random forests and random trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

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
from torch_multiclass.solvers.problem import Problem, RowWeights
from torch_multiclass.solvers.trees.bag import Bag, BagOptions, Counts, Member, Members
from torch_multiclass.solvers.trees.options import TreeOptions, features_tried, leaf_values, tried
from torch_multiclass.solvers.trees.tree import Rows, grow_from, ordered

__all__ = ["RandomForest", "RandomTrees"]


class GrowOptions(BagOptions, total=False):
    """The keyword arguments of every forest, as in `RandomForest`."""

    impurity: str
    max_leaves: int | None
    max_depth: int | None
    min_leaf: float
    min_decrease: float
    bins: int | None
    jobs: int | None


FOREST_OPTIONS = tuple(GrowOptions.__annotations__)
OF_A_TREE = ("impurity", "max_leaves", "max_depth", "min_leaf", "min_decrease", "bins")


class Trees(Members[EnsembleScorer]):
    """Trees, each of a draw of the rows.

    Args:
        options: of each.
        vote: what its leaves hold.
        features: how many features are tried.
        per: at every ``"split"``, or the same ones throughout a ``"tree"``.
    """

    def __init__(
        self, options: TreeOptions, vote: str, features: int | float | str | None = None, per: str = "split"
    ) -> None:
        self.options, self.vote, self.features, self.per = options, vote, features, per

    def problem(self, features: Tensor, target: Tensor, weight: RowWeights | None, classes: int | None) -> Problem:
        return Problem.multiclass(features, target, weight, classes, missing=True)

    def rows(self, problem: Problem) -> Rows:
        return Rows(problem, self.options)

    def member(self, rows: Rows, in_bag: Counts, draw: np.random.Generator) -> Member:
        seen = np.flatnonzero(in_bag).astype(np.int32)
        search = self.search(rows, rows.weights * in_bag, draw)
        growth = grow_from(search, seen, int(draw.integers(2**62)), self.options)
        while growth.open:
            growth.step()
        tree = growth.grown().tree if self.options.max_leaves is None else ordered(growth, self.options).tree
        tree = tree.with_values(leaf_values(tree.values, None))
        out = np.flatnonzero(in_bag == 0)
        features = torch.from_numpy(rows.features[out])
        shares = summed(features, pack([tree], features.dtype), None, tree.nodes)
        if self.vote == "majority":
            votes = np.zeros_like(tree.values)
            votes[np.arange(tree.nodes), tree.values.argmax(1)] = 1
            tree = tree.with_values(votes)
        return Member(tree, in_bag, out, shares.argmax(1).numpy())

    def search(self, rows: Rows, weights: Floats, draw: np.random.Generator) -> Search:
        """What finds the questions of a tree."""
        tries = tried(self.features, rows.codes.features)
        if self.per == "tree":
            return _SomeFeatures(rows, weights, np.sort(draw.permutation(rows.codes.features)[:tries]))
        return rows.search(tries, weights)

    def scorer(self, problem: Problem, made: Sequence[Tree]) -> EnsembleScorer:
        return EnsembleScorer(made, device=problem.features.device, dtype=problem.features.dtype)


class ChanceTrees(Trees):
    """Trees whose questions are drawn."""

    def search(self, rows: Rows, weights: Floats, draw: np.random.Generator) -> Search:
        shared = rows.codes, rows.labels, weights, rows.classes, self.options.impurity, self.options.min_leaf
        return ChanceSearch(rows.features, *shared)


class _SomeFeatures(LevelSearch):
    """Thresholds of the features that were drawn for a whole tree."""

    def __init__(self, table: Rows, weights: Floats, features: NDArray[np.intp]) -> None:
        options, codes = table.options, table.codes.take(features)
        super().__init__(codes, table.labels, weights, table.classes, options.impurity, options.min_leaf)
        self.drawn, self.width = features, table.codes.features

    def finished(self, tree: Tree) -> Tree:
        feature = np.where(tree.feature >= 0, self.drawn[tree.feature], -1)
        return replace(tree, feature=feature, features=self.width)


def parted(solver: type[Bag[Any]], given: GrowOptions) -> tuple[TreeOptions, dict[str, Any]]:
    """The options of each tree, and those of the bag."""
    known_keywords(solver, given, FOREST_OPTIONS)
    of_a_tree: dict[str, Any] = {name: value for name, value in given.items() if name in OF_A_TREE}
    return TreeOptions(**of_a_tree), {name: value for name, value in given.items() if name not in OF_A_TREE}


class RandomForest(Bag[EnsembleScorer]):
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
        **options: Unpack[GrowOptions],
    ) -> None:
        self.options, rest = parted(type(self), options)
        super().__init__(trees, **rest)
        features = features_tried(features)
        check.choice("per", per, ("split", "tree"))
        self.features, self.per = features, per
        self.members = Trees(self.options, self.vote, features, per)


class RandomTrees(Bag[EnsembleScorer]):
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

    def __init__(self, trees: int = 100, **options: Unpack[GrowOptions]) -> None:
        known_keywords(type(self), options, FOREST_OPTIONS)
        self.options, rest = parted(type(self), options)
        super().__init__(trees, **{"replace": False, **rest})
        self.members = ChanceTrees(self.options, self.vote)
