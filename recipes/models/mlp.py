"""A multi-layer perceptron for tables."""

from __future__ import annotations

import math
from itertools import pairwise

from torch import Tensor, nn

from .backbone import Backbone


class MLP(Backbone):
    """Fully connected layers, each with layer norm, ReLU and dropout.

    Args:
        input_shape: the shape of a row; it is flattened.
        hidden: the width of each layer; the last is ``num_features``.
        dropout: the fraction of activations dropped in training.
    """

    def __init__(
        self, input_shape: tuple[int, ...], hidden: tuple[int, ...] = (128, 128), dropout: float = 0.1
    ) -> None:
        super().__init__()
        widths = (math.prod(input_shape), *hidden)
        layers: list[nn.Module] = [nn.Flatten()]
        for before, after in pairwise(widths):
            layers += [nn.Linear(before, after), nn.LayerNorm(after), nn.ReLU(), nn.Dropout(dropout)]
        self.layers = nn.Sequential(*layers)
        self.num_features = widths[-1]

    def forward(self, rows: Tensor) -> Tensor:
        """``(batch, *input_shape)`` to ``(batch, num_features)``."""
        return self.layers(rows)
