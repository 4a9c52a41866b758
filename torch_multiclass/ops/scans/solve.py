"""Linear systems by elimination."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_multiclass.ops.scans.base import scan


def solve(matrix: Tensor, right: Tensor) -> Tensor:
    """``matrix^-1 right`` for ``(*, n, n)`` and ``(*, n, m)``, by Gauss and Jordan with the largest pivot of a column.

    What has no inverse gives infinities or NaN.
    """
    n, m = right.shape[-2:]
    lead = right.shape[:-2]
    both = torch.cat([matrix.expand(*lead, n, n), right], -1).reshape(-1, n, n + m)
    columns = torch.arange(n, device=right.device)

    def step(both: Tensor, free: Tensor, column: Tensor) -> tuple[Tensor, ...]:
        at = both.gather(2, column.expand(both.shape[0], n, 1))[..., 0]
        pivot = torch.where(free, at.abs(), -1.0).argmax(1, keepdim=True)  # which row
        here = torch.arange(n, device=at.device) == pivot
        row = both.gather(1, pivot[..., None].expand(-1, 1, n + m)) / at.gather(1, pivot)[..., None]
        both = torch.where(here[..., None], row, both - at[..., None] * row)
        return both, free & ~here, pivot[:, 0]

    free = torch.ones_like(both[..., 0], dtype=torch.bool)
    both, _, order = scan(step, [both, free], [columns])
    found = both[..., n:].gather(1, order.t()[..., None].expand(-1, n, m))
    return found.reshape(*lead, n, m)


def linalg_solve(matrix: Tensor, right: Tensor, *, left: bool = True) -> Tensor:
    """As the function of that name of torch."""
    vector = right.dim() == 1 or (right.dim() == matrix.dim() - 1 and right.shape == matrix.shape[:-1])
    given = right[..., None] if vector else right
    found = solve(matrix, given) if left else solve(matrix.mT, given.mT).mT
    return found[..., 0] if vector else found
