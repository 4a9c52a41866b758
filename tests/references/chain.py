"""Naive oracles for chains: every function by enumeration of all K^n labellings, and the plain log-space recursion.

Enumeration takes one sequence at a time, drops the masked positions first and works in float64.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

INF = math.inf


@dataclass
class Enumerated:
    """All labellings of the ``n`` unmasked positions, in the order that ties are broken in, and their scores."""

    labels: Tensor  # (N, n)
    scores: Tensor  # (N,)
    where: list[int]  # the unmasked positions
    steps: int  # T
    num_classes: int

    def spread(self, labels: Tensor) -> Tensor:
        """(..., n) labels to (..., T), -100 where masked."""
        out = torch.full((*labels.shape[:-1], self.steps), -100)
        out[..., self.where] = labels
        return out

    def log_partition(self) -> Tensor:
        return torch.logsumexp(self.scores, 0) if self.possible else torch.tensor(-INF, dtype=torch.float64)

    @property
    def possible(self) -> bool:
        return bool((self.scores > -INF).any())

    def probabilities(self) -> Tensor:
        return torch.softmax(self.scores, 0) if self.possible else torch.zeros_like(self.scores)

    def best(self) -> tuple[Tensor, Tensor]:
        score, index = self.scores.max(0)
        return self.spread(self.labels[index]), score

    def top(self, k: int) -> tuple[Tensor, Tensor]:
        """The k best possible labellings and their scores, padded with -100 and -inf."""
        order = self.scores.sort(descending=True, stable=True)
        labels = torch.full((k, self.steps), -100)
        scores = torch.full((k,), -INF, dtype=torch.float64)
        for rank in range(min(k, len(self.scores))):
            if order.values[rank] > -INF:
                labels[rank] = self.spread(self.labels[order.indices[rank]])
                scores[rank] = order.values[rank]
        return labels, scores

    def marginals(self) -> Tensor:
        p = self.probabilities()
        out = torch.zeros(self.steps, self.num_classes, dtype=torch.float64)
        for n, t in enumerate(self.where):
            out[t].index_add_(0, self.labels[:, n], p)
        return out

    def pair_marginals(self) -> Tensor:
        """Entry t - 1 is the pair into position t, from the unmasked position before it."""
        p = self.probabilities()
        k = self.num_classes
        out = torch.zeros(max(self.steps - 1, 0), k, k, dtype=torch.float64)
        for n in range(1, len(self.where)):
            flat = self.labels[:, n - 1] * k + self.labels[:, n]
            out[self.where[n] - 1].view(-1).index_add_(0, flat, p)
        return out

    def entropy(self) -> Tensor:
        p = self.probabilities()
        return -torch.xlogy(p, p).sum()

    def kl(self, other: Enumerated) -> Tensor:
        p, log_p, log_q = (
            self.probabilities(),
            self.scores - self.log_partition(),
            other.scores - other.log_partition(),
        )
        return torch.where(p > 0, p * (log_p - log_q), torch.zeros_like(p)).sum()

    def posterior_best(self) -> tuple[Tensor, Tensor]:
        """The possible labelling with the largest expected number of right positions."""
        at = self.marginals()[self.where]
        expected = at.gather(1, self.labels.t()).sum(0) if self.where else torch.zeros(1, dtype=torch.float64)
        expected = torch.where(self.scores > -INF, expected, -INF)
        score, index = (expected + 0).max(0)
        return self.spread(self.labels[index]), score

    def agrees(self, target: Tensor) -> Tensor:
        """Which labellings agree with the known labels of a (T,) target."""
        known = target[self.where]
        return ((self.labels == known) | (known == -100)).all(1)

    def gold(self, target: Tensor, how: str = "max") -> Tensor:
        """The best score, or the log-sum, over the labellings that agree with the target."""
        scores = self.scores[self.agrees(target)]
        if not bool((scores > -INF).any()):
            return torch.tensor(-INF, dtype=torch.float64)
        return scores.max() if how == "max" else torch.logsumexp(scores, 0)

    def costs(self, target: Tensor, matrix: Tensor | None = None, normalize: bool = False) -> Tensor:
        """The cost of every labelling: the sum of matrix[y*_t, y_t] over labelled positions (Hamming when None)."""
        matrix = 1 - torch.eye(self.num_classes, dtype=torch.float64) if matrix is None else matrix.double()
        total = torch.zeros(len(self.scores), dtype=torch.float64)
        for n, t in enumerate(self.where):
            if target[t] != -100:
                total = total + matrix[target[t], self.labels[:, n]]
        return total / max(len(self.where), 1) if normalize else total

    def m3n(self, target: Tensor, **cost: object) -> Tensor:
        return (self.costs(target, **cost) + self.scores - self.gold(target)).max()

    def crf(self, target: Tensor, temperature: float = 1.0, costs: Tensor | float = 0.0) -> Tensor:
        agrees = self.agrees(target)
        scaled = self.scores / temperature
        scaled = scaled - scaled.max()
        all_, some = torch.logsumexp(scaled + costs / temperature, 0), torch.logsumexp(scaled[agrees], 0)
        return temperature * (all_ - some)

    def slack_curve(self, target: Tensor, **cost: object) -> dict[float, float]:
        """The best relative score at every cost that some possible labelling has."""
        d = self.scores - self.gold(target)
        curve: dict[float, float] = {}
        for cost_, value in zip(self.costs(target, **cost).tolist(), d.tolist(), strict=True):
            if value > -INF:
                curve[cost_] = max(curve.get(cost_, -INF), value)
        return curve

    def slack(self, target: Tensor, **cost: object) -> float:
        return max(c * max(0.0, 1 + v) for c, v in self.slack_curve(target, **cost).items())


def enumerate_chain(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    mask: Tensor | None = None,
) -> Enumerated:
    """All labellings of one sequence: emissions (T, K), transitions (K, K) or (T-1, K, K), mask (T,)."""
    e, trans = emissions.double(), transitions.double()
    steps, k = e.shape
    where = [t for t in range(steps) if mask is None or bool(mask[t])]
    backwards = itertools.product(range(k), repeat=len(where))  # the last label counts most in the order
    paths = [y[::-1] for y in backwards]
    labels = torch.tensor(paths, dtype=torch.long).view(len(paths), len(where))
    scores = torch.zeros(len(labels), dtype=torch.float64)
    for n, t in enumerate(where):
        scores = scores + e[t, labels[:, n]]
        if n:
            step = trans if trans.ndim == 2 else trans[t - 1]
            scores = scores + step[labels[:, n - 1], labels[:, n]]
    if where and start is not None:
        scores = scores + start.double()[labels[:, 0]]
    if where and end is not None:
        scores = scores + end.double()[labels[:, -1]]
    return Enumerated(labels, scores, where, steps, k)


def log_partition_plain(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    lengths: Tensor | None = None,
) -> Tensor:
    """log Z by the textbook recursion in log space: (B, T, K), (K, K) or (B, T-1, K, K), lengths (B,)."""
    steps = emissions.shape[1]
    if steps == 0:
        return emissions.sum((1, 2))
    alpha = emissions[:, 0] + (0 if start is None else start)
    for t in range(1, steps):
        step = transitions if transitions.ndim == 2 else transitions[:, t - 1]
        new = torch.logsumexp(alpha.unsqueeze(2) + step, 1) + emissions[:, t]
        alpha = new if lengths is None else torch.where((t < lengths).unsqueeze(1), new, alpha)
    total = torch.logsumexp(alpha + (0 if end is None else end), 1)
    return total if lengths is None else torch.where(lengths > 0, total, torch.zeros_like(total))
