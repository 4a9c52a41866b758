"""Losses of binary margins under a code."""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

import torch
from torch import Tensor
from typing_extensions import Unpack

from torch_multiclass import checks as check
from torch_multiclass.checks import Target
from torch_multiclass.functional._reduction import Frame, Weight, asked_to_validate, finish
from torch_multiclass.functional._soft import check_smoothing, is_soft, soft_target, weighted
from torch_multiclass.ops.asked import asked_sum
from torch_multiclass.ops.margins import MarginLoss, MarginLossLike, as_margin_loss
from torch_multiclass.ops.precision import upcast
from torch_multiclass.options import FRAME, known_keywords
from torch_multiclass.scores import as_scores
from torch_multiclass.scores._soft import as_structured
from torch_multiclass.scores.coded import CodedScores

__all__ = ["average_binary_loss", "binary_loss", "coded_loss"]

_ENTRIES = 1 << 24  # of a code that are written out at a time


def binary_loss(z: Tensor, loss: MarginLossLike = "hinge") -> Tensor:
    r"""A loss of a binary margin ``z = y f``, elementwise: one of these names, or a `torch_multiclass.margins` object.

    ===================  ===============================================
    ``"hinge"``          ``[1 - z]_+``
    ``"squared"``        ``(1 - z)^2``
    ``"squared_hinge"``  ``[1 - z]_+^2``
    ``"logistic"``       ``log(1 + e^{-2z})``, so ``P(y = 1) = \sigma(2f)``
    ``"exponential"``    ``e^{-z}``
    ``"sigmoid"``        ``1 / (1 + e^{2z})``, randomised AdaBoost
    ``"zero_one"``       ``(1 - sign z) / 2`` with ``sign 0 = 0``
    ===================  ===============================================

    All satisfy ``(\ell(z) + \ell(-z)) / 2 \ge \ell(0) > 0``, eq. (7) of the reference. Half precision is computed in
    float32.

    Shape:
        margins ``(*)`` to losses ``(*)``.

    Raises:
        ValueError: a name that no loss has.
        TypeError: what is neither a name nor a `MarginLoss`; margins that are no floating-point tensor.

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
    label_smoothing: float = 0.0,
    weight: Weight = None,
    sample_weight: Weight = None,
    reduction: str = "mean",
    **frame: Unpack[Frame],
) -> Tensor:
    r"""Sum of the losses of the columns that do not ignore the label, ``\sum_{s: M(y, s) \ne 0} \ell(M(y, s) f_s)``.

    See `torch_multiclass.CodedLoss`.

    Shape:
        margins ``(*, L)``, target ``(*)``; the result is a scalar, or ``(*)`` with ``reduction="none"``.

    Example:
        >>> import torch
        >>> from torch_multiclass import codes
        >>> scores = CodedScores(torch.tensor([[0.5, -1.0, -2.0]]), codes.one_vs_all(3))
        >>> coded_loss(scores, torch.tensor([0]), loss="hinge")
        tensor(0.5000)
    """
    loss = as_margin_loss(loss)
    label_smoothing = check_smoothing(label_smoothing)
    if label_smoothing != 0 or (is_soft(target) and target.is_floating_point()):
        return _soft_loss(scores, target, loss, label_smoothing, weight, sample_weight, reduction, frame)
    gold = _gold(coded_loss, scores, target, frame)
    z, asked = scores.of_label(gold)
    validate_args = frame.get("validate_args")
    if asked is not None and check.values_readable(z, validate_args):
        _check_asked(gold, asked)
    return finish(asked_sum(z, asked, loss), scores.as_flat(), gold, weight, sample_weight, reduction, frame)


def _soft_loss(
    scores: CodedScores,
    target: Tensor,
    loss: MarginLoss,
    label_smoothing: float,
    weight: Weight,
    sample_weight: Weight,
    reduction: str,
    frame: Frame,
) -> Tensor:
    r"""The expected loss of a class drawn from a distribution, ``\sum_s p^+_s \ell(f_s) + p^-_s \ell(-f_s)`` with the
    probabilities ``p`` that column ``s`` says +1 and -1.
    """
    validate_args = frame.get("validate_args")
    if is_soft(target):
        check.dense("target", target)
    soft = is_soft(target) and isinstance(scores, CodedScores) and target.ndim == len(scores.shape)
    read = _gold(coded_loss, scores, target, frame, checked=not soft)
    flat = as_structured(scores.as_flat())
    share, counted, known = soft_target(flat, target if read is None else read, label_smoothing, validate_args)
    each = None
    if weight is not None:
        share, mass, each = weighted(share, known, weight, flat, validate_args)
        share = share * mass.unsqueeze(-1)
    losses = _expected(scores, share.squeeze(-2) * counted.kept.view(*scores.shape[:-1], 1), loss)
    return finish(losses, flat, counted, None, sample_weight, reduction, frame, None if each is None else each[..., 0])


def _expected(scores: CodedScores, share: Tensor, loss: MarginLoss) -> Tensor:
    margins = upcast(scores.margins)
    share = share.to(margins.dtype)
    classes = torch.arange(scores.num_classes, device=margins.device)
    total, step = torch.zeros_like(margins[..., 0]), max(1, _ENTRIES // scores.num_classes)
    for start in range(0, scores.num_columns, step):
        columns = slice(start, start + step)
        said, f = scores.rows(classes, columns).to(margins.dtype), margins[..., columns]
        for sign in (1.0, -1.0):
            p = share @ (sign * said).clamp(min=0)
            total = total + (p * loss.value(torch.where(p == 0, 0.0, sign * f))).sum(-1)  # 0 times infinity is 0 here
    return total


def average_binary_loss(
    scores: CodedScores,
    target: Tensor,
    *,
    loss: MarginLossLike = "hinge",
    weight: Weight = None,
    sample_weight: Weight = None,
    reduction: str = "mean",
    **frame: Unpack[Frame],
) -> Tensor:
    r"""Binary loss averaged over the columns, ``(1/L) \sum_s \ell(M(y, s) f_s)``.

    A column that ignores the label counts ``\ell(0)``. The mean over the examples is the quantity in the bounds on the
    training error of decoding.

    Shape:
        margins ``(*, L)``, target ``(*)``; the result is a scalar, or ``(*)`` with ``reduction="none"``.

    Raises:
        ValueError: labels outside ``0..K-1``, shapes that disagree, an unknown loss or reduction.
        TypeError: scores that are not `CodedScores`.

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
    return finish(losses, scores.as_flat(), gold, weight, sample_weight, reduction, frame)


@overload
def _gold(of: Callable[..., object], scores: CodedScores, target: Tensor, frame: Frame) -> Target: ...


@overload
def _gold(
    of: Callable[..., object], scores: CodedScores, target: Tensor, frame: Frame, *, checked: bool
) -> Target | None: ...


def _gold(
    of: Callable[..., object], scores: CodedScores, target: Tensor, frame: Frame, *, checked: bool = True
) -> Target | None:
    """The target in standard form, unless it is not to be checked as one of labels, and the frame checked."""
    if not isinstance(scores, CodedScores):
        raise TypeError(f"scores: got {check.came(scores)}; accepted here is CodedScores(margins, code)")
    known_keywords(of, frame, FRAME)
    validate_args = asked_to_validate(frame)
    if check.integer("class_dim", frame.get("class_dim", -1)) != -1:
        as_scores(scores.as_flat(), frame["class_dim"])  # which says what is accepted
    ignore_index = check.integer("ignore_index", frame.get("ignore_index", check.IGNORE))
    return scores.check_target(target, validate_args, ignore_index=ignore_index) if checked else None


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
