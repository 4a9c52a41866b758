"""Masked positions are taken out of a sequence, and what remains is a chain, aligned to the left.

Sequences are flattened to one batch dimension ``B``; a mask is ``(B, T)``, True where a position counts.
"""

from __future__ import annotations

import torch
from torch import Tensor


def from_lengths(lengths: Tensor, steps: int) -> Tensor:
    """The mask ``(B, T)`` of sequences that fill the first ``lengths`` positions."""
    return torch.arange(steps, device=lengths.device) < lengths.unsqueeze(-1)


def compact(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Where each position of the left-aligned chain stands in the input, ``(B, T)``, and the lengths ``(B,)``.

    Row ``b`` of the index is a permutation: the unmasked positions in order, then the masked ones.

    Example:
        >>> compact(torch.tensor([[False, True, False, True]]))
        (tensor([[1, 3, 0, 2]]), tensor([2]))
    """
    index = torch.argsort((~mask).to(torch.uint8), dim=1, stable=True)
    return index, mask.sum(1)


def take(values: Tensor, index: Tensor, valid: Tensor, fill: float = 0.0) -> Tensor:
    """Left-align ``(B, T, ...)`` values; ``fill`` beyond the length, so that nothing flows from there."""
    extra = [1] * (values.ndim - 2)
    where = index.view(*index.shape, *extra).expand(*index.shape, *values.shape[2:])
    return torch.where(valid.view(*valid.shape, *extra), values.gather(1, where), fill)


def spread(values: Tensor, mask: Tensor, fill: float = 0.0) -> Tensor:
    """The inverse of `take`: left-aligned ``(B, T, ...)`` values back to where they stand, ``fill`` where masked."""
    rank = (mask.cumsum(1) - 1).clamp(min=0)
    return take(values, rank, mask, fill)
