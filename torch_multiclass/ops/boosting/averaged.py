r"""The averaged exponential objective ``G(f) = sum_i w_i exp(-(1/K) sum_l y_il f_l(x_i))``, by coordinate descent."""

from __future__ import annotations

import math

import numpy as np

from torch_multiclass.ops.boosting.objective import NO_BETTER, Objective, Round, signs
from torch_multiclass.ops.splits.codes import Floats
from torch_multiclass.ops.splits.hamming import Partition
from torch_multiclass.ops.splits.layout import EDGE, Layout
from torch_multiclass.ops.splits.tree import Index


class Averaged(Objective):
    r"""A base classifier counts by ``u_i = (1/K) sum_l y_il h_l``; ``alpha`` minimises ``sum_i D_i exp(-alpha u_i)``.

    Args:
        labels: ``(M, K)``, ±1.
        weight: ``(M)``, > 0.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, eq. (9.25) and exercise 9.3.
    """

    criterion = EDGE

    def __init__(self, labels: Floats, weight: Floats) -> None:
        self.labels, self.weight = labels / labels.shape[1], weight
        self.scores, self.layout = np.zeros(labels.shape), Layout(labels.shape[1])
        self.smoothing = 1 / float(weight.sum())

    @property
    def weights(self) -> Floats:
        """``D (M)``."""
        logits = np.log(self.weight) - (self.labels * self.scores).sum(1)
        weights: Floats = np.exp(logits - logits.max())
        return weights / float(weights.sum())

    @property
    def channels(self) -> Floats:
        potentials: Floats = self.weights[:, None] * self.labels
        return potentials

    def weigh(self, part: Partition) -> Round | None:
        votes = signs(part.tree.values)
        weights, u = self.weights, (self.labels * votes[part.leaf]).sum(1)
        edge = float(weights @ u)
        if edge <= 2 * NO_BETTER:
            return None
        smoothed = float(u.min()) >= -1e-12
        alpha = 0.5 * math.log((1 + self.smoothing) / self.smoothing) if smoothed else line_search(weights, u)
        normaliser = float(weights @ np.exp(-alpha * u))
        return Round(votes, alpha, 0.5 * (1 - edge), normaliser, smoothed, last=float(u.min()) > 1e-12)

    def add(self, leaf: Index, found: Round) -> None:
        self.scores += (found.alpha * found.votes)[leaf]


def line_search(weights: Floats, u: Floats) -> float:
    """Where ``sum_i D_i exp(-alpha u_i)`` is least, which is at a positive ``alpha``: Newton's steps in a bracket."""

    def slopes(alpha: float) -> tuple[float, float]:
        terms = weights * np.exp(-alpha * u)
        return -float(terms @ u), float(terms @ (u * u))

    low, high = 0.0, 1.0
    while slopes(high)[0] < 0:
        low, high = high, 2 * high
    alpha = (low + high) / 2
    for _ in range(200):
        first, second = slopes(alpha)
        low, high = (alpha, high) if first < 0 else (low, alpha)
        step = alpha - first / second if second > 0 else low
        following = step if low < step < high else (low + high) / 2
        if abs(following - alpha) <= 1e-15 * alpha:
            return following
        alpha = following
    return alpha
