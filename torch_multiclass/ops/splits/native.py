"""Splits by the native library: the best cut of each feature in one call."""

from __future__ import annotations

import ctypes
import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torch_multiclass.ops._native import Library
from torch_multiclass.ops.splits.codes import Codes, Floats, Ints, ordered
from torch_multiclass.ops.splits.layout import Layout, filled

pack_dense = struct.Struct("@23q").pack
"""The fields of ``TmDense`` in ``native/split.h``."""


class Best(NamedTuple):
    """The best cut, by codes."""

    feature: int
    below: int
    """The last code on the first side."""
    above: int
    """The first code on the second side; after the last one where only missing values are there."""
    side: bool
    """Whether missing values are on the first side."""
    gain: float
    sums: Floats
    """``(2, C)``, or twice as many columns with the normaliser: the sums of both sides."""


class DenseBest:
    """The best cut as `DenseSearch` finds it: what is needed beside the numbers of a round is made once."""

    def __init__(self, library: Library, codes: Codes, layout: Layout, criterion: int) -> None:
        self.search, self.codes, self.layout = library.function("tm_dense_best"), codes, layout
        self.columns, self.parts, self.row = filled(layout.width), 1 + criterion, filled(layout.narrow)
        self.order = codes.order if layout.pattern is None else by_pattern(codes, layout.pattern)
        width, features = self.parts * self.columns, codes.features
        size = library.function("tm_dense_work", *[ctypes.c_int64] * 3)(codes.rows, self.row, width)
        self.work = np.empty(size, np.uint8)
        self.gain = np.empty(features)
        self.below, self.above = np.empty(features, np.int32), np.empty(features, np.int32)
        self.side, self.sums = np.empty(features, np.bool_), np.empty((2, width))
        self.short = short_codes(codes) if layout.pattern is None else None
        begin = codes.codes, self.short, self.order, codes.starts
        self.begin = tuple(map(address, begin, (np.int32, np.uint16, np.int32, np.int32)))
        self.given = address(layout.pattern, np.int32), address(layout.columns, np.int32), codes.rows
        made = self.work, self.gain, self.below, self.above, self.side, self.sums
        kinds = np.uint8, np.float64, np.int32, np.int32, np.bool_, np.float64
        sizes = features, codes.starts.shape[1], self.row, layout.narrow, width, criterion
        self.end = *sizes, *map(address, made, kinds)
        self.counts = address(codes.counts, np.int32)

    def __call__(self, channels: Floats, rows: NDArray[np.intp] | None) -> Best | None:
        """For numbers ``(M, W)`` of all rows, or of some ``(n)``; None where there is no cut."""
        n, some = self.codes.rows, None
        if rows is not None:
            if self.layout.pattern is not None:
                rows = rows[np.argsort(self.layout.pattern[rows], kind="stable")]
            n, some = len(rows), np.ascontiguousarray(rows, np.int32)
        if n == 0:
            return None
        if channels.strides != (8 * self.row, 8):
            channels = self.layout.table(channels)
        at = address(some, np.int32), self.counts, address(channels, np.float64, self.row)
        best: int = self.search(pack_dense(*self.begin, *at, *self.given, n, *self.end))
        if best < 0:
            return None
        sums = self.sums.reshape(2, self.parts, self.columns)[..., : self.layout.width].reshape(2, -1).copy()
        below, above, side = self.below.item(best), self.above.item(best), self.side.item(best)
        return Best(best, below, above, side, self.gain.item(best), sums)


def short_codes(codes: Codes) -> NDArray[np.uint16] | None:
    """The codes in half the memory, by which many features are looked at together; None where that cannot be."""
    return codes.codes.astype(np.uint16) if codes.features > 2 and codes.counts.max() < 1 << 16 else None


def by_pattern(codes: Codes, pattern: Ints) -> Ints:
    """The rows in the order of their codes; of each code, those of a pattern are together."""
    first = np.argsort(pattern, kind="stable").astype(np.int32)
    lines = zip(codes.codes, codes.counts, strict=True)
    return np.stack([first[ordered(line[first], int(count) + 1)] for line, count in lines])


def address(part: Any, dtype: type[Any], row: int | None = None) -> int:
    """Where an array begins, of numbers of this dtype one after the other; 0 where there is none.

    With a ``row``, lines of numbers that begin so many apart. Anything else ends here, as it does for tensors in
    `torch_multiclass.ops._native.pointer`: the loops would damage the memory of the process.
    """
    if part is None:
        return 0
    size = part.dtype.itemsize
    laid = part.flags.c_contiguous if row is None else part.strides == (size * row, size)
    if part.dtype != dtype or not laid:
        raise TypeError(
            f"native: got {part.dtype} {part.shape} with strides {part.strides}; the loops read {dtype.__name__}, "
            + ("contiguous" if row is None else f"in lines of {row}")
        )
    return int(part.ctypes.data)
