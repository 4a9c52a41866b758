"""The loss of each row of scores, ``(*, K)`` with labels ``(*)`` to ``(*)``, as one node of the graph.

A `RowLoss` says its formula twice: in differentiable steps, which `torch.compile`, `torch.export`, functorch and second
derivatives read, and by hand, block of rows by block of rows, with its gradient.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor

from torch_multiclass.checks import captured, values_readable
from torch_multiclass.ops.flat import pick

_BLOCK = 1 << 18  # scores a CPU block may hold: temporaries stay in cache and cost no page faults
Notes = tuple[Tensor, ...]


class RowLoss(ABC):
    """A loss of one row, which sees no forbidden label (``-inf``): what that costs is `largest`."""

    sparse: ClassVar[bool] = False
    """Whether a gradient is written into zeros, since few of its entries are not 0."""
    largest: ClassVar[float] = math.inf
    """The loss where the label is forbidden."""

    @abstractmethod
    def formula(self, scores: Tensor, labels: Tensor) -> Tensor:
        """The losses ``(*)`` in differentiable steps."""

    @abstractmethod
    def losses(self, scores: Tensor, labels: Tensor, own: Tensor, odd: bool) -> tuple[Tensor, Notes]:
        """The losses of rows ``(n, K)`` whose labels score ``own (n,)``, and tensors ``(n,)`` for `slopes_`.

        They are asked for again with ``odd``, where infinities need care, if their sum is not finite.
        """

    @abstractmethod
    def slopes_(self, scores: Tensor, labels: Tensor, own: Tensor, factor: Tensor, out: Tensor, *notes: Tensor) -> None:
        """Write the derivatives of ``factor (n,)`` times the losses into ``out (n, K)``."""


def row_losses(
    loss: RowLoss, scores: Tensor, labels: Tensor, kept: Tensor | None = None, *, mean: bool = False
) -> Tensor:
    """The losses, 0 where not ``kept``, or with ``mean`` the mean of all: ``(*, K)`` and ``(*)`` to ``(*)`` or ``()``.

    ``+inf`` with zero gradient where the label itself is forbidden, NaN where a score that counts is.
    """
    if captured():
        return _formula(loss, scores, labels, kept, mean)
    if scores.ndim != 2:
        rows = None if kept is None else kept.reshape(-1)
        flat = row_losses(loss, scores.reshape(-1, scores.shape[-1]), labels.reshape(-1), rows, mean=mean)
        return flat if mean else flat.view(labels.shape)
    result: Tensor = Rows.apply(scores, labels, kept, loss, mean)  # type: ignore[no-untyped-call]
    return result


def _formula(loss: RowLoss, scores: Tensor, labels: Tensor, kept: Tensor | None, mean: bool) -> Tensor:
    forbidden = pick(scores.detach(), labels) == -math.inf
    usable = ~forbidden if kept is None else kept & ~forbidden
    losses = loss.formula(torch.where(usable.unsqueeze(-1), scores, 0.0), labels)
    best = scores.detach().amax(-1)
    rest = torch.where(best.isnan(), best, loss.largest)
    losses = torch.where(usable, losses, rest if kept is None else torch.where(kept, rest, 0.0))
    return losses.mean() if mean else losses


class Rows(torch.autograd.Function):
    """`row_losses` of ``(n, K)`` scores: one pass forward and one backward."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, labels: Tensor, kept: Tensor | None, loss: RowLoss, mean: bool) -> Tensor:
        """The losses, of which the gradient needs no more than a few numbers a row."""
        own = scores.gather(1, labels.unsqueeze(1)).squeeze(1)
        out = None if kept is None else ~kept  # rows without a loss or a gradient
        odd = not values_readable(scores)
        if not odd:
            losses, notes = _by_blocks(loss, scores, labels, own, odd)
            losses = losses if out is None else losses.masked_fill_(out, 0.0)
            total = losses.sum()
            odd = not math.isfinite(total.item())
        if odd:  # a forbidden label, a NaN or an overflow, or what cannot be read
            forbidden = own == -math.inf
            own = own.masked_fill(forbidden, 0.0)
            losses, notes = _by_blocks(loss, scores, labels, own, odd)
            losses = torch.where(forbidden & ~losses.isnan(), loss.largest, losses)
            losses = losses if out is None else losses.masked_fill_(out, 0.0)
            total = losses.sum()
            out = forbidden if out is None else out | forbidden
        if out is not None:
            notes = tuple(note.masked_fill(out, 0) for note in notes)
        ctx.save_for_backward(scores, labels, kept, own, out, *notes)
        ctx.loss, ctx.mean = loss, mean
        return total / len(labels) if mean else losses

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The slopes of each row, times what its loss counts for."""
        scores, labels, kept, own, out, *notes = ctx.saved_tensors
        loss: RowLoss = ctx.loss
        if torch.is_grad_enabled():  # a second derivative is asked for
            value = _formula(loss, scores, labels, kept, ctx.mean)
            return torch.autograd.grad(value, scores, grad, create_graph=True)[0], None, None, None, None
        factor = (grad / len(labels)).expand(len(labels)) if ctx.mean else grad
        if out is not None:
            factor = factor.masked_fill(out, 0.0)
        start = torch.zeros_like if loss.sparse else torch.empty_like
        gradient = start(scores, memory_format=torch.contiguous_format)
        parts = (scores, labels, own, factor, gradient, *notes)
        for block in _blocks(*parts):
            loss.slopes_(*block)
        if out is not None and not loss.sparse:
            gradient.masked_fill_(out.unsqueeze(1), 0.0)  # 0 times NaN is not 0
        return gradient, None, None, None, None


def _by_blocks(loss: RowLoss, scores: Tensor, labels: Tensor, own: Tensor, odd: bool) -> tuple[Tensor, Notes]:
    parts = [loss.losses(*block, odd) for block in _blocks(scores, labels, own)]
    if len(parts) == 1:
        return parts[0]
    losses = torch.cat([part for part, _ in parts])
    return losses, tuple(map(torch.cat, zip(*(notes for _, notes in parts), strict=True)))


def _blocks(scores: Tensor, *others: Tensor) -> Iterable[tuple[Tensor, ...]]:
    """Scores ``(n, K)`` and what has as many rows, some rows at a time."""
    rows, num_classes = scores.shape
    if rows * num_classes <= _BLOCK or scores.device.type != "cpu":
        return [(scores, *others)]
    step = max(1, _BLOCK // num_classes)
    return zip(*(torch.split(tensor, step) for tensor in (scores, *others)), strict=True)  # type: ignore[no-untyped-call]
