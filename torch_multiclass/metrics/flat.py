"""Metrics of class scores and probabilities."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass import plots
from torch_multiclass.functional import crammer_singer_loss
from torch_multiclass.functional.flat import check_hinge
from torch_multiclass.metrics.base import MeanMetric, Plotted, labelled_rows, mean
from torch_multiclass.plots.style import matplotlib


class MulticlassHinge(MeanMetric):
    r"""Mean multi-class hinge of the scores as they are, ``[margin - \rho(f, y)]_+^{power}``.

    `torchmetrics.classification.MulticlassHingeLoss` soft-maxes a batch in which any score leaves [0, 1]; this never
    does, so the value is that of `CrammerSingerLoss`.

    Args:
        margin, power: as for `CrammerSingerLoss`.
        ignore_index: the label of examples to leave out.
        **kwargs: of `torchmetrics.Metric`.

    Shape:
        class scores ``(*, K)``, target ``(*)`` class indices; a scalar, 0 over nothing and NaN after a NaN score.

    Raises:
        ValueError: a label outside ``0..K-1``, shapes that disagree, a margin below 0, a power below 1.
        TypeError: scores that are not of a floating dtype, a target or an ``ignore_index`` that is not of integers.

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
        check_hinge(margin, None, power)
        self.margin, self.power = margin, power

    def update(self, class_scores: Tensor, target: Tensor) -> None:
        """Add a batch."""
        scores, labels = labelled_rows("class_scores", class_scores, target, self.ignore_index, self.total)
        self.total += crammer_singer_loss(scores, labels, margin=self.margin, power=self.power, reduction="sum")
        self.count += len(labels)


class CalibrationError(Plotted):
    r"""Expected calibration error: how far the probability of the predicted class is from how often it is right.

    .. math::
        \sum_b \frac{n_b}{n} \left| \text{accuracy}_b - \text{confidence}_b \right|

    over bins ``b`` of equal width of the largest probability.

    Args:
        num_bins: how many bins ``(0, 1/num_bins], ...``.
        ignore_index: the label of examples to leave out.
        **kwargs: of `torchmetrics.Metric`.

    Shape:
        probabilities ``(*, K)``, target ``(*)`` class indices; a scalar, 0 over nothing and NaN after a NaN.

    Raises:
        ValueError: rows that are no probabilities (read on the CPU only), a label outside ``0..K-1``, shapes that
            disagree, ``num_bins`` below 1.
        TypeError: probabilities that are not of a floating dtype, a target or an ``ignore_index`` that is not of
            integers.

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
        self.num_bins = check.whole("num_bins", num_bins)
        self.ignore_index = check.integer("ignore_index", ignore_index)
        for state in ("right", "confidence", "count"):
            self.add_state(state, torch.zeros(num_bins, dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, probabilities: Tensor, target: Tensor) -> None:
        """Add a batch."""
        p, labels = labelled_rows("probabilities", probabilities, target, self.ignore_index, self.count)
        p = p.double()
        _check_probabilities(p)
        confidence, predicted = p.max(-1)
        bins = (confidence.nan_to_num(0) * self.num_bins).ceil().long().sub(1).clamp(0, self.num_bins - 1)
        self.right.index_add_(0, bins, (predicted == labels).double())
        self.confidence.index_add_(0, bins, confidence)
        self.count.index_add_(0, bins, torch.ones_like(confidence))

    def compute(self) -> Tensor:
        """The error so far, in float32."""
        return mean((self.right - self.confidence).abs().sum(), self.count.sum()).float()

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw the bins (`torch_multiclass.plots.reliability`) of what this process counted, or the values given."""
        matplotlib()
        if val is not None:
            return super().plot(val, ax)
        axes = plots.reliability(self.right, self.confidence, self.count, ax)
        return axes.figure if ax is None else None, axes


_ROUNDING = 1e-2  # how far from 1 a row of probabilities in half precision may sum


def _check_probabilities(p: Tensor) -> None:
    if not check.values_readable(p):
        return
    outside = (p < 0) | (p > 1 + _ROUNDING)
    if bool(outside.any()):
        raise ValueError(
            f"probabilities: hold {float(p[outside][0]):g}; accepted are numbers from 0 to 1 (scores are not "
            "probabilities: take `predict_proba`)"
        )
    sums = p.sum(-1)
    wrong = (sums - 1).abs() > _ROUNDING
    if bool(wrong.any()):
        raise ValueError(f"probabilities: a row sums to {float(sums[wrong][0]):g}; accepted is 1")
