"""Scorer, loss and decoder in one module."""

from torch_multiclass.calibration import PlattScaling, TemperatureScaling
from torch_multiclass.checks import lacks
from torch_multiclass.heads.base import Head
from torch_multiclass.heads.chain import ChainHead
from torch_multiclass.heads.coded import CodedHead, ECOCHead, OneVsAllHead, OneVsOneHead
from torch_multiclass.heads.continuous_code import ContinuousCodeHead
from torch_multiclass.heads.flat import MulticlassHead
from torch_multiclass.heads.structures import LabelTreeHead, MultilabelHead, SecondOrderHead, SegmentHead

__all__ = [
    "ChainHead",
    "CodedHead",
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
    "PlattScaling",
    "TemperatureScaling",
]


lacks(__name__)
