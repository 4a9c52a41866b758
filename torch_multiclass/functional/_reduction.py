"""The shared frame of every loss: what comes in is put into one form, and what comes out is reduced in one way.

This is the only place that knows `ignore_index`, `class_dim`, `weight` and `reduction`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.checks import Target
from torch_multiclass.costs import Cost, as_cost, trusted
from torch_multiclass.options import FRAME, Frame, Weight, known_keywords
from torch_multiclass.scores import Scores, as_scores

__all__ = [
    "REDUCTIONS",
    "Frame",
    "Weight",
    "asked_to_validate",
    "class_weight",
    "class_weights",
    "example_weight",
    "finish",
    "prepare",
    "priced",
    "reduce",
]

REDUCTIONS = ("mean", "sum", "none", "token_mean")


def prepare(of: Callable[..., object], scores: Tensor | Scores, target: Tensor, frame: Frame) -> tuple[Scores, Target]:
    """Scores with classes last, and the target: checked here, once, and trusted from here on.

    Args:
        of: the function that was called, for the words of an error.
        scores, target: its arguments.
        frame: its other keyword arguments.
    """
    known_keywords(of, frame, FRAME)
    ignore_index = frame.get("ignore_index", check.IGNORE)
    if ignore_index is not check.IGNORE:
        ignore_index = check.integer("ignore_index", ignore_index)
    validate_args = asked_to_validate(frame)
    class_dim = frame.get("class_dim", -1)
    scored = as_scores(scores, class_dim)
    if class_dim != -1 and isinstance(scores, Tensor):
        check.rows_behind("scores", scores, target, class_dim)
    return scored, scored.check_target(target, validate_args, ignore_index=ignore_index)


def asked_to_validate(frame: Frame) -> bool | None:
    """`validate_args` of a call; raise unless it is True, False or None."""
    validate_args = frame.get("validate_args")
    if validate_args is not None:
        check.flag("validate_args", validate_args, optional=True)
    return validate_args


def priced(cost: str | Tensor | Sequence[Sequence[float]] | Cost, frame: Frame) -> Cost:
    """The cost behind what was given; of one of a user's own, what it gives is checked, as the call's arguments are."""
    return trusted(as_cost(cost), frame.get("validate_args"))


def class_weight(weight: Weight, scores: Scores, target: Target, validate_args: bool | None = None) -> Tensor | None:
    """The weight of each example, ``weight[y]``, or None."""
    if weight is None:
        return None
    return scores.example_weight(class_weights(weight, scores.num_classes, target.labels, validate_args), target)


def class_weights(weight: Weight, num_classes: int, target: Tensor, validate_args: bool | None = None) -> Tensor:
    """The weights of the classes, ``(K,)``; else raise."""
    weight = check.numbers("weight", weight, "one weight for each class, (K,)")
    check.shape("weight", weight, (num_classes,), "one weight for each class")
    check.same_device("weight", weight, "target", target)
    _check_weights("weight", weight, validate_args)
    return weight


def example_weight(
    weight: Weight, losses: Tensor, weights: Tensor | None = None, validate_args: bool | None = None
) -> Tensor:
    """The weight of each example, ``(*)``, times those that they have by their class."""
    meaning = "one weight for each example"
    if isinstance(weight, Tensor) and (weight.dtype == torch.bool or weight.ndim > losses.ndim):
        meaning += "; of a sequence, head(features, mask=...) takes the mask"
    weight = check.numbers("sample_weight", weight, meaning)
    check.shape("sample_weight", weight, tuple(losses.shape), meaning)
    check.same_device("sample_weight", weight, "scores", losses)
    _check_weights("sample_weight", weight, validate_args)
    return weight if weights is None else weight * weights


def _check_weights(name: str, weight: Tensor, validate_args: bool | None) -> None:
    if check.values_readable(weight, validate_args):
        if not bool(weight.isfinite().all()):
            raise ValueError(f"{name}: has an entry that is not finite; accepted are weights >= 0")
        if bool((weight < 0).any()):
            raise ValueError(f"{name}: has a negative entry, {float(weight.min()):g}; accepted are weights >= 0")


def finish(
    losses: Tensor,
    scores: Scores,
    target: Target,
    weight: Weight,
    sample_weight: Weight,
    reduction: str,
    frame: Frame,
    each: Tensor | None = None,
) -> Tensor:
    """The losses of ``(*)`` examples, weighted by class and by example, and reduced; ``each`` as for `reduce`."""
    plain = weight is None and sample_weight is None and isinstance(reduction, str) and reduction in ("sum", "mean")
    if plain and each is None and scores.all_labelled(target):
        return losses.sum() if reduction == "sum" else losses.mean()
    weights = class_weight(weight, scores, target, frame.get("validate_args"))
    if sample_weight is not None:
        weights = example_weight(sample_weight, losses, weights, frame.get("validate_args"))
    return reduce(losses, scores.labelled(target), reduction, weights, each)


def reduce(
    losses: Tensor,
    labelled: Tensor,
    reduction: str = "mean",
    weight: Tensor | None = None,
    each: Tensor | None = None,
) -> Tensor:
    """Reduce losses of ``(*)`` examples, leaving out those without a label.

    ``"mean"`` is the weighted mean over labelled examples, ``sum w l / sum w``, as in `torch.nn.CrossEntropyLoss`,
    and 0 with zero gradient over none; ``"token_mean"`` divides by the number of labelled positions; ``"sum"``; and
    ``"none"``, with 0 for the examples left out.

    Args:
        losses: ``(*)``.
        labelled: ``(*)``, the number of labelled positions of each example.
        reduction: one of the four names.
        weight: ``(*)`` or None.
        each: ``(*)``, what an example counts in the mean beside its weight, where its loss is weighted already.
    """
    check.choice("reduction", reduction, REDUCTIONS)
    kept = labelled > 0
    if weight is not None:
        if reduction == "mean":  # in units of the largest, so that the smallest numbers there are do not vanish
            weight = torch.where(kept, weight, 0.0)
            largest = (weight.amax() if weight.numel() else weight.sum()).detach()  # the mean does not depend on it
            weight = weight / torch.where(largest > 0, largest, 1.0)
        losses = torch.where(weight == 0, 0.0, losses * weight.to(losses.dtype))  # 0 times infinity is 0 here
    losses = torch.where(kept, losses, 0.0)
    if reduction == "none":
        return losses
    total = losses.sum()
    if reduction == "sum":
        return total
    if each is not None and reduction == "mean":
        weight = each.to(losses.dtype) if weight is None else each.to(losses.dtype) * weight.to(losses.dtype)
    if reduction == "token_mean":
        count = labelled.sum().to(losses.dtype)
    elif weight is None:
        count = kept.sum().to(losses.dtype)
    else:
        count = torch.where(kept, weight.to(losses.dtype), 0.0).sum()
    return total / torch.where(count > 0, count, 1.0)
