"""Multi-class and sequence heads for PyTorch.

features -> Scorer -> scores -> Loss (training) | Decoder (prediction) -> Metric
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from torch_multiclass import bounds, codes, costs, functional, kernels, preferences, solvers
from torch_multiclass.decoders import (
    ArgmaxDecoder,
    Decoder,
    HammingDecoder,
    KBestDecoder,
    LossBasedDecoder,
    PosteriorDecoder,
    RankingDecoder,
    SignDecoder,
    TournamentDecoder,
    ViterbiDecoder,
    VotingDecoder,
)
from torch_multiclass.heads import (
    ChainHead,
    ContinuousCodeHead,
    ECOCHead,
    Head,
    LabelTreeHead,
    MulticlassHead,
    MultilabelHead,
    OneVsAllHead,
    OneVsOneHead,
    PlattScaling,
    SecondOrderHead,
    SegmentHead,
    TemperatureScaling,
)
from torch_multiclass.losses import (
    AdaBoostLoss,
    CodedLoss,
    CrammerSingerLoss,
    CRFLoss,
    Loss,
    M3NLoss,
    MarginRampLoss,
    StructuredPerceptronLoss,
    SVMStructLoss,
    WestonWatkinsLoss,
)
from torch_multiclass.ops import margins
from torch_multiclass.ops._native import backends
from torch_multiclass.scorers import (
    ChainScorer,
    CodedScorer,
    ContinuousCodeScorer,
    EnsembleScorer,
    KernelScorer,
    LabelTreeScorer,
    LinearScorer,
    MultilabelScorer,
    NystromFeatures,
    NystromScorer,
    RandomFourierFeatures,
    RandomFourierScorer,
    Scorer,
    SecondOrderScorer,
    SegmentScorer,
    TreeScorer,
)
from torch_multiclass.scores import (
    ChainScores,
    CodedScores,
    Decoded,
    FlatScores,
    MultilabelScores,
    Scores,
    SecondOrderScores,
    SegmentScores,
    TreeScores,
    segment_tags,
)
from torch_multiclass.spans import convert_tags, spans_to_tags, tag_spans
from torch_multiclass.tags import tag_constraints

if TYPE_CHECKING:
    from torch_multiclass import metrics, plots
    from torch_multiclass.reports import report

__version__ = "0.1.0"

__all__ = [
    # scores
    "ChainScores",
    "CodedScores",
    "Decoded",
    "FlatScores",
    "MultilabelScores",
    "Scores",
    "SecondOrderScores",
    "SegmentScores",
    "TreeScores",
    # scorers
    "ChainScorer",
    "CodedScorer",
    "ContinuousCodeScorer",
    "EnsembleScorer",
    "KernelScorer",
    "LabelTreeScorer",
    "LinearScorer",
    "MultilabelScorer",
    "NystromFeatures",
    "NystromScorer",
    "RandomFourierFeatures",
    "RandomFourierScorer",
    "Scorer",
    "SecondOrderScorer",
    "SegmentScorer",
    "TreeScorer",
    # losses
    "AdaBoostLoss",
    "CRFLoss",
    "CodedLoss",
    "CrammerSingerLoss",
    "Loss",
    "M3NLoss",
    "MarginRampLoss",
    "SVMStructLoss",
    "StructuredPerceptronLoss",
    "WestonWatkinsLoss",
    # decoders
    "ArgmaxDecoder",
    "Decoder",
    "HammingDecoder",
    "KBestDecoder",
    "LossBasedDecoder",
    "PosteriorDecoder",
    "RankingDecoder",
    "SignDecoder",
    "TournamentDecoder",
    "ViterbiDecoder",
    "VotingDecoder",
    # heads
    "ChainHead",
    "ContinuousCodeHead",
    "ECOCHead",
    "Head",
    "LabelTreeHead",
    "MulticlassHead",
    "MultilabelHead",
    "OneVsAllHead",
    "OneVsOneHead",
    "SecondOrderHead",
    "SegmentHead",
    # calibration
    "PlattScaling",
    "TemperatureScaling",
    # modules of functions and objects
    "bounds",
    "codes",
    "costs",
    "functional",
    "kernels",
    "margins",
    "metrics",
    "plots",
    "preferences",
    "solvers",
    "segment_tags",
    "convert_tags",
    "spans_to_tags",
    "tag_constraints",
    "tag_spans",
    # what a head does, and what that proves
    "report",
    # what computes
    "backends",
]


def __getattr__(name: str) -> Any:
    """What takes long to import, or other libraries, comes when it is first asked for."""
    if name in ("metrics", "plots"):
        return import_module(f"{__name__}.{name}")
    if name == "report":
        return import_module(f"{__name__}.reports").report
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
