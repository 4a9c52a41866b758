"""torchmetrics metrics."""

from torch_multiclass.metrics.sequence import SentenceAccuracy, SpanF1, TokenAccuracy, UnknownWordAccuracy

__all__ = ["SentenceAccuracy", "SpanF1", "TokenAccuracy", "UnknownWordAccuracy"]
