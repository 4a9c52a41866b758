"""The best cuts of all open nodes of a tree, for rows with one label each: what a level of a decision tree asks for."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torch_multiclass.ops import _native
from torch_multiclass.ops.splits.codes import Codes, Floats, Ints
from torch_multiclass.ops.splits.dense import TIE
from torch_multiclass.ops.splits.impurity import IMPURITIES, impurity
from torch_multiclass.ops.splits.native import address
from torch_multiclass.ops.splits.records import (
    STRIDE,
    Advance,
    Cuts,
    Found,
    Index,
    Keys,
    Level,
    Limits,
    mixed,
    one_level,
)
from torch_multiclass.ops.splits.tree import Tree

pack_grow = struct.Struct("@9q3d14q").pack
"""The fields of ``TmGrow`` in ``native/split.h``."""

GIVEN = (np.int32, np.int32, np.int32, np.float64)
MADE = (np.uint8, np.int32, np.int32, np.int64, np.uint64, np.float64, *(np.int32,) * 3, np.bool_, np.float64, np.int64)
"""The dtypes of its arrays, those that are read and those that are written."""

BUDGET = 1 << 24
"""How many codes the library reads before it gives the word back: some tenths of a second."""

CELLS = 1 << 18
"""How many sums are kept at a time: about what the cache holds."""


class LevelSearch:
    """Finds the cut of each open node that lowers the impurity most.

    Of equal ones the lowest feature, then the lowest threshold, then missing values as yes. Where no row of a node
    misses the feature, a missing value goes with the heavier side, or to yes.

    Args:
        codes: of the features.
        labels: ``(M)``, int32, in ``0..K-1``.
        weights: ``(M)``, > 0 where a row counts.
        classes: ``K``.
        kind: of impurity.
        min_leaf: the weight that each side has at least; 1 for any row.
        tries: how many features are drawn for each node; more where none of them has a cut. None: all.
    """

    def __init__(
        self,
        codes: Codes,
        labels: Ints,
        weights: Floats,
        classes: int,
        kind: str = "gini",
        min_leaf: float = 1,
        tries: int | None = None,
    ) -> None:
        self.codes, self.labels, self.weights, self.classes = codes, labels, weights, classes
        self.unit, self.whole = bool((weights == 1).all()), bool((weights == np.floor(weights)).all())
        self.kind, self.min_leaf, self.tries = kind, min_leaf, codes.features if tries is None else tries

    def root(self, rows: Ints, seed: int = 0) -> Level:
        """All rows in one node."""
        starts = np.array([0, len(rows)])
        return Level(rows, starts, np.array([seed], np.uint64), self.sums(rows, starts))

    def sums(self, rows: Ints, starts: Index) -> Floats:
        """The weight of each class in each node, ``(A, K)``."""
        nodes = len(starts) - 1
        place = np.repeat(np.arange(nodes) * self.classes, np.diff(starts)) + self.labels[rows]
        sums: Floats = np.bincount(place, self.weights[rows], minlength=nodes * self.classes).astype(np.float64)
        return sums.reshape(nodes, self.classes)

    def advance(self, level: Level, limits: Limits) -> Advance:
        """Split the open nodes; by the library those of several levels."""
        library = _native.library()
        return one_level(self, level, limits) if library is None else self._by_library(library, level, limits)

    def split(self, level: Level, least: Floats) -> Found:
        """The questions that lower the impurity of their nodes most, and by at least ``least (A)``."""
        return self._found(self._by_numpy(level, least))

    def _found(self, cuts: Cuts) -> Found:
        """Cuts as questions."""
        asks = cuts.feature >= 0
        threshold = np.zeros(len(asks))
        threshold[asks] = self.codes.thresholds(cuts.feature[asks], cuts.below[asks], cuts.above[asks])
        feature, none = cuts.feature.astype(np.int64), np.full(len(asks), -1)
        return Found(feature, threshold, cuts.side, cuts.decrease, cuts.decrease, cuts.yes, cuts.children, none)

    def children(self, level: Level, found: Found) -> Level:
        """The next level."""
        split = np.flatnonzero(found.feature >= 0)
        sizes, yes = level.sizes[split], found.yes[split]
        starts = np.zeros(2 * len(split) + 1, np.int64)
        starts[1:] = np.stack([yes, sizes - yes], 1).ravel().cumsum()
        keys = np.stack([mixed(level.keys[split]), mixed(~level.keys[split])], 1).ravel()
        return Level(found.children, starts, keys, self.sums(found.children, starts))

    def finished(self, tree: Tree) -> Tree:
        """The tree of these questions."""
        return replace(tree, features=self.codes.features)

    def _by_library(self, library: _native.Library, level: Level, limits: Limits) -> Advance:
        """As many levels as the library does at once."""
        rows, nodes = level.rows.copy(), len(level.keys)
        many, features, classes = len(rows), self.codes.features, self.classes
        room = nodes + 2 * (many - nodes)  # every split leaves both sides a row
        other, starts = np.empty_like(rows), np.zeros(many + 1, np.int64)
        keys, sums = np.empty(room, np.uint64), np.empty((room, classes))
        starts[: nodes + 1], keys[:nodes], sums[:nodes] = level.starts, level.keys, level.sums
        below, above, feature = (np.zeros(room, np.int32) for _ in range(3))
        side, decrease = np.ones(room, np.bool_), np.zeros(room)
        state = np.array([0, nodes, 0, many])
        size = library.function("tm_grow_work", ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
        work = np.empty(size(many, features, classes), np.uint8)
        inputs = self.codes.codes, self.codes.counts, self.labels, self.weights
        counts = self.codes.rows, features, classes, IMPURITIES.index(self.kind), self.tries
        bounds = float(self.min_leaf), float(limits.min_decrease), float(limits.total)
        outputs = work, rows, other, starts, keys, sums, feature, below, above, side, decrease, state
        levels = (1 << 62) if limits.levels is None else limits.levels
        library.function("tm_grow")(
            pack_grow(*map(address, inputs, GIVEN), *counts, *bounds, levels, BUDGET, *map(address, outputs, MADE))
        )
        done, made, levels, left = state.tolist()
        last = rows if levels % 2 == 0 else other
        cuts = Cuts(
            feature[:done], below[:done], above[:done], side[:done], decrease[:done], np.zeros(done, np.int64), rows[:0]
        )
        after = Level(
            last[:left].copy(), starts[: made - done + 1].copy(), keys[done:made].copy(), sums[done:made].copy()
        )
        return Advance(self._found(cuts), sums[:done].copy(), after, levels)

    # ------------------------------------------------------------------------------------------------- without it
    def _by_numpy(self, level: Level, least: Floats) -> Cuts:
        nodes = len(level.starts) - 1
        found = Cuts(
            np.full(nodes, -1, np.int32),
            np.zeros(nodes, np.int32),
            np.zeros(nodes, np.int32),
            np.ones(nodes, np.bool_),
            np.full(nodes, -np.inf),
            np.zeros(nodes, np.int64),
            level.rows,
        )
        todo = np.flatnonzero(((level.sums > 0).sum(1) > 1) & (level.sizes > 1))
        order = self._order(level.keys[todo])
        tried = 0
        while len(todo) and tried < self.codes.features:
            step = self.tries if tried == 0 else 1
            self._try(level, least, todo, np.sort(order[:, tried : tried + step], 1), found)
            tried += step
            none = found.feature[todo] < 0
            todo, order = todo[none], order[none]
        return found._replace(children=self._parted(level, found))

    def _order(self, keys: Keys) -> NDArray[np.intp]:
        """``(A, D)``: the features of each node in the order in which they are tried."""
        each = np.arange(self.codes.features, dtype=np.uint64)
        if self.tries >= len(each):
            return np.broadcast_to(np.arange(len(each)), (len(keys), len(each)))
        with np.errstate(over="ignore"):
            return np.argsort(mixed(keys[:, None] + each * STRIDE), 1, kind="stable")

    def _try(self, level: Level, least: Floats, todo: Index, features: Index, found: Cuts) -> None:
        """Put the best cuts of some nodes about some features ``(A, F)`` into what has been found."""
        widest = int(self.codes.counts.max(initial=1)) + 1
        sizes = level.sizes[todo]
        classes = np.where(sizes > widest, 64, np.ceil(np.log2(sizes)))  # those of one class have about one size
        for kind in np.unique(classes):
            same = np.flatnonzero(classes == kind)
            width = widest if kind == 64 else int(sizes[same].max())
            step = max(1, CELLS // (width * self.classes * features.shape[1]))
            for first in range(0, len(same), step):
                some = same[first : first + step]
                nodes, about = todo[some], features[some]
                cells = self._counted(level, nodes, about) if kind == 64 else self._sorted(level, nodes, about)
                self._best(level, least, nodes, about, cells, found)

    def _rows_of(self, level: Level, nodes: Index) -> tuple[Index, Ints]:
        """The rows of some nodes, and which of these each belongs to."""
        sizes = level.sizes[nodes]
        owner = np.repeat(np.arange(len(nodes)), sizes)
        first = sizes.cumsum() - sizes
        return owner, level.rows[level.starts[nodes][owner] + np.arange(len(owner)) - first[owner]]

    def _counted(self, level: Level, nodes: Index, features: Index) -> _Cells:
        """Sums over the rows of each code: a histogram."""
        owner, rows = self._rows_of(level, nodes)
        many, width = features.shape[1], int(self.codes.counts[features].max(initial=1)) + 1
        shape = (width, len(nodes), many, self.classes)
        codes = self._codes(features[owner].T, rows)
        if self.codes.missing:
            codes = np.where(codes == self.codes.counts[features[owner].T], width - 1, codes)
        place = codes.astype(np.intp)
        place *= shape[1] * shape[2] * shape[3]
        place += (np.arange(many) * self.classes)[:, None]
        place += owner * (many * self.classes) + self.labels[rows]
        weights = None if self.unit else np.broadcast_to(self.weights[rows], place.shape).ravel()
        flat: Floats = np.bincount(place.ravel(), weights, minlength=int(np.prod(shape))).astype(np.float64, copy=False)
        sums = flat.reshape(shape)
        codes = np.broadcast_to(np.arange(width - 1)[:, None, None], (width - 1, *shape[1:3]))
        mass = sums[:-1].sum(-1)
        return _Cells(sums[:-1], mass, sums[-1], codes, mass > 0)

    def _sorted(self, level: Level, nodes: Index, features: Index) -> _Cells:
        """A cell for each row, in the order of the codes."""
        owner, rows = self._rows_of(level, nodes)
        sizes, many = level.sizes[nodes], features.shape[1]
        width = int(sizes.max())
        place = np.arange(len(rows)) - (sizes.cumsum() - sizes)[owner]
        keys = np.full((len(nodes), many, width), np.iinfo(np.int64).max)
        keys[owner, :, place] = (self._codes(features[owner].T, rows).T.astype(np.int64) << 32) + place[:, None]
        keys.sort(-1)
        keys = keys.transpose(2, 0, 1)
        codes, place = keys >> 32, keys & 0xFFFFFFFF
        counts = self.codes.counts[features]
        inside, known = codes <= counts, codes < counts
        first = (sizes.cumsum() - sizes)[:, None]
        row = rows[np.where(inside, place, 0) + first]
        mass = np.where(inside, self.weights[row], 0.0)
        sums = np.zeros((mass.size, self.classes))
        sums[np.arange(mass.size), self.labels[row].ravel()] = mass.ravel()
        sums = sums.reshape(*mass.shape, self.classes)
        missing = np.zeros(sums.shape[1:])
        if self.codes.missing:
            missing = (sums * (inside & ~known)[..., None]).sum(0)
            sums *= known[..., None]
            mass = np.where(known, mass, 0.0)
        ends = known.copy()
        ends[:-1] &= codes[:-1] != codes[1:]
        return _Cells(sums, mass, missing, codes, ends)

    def _codes(self, features: Index, rows: Ints) -> Ints:
        """``(F, n)``: the codes of rows by the features ``(F, n)`` that are tried at their nodes."""
        if features.shape[0] == self.codes.features:
            return self.codes.codes.take(rows, 1)
        return self.codes.codes[features, rows]

    def _best(self, level: Level, least: Floats, nodes: Index, features: Index, cells: _Cells, found: Cuts) -> None:
        """Compare the cuts after all cells of some nodes."""
        sums, width = level.sums[nodes], len(cells.sums)
        total, leaf = sums.sum(-1), self.min_leaf * (1 - TIE) if self.min_leaf > 1 else 0.0
        whole = impurity(sums, total, self.kind)
        (left, before), (right, after) = self._ends(cells, sums, total)
        options = []
        for add in (0, 1) if self.codes.missing else (2,):
            yes, on_yes, no, on_no = left, before, right, after
            if add == 0:
                yes, on_yes = yes + cells.missing, on_yes + cells.missing.sum(-1)
            elif add == 1:
                no, on_no = no + cells.missing, on_no + cells.missing.sum(-1)
            lower = whole[:, None] - impurity(yes, on_yes, self.kind) - impurity(no, on_no, self.kind)
            least_side = np.minimum(on_yes, on_no)
            allowed = cells.ends & (least_side > 0) & (least_side >= leaf)
            options.append(np.where(allowed, lower / total[:, None], -np.inf))
        values = np.stack(options, -1).transpose(1, 2, 0, 3).reshape(len(nodes), -1)
        best = values.max(1)
        first = np.argmax(values >= best[:, None] - TIE, 1)
        good = np.flatnonzero((best > -np.inf) & (best >= least[nodes] - TIE))
        at, first = nodes[good], first[good]
        sides = len(options)
        feature, end, side = first // (width * sides), first // sides % width, first % sides
        found.feature[at], found.decrease[at] = features[good, feature], best[good]
        codes, ends = cells.codes[:, good, feature], cells.ends[:, good, feature]
        each = np.arange(len(good))
        found.below[at] = codes[end, each]
        later = ends & (np.arange(width)[:, None] > end)
        found.above[at] = np.where(later.any(0), codes[later.argmax(0), each], self.codes.counts[found.feature[at]])
        heavier = 2 * before[end, good, feature] >= total[good] * (1 - TIE)
        found.side[at] = np.where(cells.missing[good, feature].any(-1), side == 0, heavier)

    def _ends(self, cells: _Cells, sums: Floats, total: Floats) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """The sums up to each cell and after it, with their totals; a sum over nothing is exactly zero."""
        left, before = cells.sums, cells.mass
        if not self.whole:
            right, after = np.zeros_like(left), np.zeros_like(before)
            for cell in range(len(left) - 2, -1, -1):
                np.add(right[cell + 1], left[cell + 1], out=right[cell])
                np.add(after[cell + 1], before[cell + 1], out=after[cell])
        for cell in range(1, len(left)):
            left[cell] += left[cell - 1]
            before[cell] += before[cell - 1]
        if self.whole:
            right = sums[:, None] - left
            after = total[:, None] - before
            if self.codes.missing:
                right -= cells.missing
                after -= cells.missing.sum(-1)
        return (left, before), (right, after)

    def _parted(self, level: Level, found: Cuts) -> Ints:
        """The rows of the children; counts those on the side of yes."""
        owner = np.repeat(np.arange(len(level.sizes)), level.sizes)
        kept = found.feature[owner] >= 0
        owner, rows = owner[kept], level.rows[kept]
        feature = found.feature[owner]
        codes = self.codes.codes[feature, rows]
        yes = np.where(codes == self.codes.counts[feature], found.side[owner], codes <= found.below[owner])
        found.yes[:] = np.bincount(owner[yes], minlength=len(found.yes))
        return rows[np.argsort(2 * owner + ~yes, kind="stable")]


class _Cells(NamedTuple):
    """Sums over rows in the order of their codes, for some nodes and features."""

    sums: Floats
    """``(P, A, F, K)``: the weight of each class of the rows of a cell."""
    mass: Floats
    """``(P, A, F)``: the weight of the rows of a cell."""
    missing: Floats
    """``(A, F, K)``: of the rows that miss the feature."""
    codes: NDArray[np.integer[Any]]
    """``(P, A, F)``."""
    ends: NDArray[np.bool_]
    """``(P, A, F)``: whether a code ends with this cell."""
