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
from torch_multiclass.functional._reduction import example_weight, finish, prepare, reduce
from torch_multiclass.functional.structured import CostLike
from torch_multiclass.ops.flat import best_rival, pick, power_of
from torch_multiclass.ops.precision import upcast
from torch_multiclass.ops.row_losses import (
    AverageExponential,
    BestRival,
    Exponentials,
    ExponentialSum,
    Ramp,
    RivalSum,
)
from torch_multiclass.ops.rows import RowLoss
from torch_multiclass.options import FRAME, Frame, Weight, known_keywords
from torch_multiclass.scores import FlatScores, MultilabelScores, Scores, as_scores

ADABOOST_VARIANTS = ("mh", "mr", "averaged")


def _prepare_flat(
    of: Callable[..., object], scores: Tensor | FlatScores, target: Tensor, frame: Frame
) -> tuple[FlatScores, Target]:
    """Scores of one label, and the target."""
    usual = isinstance(target, Tensor) and not target.is_nested and target.is_floating_point()
    if usual and not getattr(scores, "is_nested", False) and target.shape == getattr(scores, "shape", None):
        raise TypeError(
            f"target: a distribution over labels has no meaning for {of.__name__}, which compares with one label; "
            "accepted are class indices; CRFLoss and CodedLoss take distributions (of two labels mixed, as by mixup, "
            "take the mean of the two losses)"
        )
    scored, gold = prepare(of, scores, target, frame)
    return _as_flat(of, scored), gold


def _as_flat(of: Callable[..., object], scores: Scores) -> FlatScores:
    if not isinstance(scores, FlatScores):
        raise TypeError(
            f"scores: got {type(scores).__name__}; accepted by {of.__name__} are a tensor (*, K) and FlatScores"
        )
    return scores


def _reduced(
    loss: RowLoss,
    scores: FlatScores,
    gold: Target,
    weight: Weight,
    sample_weight: Weight,
    reduction: str,
    frame: Frame,
) -> Tensor:
    """The loss of each row, reduced: the usual mean within the same node."""
    plain = weight is None and sample_weight is None and isinstance(reduction, str) and reduction == "mean"
    if plain and scores.all_labelled(gold):
        return scores.row_losses(loss, gold, mean=True)
    return finish(scores.row_losses(loss, gold), scores, gold, weight, sample_weight, reduction, frame)


def margin(scores: Tensor | FlatScores, target: Tensor, **frame: Unpack[Frame]) -> Tensor:
    r"""Margin of an example, ``\rho(f, y) = f_y - \max_{y' \ne y} f_{y'}``; it is misclassified iff ``\rho \le 0``.

    Infinite for a single class; 0 with zero gradient where the target is ignored.

    Shape:
        scores ``(*, K)``, target ``(*)``, result ``(*)``.

    Raises:
        ValueError: labels outside ``0..K-1``, shapes that disagree.
        TypeError: scores that are no floating-point tensor.

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
    label = labels.unsqueeze(-1)
    own, rival = values.gather(-1, torch.cat([label, best_rival(values, label)], -1)).unbind(
        -1
    )  # one gather: its gradient is one sparse write
    forbidden = own == -math.inf
    return torch.where(forbidden, rival.detach().clamp(-1, 1) - math.inf, own - rival)


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
    sample_weight: Weight = None,
    reduction: str = "mean",
    **frame: Unpack[Frame],
) -> Tensor:
    r"""Hinge of the margin, ``[margin - \rho(f, y)]_+^{power}``.

    See `torch_multiclass.CrammerSingerLoss`.

    Shape:
        scores ``(*, K)``, target ``(*)``; the result is a scalar, or ``(*)`` with ``reduction="none"``.

    Example:
        >>> import torch
        >>> crammer_singer_loss(torch.tensor([[2.0, 1.5, 1.8, 1.0]]), torch.tensor([0]))
        tensor(0.8000)
    """
    margin, power = check_hinge(margin, cost, power)
    scored, gold = _prepare_flat(crammer_singer_loss, scores, target, frame)
    if cost is None:
        return _reduced(BestRival(margin, power), scored, gold, weight, sample_weight, reduction, frame)
    cost = as_cost(cost)
    rival = scored.of_rival(cost)
    if rival is not None:
        return _reduced(BestRival(rival[0], power, rival[1]), scored, gold, weight, sample_weight, reduction, frame)
    losses = _hinge(scored.margin_max(gold, cost), gold.kept, power)
    return finish(losses, scored, gold, weight, sample_weight, reduction, frame)


def weston_watkins_loss(
    scores: Tensor | FlatScores,
    target: Tensor,
    *,
    margin: float = 1.0,
    cost: CostLike | None = None,
    power: float = 1,
    weight: Weight = None,
    sample_weight: Weight = None,
    reduction: str = "mean",
    **frame: Unpack[Frame],
) -> Tensor:
    r"""Sum of the hinges of all rivals, ``\sum_{y' \ne y} [margin - f_y + f_{y'}]_+^{power}``.

    See `torch_multiclass.WestonWatkinsLoss`.

    Shape:
        scores ``(*, K)``, target ``(*)``; the result is a scalar, or ``(*)`` with ``reduction="none"``.

    Example:
        >>> import torch
        >>> weston_watkins_loss(torch.tensor([[2.0, 1.5, 1.8, 1.0]]), torch.tensor([0]))
        tensor(1.3000)
    """
    margin, power = check_hinge(margin, cost, power)
    scored, gold = _prepare_flat(weston_watkins_loss, scores, target, frame)
    if cost is None:
        return _reduced(RivalSum(margin, power), scored, gold, weight, sample_weight, reduction, frame)
    cost = as_cost(cost)
    rival = scored.of_rival(cost)
    if rival is not None:
        return _reduced(RivalSum(rival[0], power, rival[1]), scored, gold, weight, sample_weight, reduction, frame)
    d = scored.relative_to(gold).augment(cost, gold).tensor
    hinges = _hinge(d.scatter(-1, gold.labels.unsqueeze(-1), 0.0), gold.kept.unsqueeze(-1), power)
    losses = hinges.sum(-1) + pick(d.detach(), gold.labels)  # + 0, or + inf where the label is forbidden
    return finish(losses, scored, gold, weight, sample_weight, reduction, frame)


def margin_ramp_loss(
    scores: Tensor | FlatScores,
    target: Tensor,
    *,
    rho: float,
    weight: Weight = None,
    sample_weight: Weight = None,
    reduction: str = "mean",
    **frame: Unpack[Frame],
) -> Tensor:
    r"""Ramp of the margin, ``\Phi_\rho(z) = \min(1, [1 - z / \rho]_+)`` at ``z = \rho(f, y)``.

    See `torch_multiclass.MarginRampLoss`.

    Shape:
        scores ``(*, K)``, target ``(*)``; the result is a scalar, or ``(*)`` with ``reduction="none"``.

    Example:
        >>> import torch
        >>> margin_ramp_loss(torch.tensor([[2.0, 1.5]]), torch.tensor([0]), rho=2.0)
        tensor(0.7500)
    """
    rho = check.positive("rho", rho)
    scored, gold = _prepare_flat(margin_ramp_loss, scores, target, frame)
    number = torch.finfo(upcast(scored.values).dtype)
    rho = min(max(rho, number.tiny), number.max)  # as wide, up to what this dtype tells apart
    return _reduced(Ramp(rho), scored, gold, weight, sample_weight, reduction, frame)


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
    scored, gold = _prepare_flat(adaboost_loss, scores, target, frame)
    losses = _reduced(_ONE_LABEL[variant](), scored, gold, weight, sample_weight, reduction, frame)
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
    values = upcast(_as_flat(adaboost_loss, as_scores(scores, class_dim)).tensor)
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
    return values, torch.where(ignored, 0, signs).to(values.dtype)


def check_hinge(margin: float, cost: CostLike | None, power: float) -> tuple[float, float]:
    """Margin and power as numbers; raise unless a hinge loss with these arguments is defined and convex."""
    if type(margin) is float and margin == 1 and type(power) in (int, float) and power == 1:
        return margin, power  # as nearly always
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
