"""Metrics of class scores and probabilities."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric

from torch_multiclass import checks as check
from torch_multiclass.functional import crammer_singer_loss
from torch_multiclass.metrics.base import MeanMetric
from torch_multiclass.scores.flat import check_labels, check_scores, known


class MulticlassHinge(MeanMetric):
    r"""Mean multi-class hinge of the scores as they are, ``[margin - \rho(f, y)]_+^{power}``.

    `torchmetrics.classification.MulticlassHingeLoss` soft-maxes a batch in which any score leaves [0, 1]; this never
    does, so the value is that of `CrammerSingerLoss`.

    Args:
        margin, power: as for `CrammerSingerLoss`.
        ignore_index: the label of examples to leave out.
        **kwargs: of `torchmetrics.Metric`.

    Shape:
        class scores ``(*, K)``, target ``(*)`` class indices; a scalar.

    Raises:
        ValueError: a label outside ``0..K-1``, shapes that disagree, a margin below 0, a power below 1.
        TypeError: a target or an ``ignore_index`` that is not of integers.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.3.1.

    Example:
        >>> import torch
        >>> metric = MulticlassHinge()
        >>> metric.update(torch.tensor([[2.0, 1.5, 1.8, 1.0], [9.0, 9.0, 9.0, 9.0]]), torch.tensor([0, -100]))
        >>> metric.compute()
        tensor(0.8000)
    """

    higher_is_better = False

    def __init__(self, margin: float = 1.0, power: float = 1, ignore_index: int = check.IGNORE, **kwargs: Any) -> None:
        super().__init__(ignore_index=ignore_index, **kwargs)
        self.margin, self.power = margin, power

    def update(self, class_scores: Tensor, target: Tensor) -> None:
        """Add a batch."""
        self.total += crammer_singer_loss(
            class_scores.detach(),
            target,
            margin=self.margin,
            power=self.power,
            reduction="sum",
            ignore_index=self.ignore_index,
        )
        self.count += (target != self.ignore_index).sum()


class CalibrationError(Metric):
    r"""Expected calibration error: how far the probability of the predicted class is from how often it is right.

    .. math::
        \sum_b \frac{n_b}{n} \left| \text{accuracy}_b - \text{confidence}_b \right|

    over bins ``b`` of equal width of the largest probability.

    Args:
        num_bins: how many bins ``(0, 1/num_bins], ...``.
        ignore_index: the label of examples to leave out.
        **kwargs: of `torchmetrics.Metric`.

    Shape:
        probabilities ``(*, K)``, target ``(*)`` class indices; a scalar. NaN before the first example.

    Raises:
        ValueError: a label outside ``0..K-1``, shapes that disagree, ``num_bins`` below 1.
        TypeError: a target or an ``ignore_index`` that is not of integers.

    Reference: Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks, eq. (3).

    Example:
        >>> import torch
        >>> metric = CalibrationError(num_bins=10)
        >>> metric.update(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 1]))
        >>> metric.compute()  # right half of the time, at 0.9
        tensor(0.4000)
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    right: Tensor
    confidence: Tensor
    count: Tensor

    def __init__(self, num_bins: int = 15, ignore_index: int = check.IGNORE, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check.whole("num_bins", num_bins)
        check.integer("ignore_index", ignore_index)
        self.num_bins, self.ignore_index = num_bins, ignore_index
        for state in ("right", "confidence", "count"):
            self.add_state(state, torch.zeros(num_bins, dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, probabilities: Tensor, target: Tensor) -> None:
        """Add a batch."""
        check_scores(probabilities)
        target = torch.where(target == self.ignore_index, check.IGNORE, target.long())
        check_labels(probabilities, target)
        labels, kept = known(target)
        confidence, predicted = probabilities.detach()[kept].double().max(-1)
        bins = (confidence * self.num_bins).ceil().long().sub(1).clamp(0, self.num_bins - 1)
        self.right.index_add_(0, bins, (predicted == labels[kept]).double())
        self.confidence.index_add_(0, bins, confidence)
        self.count.index_add_(0, bins, torch.ones_like(confidence))

    def compute(self) -> Tensor:
        """The error so far, in float32."""
        return ((self.right - self.confidence).abs().sum() / self.count.sum()).float()
