"""Losses of binary margins under a code."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from typing_extensions import Unpack

from torch_multiclass import checks as check
from torch_multiclass.checks import Target
from torch_multiclass.functional._reduction import Frame, Weight, class_weight, prepare, reduce
from torch_multiclass.ops.margins import MarginLossLike, as_margin_loss
from torch_multiclass.ops.precision import upcast
from torch_multiclass.scores import FlatScores
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
    flat, gold, z, asked = _margins_of_label(coded_loss, scores, target, frame)
    if check.values_readable(z, frame.get("validate_args")):
        _check_asked(gold, asked)
    losses = torch.where(asked, loss.value(z), 0.0).sum(-1)
    return reduce(losses, flat.labelled(gold), reduction, class_weight(weight, flat, gold, frame.get("validate_args")))


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
    flat, gold, z, asked = _margins_of_label(average_binary_loss, scores, target, frame)
    total = torch.where(asked, loss.value(z), 0.0).sum(-1)
    ignored = (scores.num_columns - asked.sum(-1)).to(total.dtype)
    losses = (total + loss.at_zero * ignored) / scores.num_columns
    return reduce(losses, flat.labelled(gold), reduction, class_weight(weight, flat, gold, frame.get("validate_args")))


def _margins_of_label(
    of: Callable[..., object], scores: CodedScores, target: Tensor, frame: Frame
) -> tuple[FlatScores, Target, Tensor, Tensor]:
    """The frame and target in standard form, ``M(y, s) f_s``, and where ``M(y, s)`` is not 0."""
    if not isinstance(scores, CodedScores):
        raise TypeError(f"scores: got {type(scores).__name__}; accepted here is CodedScores(margins, code)")
    flat, gold = prepare(of, scores.as_flat(), target, frame)
    assert isinstance(flat, FlatScores)
    labels, kept, _ = gold
    margins, code = upcast(scores.margins), scores.code
    if scores.active is not None:  # only the columns that some class with this label can use
        margins, code = margins.gather(-1, scores.active[labels]), code.gather(1, scores.active)
    bits = code[labels]
    asked = (bits != 0) & kept.unsqueeze(-1)
    # 0 where nothing is asked, so that whatever stands there reaches neither the loss nor a gradient
    return flat, gold, torch.where(asked, bits.to(margins.dtype) * margins, 0.0), asked


def _check_asked(gold: Target, asked: Tensor) -> None:
    """Raise unless every label has a column that does not ignore it."""
    unasked = gold.kept & ~asked.any(-1)
    if bool(unasked.any()):
        raise ValueError(
            f"target: label {int(gold.labels[unasked][0])} is ignored by every column of the code; accepted are "
            "classes with a non-zero entry"
        )
