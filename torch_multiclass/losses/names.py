"""The losses by name, as heads take them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch_multiclass import checks as check
from torch_multiclass.checks.spelling import LOSSES, loss_meant
from torch_multiclass.losses.base import Loss
from torch_multiclass.losses.flat import AdaBoostLoss, CrammerSingerLoss, WestonWatkinsLoss
from torch_multiclass.losses.structured import CRFLoss, M3NLoss, StructuredPerceptronLoss, SVMStructLoss
from torch_multiclass.ops.margins import MarginLoss
from torch_multiclass.options import Weight

_NAMES: dict[str, Callable[..., Loss]] = {
    "crf": CRFLoss,
    "cross_entropy": CRFLoss,
    "m3n": M3NLoss,
    "svmstruct": SVMStructLoss,
    "structured_perceptron": StructuredPerceptronLoss,
    "crammer_singer": CrammerSingerLoss,
    "weston_watkins": WestonWatkinsLoss,
    "adaboost_mh": partial(AdaBoostLoss, "mh"),
    "adaboost_mr": partial(AdaBoostLoss, "mr"),
    "adaboost_averaged": partial(AdaBoostLoss, "averaged"),
}

SUMS = ("weston_watkins", "adaboost_mh", "adaboost_mr")
"""The names of losses that add up a term of each rival."""


def as_loss(
    loss: str | Loss,
    *,
    weight: Weight = None,
    label_smoothing: float = 0.0,
    scale: Callable[[str], float] | None = None,
) -> Loss:
    """The loss behind a name, or the loss itself.

    Args:
        loss: a name, or a loss.
        weight, label_smoothing: of the loss behind a name.
        scale: its scale, by its name.

    Raises:
        ValueError: a name that no loss has, weights or smoothing beside a loss itself or for one that knows none.
        TypeError: what is neither a name nor a loss of this library.

    Example:
        >>> as_loss("crammer_singer")
        CrammerSingerLoss(margin=1.0, power=1)
        >>> as_loss("cross_entropy", label_smoothing=0.1)
        CRFLoss(label_smoothing=0.1)
    """
    if not isinstance(loss, str):
        return own_options(loss, weight, label_smoothing)
    loss = check.named("loss", loss, _NAMES, lambda given: loss_meant(given, LOSSES))
    label_smoothing = check.share("label_smoothing", label_smoothing)
    options: dict[str, Any] = {}
    if label_smoothing != 0:
        if _NAMES[loss] is not CRFLoss:
            raise ValueError(
                f"label_smoothing: got {label_smoothing!r} with {loss!r}, which compares with one label; accepted is 0 "
                "there; CRFLoss ('cross_entropy') and the heads with a code take it"
            )
        options["label_smoothing"] = label_smoothing
    made = _NAMES[loss](weight=weight, **options)
    return made if scale is None else made.scaled(scale(loss))


def own_options(loss: object, weight: Weight, label_smoothing: float) -> Loss:
    """The loss itself; raise unless it is one of this library, with nothing beside it that it should have had."""
    if not isinstance(loss, Loss):
        name = loss.name if isinstance(loss, MarginLoss) else getattr(loss, "__name__", type(loss).__name__)
        hint = "" if isinstance(loss, type) and issubclass(loss, Loss) else loss_meant(name, LOSSES)
        raise TypeError(f"loss: got {check.came(loss)}; accepted is a torch_multiclass loss, such as CRFLoss(){hint}")
    check.share("label_smoothing", label_smoothing)
    for name, given in (("weight", weight is not None), ("label_smoothing", label_smoothing != 0)):
        if given:
            raise ValueError(
                f"{name}: is given beside a loss itself; accepted is the name of a loss, or "
                f"{type(loss).__name__}({name}=...) where it takes one"
            )
    return loss
