"""Codes that are written down: one for each rule of the field.

Under the meta device they are made on the CPU: a module without storage needs to know its code all the same.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torch_multiclass import checks as validate
from torch_multiclass.codes.words import binary_signs, digits_for, fits
from torch_multiclass.ops.constants import home

__all__ = ["complete", "hadamard", "minimal", "one_vs_all", "one_vs_one"]

MOST_COMPLETE = 16
"""The largest number of classes for which every split is listed (32,767 columns)."""


def one_vs_all(k: int) -> Tensor:
    """Code with one column a class, that class against the rest: ``M(r, s) = +1 if r = s else -1``.

    Its smallest row distance is 2.

    Args:
        k: the number of classes, at least 2.

    Shape:
        ``(k, k)``, int8.

    Raises:
        ValueError: fewer than 2 classes.
        TypeError: a number that is not whole.

    Reference: Allwein, Schapire and Singer (2000), section 3; Mohri, Rostamizadeh and Talwalkar, *Foundations of
    Machine Learning*, §9.4.1.

    Example:
        >>> one_vs_all(3)
        tensor([[ 1, -1, -1],
                [-1,  1, -1],
                [-1, -1,  1]], dtype=torch.int8)
    """
    k = validate.whole("k", k, least=2)
    fits(k, k)
    return 2 * torch.eye(k, dtype=torch.int8, device=home()) - 1


def one_vs_one(k: int) -> Tensor:
    """Code with one column for each pair ``i < j`` of classes, in lexicographic order: +1 for ``i``, -1 for ``j``.

    Its smallest row distance is ``(k(k-1)/2 - 1)/2 + 1``.

    Args:
        k: the number of classes, at least 2.

    Shape:
        ``(k, k(k-1)/2)``, int8.

    Raises:
        ValueError: fewer than 2 classes.
        TypeError: a number that is not whole.

    Reference: Allwein, Schapire and Singer (2000), section 3; Mohri, Rostamizadeh and Talwalkar, *Foundations of
    Machine Learning*, §9.4.2.

    Example:
        >>> one_vs_one(3)
        tensor([[ 1,  1,  0],
                [-1,  0,  1],
                [ 0, -1, -1]], dtype=torch.int8)
    """
    k = validate.whole("k", k, least=2)
    fits(k, k * (k - 1) // 2)
    first, second = torch.triu_indices(k, k, 1, device=home())
    pair = torch.arange(first.numel(), device=home())
    code = torch.zeros(k, first.numel(), dtype=torch.int8, device=home())
    code[first, pair] = 1
    code[second, pair] = -1
    return code


def complete(k: int) -> Tensor:
    """Code with every split of the classes in two, once: ``2^(k-1) - 1`` columns, smallest row distance ``2^(k-2)``.

    Column ``s`` writes ``s + 1`` in binary over the classes after the first; class 0 is always on the + side.

    Args:
        k: the number of classes, from 2 to 16.

    Shape:
        ``(k, 2^(k-1) - 1)``, int8.

    Raises:
        ValueError: fewer than 2 classes, or more than 16.
        TypeError: a number that is not whole.

    Reference: Allwein, Schapire and Singer (2000), section 6.

    Example:
        >>> complete(3)
        tensor([[ 1,  1,  1],
                [ 1, -1, -1],
                [-1,  1, -1]], dtype=torch.int8)
    """
    k = validate.whole("k", k, least=2)
    if k > MOST_COMPLETE:
        raise ValueError(
            f"k: got {k} classes, which have 2^{k - 1} - 1 splits; accepted are at most {MOST_COMPLETE} for the "
            "complete code (dense_random draws from the same columns)"
        )
    return binary_signs(torch.arange(1, 2 ** (k - 1), device=home()), k).T.contiguous()


def minimal(k: int) -> Tensor:
    """Code with as few columns as tell the classes apart, ``ceil(log2 k)``: class ``r`` written in binary.

    It corrects nothing: two rows may differ in one column only.

    Args:
        k: the number of classes, at least 2.

    Shape:
        ``(k, ceil(log2 k))``, int8.

    Raises:
        ValueError: fewer than 2 classes.
        TypeError: a number that is not whole.

    Reference: Roth, lecture slides on multi-class classification.

    Example:
        >>> minimal(4)
        tensor([[ 1,  1],
                [ 1, -1],
                [-1,  1],
                [-1, -1]], dtype=torch.int8)
    """
    k = validate.whole("k", k, least=2)
    fits(k, digits_for(k))
    return binary_signs(torch.arange(k, device=home()), digits_for(k))


def hadamard(k: int) -> Tensor:
    """Code of the first ``k`` rows of Sylvester's Hadamard matrix of order ``N >= k``, less its constant column.

    ``M(r, s) = (-1)^(bits in common of r and s)``, ``s = 1 .. N-1``: any two rows differ in exactly ``N/2`` columns,
    and no column is constant, equal or opposite to another, because ``k > N/2``.

    Args:
        k: the number of classes, at least 2.

    Shape:
        ``(k, N - 1)`` with ``N`` the least power of 2 that is at least ``k``, int8.

    Raises:
        ValueError: fewer than 2 classes.
        TypeError: a number that is not whole.

    Reference: Sylvester (1867), Thoughts on inverse orthogonal matrices.

    Example:
        >>> hadamard(4)
        tensor([[ 1,  1,  1],
                [-1,  1, -1],
                [ 1, -1, -1],
                [-1, -1,  1]], dtype=torch.int8)
    """
    k = validate.whole("k", k, least=2)
    fits(k, 2 ** digits_for(k) - 1)
    matrix = torch.ones(1, 1, dtype=torch.int8, device=home())
    while len(matrix) < k:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return matrix[:k, 1:].contiguous()
