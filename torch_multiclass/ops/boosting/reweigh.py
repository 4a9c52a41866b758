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


class Reweigh:
    """Ends a round, in place: ``channels`` times a factor of the row's leaf, ``scores`` plus its step.

    Shape:
        channels and scores ``(M, W)``, as ``layout.table`` makes them.
    """

    def __init__(self, channels: Floats, scores: Floats, layout: Layout) -> None:
        self.channels, self.scores, self.layout = channels, scores, layout
        self.library, self.row = _native.library(), filled(layout.narrow)
        self.begin: tuple[int, ...] = ()
        if self.library is not None:
            self.begin = address(channels, np.float64, self.row), address(scores, np.float64, self.row)
        self.pattern = address(layout.pattern, np.int32)
        self._room(0)

    def __call__(self, leaf: Index, up: Floats, down: Floats, step: Floats) -> None:
        """Positive channels times ``up``, negative ones times ``down``.

        Shape:
            leaf ``(M)``; up, down and step ``(nodes, C)``.
        """
        layout = self.layout
        if self.library is None:
            places = layout.places(leaf)
            more, least, steps = (layout.of_nodes(part).take(places, 0) for part in (up - down, down, step))
            more *= self.channels > 0
            more += least
            self.channels *= more
            self.scores += steps
            return
        if len(up) * layout.patterns != self.tables.shape[1]:
            self._room(len(up) * layout.patterns)
        for table, part in zip(self.inner, (up, down, step), strict=True):
            table[:] = layout.of_nodes(part)
        end = *self.first, len(self.channels), self.row, layout.patterns
        self.library.function("tm_reweigh")(pack(*self.begin, address(leaf, np.int64), self.pattern, *end))

    def _room(self, lines: int) -> None:
        """Memory for three tables of so many lines, kept from round to round."""
        self.tables = np.zeros((3, lines, self.row))
        self.inner = [table[:, : self.layout.narrow] for table in self.tables]
        first, size = address(self.tables, np.float64), 8 * lines * self.row
        self.first = first, first + size, first + 2 * size
