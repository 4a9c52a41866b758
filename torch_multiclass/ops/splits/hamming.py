"""Stumps and trees with a vote for every label at every leaf: the base classifiers of boosting."""

from __future__ import annotations

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
    rows: list[Index | None] = [None]  # of each node; None: all
    first = search.best(channels, criterion) if leaves > 1 else None
    cuts: list[Cut | None] = [first]
    asked: list[Cut | None] = [None]
    children = [(-1, -1)]
    layout = search.layout or Layout(channels.shape[1])
    leaf = np.zeros(len(channels), np.int64)
    sums = [layout.total(channels, criterion) if first is None else first.sums.sum(0)]
    gains: list[float] = []
    while len(gains) + 1 < leaves:
        gain = np.array([-np.inf if cut is None else cut.gain for cut in cuts])
        if gain.max() == -np.inf:
            break
        node = int(np.argmax(gain >= gain.max() - TIE))
        cut, own = cuts[node], rows[node]
        assert cut is not None
        gains.append(cut.gain)
        yes, more = search.yes(cut, own), len(gains) + 1 < leaves
        children[node], cuts[node], asked[node] = (len(rows), len(rows) + 1), None, cut
        leaf[slice(None) if own is None else own] = np.where(yes, len(rows), len(rows) + 1)
        sums += list(cut.sums)
        for kept in (yes, ~yes) if more else (None, None):
            side = None if kept is None else np.flatnonzero(kept) if own is None else own[kept]
            rows.append(side)
            cuts.append(None if side is None else search.best(channels, criterion, side))
            children.append((-1, -1))
            asked.append(None)
    yes_child, no_child = np.array(children, np.int64).T
    tree = Tree(
        np.array([-1 if cut is None else cut.feature for cut in asked], np.int64),
        np.array([0.0 if cut is None else cut.threshold for cut in asked]),
        np.array([True if cut is None else cut.missing for cut in asked]),
        yes_child,
        no_child,
        np.array(sums),
        search.codes.features,
    )
    return Partition(tree, leaf, np.array(gains))
