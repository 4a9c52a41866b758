"""What structures with a score for each label at each position share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from torch_multiclass.ops.chain.layout import from_lengths
from torch_multiclass.scores._padded import Padded
from torch_multiclass.scores._potentials import Potentials

__all__ = ["Emitted", "counted_positions"]


class Emitted(Padded, Potentials):
    """Scores with ``emissions (*, T, K)``, and a mask or lengths that say which positions count."""

    if TYPE_CHECKING:
        emissions: Tensor
        mask: Tensor | None
        lengths: Tensor | None

    @property
    def num_classes(self) -> int:
        """``K``."""
        return self.emissions.shape[-1]

    @property
    def sites(self) -> torch.Size:
        """``(*, T)``."""
        return self.emissions.shape[:-1]

    def _counted(self) -> Tensor | None:
        return counted_positions(self.mask, self.lengths, self.sites[-1])

    def _own_dims(self) -> dict[str, int]:
        own = super()._own_dims() | {"emissions": 2, "mask": 1, "lengths": 0}
        several = {"transitions": 3, "start": 1, "end": 1, "parents": 1}  # shared by the batch where they have fewer
        shared = {"transitions": 2, "start": 1, "end": 1, "parents": 1}
        for name, dims in several.items():
            part = getattr(self, name, None)
            if isinstance(part, Tensor) and part.ndim > shared[name]:
                own[name] = dims
        return own


def counted_positions(mask: Tensor | None, lengths: Tensor | None, steps: int) -> Tensor | None:
    """Which positions count, ``(*, T)`` bool; None for all."""
    return from_lengths(lengths, steps) if mask is None and lengths is not None else mask
