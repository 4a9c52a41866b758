"""One label among K: the best rival of a label, and sums of hinges over the rivals.

Scores are ``(*, K)``, labels ``(*)`` in ``0..K-1``.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from torch_multiclass.checks import captured

_CHUNKED_FROM = 256  # classes; below, one masked copy is as cheap as two passes over chunks
_BLOCK = 1 << 18  # scores a CPU block may hold: temporaries stay in cache and cost no page faults


def pick(scores: Tensor, labels: Tensor) -> Tensor:
    """The score of each label, ``f_y``: ``(*, K)`` and ``(*)`` to ``(*)``."""
    return scores.gather(-1, labels.unsqueeze(-1)).squeeze(-1)


def best_rival(scores: Tensor, labels: Tensor) -> Tensor:
    """The lowest class among the best other than the label: ``argmax_{y' != y} f_{y'}``. Needs ``K >= 2``."""
    scores = scores.detach()
    label = labels.unsqueeze(-1)
    num_classes = scores.shape[-1]
    if num_classes < _CHUNKED_FROM:
        best = scores.scatter(-1, label, -math.inf).argmax(-1)
    else:
        best = _best_rival_by_chunks(scores, label)
    # where every rival is -inf, the masked label may have won the tie: the lowest rival is class 0 or 1
    return torch.where(best == labels, (labels == 0).to(best.dtype), best)


def _best_rival_by_chunks(scores: Tensor, label: Tensor) -> Tensor:
    num_classes = scores.shape[-1]
    # `amax` runs at memory speed and `argmax` six times slower: take the maximum of each chunk, repair the label's
    # own chunk, and look for the index only within the chunk that won.
    width = math.isqrt(num_classes)
    whole = num_classes // width * width
    within = torch.arange(width, device=scores.device)

    def chunk(index: Tensor) -> tuple[Tensor, Tensor]:
        classes = (index * width + within).clamp(max=num_classes - 1)
        return classes, scores.gather(-1, classes).masked_fill(classes == label, -math.inf)

    maxima = scores[..., :whole].reshape(*scores.shape[:-1], whole // width, width).amax(-1)
    if whole < num_classes:
        maxima = torch.cat([maxima, scores[..., whole:].amax(-1, keepdim=True)], -1)
    own = label // width
    maxima = maxima.scatter(-1, own, chunk(own)[1].amax(-1, keepdim=True))
    classes, values = chunk(maxima.argmax(-1, keepdim=True))
    return classes.gather(-1, values.argmax(-1, keepdim=True)).squeeze(-1)


def power_of(hinge: Tensor, power: float) -> Tensor:
    """``hinge ** power`` for a non-negative hinge, with finite derivatives at 0 for powers 1 and 2."""
    if power == 1:
        return hinge
    return hinge.square() if power == 2 else hinge.pow(power)


def margin_hinge(
    scores: Tensor, labels: Tensor, kept: Tensor | None, margin: float, power: float, mean: bool = False
) -> Tensor:
    """``[margin - f_y + max_{y' != y} f_{y'}]_+ ** power``, 0 where not kept: ``(*, K)`` and ``(*)`` to ``(*)``.

    ``+inf`` with zero gradient where the label itself is forbidden. Needs ``K >= 2``. With ``mean`` their mean, in the
    same node.
    """
    if captured():
        losses = _margin_hinge_formula(scores, labels, best_rival(scores, labels), kept, margin, power)
        return losses.mean() if mean else losses
    if scores.ndim != 2:
        rows = None if kept is None else kept.reshape(-1)
        flat = margin_hinge(scores.reshape(-1, scores.shape[-1]), labels.reshape(-1), rows, margin, power, mean)
        return flat if mean else flat.reshape(labels.shape)
    result: Tensor = MarginHinge.apply(scores, labels, kept, margin, power, mean)  # type: ignore[no-untyped-call]
    return result


def _margin_hinge_formula(
    scores: Tensor, labels: Tensor, rival: Tensor, kept: Tensor | None, margin: float, power: float
) -> Tensor:
    own, best = scores.gather(-1, torch.stack([labels, rival], -1)).unbind(-1)  # one gather: one sparse gradient
    slack = torch.where(own == -math.inf, best.detach().clamp(-1, 1) + math.inf, margin - (own - best))
    return power_of((slack if kept is None else torch.where(kept, slack, 0.0)).clamp(min=0), power)


class MarginHinge(torch.autograd.Function):
    """`margin_hinge` as one node, its gradient written into zeros."""

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, labels: Tensor, kept: Tensor | None, margin: float, power: float, mean: bool
    ) -> Tensor:
        """The hinges; the best rival of each row is kept for the gradient."""
        label = labels.unsqueeze(1)
        own = scores.gather(1, label).squeeze(1)
        least = torch.finfo(scores.dtype).min  # where all rivals are forbidden: -inf less -inf would be NaN
        if scores.shape[1] < _CHUNKED_FROM:
            best, rival = scores.scatter(1, label, least).max(1)
        else:
            rival = best_rival(scores, labels)
            best = pick(scores, rival).clamp_(min=least)
        hinge = best.sub_(own).add_(margin).clamp_(min=0)
        if kept is not None:
            hinge = hinge.masked_fill_(~kept, 0.0)
        ctx.save_for_backward(scores, labels, kept, rival, hinge)
        ctx.margin, ctx.power, ctx.mean = margin, power, mean
        losses = power_of(hinge, power)
        return losses.mean() if mean else losses

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The slope of each hinge at the rival, and minus it at the label."""
        scores, labels, kept, rival, hinge = ctx.saved_tensors
        label, best = labels.unsqueeze(1), rival.unsqueeze(1)
        grad = grad / len(scores) if ctx.mean else grad
        out = torch.zeros_like(scores, memory_format=torch.contiguous_format)
        if torch.is_grad_enabled():  # a second derivative is asked for: the same gradient in differentiable steps
            again = _margin_hinge_formula(scores, labels, rival, kept, ctx.margin, 1)
            slope = hinge.sign() if ctx.power == 1 else ctx.power * power_of(again, ctx.power - 1)
            slope = (torch.where((hinge == 0) | (hinge == math.inf), 0.0, slope) * grad).unsqueeze(1)
            return out.scatter(1, best, slope).scatter(1, label, -slope), None, None, None, None, None
        slope = hinge.sign() if ctx.power == 1 else power_of(hinge, ctx.power - 1).mul(ctx.power)
        slope = slope.masked_fill_(hinge == math.inf, 0.0).mul_(grad).unsqueeze(1)
        return out.scatter_(1, best, slope).scatter_(1, label, slope.neg_()), None, None, None, None, None


def hinge_sum(scores: Tensor, labels: Tensor, margin: float, power: float) -> Tensor:
    """``sum_{y' != y} [margin - f_y + f_{y'}]_+ ** power``: ``(*, K)`` and ``(*)`` to ``(*)``."""
    if captured():
        return _hinge_sum_formula(scores, labels, margin, power)
    shape = labels.shape
    total: Tensor = HingeSum.apply(
        scores.reshape(-1, scores.shape[-1]), labels.reshape(-1), float(margin), float(power)
    )  # type: ignore[no-untyped-call]
    return total.reshape(shape)


def _hinge_sum_formula(scores: Tensor, labels: Tensor, margin: float, power: float) -> Tensor:
    label = labels.unsqueeze(-1)
    hinges = (scores - (scores.gather(-1, label) - margin)).clamp(min=0)
    return power_of(hinges, power).scatter(-1, label, 0.0).sum(-1)


class HingeSum(torch.autograd.Function):
    """`hinge_sum` in one pass forward and one backward, row block by row block."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, labels: Tensor, margin: float, power: float) -> Tensor:
        """The sums, without keeping the hinges."""
        ctx.save_for_backward(scores, labels)
        ctx.margin, ctx.power = margin, power
        total = scores.new_empty(scores.shape[0])
        for rows in _blocks(scores):
            total[rows] = _hinge_sum_formula_(scores[rows], labels[rows], margin, power)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        """The gradient of each hinge that is not 0, and minus their sum at the label."""
        scores, labels = ctx.saved_tensors
        margin, power = ctx.margin, ctx.power
        label = labels.unsqueeze(-1)
        if torch.is_grad_enabled():  # a second derivative is asked for: the same gradient in differentiable steps
            hinges = (scores - (scores.gather(-1, label) - margin)).clamp(min=0)
            slope = (hinges > 0).to(hinges.dtype) if power == 1 else power * power_of(hinges, power - 1)
            slope = slope.scatter(-1, label, 0.0) * grad.unsqueeze(-1)
            return slope.scatter_add(-1, label, -slope.sum(-1, keepdim=True)), None, None, None
        out = torch.empty_like(scores, memory_format=torch.contiguous_format)
        for rows in _blocks(scores):
            own, slope = label[rows], out[rows]
            torch.sub(scores[rows], scores[rows].gather(-1, own) - margin, out=slope)
            if power == 1:
                torch.gt(slope, 0, out=slope)
            else:
                slope.clamp_(min=0).pow_(power - 1).mul_(power)
            slope.scatter_(-1, own, 0.0)
            slope.mul_(grad[rows].unsqueeze(-1))
            slope.scatter_(-1, own, -slope.sum(-1, keepdim=True))
        return out, None, None, None


def _hinge_sum_formula_(scores: Tensor, labels: Tensor, margin: float, power: float) -> Tensor:
    label = labels.unsqueeze(-1)
    hinges = torch.sub(scores, scores.gather(-1, label) - margin).clamp_(min=0)
    return power_of(hinges, power).scatter_(-1, label, 0.0).sum(-1)


def log_sum_exp(scores: Tensor, labels: Tensor | None = None) -> Tensor:
    """``log sum_y e^{f_y}``, or with labels ``log sum_{y'} e^{f_{y'} - f_y}``: ``(*, K)`` to ``(*)``.

    ``-inf`` with zero gradient where every score is ``-inf``.
    """
    if labels is not None and (captured() or scores.device.type != "cpu"):  # a fused kernel exists
        rows = scores.reshape(-1, scores.shape[-1])
        return torch.nn.functional.cross_entropy(rows, labels.reshape(-1), reduction="none").reshape(labels.shape)
    if captured():
        top = _finite(scores.detach().amax(-1, keepdim=True))
        total = (scores - top).exp().sum(-1)
        dead = total == 0
        log_sum = torch.where(dead, -math.inf, torch.where(dead, 1.0, total).log())
        return log_sum + top.squeeze(-1)
    rows = scores.reshape(-1, scores.shape[-1])
    flat: Tensor = LogSumExp.apply(rows, None if labels is None else labels.reshape(-1))  # type: ignore[no-untyped-call]
    return flat.reshape(scores.shape[:-1])


class LogSumExp(torch.autograd.Function):
    """`log_sum_exp` in one pass forward and one backward, row block by row block."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, labels: Tensor | None) -> Tensor:
        """The logarithms, without keeping the exponentials."""
        top, total = scores.new_empty(2, scores.shape[0]).unbind()
        for rows in _blocks(scores):
            top[rows] = _finite(scores[rows].amax(-1))
            total[rows] = torch.sub(scores[rows], top[rows].unsqueeze(-1)).exp_().sum(-1)
        log_sum = total.log()
        ctx.save_for_backward(scores, labels, top + log_sum)
        return log_sum + (top if labels is None else top - pick(scores, labels))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """The soft-max, less 1 at the label."""
        scores, labels, log_z = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is asked for: the same gradient in differentiable steps
            log_z = torch.logsumexp(torch.where((log_z == -math.inf).unsqueeze(-1), 0.0, scores), -1)
            out = (scores - log_z.unsqueeze(-1)).exp() * grad.unsqueeze(-1)
            return (out if labels is None else out.scatter_add(-1, labels.unsqueeze(-1), -grad.unsqueeze(-1))), None
        shift = _finite(log_z).unsqueeze(-1)
        out = torch.empty_like(scores, memory_format=torch.contiguous_format)
        for rows in _blocks(scores):
            torch.sub(scores[rows], shift[rows], out=out[rows]).exp_().mul_(grad[rows].unsqueeze(-1))
        if labels is not None:
            out.scatter_add_(-1, labels.unsqueeze(-1), -grad.unsqueeze(-1))
        return out, None


def _finite(tensor: Tensor) -> Tensor:
    """Infinities as 0, so that a shift by them does not make NaN; NaN stays."""
    return torch.where(tensor.isinf(), 0.0, tensor)


def _blocks(scores: Tensor) -> list[slice]:
    rows = scores.shape[0]
    step = max(1, _BLOCK // max(1, scores.shape[-1])) if scores.device.type == "cpu" else max(1, rows)
    return [slice(start, start + step) for start in range(0, rows, step)]
