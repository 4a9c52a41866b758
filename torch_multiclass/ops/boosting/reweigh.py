"""The pass over all weights that ends a round."""

from __future__ import annotations

import struct

import numpy as np

from torch_multiclass.ops import _native
from torch_multiclass.ops.splits.codes import Floats
from torch_multiclass.ops.splits.layout import Layout
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
    up, down, step = (layout.of_nodes(part) for part in (up, down, step))
    library = _native.library()
    if library is None:
        places = layout.places(leaf)
        channels *= np.where(channels > 0, up[places], down[places])
        scores += step[places]
        return
    tables = [layout.table(part) for part in (up, down, step)]
    given = channels, scores, leaf, layout.pattern, *tables
    library.function("tm_reweigh")(
        pack(*map(address, given), len(channels), tables[0].strides[0] // 8, layout.patterns)
    )
