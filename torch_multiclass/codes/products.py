"""Products of the rows of a code with each other, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

_BLOCK = 1 << 22  # entries of a table that is held at a time


def row_products(code: Tensor, *, both: bool = False) -> Iterator[tuple[int, Tensor, Tensor]]:
    """``u.v`` of rows from a first one on with all rows, ``(n, K)``, and how many columns ask the two, if ``both``.

    In float32, exact up to 2^24 columns; with 0 columns to ask where not wanted.
    """
    k, columns = code.shape
    dtype = torch.float32 if columns < 2**24 else torch.float64
    rows, width = max(1, _BLOCK // k), max(1, _BLOCK // k)
    for first in range(0, k, rows):
        product = torch.zeros(min(rows, k - first), k, dtype=dtype, device=code.device)
        asking = torch.zeros_like(product) if both else product.new_zeros(())
        for start in range(0, columns, width):
            part = code[:, start : start + width].to(dtype)
            product.addmm_(part[first : first + rows], part.mT)
            if both:
                part = part.abs()
                asking.addmm_(part[first : first + rows], part.mT)
        yield first, product, asking
