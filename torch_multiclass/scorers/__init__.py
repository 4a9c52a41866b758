"""From features to scores: the modules that own the learnable parameters."""

from torch_multiclass.checks import lacks
from torch_multiclass.scorers.averaged import AveragedScorer
from torch_multiclass.scorers.base import Scorer
from torch_multiclass.scorers.chain import Chain, ChainScorer
from torch_multiclass.scorers.coded import CodedScorer, ContinuousCodeScorer
from torch_multiclass.scorers.columns import AttributeScorer, ColumnsScorer, OutsideScorer
from torch_multiclass.scorers.ensemble import EnsembleScorer, TreeScorer
from torch_multiclass.scorers.features import NystromFeatures, RandomFourierFeatures
from torch_multiclass.scorers.kernel import KernelScorer, NystromScorer, RandomFourierScorer
from torch_multiclass.scorers.linear import LinearScorer
from torch_multiclass.scorers.multilabel import MultilabelScorer
from torch_multiclass.scorers.network import NetworkScorer
from torch_multiclass.scorers.second_order import SecondOrderScorer
from torch_multiclass.scorers.segments import SegmentScorer
from torch_multiclass.scorers.tree import LabelTreeScorer

__all__ = [
    "AttributeScorer",
    "AveragedScorer",
    "Chain",
    "ChainScorer",
    "CodedScorer",
    "ColumnsScorer",
    "ContinuousCodeScorer",
    "EnsembleScorer",
    "KernelScorer",
    "LabelTreeScorer",
    "LinearScorer",
    "MultilabelScorer",
    "NetworkScorer",
    "NystromFeatures",
    "NystromScorer",
    "OutsideScorer",
    "RandomFourierFeatures",
    "RandomFourierScorer",
    "Scorer",
    "SecondOrderScorer",
    "SegmentScorer",
    "TreeScorer",
]


lacks(__name__)
