"""The loss of binary margins under a code."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from typing_extensions import Unpack

from torch_multiclass import functional as F
from torch_multiclass.functional._soft import check_smoothing
from torch_multiclass.losses.base import Loss
from torch_multiclass.ops.margins import MarginLossLike, as_margin_loss
from torch_multiclass.options import LossOptions, Weight
from torch_multiclass.scores.coded import CodedScores

__all__ = ["CodedLoss"]


class CodedLoss(Loss):
    r"""Sum of the binary losses of the columns that do not ignore the label.

    .. math::
        \sum_{s: M(y, s) \ne 0} \ell(M(y, s) f_s)

    Args:
        loss: ``"hinge"``, ``"squared"``, ``"squared_hinge"``, ``"logistic"``, ``"exponential"``, ``"sigmoid"``, or
            ``"zero_one"``, which counts wrong columns without a gradient (the formulas are at
            `torch_multiclass.functional.binary_loss`), or a `torch_multiclass.margins.MarginLoss`.
        label_smoothing: the share ``\epsilon`` that each label gives to all classes, as in `CRFLoss`.
        weight, ignore_index, reduction, validate_args: see `Loss`.

    Shape:
        `CodedScores` of margins ``(*, L)``, target ``(*)`` class indices; the result is a scalar, or ``(*)`` with
        ``reduction="none"``. ``sample_weight`` ``(*)``, a weight for each example: ``"mean"`` divides by their sum.
        A floating-point target ``(*, K)`` is a distribution over classes, smoothed likewise, and the loss the expected
        one.

    Raises:
        ValueError: a label outside ``0..K-1`` or of a class that every column ignores, an unknown loss or reduction.
        TypeError: scores that are not `CodedScores`, a target that is not of an integer dtype.

    Reference: Allwein, Schapire and Singer (2000), section 3; Mohri, Rostamizadeh and Talwalkar, *Foundations of
    Machine Learning*, §9.4.3.

    Example:
        >>> import torch
        >>> from torch_multiclass import codes
        >>> scores = CodedScores(torch.tensor([[0.5, -1.0, -2.0]]), codes.one_vs_all(3))
        >>> CodedLoss("squared")(scores, torch.tensor([0]))
        tensor(1.2500)
    """

    reads = (CodedScores,)

    def __init__(
        self, loss: MarginLossLike = "hinge", label_smoothing: float = 0.0, **options: Unpack[LossOptions]
    ) -> None:
        super().__init__(**self._known(options))
        self.loss, self.label_smoothing = as_margin_loss(loss), check_smoothing(label_smoothing)
        self.convex = self.loss.convex

    def forward(  # type: ignore[override]
        self, scores: CodedScores, target: Tensor, sample_weight: Weight = None
    ) -> Tensor:
        """The reduced loss."""
        return self._scaled(
            F.coded_loss(
                scores,
                target,
                loss=self.loss,
                label_smoothing=self.label_smoothing,
                sample_weight=sample_weight,
                **self.shared,
            )
        )

    def _own_arguments(self) -> dict[str, Any]:
        smoothing = {"label_smoothing": self.label_smoothing} if self.label_smoothing else {}
        return {"loss": self.loss.name, **smoothing}
