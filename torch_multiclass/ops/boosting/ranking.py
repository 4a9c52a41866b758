r"""Weights of pairs of a label that holds and one that does not: AdaBoost.MR.

``D(i, a, b)`` is proportional to ``w_i exp(-½ (F_a - F_b))``, ``a`` relevant to row ``i`` and ``b`` not. It is a
product of a factor for ``a`` and one for ``b``, so that nothing of size ``K^2`` is formed.
"""

from __future__ import annotations

import math

import numpy as np

from torch_multiclass.ops.boosting.objective import NO_BETTER, Objective, Round, half_log, signs
from torch_multiclass.ops.splits.codes import Floats
from torch_multiclass.ops.splits.hamming import Partition
from torch_multiclass.ops.splits.layout import EDGE, Layout
from torch_multiclass.ops.splits.tree import Index


class Ranking(Objective):
    r"""``d = ½ (h_a - h_b)`` in {-1, 0, 1}, ``alpha = ½ ln(W+/W-)``, ``Z = W0 + 2 sqrt(W+ W-)``.

    Votes follow the potentials ``v(i, a) = sum_b D(i, a, b)`` and ``v(i, b) = -sum_a D(i, a, b)``, which maximises
    ``W+ - W-``.

    Args:
        labels: ``(M, K)``, ±1.
        weight: ``(M)``, > 0.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, eq. (9.26); Schapire and Singer
    (1999), section 9.
    """

    criterion = EDGE

    def __init__(self, labels: Floats, weight: Floats) -> None:
        self.relevant, self.weight = labels > 0, weight
        self.scores, self.layout = np.zeros(labels.shape), Layout(labels.shape[1])
        counts = self.relevant.sum(1) * (~self.relevant).sum(1)
        self.smoothing = 1 / float((weight * counts).sum())

    @property
    def factors(self) -> tuple[Floats, Floats]:
        """``A (M, K)`` and ``B (M, K)`` with ``D(i, a, b) = A(i, a) B(i, b)``; 0 where a label is of the other kind."""
        half = 0.5 * self.scores
        over, under = np.where(self.relevant, -half, -np.inf), np.where(self.relevant, -np.inf, half)
        tops = [part.max(1, keepdims=True) for part in (over, under)]
        tops = [np.where(np.isfinite(top), top, 0.0) for top in tops]
        a, b = np.exp(over - tops[0]), np.exp(under - tops[1])
        mass = np.log(self.weight) + (tops[0] + tops[1])[:, 0]
        share = np.exp(mass - mass.max())[:, None]
        return share / float((share[:, 0] * a.sum(1) * b.sum(1)).sum()) * a, b

    @property
    def channels(self) -> Floats:
        a, b = self.factors
        potentials: Floats = a * b.sum(1, keepdims=True) - b * a.sum(1, keepdims=True)
        return potentials

    def weigh(self, part: Partition) -> Round | None:
        votes = signs(part.tree.values)
        positive, neutral, negative = self.shares(votes[part.leaf])
        if positive - negative <= 2 * NO_BETTER:
            return None
        smoothed, s = negative == 0, self.smoothing
        alpha = half_log(positive + s, s) if smoothed else half_log(positive, negative)
        normaliser = neutral + positive * math.exp(-alpha) + negative * math.exp(alpha)
        last = smoothed and neutral == 0
        return Round(votes, alpha, negative + 0.5 * neutral, normaliser, smoothed, last)

    def shares(self, answers: Floats) -> tuple[float, float, float]:
        """``W+``, ``W0`` and ``W-`` of answers ``(M, K)``."""
        a, b = self.factors
        yes = answers > 0
        over, under = ((a * yes).sum(1), (a * ~yes).sum(1)), ((b * yes).sum(1), (b * ~yes).sum(1))
        neutral = over[0] @ under[0] + over[1] @ under[1]
        return float(over[0] @ under[1]), float(neutral), float(over[1] @ under[0])

    def add(self, leaf: Index, found: Round) -> None:
        self.scores += (found.alpha * found.votes)[leaf]
