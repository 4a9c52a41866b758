"""How far apart the rows of a code are, and what that is good for."""

from __future__ import annotations

import math

from torch import Tensor

from torch_multiclass.codes.checks import CodeLike, as_code

__all__ = ["correctable", "min_row_distance", "row_distances"]


def row_distances(code: CodeLike) -> Tensor:
    """Distance between each two rows: columns where they differ, and 1/2 for each column where either is 0.

    ``Delta(u, v) = (L - u.v)/2``; the diagonal holds ``Delta(u, u)``, half the zeros of the row.

    Shape:
        code ``(K, L)``; distances ``(K, K)``, float32.

    Reference: Allwein, Schapire and Singer (2000), section 4.

    Example:
        >>> row_distances([[1, -1], [-1, 1], [0, 1]])
        tensor([[0.0000, 2.0000, 1.5000],
                [2.0000, 0.0000, 0.5000],
                [1.5000, 0.5000, 0.5000]])
    """
    rows = as_code(code).float()
    return (rows.shape[1] - rows @ rows.T) / 2


def min_row_distance(code: CodeLike) -> float:
    """Smallest distance between two different rows, ``rho = min Delta(M(r), M(r'))``.

    Reference: Allwein, Schapire and Singer (2000), eq. (6).

    Example:
        >>> from torch_multiclass.codes import complete, one_vs_all, one_vs_one
        >>> min_row_distance(one_vs_all(5)), min_row_distance(one_vs_one(5)), min_row_distance(complete(5))
        (2.0, 5.5, 8.0)
    """
    distances = row_distances(code)
    return float(distances.fill_diagonal_(math.inf).min())


def correctable(code: CodeLike) -> Tensor:
    """How many wrong columns Hamming decoding is sure to survive, for each class.

    With a true row of ``q`` zeros, another row of ``z`` zeros and ``d`` columns in which they have opposite signs,
    ``e`` wrong columns still leave the true row nearest if ``2e < d + (z - q)/2``, whatever the ignored columns say.
    For ±1 codes that is ``floor((rho - 1)/2)`` at the least, and in general at least any ``e < (rho - q)/2``. A class
    gets -1 where not even faultless columns settle it.

    Shape:
        code ``(K, L)``; counts ``(K,)``, int64.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.4.3.

    Example:
        >>> from torch_multiclass.codes import complete, one_vs_all, one_vs_one
        >>> correctable(complete(5)), correctable(one_vs_one(4)), correctable(one_vs_all(3))
        (tensor([3, 3, 3, 3, 3]), tensor([0, 0, 0, 0]), tensor([0, 0, 0]))
    """
    rows = as_code(code).double()
    opposite = (rows.abs() @ rows.abs().T - rows @ rows.T) / 2
    zeros = (rows == 0).sum(1)
    lead = (opposite + (zeros[None, :] - zeros[:, None]) / 2).fill_diagonal_(math.inf).amin(1)
    return (lead / 2).ceil().long() - 1
