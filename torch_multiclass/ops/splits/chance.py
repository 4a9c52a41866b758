"""Questions drawn without a look at the labels: a feature that varies, and a threshold between its ends."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from torch_multiclass.ops.splits.codes import Floats, Ints
from torch_multiclass.ops.splits.dense import TIE
from torch_multiclass.ops.splits.impurity import impurity
from torch_multiclass.ops.splits.levels import LevelSearch
from torch_multiclass.ops.splits.records import (
    STRIDE,
    Advance,
    Found,
    Index,
    Level,
    Limits,
    mixed,
    one_level,
)


class ChanceSearch(LevelSearch):
    """For each open node a feature of those that vary there, each as likely, and a threshold uniform between the values
    at its ends. A missing value goes with the heavier side, or to yes.

    Args:
        values: ``(M, D)``, of the features.
        others: as in `LevelSearch`.
    """

    def __init__(self, values: NDArray[np.floating], *others: Any) -> None:
        super().__init__(*others)
        self.values = values

    def advance(self, level: Level, limits: Limits) -> Advance:
        """Split the open nodes."""
        return one_level(self, level, limits)

    def split(self, level: Level, least: Floats) -> Found:
        """The questions drawn; what they lower is noted and not asked for."""
        nodes = len(level.keys)
        feature, threshold = np.full(nodes, -1), np.zeros(nodes)
        missing, decrease = np.ones(nodes, np.bool_), np.zeros(nodes)
        order = np.argsort(mixed(level.keys[:, None] + np.arange(self.codes.features, dtype=np.uint64) * STRIDE), 1)
        place = mixed(~level.keys).astype(np.float64) / 2.0**64
        todo = np.flatnonzero(((level.sums > 0).sum(1) > 1) & (level.sizes > 1))
        for turn in range(self.codes.features):
            if not len(todo):
                break
            found = self._cut(level, todo, order[todo, turn], place[todo])
            good = np.flatnonzero(found[0])
            at = todo[good]
            feature[at] = order[at, turn]
            threshold[at], missing[at], decrease[at] = (part[good] for part in found[1:])
            todo = todo[~found[0]]
        yes = np.zeros(nodes, np.int64)
        children = self._asked(level, feature, threshold, missing, yes)
        return Found(feature, threshold, missing, decrease, decrease, yes, children, np.full(nodes, -1))

    def _cut(
        self, level: Level, nodes: Index, features: Index, place: Floats
    ) -> tuple[NDArray[np.bool_], Floats, NDArray[np.bool_], Floats]:
        """Whether each node can be split by its feature, the threshold, the side of missing values, the decrease."""
        owner, rows = self._rows_of(level, nodes)
        column, starts = self.values[rows, features[owner]], level.sizes[nodes].cumsum() - level.sizes[nodes]
        known = ~np.isnan(column)
        low = np.minimum.reduceat(np.where(known, column, np.inf), starts)
        high = np.maximum.reduceat(np.where(known, column, -np.inf), starts)
        varies = low < high
        with np.errstate(invalid="ignore"):
            threshold = (low + place * (high.astype(np.float64) - low)).astype(self.codes.dtype)
        threshold = np.where(varies, np.where((threshold < high) & (threshold >= low), threshold, low), 0)
        first = known & (column <= threshold[owner])
        sums = self._sides(owner, rows, first, len(nodes))
        rest = self._sides(owner, rows, known & ~first, len(nodes))
        side = sums.sum(1) >= rest.sum(1) * (1 - TIE)
        unknown = level.sums[nodes] - sums - rest
        yes, no = sums + unknown * side[:, None], rest + unknown * ~side[:, None]
        on_yes, on_no, total = yes.sum(1), no.sum(1), level.sums[nodes].sum(1)
        lower = impurity(level.sums[nodes], total, self.kind)
        lower = (lower - impurity(yes, on_yes, self.kind) - impurity(no, on_no, self.kind)) / total
        heavy = np.minimum(on_yes, on_no) >= (self.min_leaf * (1 - TIE) if self.min_leaf > 1 else 0)
        return varies & heavy, threshold.astype(np.float64), side, lower

    def _sides(self, owner: Index, rows: Ints, some: NDArray[np.bool_], nodes: int) -> Floats:
        place = owner[some] * self.classes + self.labels[rows[some]]
        sums: Floats = np.bincount(place, self.weights[rows[some]], minlength=nodes * self.classes).astype(np.float64)
        return sums.reshape(nodes, -1)

    def _asked(self, level: Level, feature: Index, threshold: Floats, missing: NDArray[np.bool_], yes: Index) -> Ints:
        """The rows of the children; counts those on the side of yes."""
        owner = np.repeat(np.arange(len(feature)), level.sizes)
        kept = feature[owner] >= 0
        owner, rows = owner[kept], level.rows[kept]
        column = self.values[rows, feature[owner]]
        answers = np.where(np.isnan(column), missing[owner], column <= threshold[owner])
        yes[:] = np.bincount(owner[answers], minlength=len(yes))
        children: Ints = rows[np.argsort(2 * owner + ~answers, kind="stable")]
        return children
