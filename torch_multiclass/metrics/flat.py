"""Metrics of class scores and probabilities."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass import plots
from torch_multiclass.functional import crammer_singer_loss
from torch_multiclass.functional.flat import check_hinge
from torch_multiclass.metrics.base import MeanMetric, Plotted, labelled_rows, mean, weights_of
from torch_multiclass.options import Weight
from torch_multiclass.plots.style import check_axes


class MulticlassHinge(MeanMetric):
    r"""Mean multi-class hinge of the scores as they are, ``[margin - \rho(f, y)]_+^{power}``.

    `torchmetrics.classification.MulticlassHingeLoss` soft-maxes a batch in which any score leaves [0, 1]; this never
    does, so the value is that of `CrammerSingerLoss`.

    Args:
        margin, power: as for `CrammerSingerLoss`.
        ignore_index: the label of examples to leave out.
        class_dim: the dimension of the scores that holds the classes.
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

    def __init__(
        self,
        margin: float = 1.0,
        power: float = 1,
        ignore_index: int = check.IGNORE,
        class_dim: int = -1,
        **kwargs: Any,
    ) -> None:
        super().__init__(ignore_index=ignore_index, **kwargs)
        self.class_dim = check.integer("class_dim", class_dim)
        check_hinge(margin, None, power)
        self.margin, self.power = margin, power

    def update(self, class_scores: Tensor, target: Tensor, sample_weight: Weight = None) -> None:
        """Add a batch, where asked with a weight for each example."""
        rows = (self.ignore_index, self.total, self.class_dim)
        scores, labels = labelled_rows("class_scores", class_scores, target, *rows)
        weight = weights_of(sample_weight, target, self.ignore_index)
        self.total += crammer_singer_loss(
            scores, labels, margin=self.margin, power=self.power, reduction="sum", sample_weight=weight
        )
        self.count += len(labels) if weight is None else weight.sum()


class CalibrationError(Plotted):
    r"""Calibration error: how far the probability of the predicted class is from how often it is right.

    .. math::
        \text{expected: } \sum_b \frac{n_b}{n} \left| \text{accuracy}_b - \text{confidence}_b \right| \qquad
        \text{maximum: } \max_{b: n_b > 0} \left| \text{accuracy}_b - \text{confidence}_b \right|

    over bins ``b`` of equal width of the largest probability; class-wise the mean over classes of the expected error of
    the probability of each, predicted or not.

    Args:
        num_bins: how many bins ``(0, 1/num_bins], ...``.
        ignore_index: the label of examples to leave out.
        kind: ``"expected"``, ``"maximum"`` or ``"classwise"``.
        num_classes: ``K``, for the class-wise error only.
        class_dim: the dimension of the probabilities that holds the classes.
        **kwargs: of `torchmetrics.Metric`.

    Shape:
        probabilities ``(*, K)``, target ``(*)`` class indices; a scalar, 0 over nothing and NaN after a NaN.

    Raises:
        ValueError: rows that are no probabilities (read on the CPU only), a label outside ``0..K-1``, shapes that
            disagree, ``num_bins`` below 1.
        TypeError: probabilities that are not of a floating dtype, a target or an ``ignore_index`` that is not of
            integers.

    Reference: Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks, eq. (3) and (4);
    class-wise Kull et al. (2019), Beyond temperature scaling, section 2.

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

    def __init__(
        self,
        num_bins: int = 15,
        ignore_index: int = check.IGNORE,
        kind: str = "expected",
        num_classes: int | None = None,
        class_dim: int = -1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_bins = check.whole("num_bins", num_bins)
        self.ignore_index = check.integer("ignore_index", ignore_index)
        self.class_dim = check.integer("class_dim", class_dim)
        check.choice("kind", kind, ("expected", "maximum", "classwise"))
        if (kind == "classwise") != (num_classes is not None):
            raise ValueError(
                f"num_classes: got {num_classes!r} with kind={kind!r}; accepted is a number with 'classwise', and None "
                "otherwise"
            )
        self.kind = kind
        self.num_classes = None if num_classes is None else check.whole("num_classes", num_classes)
        size = (num_bins,) if num_classes is None else (num_classes * num_bins,)
        for state in ("right", "confidence", "count"):
            self.add_state(state, torch.zeros(size, dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, probabilities: Tensor, target: Tensor, sample_weight: Weight = None) -> None:
        """Add a batch, where asked with a weight for each example."""
        rows = (self.ignore_index, self.count, self.class_dim)
        p, labels = labelled_rows("probabilities", probabilities, target, *rows)
        weight = weights_of(sample_weight, target, self.ignore_index)
        p = p.double()
        _check_probabilities(p)
        if weight is None:
            weight = torch.ones_like(p[:, 0])
        else:
            p, labels, weight = p[weight > 0], labels[weight > 0], weight[weight > 0]
        if self.num_classes is None:
            confidence, predicted = p.max(-1)
            self._add(confidence, predicted == labels, weight, 0)
            return
        if p.shape[1] != self.num_classes:
            raise ValueError(f"probabilities: are of {p.shape[1]} classes; accepted are {self.num_classes}")
        classes = torch.arange(self.num_classes, device=p.device)
        self._add(p, labels.unsqueeze(-1) == classes, weight.unsqueeze(-1), classes * self.num_bins)

    def _add(self, confidence: Tensor, right: Tensor, weight: Tensor, first: Tensor | int) -> None:
        """Count probabilities in the bins from ``first`` on."""
        bins = (confidence.nan_to_num(0) * self.num_bins).ceil().long().sub(1).clamp(0, self.num_bins - 1) + first
        weight = weight.expand(confidence.shape)
        for state, part in ((self.right, right * weight), (self.confidence, confidence * weight), (self.count, weight)):
            state.index_add_(0, bins.flatten(), part.flatten().to(state.dtype))

    def compute(self) -> Tensor:
        """The error so far, in float32."""
        off = (self.right - self.confidence).abs()
        if self.kind == "maximum":
            return mean(off, self.count).max().float()
        return mean(off.sum(), self.count.sum()).float()

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw the bins (`torch_multiclass.plots.reliability`) of what this process counted, or the values given."""
        check_axes("ax", ax)
        if val is not None:
            return super().plot(val, ax)
        right, stated, count = (
            part.view(-1, self.num_bins).sum(0) for part in (self.right, self.confidence, self.count)
        )
        axes = plots.reliability(right, stated, count, ax)
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
