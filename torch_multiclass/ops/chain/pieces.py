"""Where the positions of a batch stand while a recursion runs over them, step by step and side by side.

A sequence is one piece, or is cut in several that run at the same time. A *place* is a position in the order of the
recursion: the first positions of all pieces, then the second ones, and so on, pieces that are longer first. Positions
that do not count have no place: a padded batch costs what its tokens cost.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from torch_multiclass.ops.chain.arrays import MANY, Array
from torch_multiclass.ops.chain.plan import Cut

Value = TypeVar("Value")


class Once(Generic[Value]):
    """A property that is computed when it is asked for, and kept; `functools.cached_property` takes a lock for it."""

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self.compute, self.name = compute, compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, owner: Any, kind: object) -> Value:
        """Compute it."""
        value: Value = self.compute(owner)
        owner.__dict__[self.name] = value
        return value


class Joints(NamedTuple):
    """Where a piece goes on with the next one: what leads, what follows it, as numbers of pieces."""

    lead: Array
    follow: Array
    warm: int  # steps over the neighbour before a piece is entered
    short: Array  # which followers end their sequence within so many steps, as numbers of joints


@dataclass(eq=False)
class Pieces:
    """The pieces of a batch ``(B, T)``, of which there are ``P``, with ``N`` places."""

    batch: int
    steps: int
    counts: Array  # (size,): how many places each step has
    sequence: Array  # (P,): of which sequence each is a piece
    length: Array  # (P,): how many positions it has
    begin: Array | None  # (P,): the position in the batch, ``b T + t``, of its first; None for a batch in full
    joints: Joints | None  # None where every sequence is one piece

    @Once
    def upto(self) -> Array:
        """``(size,)``: the number of places in each step and those before it."""
        return self.counts.cumsum()

    @Once
    def offsets(self) -> list[int]:
        """``(size + 1,)``: where the places of each step begin."""
        return [0, *self.upto.tolist()]

    @Once
    def cuts(self) -> list[slice]:
        """``(size,)``: the places of each step."""
        return list(map(slice, self.offsets, self.offsets[1:]))

    @Once
    def rows(self) -> Array | None:
        """``(N,)``: each place's position in the batch; None for a batch in full, which is transposed."""
        if self.begin is None:
            return None
        step = np.arange(len(self.counts))[:, None]
        found: Array = (self.begin + step)[step < self.length]
        return found

    @Once
    def final(self) -> Any:
        """``(P,)``: the place of each piece's last position."""
        if self.begin is None:
            return slice((self.steps - 1) * self.batch, None)
        return (self.upto - self.counts)[self.length - 1] + np.arange(len(self.length))

    @Once
    def owners(self) -> Array:
        """``(N,)``: of which sequence each place is."""
        return np.tile(self.sequence, self.steps) if self.rows is None else self.rows // self.steps

    @property
    def later(self) -> slice:
        """The places that have one before them in their piece."""
        return slice(len(self.sequence), None)

    @Once
    def prior(self) -> Any:
        """Those."""
        if self.begin is None:
            return slice(0, (self.steps - 1) * self.batch)
        return np.arange(len(self.length), self.offsets[-1]) - self.counts[:-1].repeat(self.counts[1:])

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

    def scatter(self, values: Array, dtype: npt.DTypeLike) -> Array:
        """The inverse of `gather`, with 0 at the positions that do not count."""
        rest = values.shape[1:]
        if self.rows is None:
            return np.array(values.reshape(self.steps, self.batch, *rest).swapaxes(0, 1), dtype, order="C")
        out = np.zeros((self.batch * self.steps, *rest), dtype)
        if values.size < MANY:
            out[self.rows] = values
        else:  # a row moved as one thing takes half the time
            row = np.dtype((np.void, out.strides[0]))
            out.view(row).reshape(-1)[self.rows] = np.asarray(values, dtype, order="C").view(row).reshape(-1)
        return out.reshape(self.batch, self.steps, *rest)

    def by_step(self, values: Array) -> list[Array]:
        """``(N, ...)`` as the places of each step."""
        if self.rows is None:
            return list(values.reshape(self.steps, self.batch, *values.shape[1:]))
        return [values[cut] for cut in self.cuts]

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
        return np.searchsorted(pieces, self.counts[:steps]).tolist()  # type: ignore[no-any-return]

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
    return Pieces(batch, steps, np.full(steps, batch), np.arange(batch), np.full(batch, steps), None, None)


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
    steps_there = np.arange(int(length[0]) if len(length) > 0 else 0)
    counts = len(length) - length[::-1].searchsorted(steps_there, "right")  # the pieces that have this step
    return Pieces(batch, steps, counts, sequence, length, begin, joints)
