"""A small convolutional network for small images."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn

from .backbone import Backbone


class ConvNet(Backbone):
    """Three by three convolutions with batch norm and ReLU; halved before the last one, averaged after it.

    Args:
        input_shape: ``(channels, height, width)``.
        channels: the width of each convolution; the last is ``num_features``.
        dropout: the fraction of features dropped in training.
    """

    def __init__(
        self, input_shape: tuple[int, ...], channels: tuple[int, ...] = (32, 64, 128), dropout: float = 0.2
    ) -> None:
        super().__init__()
        if len(input_shape) != 3:
            raise ValueError(
                f"backbone: ConvNet got rows of shape {input_shape}; accepted is (channels, height, width): "
                "for a table take recipes.models.MLP"
            )
        layers: list[nn.Module] = []
        for before, after in pairwise((input_shape[0], *channels)):
            if len(layers) == 3 * (len(channels) - 1):
                layers.append(nn.MaxPool2d(2, ceil_mode=True))
            layers += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(dropout))
        self.num_features = channels[-1]

    def forward(self, images: Tensor) -> Tensor:
        """``(batch, channels, height, width)`` to ``(batch, num_features)``."""
        return self.layers(images)
