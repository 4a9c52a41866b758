"""Multi-class and sequence heads for PyTorch.

features -> Scorer -> scores -> Loss (training) | Decoder (prediction) -> Metric
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from torch_multiclass.checks import lacking
from torch_multiclass.ops import margins
from torch_multiclass.ops._native import backends
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

if TYPE_CHECKING:
    from torch_multiclass import bounds, codes, costs, functional, kernels, metrics, plots, preferences, solvers
    from torch_multiclass.decoders import (
        ArgmaxDecoder,
        Decoder,
        ExpectedCostDecoder,
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
    from torch_multiclass.integrations.checkpoints import load_crf
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
    from torch_multiclass.reports import report
    from torch_multiclass.scorers import (
        AveragedScorer,
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
    from torch_multiclass.spans import convert_tags, spans_to_tags, tag_spans
    from torch_multiclass.tags import tag_constraints

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
    "AveragedScorer",
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
    "ExpectedCostDecoder",
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
    # checkpoints of other libraries
    "load_crf",
    # what a head does, and what that proves
    "report",
    # what computes
    "backends",
]

_ROLES = ("losses", "decoders", "spans", "tags", "scorers", "heads", "reports", "integrations.checkpoints")

if not TYPE_CHECKING:  # a checker reads the imports above

    def __getattr__(name: str) -> Any:
        """A name or a module when it is first asked for, so that a program waits for what it uses only.

        Scores come at once, and with them the operators of torch: a program saved by `torch.export` names them.
        """
        if name in _modules():
            return import_module(f"{__name__}.{name}")
        for role in _ROLES if name in __all__ else ():
            module = import_module(f"{__name__}.{role}")
            if name in module.__all__:
                globals()[name] = found = getattr(module, name)
                return found
        raise lacking(__name__, name)


def __dir__() -> list[str]:
    """What users are to see: the public names, and the modules that hold them."""
    own = {name for name in globals() if name.startswith("__")}
    return sorted({*own, *__all__, *(role.partition(".")[0] for role in _ROLES), "scores"})


def _modules() -> set[str]:
    return {module.name for module in iter_modules(__path__)}
