"""How trees and forests were grown, and what they look like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.ops.splits.grow import Grown
from torch_multiclass.ops.splits.prune import pruning_path
from torch_multiclass.solvers.report import Report


class Split(NamedTuple):
    """A question, and what it did when the tree was grown."""

    feature: int
    """From ``D`` on, the number of an inner product, then of a distance."""
    threshold: float
    decrease: float
    """Of the impurity of its node."""
    node: int
    """Nodes are numbered as they come to be, the root 0."""
    missing: bool
    """Whether a missing value is a yes."""
    question: str
    """In words."""


class Cut(NamedTuple):
    """A tree of the pruning path."""

    strength: float
    """From which on it is the best."""
    leaves: int


@dataclass(frozen=True, kw_only=True)
class TreeReport(Report):
    """How a tree was grown.

    ``splits`` are those of the tree that was returned, in the order in which they were made; ``path`` is that of the
    tree before it was pruned.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, figure 9.3 and (9.15).

    Example:
        >>> import torch
        >>> from torch_multiclass.solvers import DecisionTree
        >>> report = DecisionTree().fit(torch.arange(4.0)[:, None], torch.tensor([0, 0, 1, 1])).report
        >>> [(split.feature, split.threshold, split.decrease) for split in report.splits]
        [(0, 1.5, 0.5)]
    """

    grown: Grown = field(repr=False)
    """The tree that was returned, with the weights of the classes at every node."""
    unpruned: Grown = field(repr=False)
    impurity: str
    """Of the path."""
    strength: float
    """At which the tree was pruned; 0 where it was not."""
    validation: list[tuple[float, float]] = field(repr=False)
    """``(strength, error)`` by cross-validation."""

    @property
    def leaves(self) -> int:
        """How many leaves the tree has."""
        return self.grown.tree.leaves

    @property
    def depth(self) -> int:
        """How many questions at most lead to a leaf."""
        return int(self.grown.tree.depths.max())

    @cached_property
    def splits(self) -> list[Split]:
        """The questions."""
        tree = self.grown.tree
        return [
            Split(
                int(tree.feature[node]),
                float(tree.threshold[node]),
                float(self.grown.decrease[node]),
                int(node),
                bool(tree.missing[node]),
                question(self.grown, int(node)),
            )
            for node in self._order()
        ]

    def _order(self) -> list[int]:
        """The nodes that ask, in the order in which their children came to be."""
        tree = self.grown.tree
        asks = np.flatnonzero(tree.feature >= 0)
        return [int(node) for node in asks[np.argsort(tree.yes[asks])]]

    @cached_property
    def path(self) -> list[Cut]:
        """The nested trees of cost-complexity pruning, from the whole tree down to its root."""
        path = pruning_path(self.unpruned.tree, self.impurity)
        return [Cut(float(s), int(n)) for s, n in zip(path.strengths, path.leaves, strict=True)]

    def text(self, names: Sequence[str] | None = None, labels: Sequence[str] | None = None) -> str:
        """The tree, a line a node.

        Args:
            names: of the features.
            labels: of the classes.
        """
        return "\n".join(lines(self.grown, names, labels))

    def says(self, node: int, names: Sequence[str] | None = None, labels: Sequence[str] | None = None) -> str:
        """A node in words; `torch_multiclass.plots.tree` draws all of them."""
        return says(self.grown, node, names, labels)


@dataclass(frozen=True, kw_only=True)
class ForestReport(Report):
    """How a forest was grown.

    Reference: Breiman (2001), *Random forests*, §3.1, for the out-of-bag error.

    Example:
        >>> import torch
        >>> from torch_multiclass.solvers import RandomForest
        >>> report = RandomForest(trees=5).fit(torch.arange(20.0)[:, None], (torch.arange(20) > 9).long()).report
        >>> report.in_bag.shape, 0 <= report.oob_error <= 1
        (torch.Size([5, 20]), True)
    """

    trees: int
    """How many there are."""
    oob_error: float
    """The share of rows, by weight, that the vote of the trees that did not see them gets wrong; rows that every tree
    saw are left out. NaN where all are."""
    oob_rows: int
    """How many rows some tree did not see."""
    in_bag: Tensor = field(repr=False)
    """``(trees, M)``: how often each tree saw each of the rows that count."""


def question(grown: Grown, node: int, names: Sequence[str] | None = None) -> str:
    """What a node asks, in words."""
    tree = grown.tree
    feature, threshold = int(tree.feature[node]), float(tree.threshold[node])
    width, turned = tree.features, len(tree.directions)
    if feature >= width + turned:
        centre = ", ".join(f"{x:.4g}" for x in tree.centres[feature - width - turned])
        return f"|x - ({centre})| <= {threshold:.6g}"
    if feature >= width:
        weights = tree.directions[feature - width]
        terms = " + ".join(f"{w:.4g} {_name(j, names)}" for j, w in enumerate(weights) if w)
        return f"{terms} <= {threshold:.6g}"
    if len(tree.subset) and tree.subset[node] >= 0:
        among = np.flatnonzero(tree.subsets[tree.subset[node], :-1])
        return f"{_name(feature, names)} in {{{', '.join(map(str, among))}}}"
    if np.isinf(threshold):
        return f"{_name(feature, names)} is known"
    return f"{_name(feature, names)} <= {threshold:.6g}"


def _name(feature: int, names: Sequence[str] | None) -> str:
    return f"x{feature}" if names is None else names[feature]


def lines(grown: Grown, names: Sequence[str] | None = None, labels: Sequence[str] | None = None) -> list[str]:
    """A line for each node, children below their parents."""
    tree = grown.tree
    made: list[str] = []
    todo = [(0, "", "", "")]
    while todo:
        node, lead, below, answer = todo.pop()
        made.append(f"{lead}{answer}{says(grown, node, names, labels)}")
        if tree.feature[node] >= 0:
            todo.append((int(tree.no[node]), f"{below}└─ ", f"{below}   ", "no: "))
            todo.append((int(tree.yes[node]), f"{below}├─ ", f"{below}│  ", "yes: "))
    return made


def says(grown: Grown, node: int, names: Sequence[str] | None = None, labels: Sequence[str] | None = None) -> str:
    """A node in words: its question, or its class with its share; and how much weight it has."""
    tree = grown.tree
    if names is not None and len(check.label_names("names", names)) != tree.features:
        raise ValueError(f"names: got {len(names)}; accepted is one for each feature, {tree.features}")
    if labels is not None and len(check.label_names("labels", labels)) != tree.values.shape[1]:
        raise ValueError(f"labels: got {len(labels)}; accepted is one for each class, {tree.values.shape[1]}")
    sums = tree.values[node]
    total, best = sums.sum(), int(sums.argmax())
    if tree.feature[node] < 0:
        label = f"class {best}" if labels is None else labels[best]
        return f"{label} ({100 * sums[best] / total:.3g} % of {total:.6g} rows)"
    side = "yes" if tree.missing[node] else "no"
    return f"{question(grown, node, names)} ({total:.6g} rows, decrease {grown.decrease[node]:.4g}, missing: {side})"
