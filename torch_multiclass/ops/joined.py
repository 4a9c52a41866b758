"""Masks out, masks back, for any structure over positions in a row: what remains is one, aligned to the left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_multiclass.checks import IGNORE
from torch_multiclass.ops.chain.expected import Expected
from torch_multiclass.ops.chain.layout import LaidOut


class Joined(NamedTuple):
    """A record whose positions stand elsewhere in the input: what goes in and comes out is laid out as the input is.

    The input has ``T`` positions, of which the record has those that the mask keeps, in order.
    """

    record: Any
    mask: Tensor | None  # (B, T), True where a position counts; None where all do
    order: Tensor | None  # (B, T), where each position of the record stands; None where it is left-aligned already

    @property
    def _laid(self) -> LaidOut:
        return LaidOut(self.record, self.mask, self.order)

    def left(self, values: Tensor) -> Tensor:
        """``(B, T, ...)`` of the input as the record has it; anything past the lengths."""
        return self._laid.left(values)

    def back(self, values: Tensor) -> Tensor:
        """``(B, T, ...)`` of the record back to where it stands, 0 where masked."""
        return self._laid.back(values)

    def back_labels(self, labels: Tensor) -> Tensor:
        """Labels ``(B, n, T)`` of the record back to where they stand, -100 where masked."""
        return self._laid.back_labels(labels)

    def _changed(self, record: Any) -> Joined:
        return self._replace(record=record)

    @property
    def num_labels(self) -> int:
        """How many labels a position may have."""
        labels: int = self.record.num_labels
        return labels

    def inside(self) -> Tensor:
        """``(B, T)``: which positions count."""
        inside: Tensor = self.record.inside() if self.mask is None else self.mask
        return inside

    def rows(self, rows: Tensor) -> Joined:
        """The structures of the given rows of the batch."""
        mask, order = (None if part is None else part[rows] for part in (self.mask, self.order))
        return Joined(self.record.rows(rows), mask, order)

    def map(self, change: Callable[[Tensor], Tensor]) -> Joined:
        """The same with every tensor of scores changed."""
        return self._changed(self.record.map(change))

    def clean(self) -> Joined:
        """The same with zeros where scores are of no meaning."""
        return self._changed(self.record.clean())

    def terms(self, labels: Tensor) -> Tensor:
        """What labellings ``(B, n, T)`` add up, ``(B, n, M)``."""
        terms: Tensor = self.record.terms(self._laid.left_labels(labels))
        return terms

    def expected(self, q: Tensor) -> Expected:
        """The mean of each term, and what is forbidden of it, for independent labels of probabilities ``(B, T, K)``."""
        terms: Expected = self.record.expected(self.left(q))
        return terms

    def by_position(self, terms: Tensor) -> tuple[Tensor, ...]:
        """The terms ``(B, M)`` of one labelling as parts ``(B, T)``, each where it stands."""
        return tuple(self._laid.back(part) for part in self.record.by_position(terms))

    def plus(self, unary: Tensor) -> Joined:
        """With ``(B, T, K | 1)`` added to the score of each label at each position."""
        return self._changed(self.record.plus(self.left(unary)))

    def times(self, factor: float | Tensor) -> Joined:
        """With every score multiplied by the factor."""
        return self._changed(self.record.times(factor))

    def below_best(self) -> Joined:
        """Moves less the best of each kind, where every labelling loses the same."""
        return self._changed(self.record.below_best())

    def centred(self) -> Joined:
        """Emissions less the best of their position."""
        return self._changed(self.record.centred())

    def best_labels(self) -> Tensor:
        """The best labelling ``(B, T)``, -100 where masked."""
        return self._laid.back(self.record.best_labels(), IGNORE)

    def k_best(self, k: int) -> tuple[Tensor, Tensor]:
        """The ``k`` best labellings ``(B, k, T)`` and their scores ``(B, k)``."""
        labels, scores = self.record.k_best(k)
        return self.back_labels(labels), scores

    def log_partition(self) -> Tensor:
        """``log sum_y exp s(y)``, ``(B,)``."""
        value: Tensor = self.record.log_partition()
        return value

    def marginals(self) -> Tensor:
        """``P(y_t = k)``, ``(B, T, K)``; 0 where masked."""
        return self._laid.back(self.record.marginals())

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` labellings drawn from ``p(y) ~ exp s(y)``, ``(B, n, T)``; -100 where masked."""
        return self.back_labels(self.record.sample(n, generator))
