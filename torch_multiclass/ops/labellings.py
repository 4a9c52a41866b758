r"""Pairwise dual ascent over the labellings that each example keeps, for scores of labels and of neighbouring labels.

The plane of a labelling ``y`` of example ``i`` is ``offset + factor (s_w(y) - s_w(y*))``, a lower bound of its loss,
linear in the weights ``w``, with a slope ``g``. Shares ``lambda_{ia} >= 0``, in an example at most its strength
altogether, give ``w = -sum_{ia} lambda_{ia} g_{ia}`` and the dual value
``sum lambda offset - ½ |w|^2``. The gold labelling, whose plane is 0, has the rest of the strength.

A step moves share from the lowest plane that has some to the highest, as far as the dual value grows.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torch_multiclass.ops import _native
from torch_multiclass.ops._native import Call, pointer

__all__ = ["Found", "Labellings", "ascend"]

_pack = struct.Struct("@2q4q3qd3qq6q2q3qq").pack
_ROUNDING = 1e-12  # a rest of the strength below this part of it is none

Floats = NDArray[np.float64]


@dataclass
class Found:
    """A labelling of each example, the positions in one list: labels ``(M)`` int32; factor and offset ``(N)``.

    A factor of 0 is no labelling.
    """

    labels: Tensor
    factor: Tensor
    offset: Tensor


@dataclass
class Labellings:
    """``N`` examples of ``M`` positions altogether, and what they keep; float64 where nothing is said.

    Args:
        rows: ``(M, width)`` float32 or float64: features or, with ``gram``, their Gram matrix.
        gram: which of the two.
        state: ``(K, width)``: the weights or, with ``gram``, the scores of all positions.
        neighbours: transitions ``(K, K)``, start and end ``(K)``; None without scores of neighbours.
        scale: the square of the factor that the features of neighbours have.
        first: ``(N + 1)`` int64, where each example begins.
        gold: ``(M)`` int32.
        strength: ``(N)``.
        count: ``(N)`` int64, how many labellings are kept.
        labels: ``(M * capacity)`` int32, those of an example one after the other.
        factor, offset, share: ``(N, capacity)``.
    """

    rows: Tensor
    gram: bool
    state: Tensor
    neighbours: tuple[Tensor, Tensor, Tensor] | None
    scale: float
    first: Tensor
    gold: Tensor
    strength: Tensor
    count: Tensor
    labels: Tensor
    factor: Tensor
    offset: Tensor
    share: Tensor

    @property
    def capacity(self) -> int:
        """How many labellings an example can keep."""
        return self.share.shape[1]

    @functools.cached_property
    def lengths(self) -> Tensor:
        """``(N)``."""
        return self.first.diff()

    @functools.cached_property
    def example(self) -> Tensor:
        """``(M)``: which example each position is of."""
        return torch.repeat_interleave(torch.arange(len(self.lengths)), self.lengths)

    @classmethod
    def none(
        cls,
        rows: Tensor,
        first: Tensor,
        gold: Tensor,
        strength: Tensor,
        num_labels: int,
        *,
        gram: bool,
        neighbours: bool,
        scale: float = 1.0,
        capacity: int = 20,
    ) -> Labellings:
        """No labelling but the gold ones, so that all weights are 0."""
        zeros = functools.partial(torch.zeros, dtype=torch.float64)
        return cls(
            rows.contiguous(),
            gram,
            zeros(num_labels, rows.shape[1]),
            (zeros(num_labels, num_labels), zeros(num_labels), zeros(num_labels)) if neighbours else None,
            scale,
            first,
            gold.to(torch.int32),
            strength.contiguous(),
            torch.zeros(len(strength), dtype=torch.long),
            torch.zeros(len(gold) * capacity, dtype=torch.int32),
            *(zeros(len(strength), capacity) for _ in range(3)),
        )

    def grown(self, capacity: int) -> Labellings:
        """The same with room for more labellings."""
        labels = self.labels.new_zeros(len(self.gold) * capacity)
        for number in range(self.capacity):
            labels[self._places(number, capacity)] = self.labels[self._places(number, self.capacity)]
        pad = functools.partial(torch.nn.functional.pad, pad=(0, capacity - self.capacity))
        factor, offset, share = map(pad, (self.factor, self.offset, self.share))
        return replace(self, labels=labels, factor=factor, offset=offset, share=share)

    def _places(self, number: int, capacity: int) -> Tensor:
        """``(M)``: where the labels of each example's labelling of that number are."""
        within = torch.arange(len(self.gold)) - self.first[:-1][self.example]
        return (self.first[:-1] * capacity + number * self.lengths)[self.example] + within

    def multipliers(self) -> Tensor:
        """``(M, K)``: ``sum_a lambda_a factor_a (e_{y*} - e_{y_a})`` at each position."""
        found = torch.zeros(len(self.gold), len(self.state), dtype=torch.float64)
        gold = self.gold.long().unsqueeze(1)
        for number in self._used():
            part = (self.share * self.factor)[:, number][self.example].unsqueeze(1)
            labels = self.labels[self._places(number, self.capacity)].long().unsqueeze(1)
            found.scatter_add_(1, gold, part).scatter_add_(1, labels, -part)
        return found

    def neighbour_weights(self) -> tuple[Tensor, Tensor, Tensor] | None:
        """What the shares make of transitions, start and end."""
        if self.neighbours is None:
            return None
        total = tuple(torch.zeros_like(part) for part in self.neighbours)
        for number in self._used():
            part = (self.scale * self.share * self.factor)[:, number]
            labels = self.labels[self._places(number, self.capacity)].long()
            self.count_neighbours(total, labels, -part)
            self.count_neighbours(total, self.gold.long(), part)
        return total  # type: ignore[return-value]

    def _used(self) -> list[int]:
        return (self.share != 0).any(0).nonzero().squeeze(1).tolist()

    def count_neighbours(self, total: tuple[Tensor, ...], labels: Tensor, times: Tensor) -> None:
        """Add how often each transition, start and end is made, each example's ``times`` as much, to ``total``."""
        count, (transitions, start, end) = len(self.state), total
        later = torch.ones(len(labels), dtype=torch.bool)
        later[self.first[:-1][self.lengths > 0]] = False
        later = later.nonzero().squeeze(1)
        pairs = labels[later - 1] * count + labels[later]
        transitions.view(-1).index_add_(0, pairs, times[self.example[later]])
        some = self.lengths > 0
        start.index_add_(0, labels[self.first[:-1][some]], times[some])
        end.index_add_(0, labels[self.first[1:][some] - 1], times[some])


@functools.lru_cache
def _loops(library: _native.Library) -> tuple[Callable[[int, int, int], int], Call]:
    return library.function("tm_ascend_work", *(ctypes.c_int64,) * 3), library.function("tm_ascend")


def ascend(kept: Labellings, order: Tensor, steps: int, found: Found | None = None) -> int:
    """Visit examples ``order``: keep what was found for them, then take up to ``steps`` steps, all in place.

    What was found takes the place of the lowest plane without a share where there is no room.

    Returns:
        For how many examples there was no room, as all their labellings have a share.
    """
    library = _native.library()
    if library is None:
        return by_numpy(kept, order, steps, found)
    size, loop = _loops(library)
    longest = max(int(kept.lengths.amax()), 1)
    work = _native.room(size(longest, len(kept.state), kept.capacity), dtype=torch.uint8)
    none = (None, None, None)
    order = order.contiguous()
    wide, whole, short = torch.float64, torch.int64, torch.int32
    fields = (
        *(pointer(kept.rows, kept.rows.dtype), pointer(kept.state, wide)),
        *(kept.rows.dtype == torch.float32, kept.gram, kept.rows.shape[1], len(kept.state)),
        *map(pointer, kept.neighbours or none, (wide,) * 3),
        kept.scale,
        *(pointer(kept.first, whole), pointer(kept.gold, short), pointer(kept.strength, wide)),
        kept.capacity,
        *(pointer(kept.count, whole), pointer(kept.labels, short)),
        *map(pointer, (kept.factor, kept.offset, kept.share, order), (wide, wide, wide, whole)),
        *(len(order), steps),
        *map(pointer, none if found is None else (found.labels, found.factor, found.offset), (short, wide, wide)),
        pointer(work, torch.uint8),
    )
    return loop(_pack(*fields))


def by_numpy(kept: Labellings, order: Tensor, steps: int, found: Found | None = None) -> int:
    """`ascend` by operators of NumPy."""
    full, arrays = 0, _arrays(kept)
    new = None if found is None else _arrays(found)
    for number in order.tolist():
        if arrays.first[number] == arrays.first[number + 1]:
            continue
        visit = _Visit(kept, arrays, number)
        if new is not None and new.factor[number] > 0:
            full += not visit.keep(new)
        visit.ascend(steps)
    return full


def _arrays(given: Labellings | Found) -> Any:
    """The tensors under their names, as arrays that share their memory."""
    return SimpleNamespace(**{name: part.numpy() for name, part in vars(given).items() if isinstance(part, Tensor)})


class _Visit:
    """One example while it is visited: views of its part of everything."""

    def __init__(self, kept: Labellings, arrays: Any, number: int) -> None:
        first, end = int(arrays.first[number]), int(arrays.first[number + 1])
        self.kept, self.arrays, self.number, self.at = kept, arrays, number, slice(first, end)
        self.place, self.gold = np.arange(end - first), arrays.gold[self.at]
        capacity = kept.capacity
        self.labels = arrays.labels[first * capacity : end * capacity].reshape(capacity, end - first)
        self.factor, self.offset, self.share = arrays.factor[number], arrays.offset[number], arrays.share[number]
        self.rows = arrays.rows[self.at].astype(np.float64)
        self.state = arrays.state
        self.scores: Floats = self.state[:, self.at].T.copy() if kept.gram else self.rows @ self.state.T
        self.neighbours = None if kept.neighbours is None else [part.numpy() for part in kept.neighbours]

    @functools.cached_property
    def inner(self) -> Floats:
        """Inner products of the positions."""
        products: Floats = self.rows[:, self.at] if self.kept.gram else self.rows @ self.rows.T
        return products

    @property
    def count(self) -> int:
        """How many labellings it has kept."""
        return int(self.arrays.count[self.number])

    def keep(self, found: Any) -> bool:
        """Whether there was room for what was found."""
        labels, count = found.labels[self.at], self.count
        if (self.labels[:count] == labels).all(1).any():
            return True
        if count < self.kept.capacity:
            place = count
            self.arrays.count[self.number] += 1
        else:
            free = np.flatnonzero(self.share == 0)
            if not len(free):
                return False
            place = int(free[self.values()[free].argmin()])
        self.labels[place] = labels
        self.factor[place] = found.factor[self.number]
        self.offset[place], self.share[place] = found.offset[self.number], 0.0
        return True

    def values(self) -> Floats:
        """The planes at the weights: offsets and ``s(y) - s(y*)``."""
        count = self.count
        more = self.score(self.labels[:count]) - self.score(self.gold[None])
        planes: Floats = self.offset[:count] + self.factor[:count] * more
        return planes

    def score(self, labels: NDArray[np.int32]) -> Floats:
        """``s(y)`` of labellings ``(n, T)``."""
        value: Floats = self.scores[self.place, labels].sum(1)
        if self.neighbours is not None:
            transitions, start, end = self.neighbours
            value += transitions[labels[:, :-1], labels[:, 1:]].sum(1) + start[labels[:, 0]] + end[labels[:, -1]]
        return value

    def planes(self) -> tuple[Floats, list[Floats]]:
        """The slopes of the planes and last of the gold one, 0: by the scores ``(n, T, K)``, and by neighbours."""
        count = self.count
        by_score = np.zeros((count + 1, *self.scores.shape))
        by_neighbour = [np.zeros((count + 1, *part.shape)) for part in self.neighbours or ()]
        number, factor = np.arange(count)[:, None], self.factor[:count, None]
        for labels, sign in ((self.labels[:count], factor), (self.gold, -factor)):
            by_score[number, self.place, labels] += sign
            if by_neighbour:
                np.add.at(by_neighbour[0], (number, labels[..., :-1], labels[..., 1:]), sign)
                by_neighbour[1][number, labels[..., :1]] += sign
                by_neighbour[2][number, labels[..., -1:]] += sign
        return by_score, by_neighbour

    def ascend(self, steps: int) -> None:
        """Up to so many steps between two planes each; the planes do not change, only their values and shares do."""
        count, strength = self.count, float(self.arrays.strength[self.number])
        values, share, moved = np.zeros((3, count + 1))
        values[:count], share[:count], planes = self.values(), self.share[:count], None
        for _ in range(steps):
            rest = strength
            for part in share[:count].tolist():
                rest -= part
            share[count] = rest if rest > _ROUNDING * strength else 0.0
            having = np.flatnonzero(share > 0)
            high = count if values.max() <= 0 else int(values.argmax())
            if not len(having):
                break
            low = int(having[values[having].argmin()])
            if not values[high] > values[low]:
                break
            planes = planes or self.planes()
            along = self._along(planes, high, low)
            gain, square, most = values[high] - values[low], along[high] - along[low], share[low]
            size = gain / square if gain < most * square else most
            share[high] += size
            share[low] = 0.0 if size == most else share[low] - size
            values -= size * along
            moved[high] += size
            moved[low] -= size
        if planes is None:
            return
        self.share[:count] = share[:count]
        by_score, by_neighbour = planes
        self.state -= (moved @ by_score.reshape(len(moved), -1)).reshape(self.scores.shape).T @ self.rows
        for part, by in zip(self.neighbours or [], by_neighbour, strict=True):
            part -= self.kept.scale * (moved @ by.reshape(len(moved), -1)).reshape(part.shape)

    def _along(self, planes: tuple[Floats, list[Floats]], high: int, low: int) -> Floats:
        """How much the value of each plane falls with a step from ``low`` to ``high``, a unit long."""
        by_score, by_neighbour = planes
        move = self.inner @ (by_score[high] - by_score[low])
        fall: Floats = by_score.reshape(len(by_score), -1) @ move.ravel()
        for by in by_neighbour:
            flat = by.reshape(len(by), -1)
            fall += self.kept.scale * (flat @ (flat[high] - flat[low]))
        return fall
