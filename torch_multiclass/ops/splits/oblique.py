"""Directions that are worth asking about, and values that rounding cannot tell apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torch_multiclass.ops.splits.codes import Floats, Ints


def directions(points: Floats, labels: Ints, weights: Floats, draws: int, draw: np.random.Generator) -> Floats:
    """``(H, D)`` of length 1: from the mean of the other classes to that of each, and so many random ones, in units of
    the features' spread."""
    known = ~np.isnan(points)
    weight = known * weights[:, None]
    filled = np.where(known, points, 0)

    def mean(of: NDArray[np.bool_]) -> Floats:
        mass = weight[of].sum(0)
        return np.asarray((filled[of] * weight[of]).sum(0) / np.where(mass > 0, mass, 1))

    classes = np.unique(labels)
    kept = classes[1:] if len(classes) == 2 else classes
    differences = np.array([mean(labels == k) - mean(labels != k) for k in kept])
    centre = mean(np.ones(len(points), np.bool_))
    variance = (weight * np.square(filled - centre)).sum(0) / np.maximum(weight.sum(0), 1e-300)
    spread = np.where(variance > 0, np.sqrt(variance), 1)
    made = np.concatenate([differences, draw.standard_normal((draws, points.shape[1])) / spread])
    length = np.sqrt(np.square(made).sum(1, keepdims=True))
    return np.asarray((made / np.where(length > 0, length, 1))[length[:, 0] > 0])


def apart(column: NDArray[np.floating], error: float) -> NDArray[np.floating]:
    """Values that differ by no more than an error made one, so that a threshold between two others is safe from it."""
    order = np.argsort(column)  # what is missing comes last
    known = order[: int((~np.isnan(column)).sum())]
    group = np.cumsum(np.diff(column[known], prepend=column[known[:1]]) > error)
    made = column.copy()
    made[known] = column[known][np.searchsorted(group, group)]
    return made
