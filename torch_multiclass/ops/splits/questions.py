"""Questions beyond thresholds, and a look at what comes after a question: node by node, for data of moderate size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from torch_multiclass.ops.splits.codes import Floats, Ints, encode
from torch_multiclass.ops.splits.dense import TIE
from torch_multiclass.ops.splits.descend import distances
from torch_multiclass.ops.splits.impurity import impurity
from torch_multiclass.ops.splits.levels import LevelSearch
from torch_multiclass.ops.splits.oblique import apart, directions
from torch_multiclass.ops.splits.records import Advance, Found, Index, Level, Limits, one_level
from torch_multiclass.ops.splits.subsets import tables
from torch_multiclass.ops.splits.tree import Tree

Mask = NDArray[np.bool_]

FAR = 1 << 40
"""Distances are numbered from here on until it is known how many inner products there are."""

AT_ONCE = 1 << 20
"""Rows of children that are looked at together."""


class Question(NamedTuple):
    """A question about the rows of a node."""

    feature: int
    threshold: float
    missing: bool
    yes: Mask
    """``(n)``: the answers."""
    about: Floats | None = None
    """The direction, or the centre."""
    among: Mask | None = None
    """The row of the table of categories."""


@dataclass(frozen=True)
class Options:
    """Questions of one kind about one feature, in the order in which equal ones are preferred."""

    decrease: Floats
    """-inf where a question is not allowed."""
    question: Callable[[int], Question]


class QuestionSearch:
    """Finds the best question of each node, of several kinds, and by a longer look if asked to.

    Args:
        base: finds thresholds; its codes have all features.
        features: ``(M, D)``.
        kinds: of questions.
        categorical: the features with categories.
        draws: how many random directions and centres are tried at a node.
        look_ahead: 1, or 2.
    """

    def __init__(
        self,
        base: LevelSearch,
        features: NDArray[np.floating],
        kinds: Sequence[str],
        categorical: Sequence[int],
        draws: int,
        look_ahead: int,
    ) -> None:
        self.all, self.features, self.kinds = base, features, kinds
        self.draws, self.look_ahead, self.categorical = draws, look_ahead, sorted(set(categorical))
        self.numeric = np.setdiff1d(np.arange(features.shape[1]), self.categorical)
        self.codes = base.codes.take(self.numeric)
        self.base = LevelSearch(self.codes, base.labels, base.weights, base.classes, base.kind, base.min_leaf)
        asked = "threshold" in kinds and len(self.numeric)
        self.thresholds = self.base if asked else None
        self.directions: list[Floats] = []
        self.centres: list[Floats] = []
        self.tables: list[Mask] = []

    def root(self, rows: Ints, seed: int = 0) -> Level:
        """All rows in one node."""
        return self.all.root(rows, seed)

    def children(self, level: Level, found: Found) -> Level:
        """The nodes where the answers lead."""
        return self.all.children(level, found)

    def advance(self, level: Level, limits: Limits) -> Advance:
        """Split the open nodes."""
        return one_level(self, level, limits)

    def finished(self, tree: Tree) -> Tree:
        """The tree with the directions, centres and sets of categories that its questions are about."""
        width = self.features.shape[1]
        columns = max((len(table) for table in self.tables), default=1)
        subsets = np.zeros((len(self.tables), columns), np.bool_)
        for row, table in zip(subsets, self.tables, strict=True):
            row[:] = table[-1]
            row[: len(table) - 1] = table[:-1]
        feature = np.where(tree.feature >= FAR, tree.feature - FAR + width + len(self.directions), tree.feature)
        return replace(
            tree,
            feature=feature,
            features=width,
            directions=np.array(self.directions).reshape(-1, width),
            centres=np.array(self.centres).reshape(-1, width),
            subsets=subsets,
        )

    def split(self, level: Level, least: Floats) -> Found:
        """The best question of each node."""
        chosen = [self._choose(level, node, least[node]) for node in range(len(level.keys))]
        asked = [(0.0, 0.0, None) if one is None else one for one in chosen]
        questions = [question for _, _, question in asked]
        children, subset = [], np.full(len(questions), -1)
        feature = np.full(len(questions), -1)
        for node, question in enumerate(questions):
            if question is not None:
                rows = level.rows[level.starts[node] : level.starts[node + 1]]
                children += [rows[question.yes], rows[~question.yes]]
                feature[node], subset[node] = self._keep(question)
        return Found(
            feature,
            np.array([0.0 if q is None else q.threshold for q in questions]),
            np.array([True if q is None else q.missing for q in questions]),
            np.array([decrease for decrease, _, _ in asked]),
            np.array([rank for _, rank, _ in asked]),
            np.array([0 if q is None else int(q.yes.sum()) for q in questions]),
            np.concatenate(children) if children else level.rows[:0],
            subset,
        )

    def _keep(self, question: Question) -> tuple[int, int]:
        """The feature and the set of a question, with what it is about put by."""
        width = self.features.shape[1]
        if question.among is not None:
            self.tables.append(question.among)
            return question.feature, len(self.tables) - 1
        if question.about is None:
            return question.feature, -1
        kept = self.centres if question.feature >= FAR else self.directions
        kept.append(question.about)
        return (FAR if question.feature >= FAR else width) + len(kept) - 1, -1

    def _choose(self, level: Level, node: int, least: float) -> tuple[float, float, Question] | None:
        """The decrease, the rank and the question that is best for a node."""
        rows = level.rows[level.starts[node] : level.starts[node + 1]]
        if (level.sums[node] > 0).sum() < 2:
            return None
        best: tuple[float, float, Question] | None = None
        for options in self._options(rows, int(level.keys[node])):
            decrease = np.where(options.decrease >= least - TIE, options.decrease, -np.inf)
            rank = self._ranks(rows, options, decrease) if self.look_ahead == 2 else decrease
            highest = rank.max(initial=-np.inf)
            if highest == -np.inf or (best is not None and highest <= best[1] + TIE):
                continue
            at = int(np.argmax(rank >= highest - TIE))
            best = float(decrease[at]), float(highest), options.question(at)
        return best

    def _ranks(self, rows: Ints, options: Options, decrease: Floats) -> Floats:
        """The decreases, and the best of both children by their shares, for every question that is allowed."""
        rank, weights = decrease.copy(), self.base.weights
        allowed = np.flatnonzero(decrease > -np.inf)
        step = max(1, AT_ONCE // len(rows))
        for first in range(0, len(allowed), step):
            some = allowed[first : first + step]
            sides = [side for at in some for yes in [options.question(int(at)).yes] for side in (rows[yes], rows[~yes])]
            shares = np.array([weights[side].sum() for side in sides]) / weights[rows].sum()
            rank[some] += (shares * self._best_decreases(sides)).reshape(-1, 2).sum(1)
        return rank

    def _best_decreases(self, nodes: list[Ints]) -> Floats:
        """Of the best question of each node, looked at by itself; 0 where there is none."""
        starts = np.concatenate([[0], np.cumsum([len(rows) for rows in nodes])])
        rows = np.concatenate(nodes)
        best = np.zeros(len(nodes))
        if self.thresholds is not None:
            keys = np.zeros(len(nodes), np.uint64)
            level = Level(rows, starts, keys, self.base.sums(rows, starts))
            found = self.thresholds.advance(level, Limits(levels=1)).found
            best = np.where(found.feature >= 0, np.maximum(found.decrease, 0), 0)
        for at, node in enumerate(nodes):
            for options in self._others(node, at):
                best[at] = max(best[at], options.decrease.max(initial=0.0))
        return best

    # ------------------------------------------------------------------------------------------ what can be asked
    def _options(self, rows: Ints, key: int) -> Iterator[Options]:
        """All questions about a node; of thresholds the best alone, where no longer look is asked for."""
        thresholds: Iterator[Options] = iter(())
        if self.thresholds is not None:
            thresholds = self._every_threshold(rows) if self.look_ahead == 2 else self._best_threshold(rows)
        return chain(thresholds, self._others(rows, key))

    def _others(self, rows: Ints, key: int) -> Iterator[Options]:
        if "subset" in self.kinds:
            for feature in self.categorical:
                yield self._subsets(rows, feature)
        draw = np.random.default_rng(key)
        if "hyperplane" in self.kinds:
            yield from self._oblique(rows, self._directions(rows, draw), False)
        if "sphere" in self.kinds:
            yield from self._oblique(rows, self._centres(rows, draw), True)

    def _best_threshold(self, rows: Ints) -> Iterator[Options]:
        assert self.thresholds is not None
        level = self.base.root(rows)
        found = self.thresholds.advance(level, Limits(levels=1)).found
        if found.feature[0] >= 0:
            feature = int(self.numeric[found.feature[0]])
            yield Options(
                found.decrease, lambda _: self._threshold(rows, feature, found.threshold[0], found.missing[0])
            )

    def _every_threshold(self, rows: Ints) -> Iterator[Options]:
        for feature, codes in zip(self.numeric.tolist(), self.codes.codes, strict=True):
            yield self._along(rows, codes[rows], feature, self.all.codes.threshold, None)

    def _threshold(self, rows: Ints, feature: int, threshold: float, missing: bool) -> Question:
        column = self.features[rows, feature]
        yes = np.where(np.isnan(column), missing, column <= threshold)
        return Question(feature, threshold, missing, yes)

    def _along(
        self,
        rows: Ints,
        codes: Ints,
        feature: int,
        threshold: Callable[[int, int, int], float],
        of: Floats | None,
        asked: int | None = None,
    ) -> Options:
        """All cuts along the codes of some rows; ``threshold`` knows them by ``feature``, the tree by ``asked``."""
        count = int(self.all.codes.counts[feature]) if of is None else int(codes.max(initial=-1)) + 1
        unknown = codes == count if of is None else codes < 0
        present = np.unique(codes[~unknown])
        place = np.where(unknown, len(present), np.searchsorted(present, codes))
        sums = self._sums(place, rows, len(present) + 1)
        left, missing = sums[:-1].cumsum(0), sums[-1]
        later = np.zeros_like(left)
        later[:-1] = sums[-2:0:-1].cumsum(0)[::-1]
        decrease = np.stack([self._decrease(left + missing, later), self._decrease(left, later + missing)], 1)
        if not unknown.any():
            decrease[:, 1] = -np.inf
        flat = decrease.ravel()

        def question(at: int) -> Question:
            cut, side = at // 2, at % 2 == 0
            yes = np.where(unknown, side, place <= cut)
            if not unknown.any():
                side = self._heavier(rows, yes)
            above = int(present[cut + 1]) if cut + 1 < len(present) else count
            limit = threshold(feature, int(present[cut]), above)
            return Question(feature if asked is None else asked, limit, side, yes, of)

        return Options(flat, question)

    def _subsets(self, rows: Ints, feature: int) -> Options:
        """The sets of the categories of a feature that are worth asking for."""
        column = self.features[rows, feature]
        unknown = np.isnan(column)
        present = np.unique(column[~unknown]).astype(np.int64)
        place = np.where(unknown, len(present), np.searchsorted(present, column))
        sums = self._sums(place, rows, len(present) + 1)
        sets = tables(sums[:-1])
        yes, missing = sets @ sums[:-1], sums[-1]
        no = ~sets @ sums[:-1]
        decrease = np.stack([self._decrease(yes + missing, no), self._decrease(yes, no + missing)], 1)
        if not unknown.any():
            decrease[:, 1] = -np.inf

        def question(at: int) -> Question:
            among, side = sets[at // 2], at % 2 == 0
            answers = np.append(among, side)[place]
            heavier = self._heavier(rows, answers)
            table = np.full(int(self.all.codes.upper[feature].max(initial=0)) + 2, heavier)
            table[present] = among
            return Question(feature, 0.0, side if unknown.any() else heavier, answers, among=table)

        return Options(decrease.ravel(), question)

    def _oblique(self, rows: Ints, of: NDArray[np.floating], far: bool) -> Iterator[Options]:
        """Thresholds of inner products with directions, or of distances from centres."""
        if not len(of):
            return
        points, vectors = torch.from_numpy(self.features[rows]), torch.from_numpy(of)
        values = distances(points, vectors) if far else points @ vectors.mT
        sizes = values.abs() if far else points.abs() @ vectors.abs().mT
        rounding = 16 * self.features.shape[1] * np.finfo(of.dtype).eps * sizes.nan_to_num().amax(0)
        for vector, column, error in zip(of, values.numpy().T, rounding.tolist(), strict=True):
            column = apart(column, error)
            codes = encode(column[:, None])
            line = np.where(np.isnan(column), -1, codes.codes[0])
            feature = FAR if far else self.features.shape[1]
            yield self._along(rows, line, 0, codes.threshold, vector.astype(np.float64), feature)

    def _directions(self, rows: Ints, draw: np.random.Generator) -> NDArray[np.floating]:
        labels, weights = self.base.labels[rows], self.base.weights[rows]
        made = directions(self.features[rows].astype(np.float64), labels, weights, self.draws, draw)
        return np.asarray(made.astype(self.features.dtype))

    def _centres(self, rows: Ints, draw: np.random.Generator) -> NDArray[np.floating]:
        """Rows of the node with all values known."""
        known = rows[~np.isnan(self.features[rows]).any(1)]
        return np.asarray(self.features[draw.permutation(known)[: self.draws]])

    # ------------------------------------------------------------------------------------------ sums
    def _sums(self, place: Index, rows: Ints, size: int) -> Floats:
        """The weight of each class at each of ``size`` places, ``(size, K)``."""
        classes = self.base.classes
        flat = place * classes + self.base.labels[rows]
        sums = np.bincount(flat, self.base.weights[rows], minlength=size * classes).astype(np.float64)
        return sums.reshape(size, classes)

    def _decrease(self, yes: Floats, no: Floats) -> Floats:
        """How much questions lower the impurity; -inf where one is not allowed."""
        kind, least = self.base.kind, self.base.min_leaf * (1 - TIE) if self.base.min_leaf > 1 else 0.0
        on_yes, on_no, both = yes.sum(-1), no.sum(-1), yes + no
        total = both.sum(-1)
        lower = impurity(both, total, kind) - impurity(yes, on_yes, kind) - impurity(no, on_no, kind)
        lighter = np.minimum(on_yes, on_no)
        return np.where((lighter > 0) & (lighter >= least), lower / np.where(total > 0, total, 1), -np.inf)

    def _heavier(self, rows: Ints, yes: Mask) -> bool:
        weights = self.base.weights[rows]
        return bool(2 * weights[yes].sum() >= weights.sum() * (1 - TIE))
