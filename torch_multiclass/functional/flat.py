"""Losses of one label among K, written in the margin ``rho = f_y - max_{y' != y} f_{y'}`` or the scores themselves."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from typing_extensions import Unpack

from torch_multiclass import checks as check
from torch_multiclass.checks import Target
from torch_multiclass.functional._flat import prepare_flat, reduced
from torch_multiclass.functional._reduction import finish, priced
from torch_multiclass.functional.structured import CostLike
from torch_multiclass.ops.flat import best_rival, pick, power_of
from torch_multiclass.ops.precision import upcast
from torch_multiclass.ops.row_losses import (
    BestRival,
    Ramp,
    RivalSum,
)
from torch_multiclass.options import Frame, Weight
from torch_multiclass.scores import FlatScores


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
    scored, gold = prepare_flat(_margin_function, scores, target, frame)
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
    scored, gold = prepare_flat(crammer_singer_loss, scores, target, frame)
    if cost is None:
        return reduced(BestRival(margin, power), scored, gold, weight, sample_weight, reduction, frame)
    cost = priced(cost, frame)
    rival = scored.of_rival(cost)
    if rival is not None:
        return reduced(BestRival(rival[0], power, rival[1]), scored, gold, weight, sample_weight, reduction, frame)
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
    scored, gold = prepare_flat(weston_watkins_loss, scores, target, frame)
    if cost is None:
        return reduced(RivalSum(margin, power), scored, gold, weight, sample_weight, reduction, frame)
    cost = priced(cost, frame)
    rival = scored.of_rival(cost)
    if rival is not None:
        return reduced(RivalSum(rival[0], power, rival[1]), scored, gold, weight, sample_weight, reduction, frame)
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
    scored, gold = prepare_flat(margin_ramp_loss, scores, target, frame)
    number = torch.finfo(upcast(scored.values).dtype)
    rho = min(max(rho, number.tiny), number.max)  # as wide, up to what this dtype tells apart
    return reduced(Ramp(rho), scored, gold, weight, sample_weight, reduction, frame)


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


__all__ = [
    "crammer_singer_loss",
    "margin",
    "margin_ramp_loss",
    "weston_watkins_loss",
]
