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

pack_dense = struct.Struct("@22q").pack
"""The fields of ``TmDense`` in ``native/split.h``."""


class Cuts(NamedTuple):
    """The best cut of each feature, ``(D)`` each."""

    gain: Floats
    """-inf where there is none."""
    below: Ints
    """The last code on the first side."""
    above: Ints
    """The first code on the second side; after the last one where only missing values are there."""
    side: NDArray[np.bool_]
    """Whether missing values are on the first side."""
    sums: Floats
    """``(D, 2, C)``, or twice as many columns with the normaliser: the sums of both sides."""


class DenseCuts:
    """The best cuts as `DenseSearch` finds them: what it needs beside the numbers of a round is made once."""

    def __init__(self, library: Library, codes: Codes, layout: Layout, criterion: int) -> None:
        self.search, self.codes, self.layout, self.criterion = (
            library.function("tm_dense_cuts"),
            codes,
            layout,
            criterion,
        )
        columns, parts = filled(layout.width), 1 + criterion
        self.row, width = filled(layout.narrow), parts * columns
        self.order = codes.order if layout.pattern is None else by_pattern(codes, layout.pattern)
        self.starts = codes.starts
        size = library.function("tm_dense_work", *[ctypes.c_int64] * 3)(codes.rows, self.row, width)
        self.work = np.empty(size, np.uint8)
        self.made = Cuts(
            np.empty(codes.features),
            np.empty(codes.features, np.int32),
            np.empty(codes.features, np.int32),
            np.empty(codes.features, np.bool_),
            np.empty((codes.features, 2, width)),
        )
        sums = self.made.sums.reshape(codes.features, 2, parts, columns)[..., : layout.width]
        self.found = self.made if sums.size == self.made.sums.size else self.made._replace(sums=sums)
        self.sorted = [address(part) for part in (codes.codes, self.order, self.starts)]
        self.given = [address(part) for part in (layout.pattern, layout.columns)]
        self.ends = [
            *(codes.features, self.starts.shape[1], self.row, layout.narrow, width, criterion, address(self.work)),
            *map(address, self.made),
        ]
        self.counts = address(codes.counts)

    def __call__(self, channels: Floats, rows: NDArray[np.intp] | None) -> Cuts:
        """For numbers ``(M, W)`` of all rows, or some ``(n)``; the next call writes over what this one gives."""
        codes, order, starts = self.sorted
        some = None
        if rows is not None:
            if self.layout.pattern is not None:
                rows = rows[np.argsort(self.layout.pattern[rows], kind="stable")]
            some, order, starts = np.ascontiguousarray(rows, np.int32), 0, 0
            if not len(some):
                self.made.gain.fill(-np.inf)
                return self.found
        if channels.strides != (8 * self.row, 8):
            channels = self.layout.table(channels)
        n = self.codes.rows if some is None else len(some)
        at = codes, order, starts, address(some), self.counts, address(channels), *self.given
        self.search(pack_dense(*at, self.codes.rows, n, *self.ends))
        return self.found


def by_pattern(codes: Codes, pattern: Ints) -> Ints:
    """The rows in the order of their codes; of each code, those of a pattern are together."""
    first = np.argsort(pattern, kind="stable").astype(np.int32)
    lines = zip(codes.codes, codes.counts, strict=True)
    return np.stack([first[ordered(line[first], int(count) + 1)] for line, count in lines])


def address(part: Any) -> int:
    """Where an array begins; 0 where there is none."""
    return 0 if part is None else part.ctypes.data
