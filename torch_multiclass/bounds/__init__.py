"""Bounds on errors as plain functions: what a training run, a code or a held-out sample proves.

Each returns a `Bound`: its value, the terms that add up to it (or what it is a product of), whether it says anything,
and what has to hold. None looks at a model; a function takes the numbers that its formula has.
"""

from torch_multiclass.bounds.base import Bound
from torch_multiclass.bounds.boosting import boosting_error, code_margin, confidence_runs
from torch_multiclass.bounds.codes import coded_error, hamming_error, one_vs_one_error
from torch_multiclass.bounds.complexity import RademacherComplexity, rademacher_complexity
from torch_multiclass.bounds.held_out import held_out_error
from torch_multiclass.bounds.margins import (
    kernel_margin_error,
    margin_error,
    multilabel_margin_error,
    slack_error,
    uniform_margin_error,
)
from torch_multiclass.bounds.mistakes import mistakes
from torch_multiclass.checks import lacks

__all__ = [
    "Bound",
    "RademacherComplexity",
    "boosting_error",
    "code_margin",
    "coded_error",
    "confidence_runs",
    "hamming_error",
    "held_out_error",
    "kernel_margin_error",
    "margin_error",
    "mistakes",
    "multilabel_margin_error",
    "one_vs_one_error",
    "rademacher_complexity",
    "slack_error",
    "uniform_margin_error",
]


def __dir__() -> list[str]:
    return sorted(__all__)


lacks(__name__)
