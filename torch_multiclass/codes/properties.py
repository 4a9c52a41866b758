"""How far apart the rows of a code are, and what that is good for."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torch_multiclass.codes.checks import CodeLike, as_code, as_known
from torch_multiclass.codes.products import row_products
from torch_multiclass.ops.coding import Coding
from torch_multiclass.ops.constants import home

__all__ = ["correctable", "min_row_distance", "row_distances"]


def row_distances(code: CodeLike | Coding) -> Tensor:
    """Distance between each two rows: columns where they differ, and 1/2 for each column where either is 0.

    ``Delta(u, v) = (L - u.v)/2``; the diagonal holds ``Delta(u, u)``, half the zeros of the row.

    Shape:
        code ``(K, L)``; distances ``(K, K)``, float32.

    Raises:
        ValueError: what is no matrix of -1, 0 and +1 with two rows or more. Equal rows and columns of zeros, which
            `torch_multiclass.codes.check` refuses, are measured like others.

    Reference: Allwein, Schapire and Singer (2000), section 4.

    Example:
        >>> row_distances([[1, -1], [-1, 1], [0, 1]])
        tensor([[0.0000, 2.0000, 1.5000],
                [2.0000, 0.0000, 0.5000],
                [1.5000, 0.5000, 0.5000]])
    """
    known = as_known(code)
    if known is not None and known.products is not None:
        own, other, _ = known.products
        products = torch.full((known.num_classes,) * 2, float(other), device=home()).fill_diagonal_(own)
        return (known.num_columns - products) / 2
    matrix = as_code(code)
    products = torch.cat([product for _, product, _ in row_products(matrix)])
    return ((matrix.shape[1] - products) / 2).float()


def min_row_distance(code: CodeLike | Coding) -> float:
    """Smallest distance between two different rows, ``rho = min Delta(M(r), M(r'))``.

    Shape:
        code ``(K, L)``; a number.

    Raises:
        ValueError: what is no matrix of -1, 0 and +1 with two rows or more. Equal rows and columns of zeros, which
            `torch_multiclass.codes.check` refuses, are measured like others.

    Reference: Allwein, Schapire and Singer (2000), eq. (6).

    Example:
        >>> from torch_multiclass.codes import complete, one_vs_all, one_vs_one
        >>> min_row_distance(one_vs_all(5)), min_row_distance(one_vs_one(5)), min_row_distance(complete(5))
        (2.0, 5.5, 8.0)
    """
    known = as_known(code)
    if known is not None and known.products is not None:
        return (known.num_columns - known.products[1]) / 2
    matrix, largest = as_code(code), -math.inf
    for first, product, _ in row_products(matrix):
        product.diagonal(first).fill_(-math.inf)
        largest = max(largest, float(product.max()))
    return (matrix.shape[1] - largest) / 2


def correctable(code: CodeLike | Coding) -> Tensor:
    r"""How many wrong columns Hamming decoding is sure to survive, for each class.

    Against another row let ``d`` columns ask both with opposite signs, ``h`` ask the true row alone and ``g`` the other
    alone. Faultless answers lead by ``d + (h - g)/2`` whatever the columns say that ignore the true row; a wrong answer
    costs 2 where the signs are opposite and 1 where the other row has a zero. So ``e`` errors are survived if

    .. math:: 2 \min(e, d) + [e - d]_+ < d + (h - g)/2.

    For ±1 codes that is ``floor((rho - 1)/2)`` at the least, and in general at least any ``e < (rho - q)/2`` with ``q``
    zeros in the true row. A class gets -1 where not even faultless columns settle it.

    Shape:
        code ``(K, L)``; counts ``(K,)``, int64.

    Raises:
        ValueError: what is no matrix of -1, 0 and +1 with two rows or more. Equal rows and columns of zeros, which
            `torch_multiclass.codes.check` refuses, are measured like others.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.4.3.

    Example:
        >>> from torch_multiclass.codes import complete, one_vs_all, one_vs_one
        >>> correctable(complete(5)), correctable(one_vs_one(4)), correctable(one_vs_all(3))
        (tensor([3, 3, 3, 3, 3]), tensor([0, 0, 0, 0]), tensor([0, 0, 0]))
        >>> correctable([[0, 0, 0, 0, -1], [-1, 0, -1, -1, 1], [-1, 1, -1, 1, -1]])
        tensor([-1,  0,  1])
    """
    matrix = as_code(code)
    zeros = (matrix == 0).sum(1)
    found = []
    for first, product, asking in row_products(matrix, both=True):
        opposite = (asking - product).double() / 2
        lead = opposite + (zeros[None, :] - zeros[first : first + len(product), None]) / 2
        dear = (lead / 2).ceil() - 1  # errors of cost 2 alone
        beyond = opposite + (lead - 2 * opposite).ceil() - 1  # all of those, and then errors of cost 1
        survived = torch.where(lead > 2 * opposite, beyond, dear).clamp(min=-1)
        survived.diagonal(first).fill_(math.inf)
        found.append(survived.amin(1).long())
    return torch.cat(found)
