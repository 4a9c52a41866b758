"""Growing a tree: level by level, and then in the order in which best-first growth splits its nodes."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torch_multiclass.ops.splits.codes import Floats
from torch_multiclass.ops.splits.dense import TIE
from torch_multiclass.ops.splits.records import Advance, Index, Level, Limits, Search
from torch_multiclass.ops.splits.tree import Tree


@dataclass(frozen=True)
class Grown:
    """A tree with what growing it showed; its `values` are the weights of the classes at each node."""

    tree: Tree
    decrease: Floats
    """``(N)``: of the impurity of each node that was split, by its question."""
    rank: Floats
    """``(N)``: by which it was chosen, before its share of the rows counts."""


@dataclass
class Growth:
    """A tree that grows by some levels at every step; the nodes that are open are its leaves meanwhile."""

    search: Search
    level: Level
    limits: Limits
    done: list[Advance] = field(default_factory=list)

    @property
    def open(self) -> bool:
        """Whether there is anything left to split."""
        return len(self.level.rows) > 0 and self.limits.levels != 0

    def step(self) -> None:
        """Split every open node that can be split."""
        advance = self.search.advance(self.level, self.limits)
        self.done.append(advance)
        self.level = advance.level
        if self.limits.levels is not None:
            self.limits = self.limits._replace(levels=self.limits.levels - advance.levels)

    def grown(self) -> Grown:
        """The tree so far, its nodes level by level."""
        found = [advance.found for advance in self.done]
        sums = np.concatenate([advance.sums for advance in self.done] + [self.level.sums])
        still = len(self.level.sums)
        none = np.full(still, -1)

        def all_of(name: str, last: NDArray[Any]) -> NDArray[Any]:
            return np.concatenate([*(getattr(part, name) for part in found), last])

        feature = all_of("feature", none)
        asks = np.flatnonzero(feature >= 0)
        yes, no = np.full(len(feature), -1), np.full(len(feature), -1)
        yes[asks] = 1 + 2 * np.arange(len(asks))
        no[asks] = yes[asks] + 1
        tree = Tree(
            feature,
            all_of("threshold", np.zeros(still)),
            all_of("missing", np.ones(still, np.bool_)),
            yes,
            no,
            sums,
            0,
            subset=all_of("subset", none),
        )
        decrease, rank = all_of("decrease", np.zeros(still)), all_of("rank", np.zeros(still))
        return Grown(self.search.finished(tree), decrease, rank)


def best_first(grown: Grown, weighted: bool = True, max_leaves: int | None = None) -> Grown:
    """The nodes in the order in which they come to be where each round splits the open node with the highest rank.

    Ranks count by the share of the rows at the node if ``weighted``. Of equal nodes the oldest is split. At
    ``max_leaves`` no more are.
    """
    tree = grown.tree
    mass = tree.values.sum(1)
    rank = grown.rank * (mass / mass[0] if weighted else 1.0)
    group = np.zeros(tree.nodes, np.int64)
    asks = np.flatnonzero(tree.feature >= 0)
    order = asks[np.argsort(rank[asks], kind="stable")]
    group[order] = np.cumsum(np.diff(rank[order], prepend=rank[order[:1]]) > TIE)
    yes, no, level, feature = tree.yes.tolist(), tree.no.tolist(), group.tolist(), tree.feature.tolist()
    old = [0]
    splits: list[int] = []
    heap = [(-level[0], 0)] if feature[0] >= 0 else []
    while heap and (max_leaves is None or len(splits) + 1 < max_leaves):
        _, node = heapq.heappop(heap)
        splits.append(node)
        for child in (yes[old[node]], no[old[node]]):
            if feature[child] >= 0:
                heapq.heappush(heap, (-level[child], len(old)))
            old.append(child)
    return reordered(grown, np.array(old), np.array(splits, np.int64))


def reordered(grown: Grown, old: Index, splits: Index) -> Grown:
    """The tree of the nodes ``old`` in that order; those numbered ``splits`` in it ask, the others are leaves.

    The children of the first that is split come after the root, those of the next after these.
    """
    tree = grown.tree
    asks = np.zeros(len(old), np.bool_)
    asks[splits] = True
    yes, no = np.full(len(old), -1), np.full(len(old), -1)
    new = np.full(tree.nodes, -1)
    new[old] = np.arange(len(old))
    yes[asks], no[asks] = new[tree.yes[old[asks]]], new[tree.no[old[asks]]]
    made = replace(
        tree,
        feature=np.where(asks, tree.feature[old], -1),
        threshold=np.where(asks, tree.threshold[old], 0.0),
        missing=tree.missing[old] | ~asks,
        yes=yes,
        no=no,
        values=tree.values[old],
        subset=np.where(asks, tree.subset[old], -1) if len(tree.subset) else tree.subset,
    )
    return Grown(made, np.where(asks, grown.decrease[old], 0.0), np.where(asks, grown.rank[old], 0.0))
