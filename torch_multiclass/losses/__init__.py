"""Losses as modules: thin wrappers over `torch_multiclass.functional`."""

from torch_multiclass.checks import lacks
from torch_multiclass.losses.base import Loss
from torch_multiclass.losses.coded import CodedLoss
from torch_multiclass.losses.flat import AdaBoostLoss, CrammerSingerLoss, MarginRampLoss, WestonWatkinsLoss
from torch_multiclass.losses.structured import CRFLoss, M3NLoss, StructuredPerceptronLoss, SVMStructLoss

__all__ = [
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
]


lacks(__name__)
