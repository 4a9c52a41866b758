"""What growing by levels hands on: open nodes, their questions, and who finds these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from torch_multiclass.ops.splits.codes import Floats, Ints
from torch_multiclass.ops.splits.tree import Tree

Index = NDArray[np.int64]
Keys = NDArray[np.uint64]

STRIDE = np.uint64(0xD1B54A32D192ED03)
"""Between the numbers that features are drawn by, as in ``native/tree.cpp``."""


@dataclass(frozen=True)
class Level:
    """Open nodes, one after the other."""

    rows: Ints
    """``(n)``, those of a node together."""
    starts: Index
    """``(A + 1)``: where the rows of each node begin."""
    keys: Keys
    """``(A)``: what draws the features of each."""
    sums: Floats
    """``(A, K)``: the weight of each class."""

    @property
    def sizes(self) -> Index:
        """``(A)``: how many rows each node has."""
        return np.diff(self.starts)


class Cuts(NamedTuple):
    """The best cut of each open node, ``(A)`` each, in codes."""

    feature: Ints
    """-1 where there is none."""
    below: Ints
    """The last code on the side of yes."""
    above: Ints
    """The first code on the other; after the last one where only missing values are there."""
    side: NDArray[np.bool_]
    """Whether missing values are on the side of yes."""
    decrease: Floats
    """Of the impurity of the node."""
    yes: Index
    """How many rows go to the side of yes."""
    children: Ints
    """Rows of the children of the nodes with a cut, yes before no."""


class Found(NamedTuple):
    """The question of each open node, ``(A)`` each, as a `Tree` has them, and the rows of the children."""

    feature: Index
    """-1 where there is none."""
    threshold: Floats
    missing: NDArray[np.bool_]
    decrease: Floats
    """Of the impurity of the node."""
    rank: Floats
    """By which nodes are chosen: the decrease, or what a longer look shows."""
    yes: Index
    """How many rows go to the side of yes."""
    children: Ints
    """Rows of the children of the nodes with a question, yes before no."""
    subset: Index
    """Which set of categories is asked about, -1 where none is."""


class Limits(NamedTuple):
    """How far a tree may grow."""

    min_decrease: float = 0.0
    """What a question lowers at least."""
    total: float = 0.0
    """Nodes count by their share of this weight; 0: all alike."""
    levels: int | None = None
    """How many levels may be split."""


class Advance(NamedTuple):
    """What some levels have come to."""

    found: Found
    """Of the nodes that were open, and of their descendants that are not any more."""
    sums: Floats
    """Of the same nodes, the weight of each class."""
    level: Level
    """The nodes that are open now."""
    levels: int
    """How many levels were split."""


class Search(Protocol):
    """What finds the questions of open nodes."""

    def root(self, rows: Ints, seed: int = 0) -> Level:
        """All rows in one node."""

    def split(self, level: Level, least: Floats) -> Found:
        """The best question of each node."""

    def children(self, level: Level, found: Found) -> Level:
        """The nodes where the answers lead."""

    def advance(self, level: Level, limits: Limits) -> Advance:
        """Split the open nodes, and perhaps their children."""

    def finished(self, tree: Tree) -> Tree:
        """The tree with what its questions refer to."""


def one_level(search: Search, level: Level, limits: Limits) -> Advance:
    """Split the open nodes."""
    share = level.sums.sum(1) / limits.total if limits.total else np.ones(len(level.keys))
    found = search.split(level, limits.min_decrease / share)
    return Advance(found, level.sums, search.children(level, found), 1)


def mixed(keys: Keys) -> Keys:
    """Numbers that have nothing to do with each other, as ``mixed`` in ``native/split.h``."""
    with np.errstate(over="ignore"):
        keys = keys + np.uint64(0x9E3779B97F4A7C15)
        keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return keys ^ (keys >> np.uint64(31))
