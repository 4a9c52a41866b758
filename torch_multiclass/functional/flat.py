"""Losses of one label among K, written in the margin ``rho = f_y - max_{y' != y} f_{y'}`` or the scores themselves."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from typing_extensions import Unpack

from torch_multiclass import checks as check
from torch_multiclass.checks import Target
from torch_multiclass.costs import as_cost
from torch_multiclass.functional._reduction import REDUCTIONS, class_weight, prepare, reduce
from torch_multiclass.functional.structured import CostLike
from torch_multiclass.ops.flat import best_rival, hinge_sum, margin_hinge, pick, power_of
from torch_multiclass.ops.precision import upcast
from torch_multiclass.options import FRAME, Frame, Weight, known_keywords
from torch_multiclass.scores import FlatScores, MultilabelScores, Scores, as_scores
from torch_multiclass.scores.flat import all_true

ADABOOST_VARIANTS = ("mh", "mr", "averaged")


def _prepare_flat(
    of: Callable[..., object], scores: Tensor | FlatScores, target: Tensor, frame: Frame
) -> tuple[FlatScores, Target]:
    """Scores of one label, and the target."""
    scored, gold = prepare(of, scores, target, frame)
    return _as_flat(of, scored), gold


def _as_flat(of: Callable[..., object], scores: Scores) -> FlatScores:
    if not isinstance(scores, FlatScores):
        raise TypeError(
            f"scores: got {type(scores).__name__}; accepted by {of.__name__} are a tensor (*, K) and FlatScores"
        )
    return scores


def _finish(losses: Tensor, scores: FlatScores, gold: Target, weight: Weight, reduction: str, frame: Frame) -> Tensor:
    share = class_weight(weight, scores, gold, frame.get("validate_args"))
    if gold.complete and share is None and losses.numel():
        check.choice("reduction", reduction, REDUCTIONS)
        return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.mean()
    return reduce(losses, gold.kept, reduction, share)


def margin(scores: Tensor | FlatScores, target: Tensor, **frame: Unpack[Frame]) -> Tensor:
    r"""Margin of an example, ``\rho(f, y) = f_y - \max_{y' \ne y} f_{y'}``; it is misclassified iff ``\rho \le 0``.

    Infinite for a single class; 0 with zero gradient where the target is ignored.

    Shape:
        scores ``(*, K)``, target ``(*)``, result ``(*)``.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.2.

    Example:
        >>> import torch
        >>> margin(torch.tensor([[2.0, 1.5, 1.8], [0.0, 1.0, 0.0]]), torch.tensor([0, 2]))
        tensor([ 0.2000, -1.0000])
    """
    scored, gold = _prepare_flat(_margin_function, scores, target, frame)
    return torch.where(gold.kept, _margin(scored, gold), 0.0)


_margin_function = margin  # the losses have an argument of this name


def _margin(scores: FlatScores, gold: Target) -> Tensor:
    values, labels = upcast(scores.values), gold.labels
    if values.shape[-1] == 1:
        only = values.squeeze(-1)  # no rival: +inf with zero gradient, and NaN stays NaN
        return torch.where(only == math.inf, only, only.detach().clamp(-1, 1) + math.inf)
    both = torch.stack([labels, best_rival(values, labels)], -1)
    own, rival = values.gather(-1, both).unbind(-1)  # one gather: its gradient is one sparse write
    forbidden = own == -math.inf
    return torch.where(forbidden, rival.detach().clamp(-1, 1) - math.inf, own - rival)


def _margin_hinge(scores: FlatScores, gold: Target, margin: float, power: float, mean: bool = False) -> Tensor:
    """``[margin - \rho]_+ ** power``, 0 where no label is known; a single class has no rival and loses nothing."""
    values, (labels, kept, complete) = upcast(scores.values), gold
    if values.shape[-1] == 1:
        losses = _hinge(margin - _margin(scores, gold), kept, power)
        return losses.mean() if mean else losses
    return margin_hinge(values, labels, None if complete else kept, margin, power, mean)


def _hinge(slack: Tensor, kept: Tensor, power: float) -> Tensor:
    """``[slack]_+ ** power``; rows that are left out are cut off before the power, so that NaN there stays there."""
    return power_of(torch.where(kept, slack, 0.0).clamp(min=0), power)


def crammer_singer_loss(
    scores: Tensor | FlatScores,
    target: Tensor,
    *,
    margin: float = 1.0,
    cost: CostLike | None = None,
    power: float = 1,
    weight: Weight = None,
    reduction: str = "mean",
    **frame: Unpack[Frame],
) -> Tensor:
    r"""Hinge of the margin, ``[margin - \rho(f, y)]_+^{power}``.

    See `torch_multiclass.CrammerSingerLoss`.

    Example:
        >>> import torch
        >>> crammer_singer_loss(torch.tensor([[2.0, 1.5, 1.8, 1.0]]), torch.tensor([0]))
        tensor(0.8000)
    """
    margin, power = check_hinge(margin, cost, power)
    scored, gold = _prepare_flat(crammer_singer_loss, scores, target, frame)
    if cost is None and weight is None and reduction == "mean" and gold.complete and gold.labels.numel():
        return _margin_hinge(scored, gold, margin, power, mean=True)
    if cost is None:
        losses = _margin_hinge(scored, gold, margin, power)
    else:
        losses = _hinge(scored.relative_to(gold).augment(as_cost(cost), gold).max_score(), gold.kept, power)
    return _finish(losses, scored, gold, weight, reduction, frame)


def weston_watkins_loss(
    scores: Tensor | FlatScores,
    target: Tensor,
    *,
    margin: float = 1.0,
    cost: CostLike | None = None,
    power: float = 1,
    weight: Weight = None,
    reduction: str = "mean",
    **frame: Unpack[Frame],
) -> Tensor:
    r"""Sum of the hinges of all rivals, ``\sum_{y' \ne y} [margin - f_y + f_{y'}]_+^{power}``.

    See `torch_multiclass.WestonWatkinsLoss`.

    Example:
        >>> import torch
        >>> weston_watkins_loss(torch.tensor([[2.0, 1.5, 1.8, 1.0]]), torch.tensor([0]))
        tensor(1.3000)
    """
    margin, power = check_hinge(margin, cost, power)
    scored, gold = _prepare_flat(weston_watkins_loss, scores, target, frame)
    values, (labels, kept, complete) = upcast(scored.values), gold
    allowed = pick(values.detach(), labels) != -math.inf
    if cost is None:
        usable = kept & allowed
        safe = values if complete and all_true(usable) else torch.where(usable.unsqueeze(-1), values, 0.0)
        losses = hinge_sum(safe, labels, margin, power)
    else:
        d = scored.relative_to(gold).augment(as_cost(cost), gold).tensor
        losses = _hinge(d.scatter(-1, labels.unsqueeze(-1), 0.0), kept.unsqueeze(-1), power).sum(-1)
    return _finish(torch.where(allowed, losses, math.inf), scored, gold, weight, reduction, frame)


def margin_ramp_loss(
    scores: Tensor | FlatScores,
    target: Tensor,
    *,
    rho: float,
    weight: Weight = None,
    reduction: str = "mean",
    **frame: Unpack[Frame],
) -> Tensor:
    r"""Ramp of the margin, ``\Phi_\rho(z) = \min(1, [1 - z / \rho]_+)`` at ``z = \rho(f, y)``.

    See `torch_multiclass.MarginRampLoss`.

    Example:
        >>> import torch
        >>> margin_ramp_loss(torch.tensor([[2.0, 1.5]]), torch.tensor([0]), rho=2.0)
        tensor(0.7500)
    """
    rho = check.positive("rho", rho)
    scored, gold = _prepare_flat(margin_ramp_loss, scores, target, frame)
    number = torch.finfo(upcast(scored.values).dtype)
    rho = min(max(rho, number.tiny), number.max)  # as wide, up to what this dtype tells apart
    losses = (_margin_hinge(scored, gold, rho, 1) / rho).clamp(max=1)
    return _finish(losses, scored, gold, weight, reduction, frame)


def adaboost_loss(
    scores: Tensor | FlatScores | MultilabelScores,
    target: Tensor,
    *,
    variant: str = "mh",
    normalize: bool = False,
    weight: Weight = None,
    reduction: str = "mean",
    **frame: Unpack[Frame],
) -> Tensor:
    r"""Exponential losses of multi-class boosting: one for each label, for each pair, or for the average.

    See `torch_multiclass.AdaBoostLoss`.

    Example:
        >>> import torch
        >>> f = torch.tensor([[0.5, -0.5]])
        >>> adaboost_loss(f, torch.tensor([[1, -1]])), adaboost_loss(f, torch.tensor([0]), variant="mr")
        (tensor(1.2131), tensor(0.3679))
    """
    check_variant(variant, normalize)
    scored, signs, gold = _signs(scores, target, frame)
    if weight is not None and gold is None:
        raise ValueError(
            "weight: got class weights with a ±1 target; accepted there is None, since several classes hold"
        )
    share = None if gold is None else class_weight(weight, scored, gold, frame.get("validate_args"))
    values = upcast(scored.values)
    relevant, irrelevant = signs > 0, signs < 0
    labelled = relevant | irrelevant
    forbidden = (relevant & (values == -math.inf)).any(-1)
    costly = ~forbidden if share is None else ~forbidden & (share > 0)  # 0 * inf is not 0
    if variant == "mr":
        costly = costly & relevant.any(-1) & irrelevant.any(-1)
    z = torch.where(labelled & costly.unsqueeze(-1), signs * values, 0.0)
    if variant == "mh":
        losses = torch.where(labelled, torch.exp(-z), 0.0).sum(-1)
    elif variant == "averaged":
        losses = torch.exp(-z.sum(-1) / labelled.sum(-1).clamp(min=1))
    else:
        losses = torch.where(costly, _pairs(z, relevant, irrelevant, normalize), 0.0)
    return reduce(torch.where(forbidden, math.inf, losses), labelled.any(-1), reduction, share)


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


def _signs(
    scores: Tensor | FlatScores | MultilabelScores, target: Tensor, frame: Frame
) -> tuple[FlatScores, Tensor, Target | None]:
    """A target as ±1 for each class, ``(*, K)``, with 0 where the label is ignored; and the class indices, if any."""
    check.is_tensor("target", target)
    class_dim = frame.get("class_dim", -1)
    scores = scores.tensor if isinstance(scores, MultilabelScores) else scores
    scored = _as_flat(adaboost_loss, as_scores(scores, class_dim))
    values = scored.values
    if target.ndim != values.ndim:
        gold = prepare(adaboost_loss, scores, target, frame)[1]
        one = torch.full_like(values, -1, dtype=upcast(values).dtype).scatter(-1, gold.labels.unsqueeze(-1), 1)
        return scored, one * gold.kept.unsqueeze(-1), gold
    known_keywords(adaboost_loss, frame, FRAME)
    ignore_index = check.integer("ignore_index", frame.get("ignore_index", check.IGNORE))
    accepted = "-1 and +1 for each class, or (*) class indices"
    if target.dtype not in (*check.INTEGERS, *check.FLOATING):
        raise TypeError(f"target: got dtype {target.dtype}; accepted are {accepted}")
    check.dense("target", target)
    signs = target if target.is_floating_point() else target.long()
    signs = signs if class_dim in (-1, signs.ndim - 1) else signs.movedim(class_dim, -1)
    check.shape("target", signs, tuple(values.shape), "a ±1 for each class (or (*) class indices)")
    check.same_device("target", target, "scores", values)
    ignored = signs == ignore_index
    wrong = ~ignored & (signs.abs() != 1)
    if check.values_readable(signs, frame.get("validate_args")) and bool(wrong.any()):
        raise ValueError(f"target: got the entry {signs[wrong][0].item():g}; accepted are {accepted}")
    return scored, torch.where(ignored, 0, signs).to(upcast(values).dtype), None


def check_hinge(margin: float, cost: CostLike | None, power: float) -> tuple[float, float]:
    """Margin and power as numbers; raise unless a hinge loss with these arguments is defined and convex."""
    margin = check.positive("margin", margin, zero=True)
    if cost is not None and margin != 1:
        raise ValueError(
            f"margin: got {margin} together with a cost; accepted there is 1, since the cost is the margin"
        )
    power = check.positive("power", power)
    if power < 1:
        raise ValueError(f"power: got {power}; accepted are powers >= 1, where the loss is convex")
    return margin, power


def check_variant(variant: str, normalize: bool) -> None:
    """Raise unless there is an AdaBoost loss of this name, with pairs to normalise by where that is asked."""
    check.choice("variant", variant, ADABOOST_VARIANTS)
    check.flag("normalize", normalize)
    if normalize and variant != "mr":
        raise ValueError(f"normalize: got True with variant {variant!r}; accepted there is False (only 'mr' has pairs)")


__all__ = [
    "adaboost_loss",
    "crammer_singer_loss",
    "margin",
    "margin_ramp_loss",
    "weston_watkins_loss",
]
