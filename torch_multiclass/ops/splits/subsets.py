"""Which sets of categories are worth asking for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torch_multiclass.ops.splits.codes import Floats

EXACT = 10
"""Up to so many categories all sets are tried."""


def tables(sums: Floats) -> NDArray[np.bool_]:
    """``(sets, categories)``: which categories are a yes, from the weight of each class ``(categories, K)`` in each.

    All sets up to ten categories. For two classes those of the lowest shares of a class, among which is the best for
    every concave impurity; beyond, those lowest on the first principal component of the class shares, and each category
    by itself. Every set is the side of the first category.

    Reference: Breiman, Friedman, Olshen and Stone (1984), theorem 4.5; Coppersmith, Hong and Hosking (1999).
    """
    categories = len(sums)
    if categories < 2:
        return np.zeros((0, categories), np.bool_)
    classes = int((sums > 0).any(0).sum())
    if categories <= EXACT and classes > 2:
        numbers = np.arange(2 ** (categories - 1) - 1)
        rest = numbers[:, None] >> np.arange(categories - 1) & 1
        return np.concatenate([np.ones((len(numbers), 1), np.bool_), rest.astype(np.bool_)], 1)
    order = np.argsort(scores(sums, classes), kind="stable")
    sets = np.zeros((categories - 1, categories), np.bool_)
    for last in range(categories - 1):
        sets[last, order[: last + 1]] = True
    if classes > 2:
        sets = np.concatenate([sets, np.eye(categories, dtype=np.bool_)])
    return np.where(sets[:, :1], sets, ~sets)


def scores(sums: Floats, classes: int) -> Floats:
    """The share of the second class of two; else the first principal component of the class shares, by weight."""
    mass = sums.sum(1)
    shares = sums / mass[:, None]
    if classes == 2:
        return np.asarray(shares[:, np.flatnonzero((sums > 0).any(0))[-1]])
    centred = shares - (shares * mass[:, None]).sum(0) / mass.sum()
    _, vectors = np.linalg.eigh((centred * mass[:, None]).T @ centred)
    first = vectors[:, -1]
    return np.asarray(centred @ (first * np.sign(first[np.argmax(np.abs(first))])))
