"""The sum of a binary loss over the columns that a label asks, as one node."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_multiclass.checks import captured
from torch_multiclass.ops.margins import MarginLoss


def asked_sum(z: Tensor, asked: Tensor | None, loss: MarginLoss) -> Tensor:
    """``sum_s l(z_s)`` over the columns that ask, None for all: ``(*, A)`` to ``(*)``."""
    if captured():
        losses = loss.value(z)
        return (losses if asked is None else torch.where(asked, losses, 0.0)).sum(-1)
    total: Tensor = AskedSum.apply(z, asked, loss)  # type: ignore[no-untyped-call]
    return total


class AskedSum(torch.autograd.Function):
    """`asked_sum` as one node."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, asked: Tensor | None, loss: MarginLoss) -> Tensor:
        """The sums."""
        unasked = None if asked is None else ~asked
        ctx.save_for_backward(z, unasked)
        ctx.loss = loss
        losses = loss.value(z)
        return (losses if unasked is None else losses.masked_fill_(unasked, 0.0)).sum(-1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        """The slope of each column's loss."""
        z, unasked = ctx.saved_tensors
        twice = torch.is_grad_enabled()  # a second derivative is asked for
        slope = Slope.apply(z, ctx.loss) if twice else ctx.loss.slope(z)  # type: ignore[no-untyped-call]
        slope = slope if unasked is None else slope.masked_fill(unasked, 0.0)
        return slope * grad.unsqueeze(-1), None, None


class Slope(torch.autograd.Function):
    """``l'(z)``, whose derivative is ``l''(z)``."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, loss: MarginLoss) -> Tensor:
        """The slopes."""
        ctx.save_for_backward(z)
        ctx.loss = loss
        return loss.slope(z)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """The curvatures."""
        (z,) = ctx.saved_tensors
        return ctx.loss.curvature(z) * grad, None
