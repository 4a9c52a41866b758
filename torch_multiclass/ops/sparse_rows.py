"""Rows of which only the entries that are not 0 are stored, as torch's CSR matrices."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def is_sparse(features: Any) -> bool:
    """Whether it is a sparse tensor, or a sparse matrix of SciPy."""
    if isinstance(features, Tensor):
        return features.layout != torch.strided
    return hasattr(features, "tocsr")


def as_csr(features: Any) -> Tensor:
    """A CSR tensor of a sparse tensor of another layout or of a sparse matrix of SciPy."""
    if isinstance(features, Tensor):
        return features if features.layout == torch.sparse_csr else features.to_sparse_csr()
    matrix = features.tocsr().copy()
    matrix.sum_duplicates()
    crow, columns = (torch.from_numpy(part.astype("int64")) for part in (matrix.indptr, matrix.indices))
    return _csr(crow, columns, torch.from_numpy(matrix.data), tuple(matrix.shape))


def take_rows(matrix: Tensor, rows: Tensor) -> Tensor:
    """``matrix[rows]``."""
    first, last = matrix.crow_indices()[:-1][rows], matrix.crow_indices()[1:][rows]
    counts = last - first
    ends = counts.cumsum(0)
    place = torch.arange(int(counts.sum()), device=counts.device) + (first - ends + counts).repeat_interleave(counts)
    crow = torch.cat([ends.new_zeros(1), ends])
    return _csr(crow, matrix.col_indices()[place], matrix.values()[place], (len(rows), matrix.shape[1]))


def transposed(matrix: Tensor) -> Tensor:
    """The CSR matrix of the transpose."""
    order = matrix.col_indices().argsort(stable=True)
    counts = matrix.col_indices().bincount(minlength=matrix.shape[1])
    crow = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return _csr(crow, row_of_entries(matrix)[order], matrix.values()[order], (matrix.shape[1], matrix.shape[0]))


def row_of_entries(matrix: Tensor) -> Tensor:
    """The row in which each stored entry stands."""
    counts = matrix.crow_indices().diff()
    return torch.arange(matrix.shape[0], device=counts.device).repeat_interleave(counts)


def _csr(crow: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    return torch.sparse_csr_tensor(crow, columns, values, shape, check_invariants=False)
