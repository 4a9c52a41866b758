"""Backbones, which turn a row into ``num_features`` numbers, and the module that puts a head on one."""

from .classifier import Classifier
from .conv import ConvNet
from .mlp import MLP

__all__ = ["MLP", "Classifier", "ConvNet"]
