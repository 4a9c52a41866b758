r"""Cost-complexity pruning: the weakest links of a grown tree, one after the other, down to its root.

For the tree ``T`` below a node ``n`` with ``|T|`` leaves, ``r = (|n| F(n) - sum_leaves |n'| F(n')) / (|T| - 1)`` is the
price of a leaf at which cutting there is as good as keeping: ``sum_leaves |n'| F(n') + strength |T|`` is then equal.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from torch_multiclass.ops.splits.codes import Floats
from torch_multiclass.ops.splits.grow import Grown, reordered
from torch_multiclass.ops.splits.impurity import impurity
from torch_multiclass.ops.splits.tree import Index, Tree

EQUAL = 1e-9
"""Links whose strengths differ by less are cut at once."""


@dataclass(frozen=True)
class Path:
    """The nested trees: from `strengths[k]` on, that of `leaves[k]` leaves is the best."""

    strengths: Floats
    leaves: Index
    cut: Floats
    """``(N)``: from which strength on each node does not ask; infinite at leaves, which never do."""


def pruning_path(tree: Tree, kind: str) -> Path:
    """The path of a tree whose values are the weights of the classes, by an impurity."""
    cost = impurity(tree.values, tree.values.sum(1), kind)
    asks = tree.feature >= 0
    below, leaves = np.where(asks, 0.0, cost), np.where(asks, 0, 1)
    parent, depths = tree.parents, tree.depths
    for level in range(int(depths.max(initial=0)), 0, -1):
        nodes = np.flatnonzero(depths == level)
        np.add.at(below, parent[nodes], below[nodes])
        np.add.at(leaves, parent[nodes], leaves[nodes])
    own, under, count = cost.tolist(), below.tolist(), leaves.tolist()
    up, yes, no, depth = parent.tolist(), tree.yes.tolist(), tree.no.tolist(), depths.tolist()
    open_ = asks.tolist()
    cut = np.full(tree.nodes, np.inf)

    def strength(node: int) -> float:
        return float((own[node] - under[node]) / (count[node] - 1))

    links = [(strength(node), node) for node in np.flatnonzero(asks).tolist()]
    heapq.heapify(links)
    strengths, sizes = [0.0], [count[0]]
    while open_[0]:
        weakest, node = heapq.heappop(links)
        if not open_[node] or weakest != strength(node):
            continue
        if weakest > strengths[-1] + EQUAL:
            strengths.append(weakest)
            sizes.append(count[0])
        together = [node]
        while links and links[0][0] <= strengths[-1] + EQUAL:
            value, other = heapq.heappop(links)
            if open_[other] and value == strength(other):
                together.append(other)
        for node in sorted(together, key=depth.__getitem__):  # ancestors first
            if not open_[node]:
                continue
            saved, fewer = own[node] - under[node], count[node] - 1
            gone = [node]
            while gone:
                at = gone.pop()
                if open_[at]:
                    open_[at], cut[at] = False, strengths[-1]
                    gone += [yes[at], no[at]]
            while node >= 0:
                under[node] += saved
                count[node] -= fewer
                if open_[node]:
                    heapq.heappush(links, (strength(node), node))
                node = up[node]
        sizes[-1] = count[0]
    return Path(np.array(strengths), np.array(sizes), cut)


def pruned(grown: Grown, path: Path, strength: float) -> Grown:
    """The tree that is best at a strength, in the order of its nodes."""
    tree = grown.tree
    asks = (tree.feature >= 0) & (path.cut > strength + EQUAL)
    kept = np.zeros(tree.nodes, np.bool_)
    kept[0] = True
    level = np.flatnonzero(asks[:1])
    while len(level):
        children = np.concatenate([tree.yes[level], tree.no[level]])
        kept[children] = True
        level = children[asks[children]]
    old = np.flatnonzero(kept)
    return reordered(grown, old, np.flatnonzero(asks[old]))
