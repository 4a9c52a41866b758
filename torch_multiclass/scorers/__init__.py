"""From features to scores: the modules that own the learnable parameters."""

from torch_multiclass.scorers.base import Scorer
from torch_multiclass.scorers.chain import Chain, ChainScorer
from torch_multiclass.scorers.coded import CodedScorer, ContinuousCodeScorer
from torch_multiclass.scorers.features import NystromFeatures, RandomFourierFeatures
from torch_multiclass.scorers.kernel import KernelScorer, NystromScorer, RandomFourierScorer
from torch_multiclass.scorers.linear import LinearScorer

__all__ = [
    "Chain",
    "ChainScorer",
    "CodedScorer",
    "ContinuousCodeScorer",
    "KernelScorer",
    "LinearScorer",
    "NystromFeatures",
    "NystromScorer",
    "RandomFourierFeatures",
    "RandomFourierScorer",
    "Scorer",
]
