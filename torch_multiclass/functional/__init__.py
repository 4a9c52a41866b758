"""Losses as pure functions; each mirrors a module of the same arguments."""

from torch_multiclass.checks import lacks
from torch_multiclass.functional.adaboost import adaboost_loss
from torch_multiclass.functional.coded import average_binary_loss, binary_loss, coded_loss
from torch_multiclass.functional.flat import (
    crammer_singer_loss,
    margin,
    margin_ramp_loss,
    weston_watkins_loss,
)
from torch_multiclass.functional.structured import (
    crf_loss,
    m3n_loss,
    structured_perceptron_loss,
    svmstruct_bounds,
    svmstruct_loss,
)

__all__ = [
    "adaboost_loss",
    "average_binary_loss",
    "binary_loss",
    "coded_loss",
    "crammer_singer_loss",
    "crf_loss",
    "m3n_loss",
    "margin",
    "margin_ramp_loss",
    "structured_perceptron_loss",
    "svmstruct_bounds",
    "svmstruct_loss",
    "weston_watkins_loss",
]


def __dir__() -> list[str]:
    return sorted(__all__)


lacks(__name__)
