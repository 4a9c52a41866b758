"""Multi-class and sequence heads for PyTorch.

features -> Scorer -> scores -> Loss (training) | Decoder (prediction) -> Metric
"""

from torch_multiclass import costs, functional, kernels, solvers
from torch_multiclass.decoders import ArgmaxDecoder, Decoder
from torch_multiclass.heads import Head, MulticlassHead
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
from torch_multiclass.scorers import (
    KernelScorer,
    LinearScorer,
    NystromFeatures,
    NystromScorer,
    RandomFourierFeatures,
    RandomFourierScorer,
)
from torch_multiclass.scores import Decoded, FlatScores, Scores

__version__ = "0.1.0"

__all__ = [
    # scores
    "Decoded",
    "FlatScores",
    "Scores",
    # scorers
    "KernelScorer",
    "LinearScorer",
    "NystromFeatures",
    "NystromScorer",
    "RandomFourierFeatures",
    "RandomFourierScorer",
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
    # heads
    "Head",
    "MulticlassHead",
    # modules of functions and objects
    "costs",
    "functional",
    "kernels",
    "solvers",
]
