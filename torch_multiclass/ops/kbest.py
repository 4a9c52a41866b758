"""The k best labellings of any structure, by dividing what is left after each of them.

The labellings other than a best one ``y`` fall into one part for each position: those that agree with ``y`` on all
later positions and differ from it there. The best of every part is a best labelling under forbidden labels; the next
best labelling is the best of those found so far, and its own part is divided in turn.

Reference: Lawler (1972), A procedure for computing the k best solutions to discrete optimization problems.
"""

from __future__ import annotations

import math
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from torch_multiclass.checks import IGNORE
from torch_multiclass.ops.operators import operator, without_derivative

Self = TypeVar("Self", bound="Structure")


class Structure(Protocol):
    """What is asked of a record here."""

    @property
    def num_labels(self) -> int:
        """``K``."""

    def inside(self) -> Tensor:
        """``(B, T)``: which positions count."""

    def rows(self: Self, rows: Tensor) -> Self:
        """The structures of the given rows of the batch."""

    def plus(self: Self, unary: Tensor) -> Self:
        """With ``unary (B, T, K)`` added."""

    def terms(self, labels: Tensor) -> Tensor:
        """What labellings ``(B, n, T)`` add up."""

    def best_labels(self) -> Tensor:
        """The best labelling, of equal ones that with the lowest last label, then backwards."""


def k_best(structure: Structure, k: int) -> tuple[Tensor, Tensor]:
    """Labels ``(B, k, T)`` and scores ``(B, k)``, best first; -100 and ``-inf`` where fewer exist.

    Ties go to the lowest last label, then backwards. ``k T`` best labellings for each row of the batch.
    """
    inside, classes = structure.inside(), structure.num_labels
    batch, steps = inside.shape
    device = inside.device
    position, label = torch.arange(steps, device=device), torch.arange(classes, device=device)
    each = torch.arange(batch, device=device)[:, None].expand(batch, steps).flatten()  # a part a position, in one row
    divided_at = position.expand(batch, steps).flatten()[:, None]
    only, later = (position == divided_at)[..., None], (position > divided_at)[..., None]  # (B T, T, 1)
    # a part of the labellings: later than `at` as in `labels`, at `at` none of those in `banned`
    labels = structure.best_labels().clamp(min=0)[:, None]
    scores = structure.terms(labels).sum(2)
    at = torch.full_like(scores, steps - 1, dtype=torch.long)
    banned = torch.zeros(batch, 1, classes, dtype=torch.bool, device=device)
    found, values = [], []
    for rank in range(k):
        best = first_best(labels, scores)[:, None]
        path = labels.gather(1, best[..., None].expand(batch, 1, steps))[:, 0]
        value = scores.gather(1, best)
        found.append(torch.where(inside & (value > -math.inf), path, IGNORE))
        values.append(value[:, 0])
        scores = scores.scatter(1, best, torch.full_like(value, -math.inf))
        if rank + 1 == k or steps == 0 or batch == 0:
            continue
        divides = at.gather(1, best)  # (B, 1)
        here = path[..., None] == label
        own = (position == divides)[..., None] & banned.gather(1, best[..., None].expand(batch, 1, classes))
        out = here | own  # (B, part, K), what is banned where a part divides
        bans = (later & ~here[each]) | (only & out[each])
        part = structure.rows(each).plus(torch.where(bans, -math.inf, 0.0).to(scores.dtype))
        divided = part.best_labels().clamp(min=0)
        gained = part.terms(divided[:, None]).sum(2).view(batch, steps)
        usable = inside & (position <= divides) & (value > -math.inf)
        scores = torch.cat([scores, torch.where(usable, gained, -math.inf)], 1)
        labels = torch.cat([labels, divided.view(batch, steps, steps)], 1)
        at, banned = torch.cat([at, position.expand(batch, -1)], 1), torch.cat([banned, out], 1)
    return torch.stack(found, 1), torch.stack(values, 1)


def _first_best(labels: Tensor, scores: Tensor) -> Tensor:
    left = scores == scores.amax(1, keepdim=True)
    for label in labels.unbind(2)[::-1]:
        lowest = torch.where(left, label, torch.iinfo(label.dtype).max).amin(1, keepdim=True)
        left = left & (label == lowest)
    return left.int().argmax(1)


_operator = operator(
    "first_best(Tensor labels, Tensor scores) -> Tensor",
    _first_best,
    lambda labels, scores: labels.new_empty(labels.shape[0]),
)
without_derivative(_operator)


def first_best(labels: Tensor, scores: Tensor) -> Tensor:
    """Which of the labellings ``(B, C, T)`` is the best, of equal ones that with the lowest last label, then back."""
    found: Tensor = _operator(labels, scores) if torch.compiler.is_compiling() else _first_best(labels, scores)
    return found
