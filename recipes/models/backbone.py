"""What the recipes' own backbones are."""

from __future__ import annotations

from torch import nn


class Backbone(nn.Module):
    """Turns rows into ``num_features`` numbers each, made from the shape of a row.

    A configuration finds its subclasses by their name alone, whatever else goes by it; any other module with
    ``num_features`` serves as well, by its dotted path.
    """

    num_features: int
