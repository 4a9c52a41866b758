"""Masks out, masks back: any batch shape and any mask as a chain of one batch dimension, aligned to the left."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass.checks import IGNORE, values_readable
from torch_multiclass.ops.chain import calls
from torch_multiclass.ops.chain.expected import Expected, of_chain
from torch_multiclass.ops.chain.masks import mask_lengths
from torch_multiclass.ops.chain.structure import Chain
from torch_multiclass.ops.precision import upcast


class LaidOut(NamedTuple):
    """A chain whose positions stand elsewhere in the input: what goes in and comes out is laid out as the input is.

    The input has ``T`` positions, of which the chain has those that the mask keeps, in order: a hole joins its
    neighbours by one transition.
    """

    chain: Chain
    mask: Tensor | None  # (B, T), True where a position counts; None where all do
    order: Tensor | None  # (B, T), where each position of the chain stands; None where it is left-aligned already

    # ------------------------------------------------------------------------------------------------ to and fro

    def left(self, values: Tensor) -> Tensor:
        """``(B, T, ...)`` of the input as the chain has it; anything past the lengths."""
        return values if self.order is None else gather(values, self.order)

    def left_labels(self, labels: Tensor) -> Tensor:
        """Labels ``(B, n, T)`` likewise."""
        return labels if self.order is None else labels.gather(2, self.order[:, None].expand_as(labels))

    def back(self, values: Tensor, fill: float = 0) -> Tensor:
        """``(B, T, ...)`` of the chain back to where it stands, ``fill`` where masked."""
        if self.mask is None:
            return values
        if self.order is not None:
            values = gather(values, (self.mask.cumsum(1) - 1).clamp_min(0))
        return torch.where(self.mask.view(*self.mask.shape, *[1] * (values.ndim - 2)), values, fill)

    def back_best(self, labels: Tensor) -> Tensor:
        """Labels ``(B, T)`` that are -100 past the lengths likewise."""
        return labels if self.order is None else self.back(labels, IGNORE)

    def back_labels(self, labels: Tensor) -> Tensor:
        """Labels ``(B, n, T)`` likewise, -100 where masked."""
        return labels if self.mask is None else self.back(labels.transpose(1, 2), IGNORE).transpose(1, 2)

    # ------------------------------------------------------------------------------------------------ the structure

    def terms(self, labels: Tensor) -> Tensor:
        """As `Chain.terms`."""
        return self.chain.terms(self.left_labels(labels))

    def expected(self, q: Tensor) -> Expected:
        """The mean of each term, and what is forbidden of it, for independent labels of probabilities ``(B, T, K)``."""
        return of_chain(self.chain, self.left(q))

    def by_position(self, terms: Tensor) -> tuple[Tensor, ...]:
        """As `Chain.by_position`."""
        return tuple(self.back(part) for part in self.chain.by_position(terms))

    def plus(self, unary: Tensor) -> LaidOut:
        """As `Chain.plus`."""
        return LaidOut(self.chain.plus(self.left(unary)), self.mask, self.order)

    def map(self, change: Callable[[Tensor], Tensor]) -> LaidOut:
        """As `Chain.map`."""
        return LaidOut(self.chain.map(change), self.mask, self.order)

    def times(self, factor: float | Tensor) -> LaidOut:
        """As `Chain.times`."""
        return LaidOut(self.chain.times(factor), self.mask, self.order)

    def below_best(self) -> LaidOut:
        """As `Chain.below_best`."""
        return LaidOut(self.chain.below_best(), self.mask, self.order)

    def centred(self) -> LaidOut:
        """As `Chain.centred`."""
        return LaidOut(self.chain.centred(), self.mask, self.order)

    def best_labels(self) -> Tensor:
        """The best labelling ``(B, T)``, -100 where masked."""
        return self.back_best(calls.best_labels(*self.chain, None))

    def log_partition(self) -> Tensor:
        """``log sum_y exp s(y)``, ``(B,)``."""
        return calls.value(self.chain, None, "auto")


def gather(values: Tensor, index: Tensor) -> Tensor:
    """``values[b, index[b, t], ...]``."""
    where = index.view(*index.shape, *[1] * (values.ndim - 2)).expand(*index.shape, *values.shape[2:])
    return values.gather(1, where)


def from_lengths(lengths: Tensor, steps: int) -> Tensor:
    """The mask ``(*, T)`` of sequences that fill the first ``lengths`` positions."""
    return torch.arange(steps, device=lengths.device) < lengths.unsqueeze(-1)


def lay_out(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    mask: Tensor | None = None,
    lengths: Tensor | None = None,
) -> LaidOut:
    """The chain with one batch dimension, in float32 at least, and where the mask puts it.

    Shape:
        emissions ``(*, T, K)``, transitions ``(K, K)`` or ``(*, T-1, K, K)``, start and end ``(K,)`` or ``(*, K)``,
        mask ``(*, T)`` bool, lengths ``(*)``; a mask, where there is one, says it all.

    >>> mask = torch.tensor([[False, True, False, True]])
    >>> laid = lay_out(torch.tensor([[[9.0], [1.0], [9.0], [2.0]]]), torch.zeros(1, 1), mask=mask)
    >>> laid.chain.emissions[:, :2, 0], laid.chain.lengths
    (tensor([[1., 2.]]), tensor([2]))
    """
    chain: Chain | None = None
    lead, steps = emissions.shape[:-2], emissions.shape[-2]
    batch = math.prod(lead)  # `numel` would make a dynamic batch a constant
    if start is not None and end is not None:  # the usual case, in few steps
        plain = Chain(emissions, transitions, start, end, None)
        dims = emissions.ndim, transitions.ndim, start.ndim, end.ndim
        chain = plain if dims == (3, 2, 1, 1) and plain.work() is plain else None
    if chain is None:
        chain = one_batch(emissions, transitions, start, end, lead)
    if mask is None:
        if lengths is None:
            return LaidOut(chain, None, None)
        lengths = lengths.reshape(batch).long()
        return LaidOut(chain.but(lengths=lengths), from_lengths(lengths, steps), None)
    mask = mask if mask.ndim == 2 else mask.reshape(batch, steps)
    seen = None if calls.watched() else mask_lengths(mask)
    if seen is None:
        counts = mask.sum(1)
        whole, left = _known(mask), _known(mask == from_lengths(counts, steps))
    else:
        counts, whole, left = seen
    if whole:
        return LaidOut(chain, None, None)
    if left:
        return LaidOut(Chain(*chain[:4], counts), mask, None)
    transitions = chain.transitions
    order = torch.argsort((~mask).to(torch.uint8), dim=1, stable=True)
    if transitions.ndim > 2:
        transitions = gather(transitions, (order[:, 1:] - 1).clamp_min(0))
    return LaidOut(Chain(gather(chain.emissions, order), transitions, chain.start, chain.end, counts), mask, order)


def one_batch(
    emissions: Tensor, transitions: Tensor, start: Tensor | None, end: Tensor | None, lead: torch.Size
) -> Chain:
    """The parts in float32 at least, with one batch dimension for those of ``lead``."""
    steps, k = emissions.shape[-2:]
    batch = math.prod(lead)
    emissions, transitions = upcast(emissions), upcast(transitions)
    start, end = None if start is None else upcast(start), None if end is None else upcast(end)
    if len(lead) != 1 or transitions.ndim > 2:
        emissions = emissions.reshape(batch, steps, k)
        if transitions.ndim > 2:
            transitions = transitions.expand(*lead, *transitions.shape[-3:]).reshape(batch, max(steps - 1, 0), k, k)
    start, end = None if start is None else _per_row(start, lead), None if end is None else _per_row(end, lead)
    return Chain.of(emissions, transitions, start, end)


def _known(holds: Tensor) -> bool:
    """Whether everything holds, where reading it is free; False, the safe answer, elsewhere."""
    return values_readable(holds) and bool(holds.all())


def _per_row(part: Tensor, lead: torch.Size) -> Tensor:
    return part if part.ndim == 1 else part.expand(*lead, part.shape[-1]).reshape(math.prod(lead), part.shape[-1])
