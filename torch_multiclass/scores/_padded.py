"""Sequences with more positions than they came with, all of them masked, so that batches can be put together."""

from __future__ import annotations

import torch
from torch import Tensor
from typing_extensions import Self

from torch_multiclass.scores._travel import Travels

__all__ = ["Padded"]

_MASKED = {"parents": -1.0, "allowed": 1.0}
"""What stands at a masked position, where it is not 0."""
_WHOLE = ("start", "end", "lengths")
"""What is said of a sequence as a whole."""


class Padded(Travels):
    """Scores of sequences ``(*, T)`` with a mask or lengths."""

    mask: Tensor | None

    @property
    def sites(self) -> torch.Size:
        """``(*, T)``."""
        raise NotImplementedError

    def _counted(self) -> Tensor | None:
        raise NotImplementedError

    @property
    def _steps(self) -> int:
        return self.sites[-1]

    def _alike(self, steps: int, masked: bool) -> Self:
        changes = {name: _padded(name, part, dims, steps) for name, (part, dims) in self._along().items()}
        if "parents" in changes:  # of padded trees they differ
            changes["parents"] = changes["parents"].expand(*self.sites[:-1], steps)
        if masked:
            counted = self._counted()
            if counted is None:
                counted = torch.ones(self.sites, dtype=torch.bool, device=self.device)
            changes["mask"] = _padded("mask", counted, 1, steps)
            return self._with(lengths=None, **changes)
        return self._with(**changes)

    def _along(self) -> dict[str, tuple[Tensor, int]]:
        """The parts that have an entry for each position, and how many dimensions each has from there on."""
        own = {"parents": 1} | self._own_dims()
        parts = {name: (getattr(self, name, None), dims) for name, dims in own.items() if name not in _WHOLE}
        return {name: (part, dims) for name, (part, dims) in parts.items() if isinstance(part, Tensor)}


def _padded(name: str, part: Tensor, dims: int, steps: int) -> Tensor:
    more = max(steps - (name == "transitions"), 0) - part.shape[part.ndim - dims]
    if more <= 0:
        return part
    return torch.nn.functional.pad(part, (0, 0) * (dims - 1) + (0, more), value=_MASKED.get(name, 0.0))
