"""The losses by name, as heads take them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch_multiclass import checks as check
from torch_multiclass.losses.base import Loss
from torch_multiclass.losses.flat import AdaBoostLoss, CrammerSingerLoss, WestonWatkinsLoss
from torch_multiclass.losses.structured import CRFLoss, M3NLoss, StructuredPerceptronLoss, SVMStructLoss

_NAMES: dict[str, Callable[[], Loss]] = {
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


def as_loss(loss: str | Loss) -> Loss:
    """The loss behind a name, with its default arguments, or the loss itself.

    Raises:
        ValueError: a name that no loss has.
        TypeError: what is neither a name nor a loss of this library.

    Example:
        >>> as_loss("crammer_singer")
        CrammerSingerLoss(margin=1.0, power=1)
    """
    if isinstance(loss, str):
        check.choice("loss", loss, _NAMES)
        return _NAMES[loss]()
    if not isinstance(loss, Loss):
        raise TypeError(f"loss: got {type(loss).__name__}; accepted is a torch_multiclass loss, such as CRFLoss()")
    return loss
