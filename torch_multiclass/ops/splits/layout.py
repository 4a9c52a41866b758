"""Where the numbers of boosting stand: a row for each example, with the columns of which it has a sign."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torch_multiclass.ops import _native
from torch_multiclass.ops.splits.codes import Floats, Ints
from torch_multiclass.ops.splits.tree import Index

EDGE, NORMALISER = 0, 1


@dataclass(frozen=True)
class Layout:
    """All columns of every row; or, where most are without a sign, those that the pattern of the row has.

    A row of class ``y`` has a sign for the columns ``s`` of a code with ``M(y, s) != 0`` only: 25 of 325 of one versus
    one with 26 classes.
    """

    width: int
    """``C``: how many columns there are."""
    columns: Ints | None = None
    """``(P, W)``: those of each pattern; at its end, where it has fewer, one of which it has no sign."""
    pattern: Ints | None = None
    """``(M)``."""

    @classmethod
    def of(cls, signs: Floats) -> Layout:
        """The layout for signs ``(M, C)``, of which some may be 0."""
        given = signs != 0
        if given.all():
            return cls(signs.shape[1])
        kinds, pattern = np.unique(np.packbits(given, axis=1), axis=0, return_inverse=True)
        kinds = np.unpackbits(kinds, axis=1, count=signs.shape[1])
        narrow = int(kinds.sum(1).max())
        if 2 * narrow > signs.shape[1] or 8 * len(kinds) > len(signs):
            return cls(signs.shape[1])
        columns = np.argsort(kinds == 0, axis=1, kind="stable")[:, :narrow]
        return cls(signs.shape[1], columns.astype(np.int32), pattern.reshape(-1).astype(np.int32))

    @property
    def narrow(self) -> int:
        """``W``: how many columns a row has."""
        return self.width if self.columns is None else self.columns.shape[1]

    @property
    def patterns(self) -> int:
        """``P``."""
        return 1 if self.columns is None else len(self.columns)

    def table(self, values: Floats) -> Floats:
        """A copy of values ``(R, W)``; for the native library in lines of the cache, rows filled up with zeros."""
        row = self.narrow if _native.library() is None else filled(self.narrow)
        memory = np.zeros(len(values) * row + 8)
        first = -(memory.ctypes.data // 8) % 8
        made = memory[first : first + len(values) * row].reshape(-1, row)[:, : self.narrow]
        made[:] = values
        return made

    def of_rows(self, values: Floats) -> Floats:
        """Those of values ``(M, C)`` that the rows have, ``(M, W)``."""
        if self.columns is None:
            return values
        return np.take_along_axis(values, self.columns[self.pattern].astype(np.int64), 1)

    def of_nodes(self, values: Floats) -> Floats:
        """Values ``(nodes, C)`` for each node and pattern, ``(nodes P, W)``."""
        return values if self.columns is None else values[:, self.columns].reshape(-1, self.narrow)

    def places(self, node: Index) -> Index:
        """Where the rows ``(M)`` at these nodes find what is theirs in `of_nodes`."""
        if self.pattern is None:
            return node
        places: Index = node * self.patterns + self.pattern
        return places

    def wide(self, channels: Floats) -> Floats:
        """Numbers ``(M, W)`` among all columns, ``(M, C)``, 0 of the others."""
        if self.columns is None:
            return channels
        made = np.zeros((len(channels), self.width))
        np.put_along_axis(made, self.columns[self.pattern].astype(np.int64), channels, 1)
        return made

    def total(self, channels: Floats, criterion: int) -> Floats:
        """The sums over all rows, in the parts of the criterion."""
        total: Floats = parts(self.wide(channels), criterion).sum(0)
        return total


def filled(columns: int) -> int:
    """How long a row is, with what fills it up to vectors."""
    return 1 if columns == 1 else -(-columns // 8) * 8


def parts(channels: Floats, criterion: int) -> Floats:
    """What is summed: numbers ``(M, C)``, or, side by side, the positive ones and the sizes of the negative ones."""
    if criterion == EDGE:
        return channels
    return np.concatenate([np.maximum(channels, 0), np.maximum(-channels, 0)], 1)
