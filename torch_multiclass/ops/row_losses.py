"""The losses of one label, written in ``d_k = f_k - f_y``, the score of a class relative to the label's.

A cost, a ``(K, K)`` tensor, takes the place of a margin: ``L(y, k)`` for the rival ``k``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from torch_multiclass.ops.flat import best_class, best_of_rivals, best_rival, power_of
from torch_multiclass.ops.rivals import hinges
from torch_multiclass.ops.rows import Notes, RowLoss


def _costs(cost: Tensor, label: Tensor) -> Tensor:
    """``L(y, .)``."""
    return torch.embedding(cost, label.squeeze(-1))


def _relative(scores: Tensor, own: Tensor, label: Tensor, margin: float, cost: Tensor | None) -> Tensor:
    """``margin + d``, or ``L(y, .) + d``: the difference first, so that large scores lose nothing to the margin."""
    d = scores - own
    if cost is not None:
        return d.add_(_costs(cost, label))
    return d.add_(margin) if margin else d


class _OneRival(RowLoss):
    """A loss whose gradient is a slope at one rival, and minus it at the label."""

    sparse = True

    def slopes_(self, scores: Tensor, label: Tensor, own: Tensor, factor: Tensor, out: Tensor, *notes: Tensor) -> None:
        """Two entries a row, written into zeros."""
        rival, slope = notes
        slope = slope * factor
        out.scatter_(1, rival, slope).scatter_(1, label, slope.neg_())


@dataclass
class BestRival(_OneRival):
    """``[margin + max_{k != y} d_k]_+ ** power``; with a cost ``[max_k L(y, k) + d_k]_+ ** power``."""

    margin: float = 1.0
    power: float = 1
    cost: Tensor | None = None

    def formula(self, scores: Tensor, label: Tensor) -> Tensor:
        """Through the best rival."""
        if scores.shape[-1] == 1:  # no rival: 0, or NaN
            return torch.where(scores.isnan(), scores, 0.0)
        if self.cost is None:
            rival = best_rival(scores, label)
            return self._of_hinge(torch.relu(_of_rival(scores, label, rival) + self.margin))
        fixed, costs = scores.detach(), _costs(self.cost, label)
        rival = _relative(fixed, fixed.gather(-1, label), label, 0.0, self.cost).argmax(-1, keepdim=True)
        return self._of_hinge(torch.relu(_of_rival(scores, label, rival) + costs.gather(-1, rival)))

    def _of_hinge(self, hinge: Tensor) -> Tensor:
        return power_of(hinge, self.power)

    def losses(self, scores: Tensor, label: Tensor, own: Tensor, odd: bool) -> tuple[Tensor, Notes]:
        """The hinges; rival and slope of each are kept."""
        found = None if odd else hinges(scores, label, self.margin, self.cost)
        if found is not None:
            hinge, rival = found
        elif self.cost is None:
            best, rival = best_of_rivals(scores, label)
            hinge = best.sub_(own).add_(self.margin).relu_()
        else:
            hinge, rival = best_class(_relative(scores, own, label, 0.0, self.cost))
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

    def formula(self, scores: Tensor, label: Tensor) -> Tensor:
        """Through the worst class."""
        fixed, costs = scores.detach(), _costs(self.cost, label)
        slack = _relative(fixed, fixed.gather(-1, label), label, 1.0, None).clamp(min=0)
        worst = _scaled(slack, costs).argmax(-1, keepdim=True)
        return costs.gather(-1, worst) * torch.relu(_of_rival(scores, label, worst) + 1)

    def losses(self, scores: Tensor, label: Tensor, own: Tensor, odd: bool) -> tuple[Tensor, Notes]:
        """The largest scaled slack; its class and its cost are kept."""
        found = None if odd else hinges(scores, label, 1.0, self.cost, rescaled=True)
        if found is None:
            slack, costs = _relative(scores, own, label, 1.0, None).relu_(), _costs(self.cost, label)
            found = best_class(_scaled(slack, costs) if odd else slack.mul_(costs))
        worst, rival = found
        slope = self.cost[label, rival].mul_(worst.sign())
        return worst, (rival, slope.masked_fill_(worst == math.inf, 0.0) if odd else slope)


def _scaled(slack: Tensor, costs: Tensor) -> Tensor:
    """Their product, with 0 times infinity 0."""
    return torch.where((costs == 0) & (slack == math.inf), 0.0, slack * costs)


@dataclass
class BestClass(_OneRival):
    """``max_k d_k``, whose gradient goes to the lowest class among the best, the label included."""

    def formula(self, scores: Tensor, label: Tensor) -> Tensor:
        """Through the best class."""
        return _of_rival(scores, label, scores.detach().argmax(-1, keepdim=True))

    def losses(self, scores: Tensor, label: Tensor, own: Tensor, odd: bool) -> tuple[Tensor, Notes]:
        """The best score less the label's."""
        best, rival = best_class(scores)
        return best.sub_(own), (rival, (rival != label).to(scores.dtype))


@dataclass
class RivalSum(RowLoss):
    """``sum_{k != y} [margin + d_k]_+ ** power``; with a cost ``sum_{k != y} [L(y, k) + d_k]_+ ** power``."""

    margin: float = 1.0
    power: float = 1
    cost: Tensor | None = None

    def formula(self, scores: Tensor, label: Tensor) -> Tensor:
        """The sum over all classes but the label."""
        hinges = torch.relu(_relative(scores, scores.gather(-1, label), label, self.margin, self.cost))
        return power_of(hinges, self.power).scatter(-1, label, 0.0).sum(-1, keepdim=True)

    def losses(self, scores: Tensor, label: Tensor, own: Tensor, odd: bool) -> tuple[Tensor, Notes]:
        """The same in one piece of memory."""
        hinges = _relative(scores, own, label, self.margin, self.cost).relu_()
        return power_of(hinges, self.power).scatter_(1, label, 0.0).sum(1, keepdim=True), ()

    def slopes_(self, scores: Tensor, label: Tensor, own: Tensor, factor: Tensor, out: Tensor, *notes: Tensor) -> None:
        """The slope of each hinge that is not 0."""
        torch.sub(scores, own, out=out)
        if self.cost is not None:
            out.add_(_costs(self.cost, label))
        margin = self.margin if self.cost is None else 0.0
        if self.power == 1:
            torch.gt(out, -margin, out=out)
        else:
            out.add_(margin).clamp_(min=0).pow_(self.power - 1).mul_(self.power)
        _against_label_(out, label, factor)


@dataclass
class ExponentialSum(RowLoss):
    """``sum_{k != y} e^{d_k}``."""

    def formula(self, scores: Tensor, label: Tensor) -> Tensor:
        """The sum over all classes but the label."""
        return (scores - scores.gather(-1, label)).scatter(-1, label, -math.inf).exp().sum(-1, keepdim=True)

    def losses(self, scores: Tensor, label: Tensor, own: Tensor, odd: bool) -> tuple[Tensor, Notes]:
        """The same in one piece of memory."""
        return (scores - own).exp_().scatter_(1, label, 0.0).sum(1, keepdim=True), ()

    def slopes_(self, scores: Tensor, label: Tensor, own: Tensor, factor: Tensor, out: Tensor, *notes: Tensor) -> None:
        """Each exponential is its own derivative."""
        _against_label_(torch.sub(scores, own, out=out).exp_(), label, factor)


@dataclass
class Exponentials(RowLoss):
    """``e^{-f_y} + sum_{k != y} e^{f_k}``."""

    def formula(self, scores: Tensor, label: Tensor) -> Tensor:
        """The sum, the label's score with the other sign."""
        return scores.scatter(-1, label, -scores.gather(-1, label)).exp().sum(-1, keepdim=True)

    def losses(self, scores: Tensor, label: Tensor, own: Tensor, odd: bool) -> tuple[Tensor, Notes]:
        """The same in one piece of memory."""
        return scores.exp().scatter_(1, label, own.neg().exp_()).sum(1, keepdim=True), ()

    def slopes_(self, scores: Tensor, label: Tensor, own: Tensor, factor: Tensor, out: Tensor, *notes: Tensor) -> None:
        """Each exponential, with the sign of its exponent."""
        torch.exp(scores, out=out).scatter_(1, label, own.neg().exp_().neg_()).mul_(factor)


@dataclass
class AverageExponential(RowLoss):
    """``e^{(sum_{k != y} f_k - f_y) / K}``."""

    def formula(self, scores: Tensor, label: Tensor) -> Tensor:
        """Through the average."""
        return scores.scatter(-1, label, -scores.gather(-1, label)).mean(-1, keepdim=True).exp()

    def losses(self, scores: Tensor, label: Tensor, own: Tensor, odd: bool) -> tuple[Tensor, Notes]:
        """The same; without a copy where nothing is infinite."""
        if odd:
            losses = scores.scatter(1, label, own.neg()).mean(1, keepdim=True).exp_()
        else:
            losses = scores.sum(1, keepdim=True).sub_(own, alpha=2).div_(scores.shape[1]).exp_()
        return losses, (losses / scores.shape[1],)

    def slopes_(self, scores: Tensor, label: Tensor, own: Tensor, factor: Tensor, out: Tensor, *notes: Tensor) -> None:
        """The same slope for each class, with the other sign for the label."""
        slope = notes[0] * factor
        out.copy_(slope.expand_as(out)).scatter_(1, label, slope.neg())


@dataclass
class SoftMax(RowLoss):
    """``t log sum_k e^{(m_k + d_k) / t}`` at the temperature ``t``, with ``m_k`` the margin of rivals or ``L(y, k)``.

    Without either at ``t = 1`` the cross-entropy.
    """

    margin: float = 0.0
    cost: Tensor | None = None
    temperature: float = 1.0

    def formula(self, scores: Tensor, label: Tensor) -> Tensor:
        """By a log-sum-exp, measured from the largest term."""
        d = scores - _finite(scores.detach().amax(-1, keepdim=True))
        own, terms = d.gather(-1, label), d
        if self._augmented:
            terms = (d + (self.margin if self.cost is None else _costs(self.cost, label))).scatter(-1, label, own)
        top = terms.detach().amax(-1, keepdim=True)
        total = ((terms - top) / self.temperature).exp().sum(-1, keepdim=True)
        return self.temperature * total.log() + (top - own)

    @property
    def _augmented(self) -> bool:
        return self.margin != 0 or self.cost is not None

    def _terms_(self, d: Tensor, label: Tensor, own: Tensor) -> Tensor:
        """The differences ``d (n, K)`` from some level, at which the label's is ``own``, with what rivals are given."""
        if self.cost is not None:
            return d.add_(_costs(self.cost, label))
        return d.add_(self.margin).scatter_(1, label, own) if self.margin else d

    def losses(self, scores: Tensor, label: Tensor, own: Tensor, odd: bool) -> tuple[Tensor, Notes]:
        """The same without keeping the exponentials."""
        top = scores.amax(1, keepdim=True)
        top = _finite(top) if odd else top
        above = top - own
        terms = self._terms_(scores - top, label, -above)
        if self._augmented:
            rest = _finite(terms.amax(1, keepdim=True)) if odd else terms.amax(1, keepdim=True)
            terms.sub_(rest)
        if self.temperature != 1:
            terms.div_(self.temperature)
        log_sum = terms.exp_().sum(1, keepdim=True).log_()
        log_sum = log_sum if self.temperature == 1 else log_sum.mul_(self.temperature)
        rest = rest.add_(log_sum) if self._augmented else log_sum
        return above.add_(rest), (top, _finite(rest) if odd else rest)

    def slopes_(self, scores: Tensor, label: Tensor, own: Tensor, factor: Tensor, out: Tensor, *notes: Tensor) -> None:
        """The probability of each class, less 1 for the label."""
        top, rest = notes
        self._terms_(torch.sub(scores, top, out=out), label, own - top).sub_(rest)
        if self.temperature != 1:
            out.div_(self.temperature)
        out.exp_().mul_(factor).scatter_add_(1, label, -factor.expand(label.shape))


def _of_rival(scores: Tensor, label: Tensor, rival: Tensor) -> Tensor:
    """``d`` of one rival: by one gather, whose gradient is one sparse write."""
    both = scores.gather(-1, torch.cat([rival, label], -1))
    return both[..., :1] - both[..., 1:]


def _against_label_(out: Tensor, label: Tensor, factor: Tensor) -> None:
    """The slopes of rivals times the factor; the label gets minus their sum."""
    out.scatter_(1, label, 0.0).mul_(factor)
    out.scatter_(1, label, out.sum(1, keepdim=True).neg_())


def _finite(tensor: Tensor) -> Tensor:
    """Infinities as 0, so that a shift by them does not make NaN; NaN stays."""
    return torch.where(tensor.isinf(), 0.0, tensor)
