"""How a chain of any batch shape and mask is laid out for the recursions: one batch dimension, aligned to the left."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.ops.chain import conditional
from torch_multiclass.ops.chain import mask as masks
from torch_multiclass.ops.chain.path import below_best
from torch_multiclass.ops.precision import upcast
from torch_multiclass.scores.flat import all_true


class Compact(NamedTuple):
    """The parts of the scores with one batch dimension, as given, and how masked positions are taken out of them."""

    emissions: Tensor
    transitions: Tensor
    start: Tensor | None
    end: Tensor | None
    lengths: Tensor | None
    mask: Tensor | None
    order: Tensor | None  # None where the sequences are left-aligned already

    def parts(self) -> conditional.Parts:
        """The compact chain, with zeros beyond the lengths."""
        transitions = self.transitions
        if self.order is not None and transitions.ndim == 4:
            into = (self.order[:, 1:] - 1).clamp(min=0)
            assert self.mask is not None
            transitions = masks.take(transitions, into, torch.ones_like(into, dtype=torch.bool))
        return self.compact(self.emissions), transitions, self.start, self.end, self.lengths

    def below_best(self) -> Compact:
        """Transitions, start and end less the best of each: every labelling loses the same."""
        start, end = (None if part is None else below_best(part, (-1,)) for part in (self.start, self.end))
        return self._replace(transitions=below_best(self.transitions, (-2, -1)), start=start, end=end)

    def compact(self, values: Tensor) -> Tensor:
        """``(B, T, ...)`` left-aligned, 0 beyond the lengths."""
        if self.mask is None or self.lengths is None:
            return values
        if self.order is None:
            return torch.where(self.mask.view(*self.mask.shape, *[1] * (values.ndim - 2)), values, 0.0)
        return masks.take(values, self.order, masks.from_lengths(self.lengths, values.shape[1]))

    def compact_labels(self, labels: Tensor) -> Tensor:
        """``(B, T)`` labels left-aligned."""
        return labels if self.order is None else labels.gather(1, self.order)

    def spread(self, labels: Tensor) -> Tensor:
        """Labels ``(B, T)`` or ``(B, n, T)`` of the compact chain back to where they stand, -100 where masked."""
        if self.mask is None:
            return labels
        if labels.ndim == 3:
            return self._spread(labels.transpose(1, 2), check.IGNORE).transpose(1, 2)
        return self._spread(labels, check.IGNORE)

    def spread_positions(self, values: Tensor) -> Tensor:
        """``(B, T, ...)`` back to where they stand, 0 where masked."""
        return values if self.mask is None else self._spread(values, 0)

    def _spread(self, values: Tensor, fill: float) -> Tensor:
        assert self.mask is not None
        if self.order is None:
            return torch.where(self.mask.view(*self.mask.shape, *[1] * (values.ndim - 2)), values, fill)
        return masks.spread(values, self.mask, fill)


def flattened(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None,
    end: Tensor | None,
    mask: Tensor | None,
    lengths: Tensor | None,
) -> Compact:
    """The parts with one batch dimension, in float32 at least, and where the mask puts them.

    Shape:
        emissions ``(*, T, K)``, transitions ``(K, K)`` or ``(*, T-1, K, K)``, start and end ``(K,)`` or ``(*, K)``,
        mask ``(*, T)``, lengths ``(*)``.
    """
    batch_shape = emissions.shape[:-2]
    steps, k = emissions.shape[-2:]
    batch = math.prod(batch_shape)  # `numel` would make a dynamic batch a constant
    transitions = upcast(transitions)
    if transitions.ndim > 2:
        transitions = transitions.expand(*batch_shape, *transitions.shape[-3:]).reshape(batch, max(steps - 1, 0), k, k)
    start, end = (per_row(part, batch_shape) for part in (start, end))
    emissions = upcast(emissions).reshape(batch, steps, k)
    if mask is None:
        if lengths is None:
            return Compact(emissions, transitions, start, end, None, None, None)
        lengths = lengths.reshape(batch).long()
        return Compact(emissions, transitions, start, end, lengths, masks.from_lengths(lengths, steps), None)
    kept = mask.reshape(batch, steps)
    if all_true(kept):
        return Compact(emissions, transitions, start, end, None, None, None)
    lengths = kept.sum(1)
    if all_true(kept == masks.from_lengths(lengths, steps)):
        return Compact(emissions, transitions, start, end, lengths, kept, None)
    index, lengths = masks.compact(kept)
    return Compact(emissions, transitions, start, end, lengths, kept, index)


def by_position(terms: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
    """The terms of a path as two ``(B, T, 1)``: emissions, and transitions with the start first and the end last."""
    steps = terms.shape[1] // 2
    position = torch.arange(steps, device=terms.device)
    final = steps - 1 if lengths is None else (lengths - 1).unsqueeze(1)
    moves = torch.cat([terms[:, -2:-1], terms[:, steps:-2]], 1) + torch.where(position == final, terms[:, -1:], 0.0)
    return terms[:, :steps].unsqueeze(2), moves.unsqueeze(2)


def per_row(part: Tensor | None, batch_shape: torch.Size) -> Tensor | None:
    if part is None or part.ndim == 1:
        return None if part is None else upcast(part)
    return upcast(part).expand(*batch_shape, part.shape[-1]).reshape(math.prod(batch_shape), part.shape[-1])
