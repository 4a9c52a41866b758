r"""Weights of (row, column) pairs with a sign each: AdaBoost, AdaBoost.MH and AdaBoost.MO.

``D(i, s)`` is proportional to ``w_i exp(-Y(i, s) F(i, s))`` over the pairs with ``Y(i, s)`` = ±1. One column with the
labels' signs is AdaBoost, a column for each class AdaBoost.MH, a column of a code each AdaBoost.MO.
"""

from __future__ import annotations

import math

import numpy as np

from torch_multiclass.ops.boosting.objective import NO_BETTER, Objective, Round, half_log, signs
from torch_multiclass.ops.boosting.reweigh import Reweigh
from torch_multiclass.ops.splits.codes import Floats
from torch_multiclass.ops.splits.hamming import Partition
from torch_multiclass.ops.splits.layout import EDGE, NORMALISER, Layout
from torch_multiclass.ops.splits.tree import Index

RENEW = 64
"""Rounds of factors on the weights, after which they are made anew of the scores."""


class _Pairs(Objective):
    """Pairs with a sign, and those without one, which do not count.

    Args:
        labels: ``(M, C)``, -1, 0 or +1.
        weight: ``(M)``, > 0.
    """

    def __init__(self, labels: Floats, weight: Floats) -> None:
        self.layout = Layout.of(labels)
        self.labels, self.weight = self.layout.of_rows(labels), weight
        self.scores, self._channels = (self.layout.table(np.zeros(self.labels.shape)) for _ in range(2))
        self.smoothing = 1 / float((weight[:, None] * (self.labels != 0)).sum())
        """``s``: one over the number of pairs."""
        self.rounds = 0
        self.reweigh = Reweigh(self._channels, self.scores, self.layout)
        self.renew()

    @property
    def channels(self) -> Floats:
        return self._channels

    def renew(self) -> None:
        """The weights by the scores."""
        logits = np.where(self.labels == 0, -np.inf, np.log(self.weight)[:, None] - self.labels * self.scores)
        weights = np.exp(logits - logits.max())
        self._channels[:] = weights / weights.sum() * self.labels

    def add(self, leaf: Index, found: Round) -> None:
        self.rounds += 1
        agree = np.exp(-found.alpha * found.votes)
        factors = agree / found.normaliser, 1 / (agree * found.normaliser)
        self.reweigh(leaf, *factors, found.alpha * found.votes)
        if self.rounds % RENEW == 0:
            self.renew()


class Discrete(_Pairs):
    r"""Votes of ±1: ``alpha = ½ ln((1 - eps)/eps)``, ``Z = 2 sqrt(eps (1 - eps))``.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, figure 9.1.
    """

    criterion = EDGE

    def weigh(self, part: Partition) -> Round | None:
        leaves = part.tree.is_leaf
        votes = signs(part.tree.values)
        error = max(0.5 * (1 - float((part.tree.values * votes)[leaves].sum())), 0.0)
        if error < 1e-10:  # the difference has no digits left
            answers = self.layout.of_nodes(votes)[self.layout.places(part.leaf)]
            error = float(np.abs(self._channels)[self.labels * answers < 0].sum())
        if error >= 0.5 - NO_BETTER:
            return None
        smoothed, s = error == 0, self.smoothing
        alpha = half_log(1 - error + s, error + s) if smoothed else half_log(1 - error, error)
        normaliser = (1 - error) * math.exp(-alpha) + error * math.exp(alpha)
        return Round(votes, alpha, error, normaliser, smoothed, last=smoothed)


class Confidence(_Pairs):
    r"""Real-valued votes ``½ ln((W+ + s)/(W- + s))``, whose weight is 1; ``Z`` is what they really leave.

    Reference: Schapire and Singer (1999), *Improved boosting algorithms using confidence-rated predictions*, sections
    4.1 and 4.2.
    """

    criterion = NORMALISER

    def weigh(self, part: Partition) -> Round | None:
        positive, negative = np.split(part.tree.values, 2, axis=1)
        positive, negative = np.maximum(positive, 0), np.maximum(negative, 0)
        votes = 0.5 * (np.log(positive + self.smoothing) - np.log(negative + self.smoothing))
        leaves = part.tree.is_leaf
        left = (positive * np.exp(-votes) + negative * np.exp(votes))[leaves]
        error = float(np.where(votes > 0, negative, positive)[leaves].sum())
        normaliser = float(left.sum())
        return None if normaliser >= 1 - 1e-12 else Round(votes, 1.0, error, normaliser)
