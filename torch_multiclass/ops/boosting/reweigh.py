"""The pass over all weights that ends a round."""

from __future__ import annotations

import struct

import numpy as np

from torch_multiclass.ops import _native
from torch_multiclass.ops.splits.codes import Floats
from torch_multiclass.ops.splits.native import address
from torch_multiclass.ops.splits.tree import Index

pack = struct.Struct("@9q").pack
"""The fields of ``TmReweigh`` in ``native/boost.cpp``."""


def reweigh(channels: Floats, scores: Floats, leaf: Index, up: Floats, down: Floats, step: Floats) -> None:
    """In place: positive ``channels`` times ``up`` of the row's leaf, negative ones times ``down``; ``scores += step``.

    Shape:
        channels ``(M, C)``; up and down ``(nodes, C)``; scores ``(M, K)``; step ``(nodes, K)``; leaf ``(M)``.
    """
    library = _native.library()
    if library is not None:
        tables = [np.ascontiguousarray(part) for part in (up, down, step)]
        sizes = len(channels), channels.shape[1], scores.shape[1]
        library.function("tm_reweigh")(pack(*map(address, (channels, scores, leaf, *tables)), *sizes))
        return
    if up is down:
        channels *= up[leaf]
    else:
        channels *= np.where(channels > 0, up[leaf], down[leaf])
    scores += step[leaf]
