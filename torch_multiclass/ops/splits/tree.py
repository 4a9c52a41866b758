"""A tree as arrays: what growing makes, what pruning cuts, and what a scorer holds."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from torch_multiclass.ops.splits.codes import Floats

Index = NDArray[np.int64]

NO_POINTS, NO_SUBSET, NO_SUBSETS = np.zeros((0, 0)), np.zeros(0, np.int64), np.zeros((0, 1), np.bool_)


@dataclass(frozen=True)
class Tree:
    """Nodes in the order in which they were made, the root first; children come after their parents.

    A node asks whether the value of its `feature` is at most its `threshold`. From ``D`` on, features are inner
    products with `directions`, then distances from `centres`. Of a categorical feature, `subset` is the row of
    `subsets` that says which categories are a yes, and in its last column whether an unknown one is; elsewhere -1.
    """

    feature: Index
    """``(N)``; -1 at a leaf."""
    threshold: Floats
    """``(N)``."""
    missing: NDArray[np.bool_]
    """``(N)``: whether a missing value is a yes."""
    yes: Index
    """``(N)``: the child where the answer is yes; -1 at a leaf."""
    no: Index
    """``(N)``."""
    values: Floats
    """``(N, K)``: what a row gets whose leaf this is."""
    features: int
    """``D``."""
    directions: Floats = field(default_factory=lambda: NO_POINTS)
    """``(H, D)``."""
    centres: Floats = field(default_factory=lambda: NO_POINTS)
    """``(S, D)``."""
    subset: Index = field(default_factory=lambda: NO_SUBSET)
    """``(N)``, or nothing where no question is about categories."""
    subsets: NDArray[np.bool_] = field(default_factory=lambda: NO_SUBSETS)
    """``(Q, categories + 1)``."""

    @property
    def nodes(self) -> int:
        """``N``."""
        return len(self.feature)

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """``(N)``."""
        return self.feature < 0

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return int(np.count_nonzero(self.feature < 0))

    @property
    def parents(self) -> Index:
        """``(N)``: the parent of each node; -1 at the root."""
        parent = np.full(self.nodes, -1)
        inner = np.flatnonzero(self.feature >= 0)
        parent[self.yes[inner]] = inner
        parent[self.no[inner]] = inner
        return parent

    @property
    def depths(self) -> Index:
        """``(N)``: how many questions come before each node."""
        depth = np.zeros(self.nodes, np.int64)
        level = np.zeros(1, np.int64)
        while len(level):
            inner = level[self.feature[level] >= 0]
            children = np.concatenate([self.yes[inner], self.no[inner]])
            depth[children] = np.tile(depth[inner] + 1, 2)
            level = children
        return depth

    def with_values(self, values: Floats) -> Tree:
        """The same questions with other values ``(N, K)``."""
        asked = self.feature, self.threshold, self.missing, self.yes, self.no
        return Tree(*asked, values, self.features, self.directions, self.centres, self.subset, self.subsets)


def single(values: Floats, features: int) -> Tree:
    """A tree of one leaf, which gives every row the values ``(K)``."""
    none = np.full(1, -1)
    return Tree(none, np.zeros(1), np.ones(1, np.bool_), none, none, values[None], features)
