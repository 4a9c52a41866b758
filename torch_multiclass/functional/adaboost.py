"""Exponential losses of multi-class boosting, of one label or of a set of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from typing_extensions import Unpack

from torch_multiclass import checks as check
from torch_multiclass.functional._flat import as_flat, prepare_flat, reduced
from torch_multiclass.functional._reduction import asked_to_validate, example_weight, reduce
from torch_multiclass.ops.precision import upcast
from torch_multiclass.ops.row_losses import AverageExponential, Exponentials, ExponentialSum
from torch_multiclass.ops.rows import RowLoss
from torch_multiclass.options import FRAME, Frame, Weight, known_keywords
from torch_multiclass.scores import FlatScores, MultilabelScores, as_scores

ADABOOST_VARIANTS = ("mh", "mr", "averaged")


def adaboost_loss(
    scores: Tensor | FlatScores | MultilabelScores,
    target: Tensor,
    *,
    variant: str = "mh",
    normalize: bool = False,
    weight: Weight = None,
    sample_weight: Weight = None,
    reduction: str = "mean",
    **frame: Unpack[Frame],
) -> Tensor:
    r"""Exponential losses of multi-class boosting: one for each label, for each pair, or for the average.

    See `torch_multiclass.AdaBoostLoss`.

    Shape:
        scores ``(*, K)``, target ``(*)``, or ``(*, K)`` of signs; the result is a scalar, or ``(*)`` with
        ``reduction="none"``.

    Example:
        >>> import torch
        >>> f = torch.tensor([[0.5, -0.5]])
        >>> adaboost_loss(f, torch.tensor([[1, -1]])), adaboost_loss(f, torch.tensor([0]), variant="mr")
        (tensor(1.2131), tensor(0.3679))
    """
    check_variant(variant, normalize)
    scores = scores.tensor if isinstance(scores, MultilabelScores) else scores
    check.is_tensor("target", target)
    values = scores.values if isinstance(scores, FlatScores) else scores
    if isinstance(values, Tensor) and target.ndim == values.ndim:
        if weight is not None:
            raise ValueError(
                "weight: got class weights with a ±1 target; accepted there is None, since several classes hold"
            )
        return _adaboost_of_sets(scores, target, variant, normalize, sample_weight, reduction, frame)
    scored, gold = prepare_flat(adaboost_loss, scores, target, frame)
    losses = reduced(_ONE_LABEL[variant](), scored, gold, weight, sample_weight, reduction, frame)
    return losses / max(1, scored.num_classes - 1) if normalize else losses


_ONE_LABEL: dict[str, Callable[[], RowLoss]] = {
    "mh": Exponentials,
    "mr": ExponentialSum,
    "averaged": AverageExponential,
}


def _adaboost_of_sets(
    scores: Tensor | FlatScores,
    target: Tensor,
    variant: str,
    normalize: bool,
    sample_weight: Weight,
    reduction: str,
    frame: Frame,
) -> Tensor:
    """The loss of a target of ±1 for each class, any number of which may hold."""
    values, signs = _signs(scores, target, frame)
    relevant, irrelevant = signs > 0, signs < 0
    labelled = relevant | irrelevant
    forbidden = (relevant & (values == -math.inf)).any(-1)
    costly = ~forbidden
    if variant == "mr":
        costly = costly & relevant.any(-1) & irrelevant.any(-1)
    z = torch.where(labelled & costly.unsqueeze(-1), signs * values, 0.0)
    if variant == "mh":
        losses = torch.where(labelled, torch.exp(-z), 0.0).sum(-1)
    elif variant == "averaged":
        losses = torch.exp(-z.sum(-1) / labelled.sum(-1).clamp(min=1))
    else:
        losses = torch.where(costly, _pairs(z, relevant, irrelevant, normalize), 0.0)
    losses = torch.where(forbidden, math.inf, losses)
    weights = None
    if sample_weight is not None:
        weights = example_weight(sample_weight, losses, validate_args=frame.get("validate_args"))
    return reduce(losses, labelled.any(-1), reduction, weights)


def _pairs(z: Tensor, relevant: Tensor, irrelevant: Tensor, normalize: bool) -> Tensor:
    r"""``\sum_{a, b} e^{f_b - f_a} = (\sum_a e^{m - z_a}) (\sum_b e^{-z_b - m})``, ``m`` the lowest relevant score."""
    lowest = z.detach().masked_fill(~relevant, math.inf).amin(-1, keepdim=True)
    lowest = torch.where(lowest.isinf(), 0.0, lowest)  # nothing relevant, or all of it certain
    low = torch.where(relevant, lowest - z, -math.inf).exp().sum(-1)
    high = torch.where(irrelevant, -z - lowest, -math.inf).exp().sum(-1)
    # The product, its derivative by `low` taken at the largest number where `high` overflows: inf * 0 would be NaN.
    finite = high.clamp(max=torch.finfo(high.dtype).max)
    losses = low.detach() * high + (low - low.detach()) * finite
    return losses / (relevant.sum(-1) * irrelevant.sum(-1)).clamp(min=1) if normalize else losses


def _signs(scores: Tensor | FlatScores, target: Tensor, frame: Frame) -> tuple[Tensor, Tensor]:
    """Scores with classes last, and a target as ±1 for each class, ``(*, K)`` each, with 0 where a label is ignored."""
    known_keywords(adaboost_loss, frame, FRAME)
    ignore_index = check.integer("ignore_index", frame.get("ignore_index", check.IGNORE))
    class_dim = frame.get("class_dim", -1)
    values = upcast(as_flat(adaboost_loss, as_scores(scores, class_dim)).tensor)
    accepted = "-1 and +1 for each class, or (*) class indices"
    if target.dtype not in (*check.INTEGERS, *check.FLOATING):
        raise TypeError(f"target: got dtype {target.dtype}; accepted are {accepted}")
    check.dense("target", target)
    signs = target if target.is_floating_point() else target.long()
    signs = signs.movedim(class_dim, -1)
    check.shape("target", signs, tuple(values.shape), "a ±1 for each class (or (*) class indices)")
    check.same_device("target", target, "scores", values)
    ignored = signs == ignore_index
    wrong = ~ignored & (signs.abs() != 1)
    if check.values_readable(signs, asked_to_validate(frame)) and bool(wrong.any()):
        raise ValueError(f"target: got the entry {signs[wrong][0].item():g}; accepted are {accepted}")
    return values, torch.where(ignored, 0, signs).to(values.dtype)


def check_variant(variant: str, normalize: bool) -> None:
    """Raise unless there is an AdaBoost loss of this name, with pairs to normalise by where that is asked."""
    check.choice("variant", variant, ADABOOST_VARIANTS)
    check.flag("normalize", normalize)
    if normalize and variant != "mr":
        raise ValueError(f"normalize: got True with variant {variant!r}; accepted there is False (only 'mr' has pairs)")


__all__ = ["adaboost_loss"]
