"""The margin of any network."""

from __future__ import annotations

from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.scorers.base import Scorer, as_wide_as, check_features, sample_of, width

__all__ = ["NetworkScorer"]


class NetworkScorer(Scorer):
    """The margin that a network gives each row of features.

    Args:
        network: from ``(N, D)`` to ``(N, 1)`` or ``(N)``.
        in_features: ``D``.

    Shape:
        features ``(*, D)``; scores ``(*, 1)``.

    Raises:
        TypeError: a network that is none.
        ValueError: features of another width; a network that gives another shape.

    Reference: Allwein, Schapire and Singer (2000), section 3, for margins of any kind.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> NetworkScorer(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)), 3)(torch.randn(5, 3)).shape
        torch.Size([5, 1])
    """

    def __init__(self, network: nn.Module, in_features: int) -> None:
        super().__init__()
        in_features = width(in_features)
        if not isinstance(network, nn.Module):
            raise TypeError(f"network: got {check.shown(network)}; accepted is a torch.nn.Module")
        first = network[0] if isinstance(network, nn.Sequential) and len(network) else network
        if isinstance(first, nn.Linear) and first.in_features not in (0, in_features):  # 0 of a lazy one
            raise ValueError(f"network: takes {first.in_features} features; accepted is one that takes {in_features}")
        self.network, self.in_features, self.num_classes = network, in_features, 1

    def reset_parameters(self) -> None:
        """Draw the parameters of every layer anew."""
        super().reset_parameters()
        for layer in self.network.modules():
            if callable(reset := getattr(layer, "reset_parameters", None)):
                reset()

    def forward(self, features: Tensor) -> Tensor:
        """The margin."""
        check_features(features, self.in_features, sparse=False)
        rows = as_wide_as(sample_of(self.network), features).reshape(-1, self.in_features)
        margins: Tensor = self.network(rows)
        if not isinstance(margins, Tensor) or margins.shape not in ((len(rows),), (len(rows), 1)):
            given = tuple(margins.shape) if isinstance(margins, Tensor) else type(margins).__name__
            raise ValueError(f"network: gives {given}; accepted is ({len(rows)}, 1), a margin for each row")
        return margins.reshape(*features.shape[:-1], 1)

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return f"in_features={self.in_features}"
