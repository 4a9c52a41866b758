"""Stumps and trees with a vote for every label at every leaf: the base classifiers of boosting."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from torch_multiclass.ops.splits.codes import Floats
from torch_multiclass.ops.splits.dense import TIE, Cut, DenseSearch
from torch_multiclass.ops.splits.layout import Layout
from torch_multiclass.ops.splits.tree import Index, Tree


@dataclass(frozen=True)
class Partition:
    """A tree whose leaves have no votes yet, and what they are to be made of."""

    tree: Tree
    """Its `values` are the sums of all nodes, ``(N, C)``, or ``P`` and ``N`` of the normaliser side by side."""
    leaf: Index
    """``(M)``: the node, a leaf, where each row ends."""
    gains: Floats
    """``(splits)``: how much each split lowered the criterion."""


def hamming_tree(search: DenseSearch, channels: Floats, criterion: int, leaves: int = 2) -> Partition:
    """The tree of at most so many leaves that best-first growth makes, by what each split lowers.

    With two leaves a stump; with one, or where no question is possible, the constant. Of equal splits that of the
    oldest node, lowest feature, lowest threshold, missing values as yes.

    Args:
        search: of the features.
        channels: as `DenseSearch.best` takes them.
        criterion: `EDGE` or `NORMALISER`.
        leaves: how many at most.
    """
    first = search.best(channels, criterion) if leaves > 1 else None
    layout = search.layout or Layout(channels.shape[1])
    sums = [layout.total(channels, criterion) if first is None else first.sums[0] + first.sums[1]]
    rows: list[Index | None] = [None]  # of each node; None: all
    cuts: list[Cut | None] = [first]  # the best of each leaf
    asked: dict[int, tuple[Cut, int]] = {}  # of the other nodes, and the first child
    leaf, gains = np.zeros(len(channels), np.int64), []
    while len(asked) + 1 < leaves:
        gain = [-math.inf if cut is None else cut.gain for cut in cuts]
        best = max(gain)
        if best == -math.inf:
            break
        node = next(i for i, one in enumerate(gain) if one >= best - TIE)
        cut, own, child = cuts[node], rows[node], len(rows)
        assert cut is not None
        asked[node], cuts[node] = (cut, child), None
        gains.append(cut.gain)
        yes = search.yes(cut, own)
        if own is None:
            np.subtract(child + 1, yes, out=leaf)
        else:
            leaf[own] = child + 1 - yes
        sums += [cut.sums[0], cut.sums[1]]
        more = len(asked) + 1 < leaves
        for kept in (yes, ~yes) if more else (None, None):
            side = None if kept is None else np.flatnonzero(kept) if own is None else own[kept]
            rows.append(side)
            cuts.append(None if side is None else search.best(channels, criterion, side))
    return Partition(_tree(asked, np.array(sums), search.codes.features), leaf, np.array(gains))


def _tree(asked: dict[int, tuple[Cut, int]], sums: Floats, features: int) -> Tree:
    """The tree of these questions."""
    nodes = len(sums)
    feature, yes, no = np.full((3, nodes), -1)
    threshold, missing = np.zeros(nodes), np.ones(nodes, np.bool_)
    for node, (cut, child) in asked.items():
        feature[node], threshold[node], missing[node] = cut.feature, cut.threshold, cut.missing
        yes[node], no[node] = child, child + 1
    return Tree(feature, threshold, missing, yes, no, sums, features)
