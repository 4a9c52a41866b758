"""Scorer, loss and decoder in one module."""

from torch_multiclass.calibration import PlattScaling, TemperatureScaling
from torch_multiclass.heads.base import Head
from torch_multiclass.heads.chain import ChainHead
from torch_multiclass.heads.coded import CodedHead, ContinuousCodeHead, ECOCHead, OneVsAllHead, OneVsOneHead
from torch_multiclass.heads.flat import MulticlassHead

__all__ = [
    "ChainHead",
    "CodedHead",
    "ContinuousCodeHead",
    "ECOCHead",
    "Head",
    "MulticlassHead",
    "OneVsAllHead",
    "OneVsOneHead",
    "PlattScaling",
    "TemperatureScaling",
]
