"""Splits by the native library: the best cut of each feature in one call."""

from __future__ import annotations

import ctypes
import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torch_multiclass.ops._native import Library
from torch_multiclass.ops.splits.codes import Codes, Floats, Ints

pack_dense = struct.Struct("@19q").pack
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
    """``(D, 2, C)``: the sums of both sides."""


def dense_cuts(library: Library, codes: Codes, channels: Floats, criterion: int, rows: NDArray[np.intp] | None) -> Cuts:
    """As `DenseSearch` finds them."""
    some = None if rows is None else np.ascontiguousarray(rows, np.int32)
    n = codes.rows if some is None else len(some)
    parts = 1 + criterion
    given = np.ascontiguousarray(channels)
    columns = channels.shape[1] // parts
    width = parts * (columns if columns == 1 else 4 if columns <= 4 else -(-columns // 8) * 8)
    made = Cuts(
        np.full(codes.features, -np.inf),
        np.zeros(codes.features, np.int32),
        np.zeros(codes.features, np.int32),
        np.ones(codes.features, np.bool_),
        np.zeros((codes.features, 2, width)),
    )
    if n == 0:
        return made
    size = library.function("tm_dense_work", ctypes.c_int64, ctypes.c_int64)(n, width)
    work = np.empty(size, np.uint8)
    order, starts = (codes.order, codes.starts) if some is None else (None, None)
    inputs = codes.codes, order, starts, some, codes.counts, given
    sizes = codes.rows, n, codes.features, codes.starts.shape[1], columns, width
    library.function("tm_dense_cuts")(
        pack_dense(*map(address, inputs), *sizes, criterion, address(work), *map(address, made))
    )
    sums = made.sums.reshape(codes.features, 2, parts, width // parts)[..., :columns]
    return made._replace(sums=sums.reshape(codes.features, 2, channels.shape[1]))


def address(part: Any) -> int:
    """Where an array begins; 0 where there is none."""
    return 0 if part is None else part.ctypes.data
