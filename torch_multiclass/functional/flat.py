"""Losses of one label among K, written in the margin ``rho = f_y - max_{y' != y} f_{y'}`` or the scores themselves."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from typing_extensions import Unpack

from torch_multiclass import checks as check
from torch_multiclass.checks import Target
from torch_multiclass.costs import as_cost
from torch_multiclass.functional._reduction import Frame, Weight, class_weight, prepare, reduce
from torch_multiclass.functional.structured import CostLike
from torch_multiclass.ops.flat import best_rival, hinge_sum, pick, power_of
from torch_multiclass.ops.precision import upcast
from torch_multiclass.scores import FlatScores, as_scores
from torch_multiclass.scores.flat import all_true, check_scores

ADABOOST_VARIANTS = ("mh", "mr", "averaged")


def _prepare_flat(
    name: str, scores: Tensor | FlatScores, target: Tensor, frame: Frame
) -> tuple[FlatScores, Tensor, Target]:
    """The scores, their float32 values, and the target."""
    scored, gold = prepare(scores, target, **frame)
    if not isinstance(scored, FlatScores):
        raise TypeError(f"scores: got {type(scored).__name__}; accepted by {name} are a tensor (*, K) and FlatScores")
    return scored, upcast(scored.values), gold


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
    _, values, gold = _prepare_flat("margin", scores, target, frame)
    return torch.where(gold.kept, _margin(values, gold.labels), 0.0)


def _margin(values: Tensor, labels: Tensor) -> Tensor:
    if values.shape[-1] == 1:
        only = values.squeeze(-1)  # no rival: +inf with zero gradient, and NaN stays NaN
        return torch.where(only == math.inf, only, only.detach().clamp(-1, 1) + math.inf)
    both = torch.stack([labels, best_rival(values, labels)], -1)
    gold, rival = values.gather(-1, both).unbind(-1)  # one gather: its gradient is one sparse write
    forbidden = gold == -math.inf
    return torch.where(forbidden, rival.detach().clamp(-1, 1) - math.inf, gold - rival)


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
    scored, values, gold = _prepare_flat("crammer_singer_loss", scores, target, frame)
    labels, kept, _ = gold
    if cost is None:
        losses = _hinge(margin - _margin(values, labels), kept, power)
    else:
        d = scored.relative_to(gold)
        losses = _hinge(d.augment(as_cost(cost), gold).max_score(), kept, power)
    return reduce(losses, kept, reduction, class_weight(weight, scored, gold, frame.get("validate_args")))


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
    scored, values, gold = _prepare_flat("weston_watkins_loss", scores, target, frame)
    labels, kept, _ = gold
    if cost is None:
        usable = kept & (pick(values.detach(), labels) != -math.inf)
        safe = values if gold.complete and all_true(usable) else torch.where(usable.unsqueeze(-1), values, 0.0)
        losses = torch.where(usable, hinge_sum(safe, labels, margin, power), torch.where(kept, math.inf, 0.0))
    else:
        d = scored.relative_to(gold).augment(as_cost(cost), gold)
        rivals = d.tensor.scatter(-1, labels.unsqueeze(-1), 0.0)
        losses = _hinge(rivals, kept.unsqueeze(-1), power).sum(-1) + _forbidden(values, labels)
    return reduce(losses, kept, reduction, class_weight(weight, scored, gold, frame.get("validate_args")))


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
    scored, values, gold = _prepare_flat("margin_ramp_loss", scores, target, frame)
    number = torch.finfo(values.dtype)
    rho = min(max(rho, number.tiny), number.max)  # as wide, up to what this dtype tells apart
    labels, kept, _ = gold
    losses = _hinge(1 - _margin(values, labels) / rho, kept, 1).clamp(max=1)
    return reduce(losses, kept, reduction, class_weight(weight, scored, gold, frame.get("validate_args")))


def adaboost_loss(
    scores: Tensor | FlatScores,
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
    values = upcast(scored.values)
    labelled = signs != 0
    kept = labelled.any(-1)
    forbidden = ((signs > 0) & (values == -math.inf)).any(-1)
    relevant, irrelevant = signs > 0, signs < 0
    usable = labelled & ~forbidden.unsqueeze(-1)
    if variant == "mr":  # without a pair there is nothing to lose
        usable = usable & (relevant.any(-1) & irrelevant.any(-1)).unsqueeze(-1)
    values = torch.where(usable, values, 0.0)
    signs = signs.to(values.dtype)
    if variant == "mh":
        losses = torch.where(labelled, torch.exp(-signs * values), 0.0).sum(-1)
    elif variant == "averaged":
        losses = torch.exp(-(signs * values).sum(-1) / labelled.sum(-1).clamp(min=1))
    else:
        losses = _pairs(values, relevant, irrelevant, normalize)
    losses = torch.where(forbidden, math.inf, losses)
    if weight is not None and gold is None:
        raise ValueError(
            "weight: got class weights with a ±1 target; accepted there is None, since several classes hold"
        )
    return reduce(
        losses,
        kept,
        reduction,
        None if gold is None else class_weight(weight, scored, gold, frame.get("validate_args")),
    )


def _pairs(values: Tensor, relevant: Tensor, irrelevant: Tensor, normalize: bool) -> Tensor:
    r"""``\sum_{a, b} e^{f_b - f_a} = (\sum_a e^{m - f_a}) (\sum_b e^{f_b - m})``, ``m`` the lowest relevant score."""
    lowest = values.detach().masked_fill(~relevant, math.inf).amin(-1, keepdim=True)
    lowest = torch.where(lowest.isinf(), 0.0, lowest)  # nothing relevant, or all of it certain
    low = torch.where(relevant, lowest - values, -math.inf).exp().sum(-1)
    high = torch.where(irrelevant, values - lowest, -math.inf).exp().sum(-1)
    # The product, its derivative by `low` taken at the largest number where `high` overflows: inf * 0 would be NaN.
    finite = high.clamp(max=torch.finfo(high.dtype).max)
    losses = low.detach() * high + (low - low.detach()) * finite
    return losses / (relevant.sum(-1) * irrelevant.sum(-1)).clamp(min=1) if normalize else losses


def _signs(scores: Tensor | FlatScores, target: Tensor, frame: Frame) -> tuple[FlatScores, Tensor, Target | None]:
    """A target as ±1 for each class, ``(*, K)``, with 0 where the label is ignored; and the class indices, if any."""
    check.is_tensor("target", target)
    check.dense("target", target)
    check.integer("ignore_index", frame.get("ignore_index", check.IGNORE))
    class_dim = frame.get("class_dim", -1)
    scored = as_scores(scores, class_dim)
    if not isinstance(scored, FlatScores):
        raise TypeError(
            f"scores: got {type(scored).__name__}; accepted by adaboost_loss are a tensor (*, K) and FlatScores"
        )
    check_scores(scored.values)
    if target.ndim != scored.values.ndim:
        flat_frame = frame.copy()
        flat_frame["class_dim"] = -1
        gold = prepare(scored, target, **flat_frame)[1]
        index, kept, _ = gold
        one = torch.full_like(scored.values, -1, dtype=torch.int8).scatter(-1, index.unsqueeze(-1), 1)
        return scored, one * kept.unsqueeze(-1), gold
    signs = target if class_dim in (-1, target.ndim - 1) else target.movedim(class_dim, -1)
    check.shape("target", signs, tuple(scored.values.shape), "a ±1 for each class (or (*) class indices)")
    check.same_device("target", target, "scores", scored.values)
    if signs.dtype == torch.bool:
        raise TypeError("target: got dtype torch.bool; accepted are -1 and +1 for each class, or (*) class indices")
    ignored = signs == frame.get("ignore_index", check.IGNORE)
    if check.values_readable(signs, frame.get("validate_args")) and bool((~ignored & (signs.abs() != 1)).any()):
        wrong = signs[~ignored & (signs.abs() != 1)][0].item()
        raise ValueError(
            f"target: got the entry {wrong:g}; accepted are -1 and +1 for each class, or (*) class indices"
        )
    return scored, torch.where(ignored, 0, signs), None


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


def _forbidden(values: Tensor, labels: Tensor) -> Tensor:
    """``+inf`` where the label itself is forbidden, else 0."""
    return torch.where(pick(values.detach(), labels) == -math.inf, math.inf, 0.0)


__all__ = [
    "adaboost_loss",
    "crammer_singer_loss",
    "margin",
    "margin_ramp_loss",
    "weston_watkins_loss",
]
