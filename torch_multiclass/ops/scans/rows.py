"""What ONNX has no form for, of torch's own: running maxima and distances."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_multiclass.ops.scans.base import scan


def cummax(values: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """As the function of that name of torch: of equal values the last place."""
    along = values.movedim(dim, 0)
    place = torch.arange(along.shape[0], device=values.device)

    def step(best: Tensor, at: Tensor, own: Tensor, place: Tensor) -> tuple[Tensor, ...]:
        higher = own >= best
        best, at = torch.where(higher, own, best), torch.where(higher, place, at)
        return best, at, best, at

    first = [along[0], torch.zeros_like(along[0], dtype=torch.long)]
    *_, best, at = scan(step, first, [along, place])
    return best.movedim(0, dim), at.movedim(0, dim)


def cdist(left: Tensor, right: Tensor, p: float = 2.0, compute_mode: int | None = None) -> Tensor:
    """Euclidean distances of all pairs of rows, ``(*, A, D)`` and ``(*, B, D)`` to ``(*, A, B)``."""
    if p != 2:
        raise ValueError(f"p: got {p!r}; accepted is 2")
    return (left.unsqueeze(-2) - right.unsqueeze(-3)).square().sum(-1).sqrt()
