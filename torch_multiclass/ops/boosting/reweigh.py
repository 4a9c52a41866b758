"""The pass over all weights that ends a round."""

from __future__ import annotations

import struct

import numpy as np

from torch_multiclass.ops import _native
from torch_multiclass.ops.splits.codes import Floats
from torch_multiclass.ops.splits.layout import Layout, filled
from torch_multiclass.ops.splits.native import address
from torch_multiclass.ops.splits.tree import Index

pack = struct.Struct("@10q").pack
"""The fields of ``TmReweigh`` in ``native/boost.cpp``."""


def reweigh(
    channels: Floats, scores: Floats, leaf: Index, layout: Layout, up: Floats, down: Floats, step: Floats
) -> None:
    """In place: positive ``channels`` times ``up`` of the row's leaf, negative ones times ``down``; ``scores += step``.

    Shape:
        channels and scores ``(M, W)``, as ``layout.table`` makes them; up, down and step ``(nodes, C)``; leaf ``(M)``.
    """
    library = _native.library()
    if library is None:
        places = layout.places(leaf)
        more, least, steps = (layout.of_nodes(part).take(places, 0) for part in (up - down, down, step))
        more *= channels > 0
        more += least
        channels *= more
        scores += steps
        return
    row = filled(layout.narrow)
    tables = np.zeros((3, len(up) * layout.patterns, row))
    for table, part in zip(tables, (up, down, step), strict=True):
        table[:, : layout.narrow] = layout.of_nodes(part)
    first, size = address(tables), 8 * tables[0].size
    given = *map(address, (channels, scores, leaf, layout.pattern)), first, first + size, first + 2 * size
    library.function("tm_reweigh")(pack(*given, len(channels), row, layout.patterns))
