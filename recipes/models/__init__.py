"""Backbones, which turn a row into ``num_features`` numbers, and the module that puts a head on one."""

from recipes.models.classifier import Classifier
from recipes.models.conv import ConvNet
from recipes.models.mlp import MLP

__all__ = ["MLP", "Classifier", "ConvNet"]
