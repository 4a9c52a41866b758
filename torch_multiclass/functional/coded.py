"""Losses of binary margins under a code."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from typing_extensions import Unpack

from torch_multiclass import checks as check
from torch_multiclass.checks import Target
from torch_multiclass.functional._reduction import Frame, Weight, finish
from torch_multiclass.ops.asked import asked_sum
from torch_multiclass.ops.margins import MarginLossLike, as_margin_loss
from torch_multiclass.ops.precision import upcast
from torch_multiclass.options import FRAME, known_keywords
from torch_multiclass.scores import as_scores
from torch_multiclass.scores.coded import CodedScores

__all__ = ["average_binary_loss", "binary_loss", "coded_loss"]


def binary_loss(z: Tensor, loss: MarginLossLike = "hinge") -> Tensor:
    r"""A loss of a binary margin ``z = y f``, elementwise: one of these names, or a `torch_multiclass.margins` object.

    ==================  ===============================================
    ``"hinge"``         ``[1 - z]_+``
    ``"squared"``       ``(1 - z)^2``
    ``"squared_hinge"`` ``[1 - z]_+^2``
    ``"logistic"``      ``log(1 + e^{-2z})``, so ``P(y = 1) = \sigma(2f)``
    ``"exponential"``   ``e^{-z}``
    ``"sigmoid"``       ``1 / (1 + e^{2z})``, randomised AdaBoost
    ``"zero_one"``      ``(1 - sign z) / 2`` with ``sign 0 = 0``
    ==================  ===============================================

    All satisfy ``(\ell(z) + \ell(-z)) / 2 \ge \ell(0) > 0``, eq. (7) of the reference. Half precision is computed in
    float32.

    Reference: Allwein, Schapire and Singer (2000), section 2.

    Example:
        >>> import torch
        >>> binary_loss(torch.tensor([-1.0, 0.0, 2.0]), "squared_hinge")
        tensor([4., 1., 0.])
    """
    check.floating("z", z)
    return as_margin_loss(loss).value(upcast(z))


def coded_loss(
    scores: CodedScores,
    target: Tensor,
    *,
    loss: MarginLossLike = "hinge",
    weight: Weight = None,
    reduction: str = "mean",
    **frame: Unpack[Frame],
) -> Tensor:
    r"""Sum of the losses of the columns that do not ignore the label, ``\sum_{s: M(y, s) \ne 0} \ell(M(y, s) f_s)``.

    See `torch_multiclass.CodedLoss`.

    Example:
        >>> import torch
        >>> from torch_multiclass import codes
        >>> scores = CodedScores(torch.tensor([[0.5, -1.0, -2.0]]), codes.one_vs_all(3))
        >>> coded_loss(scores, torch.tensor([0]), loss="hinge")
        tensor(0.5000)
    """
    loss = as_margin_loss(loss)
    gold = _gold(coded_loss, scores, target, frame)
    z, asked = scores.of_label(gold)
    validate_args = frame.get("validate_args")
    if asked is not None and check.values_readable(z, validate_args):
        _check_asked(gold, asked)
    return finish(asked_sum(z, asked, loss), scores.as_flat(), gold, weight, None, reduction, frame)


def average_binary_loss(
    scores: CodedScores,
    target: Tensor,
    *,
    loss: MarginLossLike = "hinge",
    weight: Weight = None,
    reduction: str = "mean",
    **frame: Unpack[Frame],
) -> Tensor:
    r"""Binary loss averaged over the columns, ``(1/L) \sum_s \ell(M(y, s) f_s)``.

    A column that ignores the label counts ``\ell(0)``. The mean over the examples is the quantity in the bounds on the
    training error of decoding.

    Shape:
        margins ``(*, L)``, target ``(*)``; the result is a scalar, or ``(*)`` with ``reduction="none"``.

    Reference: Allwein, Schapire and Singer (2000), eq. (3).

    Example:
        >>> import torch
        >>> from torch_multiclass import codes
        >>> scores = CodedScores(torch.tensor([[0.5, -1.0, -2.0]]), codes.one_vs_one(3))
        >>> average_binary_loss(scores, torch.tensor([0]), loss="hinge")  # (0.5 + 2 + 1) / 3
        tensor(1.1667)
    """
    loss = as_margin_loss(loss)
    gold = _gold(average_binary_loss, scores, target, frame)
    z, asked = scores.of_label(gold)
    total = asked_sum(z, asked, loss)
    ignored = scores.num_columns - (z.shape[-1] if asked is None else asked.sum(-1).to(total.dtype))
    losses = (total + loss.at_zero * ignored) / scores.num_columns
    return finish(losses, scores.as_flat(), gold, weight, None, reduction, frame)


def _gold(of: Callable[..., object], scores: CodedScores, target: Tensor, frame: Frame) -> Target:
    """The target in standard form, and the frame checked."""
    if not isinstance(scores, CodedScores):
        raise TypeError(f"scores: got {type(scores).__name__}; accepted here is CodedScores(margins, code)")
    known_keywords(of, frame, FRAME)
    validate_args = frame.get("validate_args")
    check.flag("validate_args", validate_args, optional=True)
    if check.integer("class_dim", frame.get("class_dim", -1)) != -1:
        as_scores(scores.as_flat(), frame["class_dim"])  # which says what is accepted
    ignore_index = check.integer("ignore_index", frame.get("ignore_index", check.IGNORE))
    return scores.check_target(target, validate_args, ignore_index=ignore_index)


def _check_asked(gold: Target, asked: Tensor) -> None:
    """Raise unless every label has a column that does not ignore it."""
    some = asked.any(-1)
    if gold.complete and bool(some.all()):
        return
    unasked = gold.kept & ~some
    if bool(unasked.any()):
        raise ValueError(
            f"target: label {int(gold.labels[unasked][0])} is ignored by every column of the code; accepted are "
            "classes with a non-zero entry"
        )
