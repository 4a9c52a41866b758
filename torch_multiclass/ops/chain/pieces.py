"""Where the positions of a batch stand while a recursion runs over them, step by step and side by side.

A sequence is one piece, or is cut in several that run at the same time. A *place* is a position in the order of the
recursion: the first positions of all pieces, then the second ones, and so on, pieces that are longer first. Positions
that do not count have no place: a padded batch costs what its tokens cost.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from torch_multiclass.ops.chain.arrays import Array
from torch_multiclass.ops.chain.plan import Cut


class Joints(NamedTuple):
    """Where a piece goes on with the next one: what leads, what follows it, as numbers of pieces."""

    lead: Array
    follow: Array
    warm: int  # steps over the neighbour before a piece is entered
    short: Array  # which followers end their sequence within so many steps, as numbers of joints


class Pieces(NamedTuple):
    """The pieces of a batch ``(B, T)``, of which there are ``P``, with ``N`` places."""

    batch: int
    steps: int
    offsets: list[int]  # (size + 1,): where the places of each step begin
    sequence: Array  # (P,): of which sequence each is a piece
    length: Array  # (P,): how many positions it has
    owners: Array  # (N,): of which sequence each place is
    rows: Array | None  # (N,): the place's position in the batch, ``b T + t``; None for a batch in full, transposed
    final: Any  # (P,): the place of each piece's last position
    later: Any  # the places that have one before them in their piece
    prior: Any  # those
    joints: Joints | None  # None where every sequence is one piece

    # ----------------------------------------------------------------------------------------------------- to and fro

    def gather(self, values: Array, out: Array | None = None) -> Array:
        """``(B, T)`` or ``(B, T, K)`` as ``(N, ...)``, a copy."""
        rest = values.shape[2:]
        if out is None:
            out = np.empty((self.offsets[-1], *rest), values.dtype)
        if self.rows is None:
            np.copyto(out.reshape(self.steps, self.batch, *rest), values.swapaxes(0, 1))
        elif out.dtype == values.dtype:
            values.reshape(-1, *rest).take(self.rows, 0, out=out, mode="clip")
        else:
            out[:] = values.reshape(-1, *rest).take(self.rows, 0)
        return out

    def scatter(self, values: Array, dtype: npt.DTypeLike, fill: float = 0) -> Array:
        """The inverse of `gather`, with ``fill`` at the positions that do not count."""
        rest = values.shape[1:]
        if self.rows is None:
            return np.array(values.reshape(self.steps, self.batch, *rest).swapaxes(0, 1), dtype, order="C")
        out = np.full((self.batch * self.steps, *rest), fill, dtype)
        out[self.rows] = values
        return out.reshape(self.batch, self.steps, *rest)

    def by_step(self, values: Array) -> list[Array]:
        """``(N, ...)`` as the places of each step."""
        if self.rows is None:
            return list(values.reshape(self.steps, self.batch, *values.shape[1:]))
        return [values[low:high] for low, high in zip(self.offsets, self.offsets[1:], strict=False)]

    def sums(self, values: Array) -> Array:
        """``(B,)``: the sums over the places of each sequence of ``(N,)``, in float64."""
        if self.rows is None:
            return values.reshape(self.steps, self.batch).sum(0, dtype=np.float64)  # type: ignore[no-any-return]
        return np.bincount(self.owners, values, self.batch)

    def by_piece(self, values: Array) -> Array:
        """``(B,)``: the sums over the pieces of each sequence of ``(P,)``, in float64."""
        if self.rows is None:
            return values
        return np.bincount(self.sequence, values, self.batch)

    # -------------------------------------------------------------------------------------------- starts and ends

    @property
    def starting(self) -> Any:
        """The pieces that begin a sequence, which are their first places too."""
        return slice(len(self.sequence)) if self.joints is None else others(len(self.sequence), self.joints.follow)

    @property
    def ending(self) -> Any:
        """The pieces that end a sequence."""
        return slice(len(self.sequence)) if self.joints is None else others(len(self.sequence), self.joints.lead)

    @property
    def ends(self) -> Any:
        """Their last places."""
        return self.final if self.joints is None else self.final[self.ending]

    def starting_at(self, i: int) -> Any:
        """The places of a step of the pieces that begin a sequence."""
        if self.joints is None:
            return slice(*self.offsets[i : i + 2])
        return self.step_of(i, self.starting)

    def active(self, pieces: Array, steps: int) -> list[int]:
        """How many of the ``pieces``, which are in order, have each of the first steps."""
        offsets = np.array(self.offsets[: steps + 1])
        return np.searchsorted(pieces, offsets[1:] - offsets[:-1]).tolist()  # type: ignore[no-any-return]

    def step_of(self, i: int, pieces: Array) -> Array:
        """The places of a step of those of the ``pieces``, which are in order, that are as long."""
        low, high = self.offsets[i : i + 2]
        return pieces[: np.searchsorted(pieces, high - low)] + low


def others(count: int, pieces: Array) -> Array:
    """All pieces but these."""
    return np.delete(np.arange(count), pieces)


@functools.lru_cache(256)
def whole_batch(batch: int, steps: int) -> Pieces:
    """Every sequence one piece of all ``T`` steps."""
    places = batch * steps
    final, later, prior = slice(places - batch, None), slice(batch, None), slice(0, places - batch)
    sequence = np.arange(batch)
    offsets, owners = [*range(0, places + 1, batch)], np.tile(sequence, steps)
    length = np.full(batch, steps)
    return Pieces(batch, steps, offsets, sequence, length, owners, None, final, later, prior, None)


def cut_batch(batch: int, steps: int, lengths: Array | None, cut: Cut) -> Pieces:
    """The sequences of these ``lengths (B,)``, None for all ``T``, cut in pieces."""
    if cut.chunks == 1:
        if lengths is None:
            return whole_batch(batch, steps)
        order = (-lengths).argsort(kind="stable")[: np.count_nonzero(lengths)]
        return laid(batch, steps, order, order * steps, lengths[order], None)
    lengths = np.full(batch, steps) if lengths is None else lengths
    count = -(-lengths // cut.size)
    sequence = np.repeat(np.arange(batch), count)
    chunk = np.arange(len(sequence)) - np.repeat(np.cumsum(count) - count, count)
    length = np.minimum(cut.size, lengths[sequence] - chunk * cut.size)
    order = np.argsort(-length, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    next_ones = np.flatnonzero(chunk)
    follow, lead = rank[next_ones], rank[next_ones - 1]
    by_length = np.argsort(follow)
    goes_on = np.append(chunk, 0)[next_ones + 1] > 0
    short = np.flatnonzero(((length[next_ones] <= cut.warm) & ~goes_on)[by_length])
    joints = Joints(lead[by_length], follow[by_length], cut.warm, short) if len(lead) > 0 else None
    begin = sequence * steps + chunk * cut.size
    return laid(batch, steps, sequence[order], begin[order], length[order], joints)


def laid(batch: int, steps: int, sequence: Array, begin: Array, length: Array, joints: Joints | None) -> Pieces:
    """Pieces that begin at the positions ``begin (P,)`` of the batch and have these lengths, the longest first."""
    pieces, size = np.arange(len(length)), int(length[0]) if len(length) > 0 else 0
    active = len(length) - np.bincount(length, minlength=size + 1).cumsum()[:size]  # pieces longer than i
    counted = pieces < active[:, None]
    rows = (begin + np.arange(size)[:, None])[counted]
    ends = active.cumsum()
    final = (ends - active)[length - 1] + pieces
    later = slice(len(length), None)
    prior = np.arange(len(length), len(rows)) - active[:-1].repeat(active[1:])
    offsets, owners = [0, *ends.tolist()], rows // steps
    return Pieces(batch, steps, offsets, sequence, length, owners, rows, final, later, prior, joints)
