r"""How mixed the classes of some rows are, as ``n F(shares)``, from the weight of each class.

With ``p_l = S_l / n``: Gini ``1 - sum_l p_l^2``; entropy ``-sum_l p_l log2 p_l``; misclassification ``1 - max_l p_l``;
Kearns-Mansour ``2 √(p_0 p_1)`` for two classes, ``sum_l √(p_l (1 - p_l))`` for more.
"""

from __future__ import annotations

import numpy as np

from torch_multiclass.ops.splits.codes import Floats

IMPURITIES = ("gini", "entropy", "misclassification", "kearns_mansour")


def impurity(sums: Floats, total: Floats, name: str) -> Floats:
    """``n F`` of the weights ``(*, K)`` of the classes and their sum ``(*)``; 0 where there are no rows."""
    if name == "gini":
        squares = np.einsum("...k,...k->...", sums, sums)
        return np.asarray(total - np.divide(squares, total, out=np.zeros_like(squares), where=total > 0))
    if name == "entropy":
        return np.asarray(plogp(total) - plogp(sums).sum(-1))
    if name == "misclassification":
        return np.asarray(total - sums.max(-1))
    if sums.shape[-1] == 2:
        return np.asarray(2 * np.sqrt(sums[..., 0] * sums[..., 1]))
    return np.asarray(np.sqrt(sums * np.maximum(total[..., None] - sums, 0)).sum(-1))


def plogp(sums: Floats) -> Floats:
    """``S log2 S``, 0 at 0."""
    return sums * np.log2(sums, out=np.zeros_like(sums), where=sums > 0)
