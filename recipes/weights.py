"""How much the rows of each class count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

from .names import listed

__all__ = ["Weight", "balanced", "of_rows"]

Weight = Literal["balanced"] | dict[str, float]
"""Every class the same in all, or a number for the rows of each class that is named; 1 for the others."""


def of_rows(weight: Weight | None, labels: Tensor, names: Sequence[str]) -> Tensor | None:
    """A weight for each row, ``(n,)``; None where all count the same."""
    if weight is None:
        return None
    if not isinstance(weight, Mapping):
        return balanced(labels)
    share = torch.ones(len(names), dtype=torch.float64)
    for name, value in weight.items():
        if str(name) not in names:
            raise SystemExit(f"error: weight: got {name}; the classes are {listed(names)}")
        if not 0 <= value < float("inf"):
            raise SystemExit(f"error: weight: got {value} for {name}; accepted is a number >= 0")
        share[names.index(str(name))] = value
    return share[labels]


def balanced(labels: Tensor) -> Tensor:
    """A weight for each row, in the mean 1, of which every class that is there gets the same sum."""
    counts = torch.bincount(labels)
    return len(labels) / (counts > 0).sum() / counts[labels].double()
