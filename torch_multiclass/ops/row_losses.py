"""The losses of one label, written in ``d_k = f_k - f_y``, the score of a class relative to the label's.

A cost, a ``(K, K)`` tensor, takes the place of a margin: ``L(y, k)`` for the rival ``k``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from torch_multiclass.ops.flat import best_class, best_of_rivals, best_rival, pick, power_of
from torch_multiclass.ops.rows import Notes, RowLoss


def _relative(scores: Tensor, own: Tensor, labels: Tensor, margin: float, cost: Tensor | None) -> Tensor:
    """``margin + d``, or ``L(y, .) + d``: the difference first, so that large scores lose nothing to the margin."""
    d = scores - own.unsqueeze(-1)
    if cost is not None:
        return d.add_(torch.embedding(cost, labels))
    return d.add_(margin) if margin else d


class _OneRival(RowLoss):
    """A loss whose gradient is a slope at one rival, and minus it at the label."""

    sparse = True

    def slopes_(self, scores: Tensor, labels: Tensor, own: Tensor, factor: Tensor, out: Tensor, *notes: Tensor) -> None:
        """Two entries a row, written into zeros."""
        rival, slope = notes
        slope = (slope * factor).unsqueeze(1)
        out.scatter_(1, rival.unsqueeze(1), slope).scatter_(1, labels.unsqueeze(1), slope.neg_())


@dataclass
class BestRival(_OneRival):
    """``[margin + max_{k != y} d_k]_+ ** power``; with a cost ``[max_k L(y, k) + d_k]_+ ** power``."""

    margin: float = 1.0
    power: float = 1
    cost: Tensor | None = None

    def formula(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Through the best rival."""
        if scores.shape[-1] == 1:
            return _nothing(scores)
        if self.cost is None:
            rival = best_rival(scores, labels)
            return self._of_hinge(torch.relu(_of_rival(scores, labels, rival) + self.margin))
        fixed = scores.detach()
        rival = _relative(fixed, pick(fixed, labels), labels, 0.0, self.cost).argmax(-1)
        return self._of_hinge(
            torch.relu(_of_rival(scores, labels, rival) + pick(torch.embedding(self.cost, labels), rival))
        )

    def _of_hinge(self, hinge: Tensor) -> Tensor:
        return power_of(hinge, self.power)

    def losses(self, scores: Tensor, labels: Tensor, own: Tensor, odd: bool) -> tuple[Tensor, Notes]:
        """The hinges; rival and slope of each are kept."""
        if self.cost is None:
            best, rival = best_of_rivals(scores, labels)
            hinge = best.sub_(own).add_(self.margin).clamp_(min=0)
        else:
            hinge, rival = best_class(_relative(scores, own, labels, 0.0, self.cost))
        slope = self._slope(hinge)
        return self._of_hinge(hinge), (rival, slope.masked_fill_(hinge == math.inf, 0.0) if odd else slope)

    def _slope(self, hinge: Tensor) -> Tensor:
        return hinge.sign() if self.power == 1 else power_of(hinge, self.power - 1).mul(self.power)


@dataclass
class Ramp(BestRival):
    """``min(1, [1 + max_{k != y} d_k / margin]_+)``."""

    largest = 1.0

    def _of_hinge(self, hinge: Tensor) -> Tensor:
        return (hinge / self.margin).clamp(max=1)

    def _slope(self, hinge: Tensor) -> Tensor:
        return (hinge / self.margin <= 1).to(hinge.dtype).mul_(hinge.sign()).div_(self.margin)


@dataclass
class ScaledRival(_OneRival):
    """``max_k L(y, k) [1 + d_k]_+``."""

    cost: Tensor

    def formula(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Through the worst class."""
        fixed, costs = scores.detach(), torch.embedding(self.cost, labels)
        worst = _scaled(_relative(fixed, pick(fixed, labels), labels, 1.0, None).clamp(min=0), costs).argmax(-1)
        return pick(costs, worst) * torch.relu(_of_rival(scores, labels, worst) + 1)

    def losses(self, scores: Tensor, labels: Tensor, own: Tensor, odd: bool) -> tuple[Tensor, Notes]:
        """The largest scaled slack; its class and its cost are kept."""
        slack, costs = _relative(scores, own, labels, 1.0, None).clamp_(min=0), torch.embedding(self.cost, labels)
        worst, rival = best_class(_scaled(slack, costs) if odd else slack.mul_(costs))
        slope = pick(costs, rival).mul_(worst.sign())
        return worst, (rival, slope.masked_fill_(worst == math.inf, 0.0) if odd else slope)


def _scaled(slack: Tensor, costs: Tensor) -> Tensor:
    """Their product, with 0 times infinity 0."""
    return torch.where((costs == 0) & (slack == math.inf), 0.0, slack * costs)


@dataclass
class BestClass(_OneRival):
    """``max_k d_k``, whose gradient goes to the lowest class among the best, the label included."""

    def formula(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Through the best class."""
        return _of_rival(scores, labels, scores.detach().argmax(-1))

    def losses(self, scores: Tensor, labels: Tensor, own: Tensor, odd: bool) -> tuple[Tensor, Notes]:
        """The best score less the label's."""
        best, rival = best_class(scores)
        return best.sub_(own), (rival, (rival != labels).to(scores.dtype))


@dataclass
class RivalSum(RowLoss):
    """``sum_{k != y} [margin + d_k]_+ ** power``; with a cost ``sum_{k != y} [L(y, k) + d_k]_+ ** power``."""

    margin: float = 1.0
    power: float = 1
    cost: Tensor | None = None

    def formula(self, scores: Tensor, labels: Tensor) -> Tensor:
        """The sum over all classes but the label."""
        hinges = torch.relu(_relative(scores, pick(scores, labels), labels, self.margin, self.cost))
        return power_of(hinges, self.power).scatter(-1, labels.unsqueeze(-1), 0.0).sum(-1)

    def losses(self, scores: Tensor, labels: Tensor, own: Tensor, odd: bool) -> tuple[Tensor, Notes]:
        """The same in one piece of memory."""
        hinges = _relative(scores, own, labels, self.margin, self.cost).clamp_(min=0)
        return power_of(hinges, self.power).scatter_(1, labels.unsqueeze(1), 0.0).sum(1), ()

    def slopes_(self, scores: Tensor, labels: Tensor, own: Tensor, factor: Tensor, out: Tensor, *notes: Tensor) -> None:
        """The slope of each hinge that is not 0."""
        torch.sub(scores, own.unsqueeze(1), out=out)
        if self.cost is not None:
            out.add_(torch.embedding(self.cost, labels))
        if self.power == 1:
            torch.gt(out, -self.margin if self.cost is None else 0, out=out)
        else:
            out = out if self.cost is not None else out.add_(self.margin)
            out.clamp_(min=0).pow_(self.power - 1).mul_(self.power)
        _against_label_(out, labels, factor)


@dataclass
class ExponentialSum(RowLoss):
    """``sum_{k != y} e^{d_k}``."""

    def formula(self, scores: Tensor, labels: Tensor) -> Tensor:
        """The sum over all classes but the label."""
        d = scores - pick(scores, labels).unsqueeze(-1)
        return d.scatter(-1, labels.unsqueeze(-1), -math.inf).exp().sum(-1)

    def losses(self, scores: Tensor, labels: Tensor, own: Tensor, odd: bool) -> tuple[Tensor, Notes]:
        """The same in one piece of memory."""
        return (scores - own.unsqueeze(1)).exp_().scatter_(1, labels.unsqueeze(1), 0.0).sum(1), ()

    def slopes_(self, scores: Tensor, labels: Tensor, own: Tensor, factor: Tensor, out: Tensor, *notes: Tensor) -> None:
        """Each exponential is its own derivative."""
        torch.sub(scores, own.unsqueeze(1), out=out).exp_()
        _against_label_(out, labels, factor)


@dataclass
class Exponentials(RowLoss):
    """``e^{-f_y} + sum_{k != y} e^{f_k}``."""

    def formula(self, scores: Tensor, labels: Tensor) -> Tensor:
        """The sum, the label's score with the other sign."""
        label = labels.unsqueeze(-1)
        return scores.scatter(-1, label, -scores.gather(-1, label)).exp().sum(-1)

    def losses(self, scores: Tensor, labels: Tensor, own: Tensor, odd: bool) -> tuple[Tensor, Notes]:
        """The same in one piece of memory."""
        return scores.exp().scatter_(1, labels.unsqueeze(1), own.neg().exp_().unsqueeze(1)).sum(1), ()

    def slopes_(self, scores: Tensor, labels: Tensor, own: Tensor, factor: Tensor, out: Tensor, *notes: Tensor) -> None:
        """Each exponential, with the sign of its exponent."""
        torch.exp(scores, out=out).scatter_(1, labels.unsqueeze(1), own.neg().exp_().neg_().unsqueeze(1))
        out.mul_(factor.unsqueeze(1))


@dataclass
class AverageExponential(RowLoss):
    """``e^{(sum_{k != y} f_k - f_y) / K}``."""

    def formula(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Through the average."""
        label = labels.unsqueeze(-1)
        return scores.scatter(-1, label, -scores.gather(-1, label)).mean(-1).exp()

    def losses(self, scores: Tensor, labels: Tensor, own: Tensor, odd: bool) -> tuple[Tensor, Notes]:
        """The same; without a copy where nothing is infinite."""
        if odd:
            losses = scores.scatter(1, labels.unsqueeze(1), own.neg().unsqueeze(1)).mean(1).exp_()
        else:
            losses = scores.sum(1).sub_(own, alpha=2).div_(scores.shape[1]).exp_()
        return losses, (losses / scores.shape[1],)

    def slopes_(self, scores: Tensor, labels: Tensor, own: Tensor, factor: Tensor, out: Tensor, *notes: Tensor) -> None:
        """The same slope for each class, with the other sign for the label."""
        slope = (notes[0] * factor).unsqueeze(1)
        out.copy_(slope.expand_as(out)).scatter_(1, labels.unsqueeze(1), slope.neg())


@dataclass
class SoftMax(RowLoss):
    """``t log sum_k e^{(m_k + d_k) / t}`` at the temperature ``t``, with ``m_k`` the margin of rivals or ``L(y, k)``.

    Without either at ``t = 1`` the cross-entropy.
    """

    margin: float = 0.0
    cost: Tensor | None = None
    temperature: float = 1.0

    def formula(self, scores: Tensor, labels: Tensor) -> Tensor:
        """By a log-sum-exp, measured from the largest term."""
        d = scores - _finite(scores.detach().amax(-1, keepdim=True))
        own = pick(d, labels)
        terms = d
        if self._augmented:
            terms = d + self.margin if self.cost is None else d + torch.embedding(self.cost, labels)
            terms = terms.scatter(-1, labels.unsqueeze(-1), own.unsqueeze(-1))
        top = terms.detach().amax(-1)
        total = ((terms - top.unsqueeze(-1)) / self.temperature).exp().sum(-1)
        return self.temperature * total.log() + (top - own)

    @property
    def _augmented(self) -> bool:
        return self.margin != 0 or self.cost is not None

    def _terms_(self, d: Tensor, labels: Tensor, own: Tensor) -> Tensor:
        """The differences ``d (n, K)`` from some level, at which the label's is ``own``, with what rivals are given."""
        if self.cost is not None:
            return d.add_(torch.embedding(self.cost, labels))
        return d.add_(self.margin).scatter_(1, labels.unsqueeze(1), own.unsqueeze(1)) if self.margin else d

    def losses(self, scores: Tensor, labels: Tensor, own: Tensor, odd: bool) -> tuple[Tensor, Notes]:
        """The same without keeping the exponentials."""
        top = scores.amax(1)
        top = _finite(top) if odd else top
        above = top - own
        terms = self._terms_(scores - top.unsqueeze(1), labels, -above)
        if self._augmented:
            rest = _finite(terms.amax(1)) if odd else terms.amax(1)
            terms.sub_(rest.unsqueeze(1))
        if self.temperature != 1:
            terms.div_(self.temperature)
        log_sum = terms.exp_().sum(1).log_()
        log_sum = log_sum if self.temperature == 1 else log_sum.mul_(self.temperature)
        rest = rest.add_(log_sum) if self._augmented else log_sum
        return above.add_(rest), (top, _finite(rest) if odd else rest)

    def slopes_(self, scores: Tensor, labels: Tensor, own: Tensor, factor: Tensor, out: Tensor, *notes: Tensor) -> None:
        """The probability of each class, less 1 for the label."""
        top, rest = notes
        self._terms_(torch.sub(scores, top.unsqueeze(1), out=out), labels, own - top).sub_(rest.unsqueeze(1))
        if self.temperature != 1:
            out.div_(self.temperature)
        factor = factor.unsqueeze(1)
        out.exp_().mul_(factor).scatter_add_(1, labels.unsqueeze(1), -factor)


def _of_rival(scores: Tensor, labels: Tensor, rival: Tensor) -> Tensor:
    """``d`` of one rival: by one gather, whose gradient is one sparse write."""
    best, own = scores.gather(-1, torch.stack([rival, labels], -1)).unbind(-1)
    return best - own


def _nothing(scores: Tensor) -> Tensor:
    """The loss of a single class, which has no rival: 0, or NaN."""
    return torch.where(scores.isnan(), scores, 0.0).squeeze(-1)


def _against_label_(out: Tensor, labels: Tensor, factor: Tensor) -> None:
    """The slopes of rivals times the factor; the label gets minus their sum."""
    label = labels.unsqueeze(1)
    out.scatter_(1, label, 0.0).mul_(factor.unsqueeze(1))
    out.scatter_(1, label, out.sum(1, keepdim=True).neg_())


def _finite(tensor: Tensor) -> Tensor:
    """Infinities as 0, so that a shift by them does not make NaN; NaN stays."""
    return torch.where(tensor.isinf(), 0.0, tensor)
