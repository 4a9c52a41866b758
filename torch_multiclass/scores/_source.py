"""What linear margins come from, for those who need only some of them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass.ops.pairs import label_margins

_BLOCK = 1 << 22  # weights that are gathered at a time


class Source(NamedTuple):
    """Linear margins: ``W x + b``, the version of ``W`` that they were computed from, and whether its gradient is to be
    sparse."""

    features: Tensor
    weight: Tensor
    bias: Tensor | None
    version: int
    sparse: bool = False

    @classmethod
    def of(cls, features: Tensor, weight: Tensor, bias: Tensor | None, sparse: bool = False) -> Source:
        """What is computed from these now."""
        return cls(features, weight, bias, weight._version, sparse)

    @property
    def fresh(self) -> bool:
        """Whether the weights are still those."""
        return self.weight._version == self.version

    def margins(self) -> Tensor:
        """All of them, ``(*, L)``."""
        return torch.nn.functional.linear(self.features, self.weight, self.bias)

    def columns(self, columns: slice) -> Tensor:
        """Those of some columns of all rows, ``(C, n)``, without gradient."""
        rows, weight = self.features.detach().reshape(-1, self.features.shape[-1]), self.weight.detach()[columns]
        if self.bias is None:
            return weight @ rows.T
        return torch.addmm(self.bias.detach()[columns].unsqueeze(1), weight, rows.T)

    def at(self, columns: Tensor) -> Tensor:
        """Those of some columns of each row, ``(*, m)``; without gradient, some rows at a time."""
        rows, places = (
            self.features.detach().reshape(-1, self.features.shape[-1]),
            columns.reshape(-1, columns.shape[-1]),
        )
        step = max(1, _BLOCK // max(1, places.shape[1] * rows.shape[1]))
        weight, bias = self.weight.detach(), None if self.bias is None else self.bias.detach()
        found = []
        for some, x in zip(torch.split(places, step), torch.split(rows, step), strict=True):
            margins = torch.einsum("nmd,nd->nm", weight[some], x)
            found.append(margins if bias is None else margins + bias[some])
        return torch.cat(found).reshape(columns.shape)

    def of_label(self, labels: Tensor) -> Tensor:
        """Those of the pairs of each label ``(*)``, as it sees them, ``(*, K-1)``; 0 where a label is below 0."""
        rows = self.features.reshape(-1, self.features.shape[-1])
        margins = label_margins(rows, self.weight, self.bias, labels.reshape(-1), self.sparse)
        return margins.reshape(*labels.shape, margins.shape[-1])
