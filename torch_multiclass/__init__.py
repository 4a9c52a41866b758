"""Multi-class and sequence heads for PyTorch.

features -> Scorer -> scores -> Loss (training) | Decoder (prediction) -> Metric
"""

from torch_multiclass import costs, functional
from torch_multiclass.decoders import ArgmaxDecoder, Decoder, KBestDecoder, PosteriorDecoder, ViterbiDecoder
from torch_multiclass.heads import ChainHead, Head, MulticlassHead
from torch_multiclass.losses import (
    AdaBoostLoss,
    CrammerSingerLoss,
    CRFLoss,
    Loss,
    M3NLoss,
    MarginRampLoss,
    StructuredPerceptronLoss,
    SVMStructLoss,
    WestonWatkinsLoss,
)
from torch_multiclass.scorers import ChainScorer, LinearScorer
from torch_multiclass.scores import ChainScores, Decoded, FlatScores, Scores
from torch_multiclass.tagging import tag_constraints

__version__ = "0.1.0"

__all__ = [
    # scores
    "ChainScores",
    "Decoded",
    "FlatScores",
    "Scores",
    # scorers
    "ChainScorer",
    "LinearScorer",
    # losses
    "AdaBoostLoss",
    "CRFLoss",
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
    "KBestDecoder",
    "PosteriorDecoder",
    "ViterbiDecoder",
    # heads
    "ChainHead",
    "Head",
    "MulticlassHead",
    # modules of functions and objects
    "costs",
    "functional",
    "tag_constraints",
]
