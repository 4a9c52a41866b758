"""Metrics of the binary problems behind a code."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass import plots
from torch_multiclass.functional import average_binary_loss
from torch_multiclass.metrics.base import MeanMetric, has_label, weights_of
from torch_multiclass.ops.margins import MarginLossLike, as_margin_loss
from torch_multiclass.options import Weight
from torch_multiclass.plots.style import check_axes
from torch_multiclass.scores.coded import CodedScores


class AverageBinaryLoss(MeanMetric):
    r"""Average binary loss ``(1 / mL) \sum_i \sum_s \ell(M(y_i, s) f_s(x_i))``, with ``\ell(0)`` where ``M(y, s) = 0``.

    Times ``L / (\rho \ell(0))`` it bounds the training error of loss-based decoding.

    Args:
        loss: a binary loss, by name or as an object.
        ignore_index: the label of examples to leave out.
        **kwargs: of `torchmetrics.Metric`.

    Shape:
        `CodedScores` of margins ``(*, L)``, target ``(*)`` class indices; a scalar.

    Raises:
        ValueError: an unknown loss, a label outside ``0..K-1``.
        TypeError: scores that are not `CodedScores`, a target or an ``ignore_index`` that is not of integers.

    Reference: Allwein, Schapire and Singer (2000), eq. (3) and Theorem 1.

    Example:
        >>> import torch
        >>> from torch_multiclass import CodedScores, codes
        >>> metric = AverageBinaryLoss("hinge")
        >>> metric.update(CodedScores(torch.tensor([[0.5, -1.0, -2.0]]), codes.one_vs_one(3)), torch.tensor([0]))
        >>> metric.compute()
        tensor(1.1667)
    """

    higher_is_better = False

    def __init__(self, loss: MarginLossLike = "hinge", ignore_index: int = check.IGNORE, **kwargs: Any) -> None:
        super().__init__(ignore_index=ignore_index, **kwargs)
        self.loss = as_margin_loss(loss)

    def update(self, scores: CodedScores, target: Tensor, sample_weight: Weight = None) -> None:
        """Add a batch, where asked with a weight for each example."""
        if isinstance(scores, CodedScores):
            check.same_device("scores", scores.margins, "the metric", self.total)
        self.total += average_binary_loss(
            scores,
            target,
            loss=self.loss,
            sample_weight=sample_weight,
            reduction="sum",
            ignore_index=self.ignore_index,
        ).detach()
        weight = weights_of(sample_weight, target, self.ignore_index)
        self.count += has_label(target, self.ignore_index).sum() if weight is None else weight.sum()


class BitError(MeanMetric):
    r"""Share of wrong answers of each column, ``M(y, s) f_s \le 0`` among the examples that it does not ignore.

    A margin of 0 is wrong, and one of NaN makes the share NaN. 0 for a column that was asked nothing.

    Args:
        num_columns: ``L``.
        ignore_index: the label of examples to leave out.
        **kwargs: of `torchmetrics.Metric`.

    Shape:
        `CodedScores` of margins ``(*, L)``, target ``(*)`` class indices; ``(L,)``.

    Raises:
        ValueError: scores of another number of columns, a label outside ``0..K-1``.
        TypeError: scores that are not `CodedScores`, a target or an ``ignore_index`` that is not of integers.

    Reference: Allwein, Schapire and Singer (2000), section 2 (training error of a binary hypothesis) and section 4.

    Example:
        >>> import torch
        >>> from torch_multiclass import CodedScores, codes
        >>> metric = BitError(3)
        >>> metric.update(CodedScores(torch.tensor([[0.5, 1.0, -2.0]]), codes.one_vs_all(3)), torch.tensor([0]))
        >>> metric.compute()
        tensor([0., 1., 0.])
    """

    higher_is_better = False

    @check.told
    def __init__(self, num_columns: int, ignore_index: int = check.IGNORE, **kwargs: Any) -> None:
        num_columns = check.whole("num_columns", num_columns)
        super().__init__((num_columns,), ignore_index, **kwargs)
        self.num_columns = num_columns

    def update(self, scores: CodedScores, target: Tensor, sample_weight: Weight = None) -> None:
        """Add a batch, where asked with a weight for each example."""
        if not isinstance(scores, CodedScores):
            raise TypeError(f"scores: got {check.came(scores)}; accepted here is CodedScores(margins, code)")
        if scores.num_columns != self.num_columns:
            raise ValueError(f"scores: have {scores.num_columns} columns; accepted are {self.num_columns}")
        check.same_device("scores", scores.margins, "the metric", self.total)
        labels, kept, _ = scores.check_target(target, ignore_index=self.ignore_index)
        bits = scores.rows(labels[kept])
        z = bits * scores.margins.detach()[kept]
        wrong = torch.where(z.isnan(), torch.nan, (z <= 0).double())  # no sign, no answer
        weight = weights_of(sample_weight, target, self.ignore_index)
        share = (bits != 0).double() if weight is None else (bits != 0) * weight[:, None]
        self.total += torch.where(share != 0, share * wrong, 0.0).sum(0)
        self.count += share.sum(0)

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw a bar a column (`torch_multiclass.plots.errors`)."""
        check_axes("ax", ax)
        axes = plots.errors(self.compute() if val is None else val, ax, of="column")
        return axes.figure if ax is None else None, axes
