"""The loss of each row of scores, ``(*, K)`` with labels ``(*)`` to ``(*)``, as one node of the graph.

A `RowLoss` says its formula twice: in differentiable steps, which `torch.compile`, `torch.export`, functorch and second
derivatives read, and by hand, block of rows by block of rows, with its gradient.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import repeat
from typing import Any, ClassVar

import torch
from torch import Tensor

from torch_multiclass.checks import captured

_BLOCK = 1 << 18  # scores a CPU block may hold: temporaries stay in cache and cost no page faults
_READABLE = (Tensor, torch.nn.Parameter)
Notes = tuple[Tensor, ...]


class RowLoss(ABC):
    """A loss of one row, which sees no forbidden label (``-inf``): what that costs is `largest`.

    Scores are ``(*, K)``; the label and every number of a row keep a last dimension, ``(*, 1)``.
    """

    sparse: ClassVar[bool] = False
    """Whether a gradient is written into zeros, since few of its entries are not 0."""
    largest: ClassVar[float] = math.inf
    """The loss where the label is forbidden."""

    @abstractmethod
    def formula(self, scores: Tensor, label: Tensor) -> Tensor:
        """The losses in differentiable steps."""

    @abstractmethod
    def losses(self, scores: Tensor, label: Tensor, own: Tensor, odd: bool) -> tuple[Tensor, Notes]:
        """The losses of rows ``(n, K)`` whose labels score ``own``, and what `slopes_` has to know of each.

        They are asked for again with ``odd``, where infinities need care, if their sum is not finite.
        """

    @abstractmethod
    def slopes_(self, scores: Tensor, label: Tensor, own: Tensor, factor: Tensor, out: Tensor, *notes: Tensor) -> None:
        """Write the derivatives of the losses times the factor, ``(n, 1)`` or ``()``, into ``out (n, K)``."""


def row_losses(
    loss: RowLoss, scores: Tensor, labels: Tensor, kept: Tensor | None = None, *, mean: bool = False
) -> Tensor:
    """The losses, 0 where not ``kept``, or with ``mean`` the mean of all: ``(*, K)`` and ``(*)`` to ``(*)`` or ``()``.

    ``+inf`` with zero gradient where the label itself is forbidden, NaN where a score that counts is.
    """
    label = labels.unsqueeze(-1)
    kept = kept if kept is None else kept.unsqueeze(-1)
    if captured():
        return _formula(loss, scores, label, kept, mean)
    if scores.ndim != 2:
        scores, label = scores.reshape(-1, scores.shape[-1]), label.reshape(-1, 1)
        kept = kept if kept is None else kept.reshape(-1, 1)
    losses: Tensor = Rows.apply(scores, label, kept, loss, mean)  # type: ignore[no-untyped-call]
    return losses if mean or losses.shape == labels.shape else losses.view(labels.shape)


def _formula(loss: RowLoss, scores: Tensor, label: Tensor, kept: Tensor | None, mean: bool) -> Tensor:
    forbidden = scores.detach().gather(-1, label) == -math.inf
    usable = ~forbidden if kept is None else kept & ~forbidden
    losses = loss.formula(torch.where(usable, scores, 0.0), label)
    best = scores.detach().amax(-1, keepdim=True)
    rest = torch.where(best.isnan(), best, loss.largest)
    losses = torch.where(usable, losses, rest if kept is None else torch.where(kept, rest, 0.0))
    return losses.mean() if mean else losses.squeeze(-1)


class Rows(torch.autograd.Function):
    """`row_losses` of ``(n, K)`` scores: one pass forward and one backward."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, label: Tensor, kept: Tensor | None, loss: RowLoss, mean: bool) -> Tensor:
        """The losses, of which the gradient needs no more than a few numbers a row."""
        own = scores.gather(1, label)
        out = None if kept is None else ~kept  # rows without a loss or a gradient
        odd = not _readable(scores) or scores.shape[1] == 1  # no rival shows -inf
        if not odd:
            losses, notes = _by_blocks(loss, scores, label, own, odd)
            losses = losses if out is None else losses.masked_fill_(out, 0.0)
            total = losses.mean() if mean else losses.sum()
            odd = not math.isfinite(total.item())
        if odd:  # a forbidden label, a NaN or an overflow, or what cannot be read
            forbidden = own == -math.inf
            own = own.masked_fill(forbidden, 0.0)
            losses, notes = _by_blocks(loss, scores, label, own, odd)
            losses = torch.where(forbidden & ~losses.isnan(), loss.largest, losses)
            losses = losses if out is None else losses.masked_fill_(out, 0.0)
            total = losses.mean()
            out = forbidden if out is None else out | forbidden
        if out is not None:
            notes = tuple(note.masked_fill(out, 0) for note in notes)
        ctx.save_for_backward(scores, label, kept, own, out, *notes)
        ctx.loss, ctx.mean = loss, mean
        return total if mean else losses.squeeze(1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The slopes of each row, times what its loss counts for."""
        scores, label, kept, own, out, *notes = ctx.saved_tensors
        loss: RowLoss = ctx.loss
        if torch.is_grad_enabled():  # a second derivative is asked for
            value = _formula(loss, scores, label, kept, ctx.mean)
            return torch.autograd.grad(value, scores, grad, create_graph=True)[0], None, None, None, None
        factor = grad / label.shape[0] if ctx.mean else grad.unsqueeze(1)
        if out is not None:
            factor = torch.where(out, 0.0, factor)
        gradient = torch.zeros_like(scores) if loss.sparse else torch.empty_like(scores)
        for block in _blocks(scores, label, own, factor, gradient, *notes):
            loss.slopes_(*block)
        if out is not None and not loss.sparse:
            gradient.masked_fill_(out, 0.0)  # 0 times NaN is not 0
        return gradient, None, None, None, None


def _by_blocks(loss: RowLoss, scores: Tensor, label: Tensor, own: Tensor, odd: bool) -> tuple[Tensor, Notes]:
    if _fits(scores):
        return loss.losses(scores, label, own, odd)
    parts = [loss.losses(rows, labels, scored, odd) for rows, labels, scored in _blocks(scores, label, own)]
    losses = torch.cat([part for part, _ in parts])
    return losses, tuple(map(torch.cat, zip(*(notes for _, notes in parts), strict=True)))


def _readable(scores: Tensor) -> bool:
    """Whether reading a number is free, and nobody looks on who may have none."""
    return scores.is_cpu and type(scores) in _READABLE and torch._C._len_torch_dispatch_stack() == 0


def _fits(scores: Tensor) -> bool:
    """Whether all rows make one block."""
    return scores.numel() <= _BLOCK or scores.device.type != "cpu"


def _blocks(scores: Tensor, *others: Tensor) -> Iterable[tuple[Tensor, ...]]:
    """Scores ``(n, K)`` and what has as many rows, or is one number for all of them, some rows at a time."""
    if _fits(scores):
        return [(scores, *others)]
    step = max(1, _BLOCK // scores.shape[1])
    parts = (repeat(tensor) if tensor.ndim == 0 else torch.split(tensor, step) for tensor in others)
    return zip(torch.split(scores, step), *parts, strict=False)
