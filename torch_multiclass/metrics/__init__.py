"""torchmetrics metrics: sums that add up over batches and processes."""

from torch_multiclass.checks import lacks
from torch_multiclass.metrics.coded import AverageBinaryLoss, BitError
from torch_multiclass.metrics.flat import CalibrationError, MulticlassHinge
from torch_multiclass.metrics.labels import HammingError, HierarchicalError, MeanCost
from torch_multiclass.metrics.margins import EmpiricalMarginLoss, MarginDistribution
from torch_multiclass.metrics.preferences import ViolatedPreferences
from torch_multiclass.metrics.sequence import SentenceAccuracy, SpanF1, TokenAccuracy, UnknownWordAccuracy

__all__ = [
    "AverageBinaryLoss",
    "BitError",
    "CalibrationError",
    "EmpiricalMarginLoss",
    "HammingError",
    "HierarchicalError",
    "MarginDistribution",
    "MeanCost",
    "MulticlassHinge",
    "SentenceAccuracy",
    "SpanF1",
    "TokenAccuracy",
    "UnknownWordAccuracy",
    "ViolatedPreferences",
]


def __dir__() -> list[str]:
    return sorted(__all__)


lacks(__name__)
