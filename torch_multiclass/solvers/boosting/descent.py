"""Where the rows of a sample end in a tree, in the precision in which it was grown."""

from __future__ import annotations

from typing import Any

import numpy as np

from torch_multiclass.ops.splits.tree import Index, Tree


def leaf_of(tree: Tree, table: np.ndarray[Any, Any]) -> Index:
    """The leaf of each row ``(M, D)`` of a tree that asks for thresholds of single features."""
    leaf = np.zeros(len(table), np.int64)
    for node in np.flatnonzero(tree.feature >= 0):  # children come after their parents
        here = np.flatnonzero(leaf == node)
        values = table[here, tree.feature[node]]
        yes = np.where(np.isnan(values), tree.missing[node], values <= tree.threshold[node])
        leaf[here] = np.where(yes, tree.yes[node], tree.no[node])
    return leaf
