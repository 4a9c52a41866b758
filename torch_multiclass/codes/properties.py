"""How far apart the rows of a code are, and what that is good for."""

from __future__ import annotations

import math

import torch
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
    r"""How many wrong columns Hamming decoding is sure to survive, for each class.

    Against another row let ``d`` columns ask both with opposite signs, ``h`` ask the true row alone and ``g`` the other
    alone. Faultless answers lead by ``d + (h - g)/2`` whatever the columns say that ignore the true row; a wrong answer
    costs 2 where the signs are opposite and 1 where the other row has a zero. So ``e`` errors are survived if

    .. math:: 2 \min(e, d) + [e - d]_+ < d + (h - g)/2.

    For ±1 codes that is ``floor((rho - 1)/2)`` at the least, and in general at least any ``e < (rho - q)/2`` with ``q``
    zeros in the true row. A class gets -1 where not even faultless columns settle it.

    Shape:
        code ``(K, L)``; counts ``(K,)``, int64.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.4.3.

    Example:
        >>> from torch_multiclass.codes import complete, one_vs_all, one_vs_one
        >>> correctable(complete(5)), correctable(one_vs_one(4)), correctable(one_vs_all(3))
        (tensor([3, 3, 3, 3, 3]), tensor([0, 0, 0, 0]), tensor([0, 0, 0]))
        >>> correctable([[0, 0, 0, 0, -1], [-1, 0, -1, -1, 1], [-1, 1, -1, 1, -1]])
        tensor([-1,  0,  1])
    """
    rows = as_code(code).double()
    opposite = (rows.abs() @ rows.abs().T - rows @ rows.T) / 2
    zeros = (rows == 0).sum(1)
    lead = opposite + (zeros[None, :] - zeros[:, None]) / 2
    dear = (lead / 2).ceil() - 1  # errors of cost 2 alone
    beyond = opposite + (lead - 2 * opposite).ceil() - 1  # all of those, and then errors of cost 1
    survived = torch.where(lead > 2 * opposite, beyond, dear).clamp(min=-1)
    return survived.fill_diagonal_(math.inf).amin(1).long()
