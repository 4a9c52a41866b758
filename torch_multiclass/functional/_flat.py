"""What losses of one label among K do before their formula, and after it."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from torch_multiclass.checks import Target, came
from torch_multiclass.functional._reduction import finish, prepare
from torch_multiclass.ops.rows import RowLoss
from torch_multiclass.options import Frame, Weight
from torch_multiclass.scores import FlatScores, Scores


def prepare_flat(
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
    return as_flat(of, scored), gold


def as_flat(of: Callable[..., object], scores: Scores) -> FlatScores:
    """The scores, if they are of one label."""
    if not isinstance(scores, FlatScores):
        raise TypeError(f"scores: got {came(scores)}; accepted by {of.__name__} are a tensor (*, K) and FlatScores")
    return scores


def reduced(
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
