"""Backbones, which turn a row into ``num_features`` numbers, and the module that puts a head on one."""

from .backbone import Backbone
from .classifier import Classifier
from .conv import ConvNet
from .mlp import MLP

__all__ = ["MLP", "Backbone", "Classifier", "ConvNet"]
