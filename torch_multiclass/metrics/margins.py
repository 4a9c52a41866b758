"""Metrics of how far the true class is ahead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass import plots
from torch_multiclass.functional import margin, margin_ramp_loss
from torch_multiclass.metrics.base import MeanMetric, labelled_rows, weights_of
from torch_multiclass.ops.constants import Constants, home
from torch_multiclass.options import Weight
from torch_multiclass.plots.style import check_axes

__all__ = ["EmpiricalMarginLoss", "MarginDistribution"]


class EmpiricalMarginLoss(MeanMetric):
    r"""The empirical margin loss, ``(1/m) \sum_i \Phi_r(\rho(f, y_i))``, ``\Phi_r(z) = \min(1, [1 - z/r]_+)``.

    It is at least the error, where a margin of 0 is wrong, and at most the share of rows with ``\rho \leq r``; it is
    the first term of the margin bounds (`torch_multiclass.bounds.margin_error`).

    Args:
        rho: ``r > 0``, in the units of the scores.
        ignore_index: the label of examples to leave out.
        class_dim: the dimension of the class scores that holds the classes.
        **kwargs: of `torchmetrics.Metric`.

    Shape:
        class scores ``(*, K)``, target ``(*)`` class indices; a scalar, 0 over nothing and NaN after a NaN score.

    Raises:
        ValueError: a label outside ``0..K-1``, shapes that disagree, ``rho`` that is not > 0.
        TypeError: scores that are not of a floating dtype, a target or an ``ignore_index`` that is not of integers.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, eq. (9.5).

    Example:
        >>> import torch
        >>> metric = EmpiricalMarginLoss(rho=2.0)
        >>> metric.update(torch.tensor([[3.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0, 0]))
        >>> metric.compute()
        tensor(0.5000)
    """

    higher_is_better = False
    plot_upper_bound = 1.0

    def __init__(self, rho: float = 1.0, ignore_index: int = check.IGNORE, class_dim: int = -1, **kwargs: Any) -> None:
        super().__init__(ignore_index=ignore_index, **kwargs)
        self.class_dim = check.integer("class_dim", class_dim)
        self.rho = check.positive("rho", rho)

    def update(self, class_scores: Tensor, target: Tensor, sample_weight: Weight = None) -> None:
        """Add a batch, where asked with a weight for each example."""
        rows = (self.ignore_index, self.total, self.class_dim)
        scores, labels = labelled_rows("class_scores", class_scores, target, *rows)
        weight = weights_of(sample_weight, target, self.ignore_index)
        self.total += margin_ramp_loss(scores, labels, rho=self.rho, reduction="sum", sample_weight=weight)
        self.count += len(labels) if weight is None else weight.sum()


class MarginDistribution(Constants, MeanMetric):
    r"""The share of rows whose margin is at most ``\theta``, ``(1/m) \sum_i 1[\rho(f, y_i) \leq \theta]``, for several.

    At ``\theta = 0`` it is the error, where a tie is wrong.

    Args:
        thresholds: the ``\theta``, rising, in the units of the scores.
        ignore_index: the label of examples to leave out.
        class_dim: the dimension of the class scores that holds the classes.
        **kwargs: of `torchmetrics.Metric`.

    Shape:
        class scores ``(*, K)``, target ``(*)`` class indices; ``(T,)``, 0 over nothing and NaN after a NaN margin.

    Raises:
        ValueError: thresholds that do not rise, a label outside ``0..K-1``, shapes that disagree.
        TypeError: scores that are not of a floating dtype, a target or an ``ignore_index`` that is not of integers.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, eq. (9.6); Allwein, Schapire and
    Singer (2000), section 5.

    Example:
        >>> import torch
        >>> metric = MarginDistribution([0.0, 1.0, 2.0])
        >>> metric.update(torch.tensor([[3.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0, 0]))
        >>> metric.compute()
        tensor([0.3333, 0.6667, 0.6667])
    """

    higher_is_better = False
    thresholds: Tensor

    @check.told
    def __init__(
        self,
        thresholds: Sequence[float] | Tensor,
        ignore_index: int = check.IGNORE,
        class_dim: int = -1,
        **kwargs: Any,
    ) -> None:
        given = check.numbers("thresholds", thresholds, "rising numbers").detach().double()
        check.with_values("thresholds", given)
        if given.ndim != 1 or len(given) == 0 or not bool((given.diff() > 0).all()):
            raise ValueError(f"thresholds: got {check.shown(thresholds)}; accepted are rising numbers, one or more")
        super().__init__((len(given),), ignore_index, **kwargs)
        self.class_dim = check.integer("class_dim", class_dim)
        self.register_constant("thresholds", given.to(home()))

    def update(self, class_scores: Tensor, target: Tensor, sample_weight: Weight = None) -> None:
        """Add a batch, where asked with a weight for each example."""
        rows = (self.ignore_index, self.total, self.class_dim)
        scores, labels = labelled_rows("class_scores", class_scores, target, *rows)
        weight = weights_of(sample_weight, target, self.ignore_index)
        rho = margin(scores, labels).double()
        if weight is not None:
            rho, weight = rho[weight > 0], weight[weight > 0]
        small = torch.where(rho.isnan(), torch.nan, 1.0).unsqueeze(-1) * (rho.unsqueeze(-1) <= self.thresholds)
        self.total += small.double().sum(0) if weight is None else weight @ small.double()
        self.count += len(labels) if weight is None else weight.sum()

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw the shares against the thresholds; see `torch_multiclass.plots.margin_distribution`."""
        check_axes("ax", ax)
        axes = plots.margin_distribution(self.thresholds, self.compute() if val is None else val, ax)
        return axes.figure if ax is None else None, axes
