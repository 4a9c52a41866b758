"""Stochastic sub-gradient descent for the multi-class SVM: no certificate on the way, but rows may stream."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from torch_multiclass import _validation as check
from torch_multiclass.scorers.linear import LinearScorer
from torch_multiclass.solvers.base import Fit
from torch_multiclass.solvers._inputs import check_rows

__all__ = ["Pegasos", "PegasosReport"]


@dataclass(frozen=True)
class PegasosReport:
    """How the descent ended. There is no dual and so no gap."""

    primal: float | None
    """``lambda/2 |W|^2`` plus the mean loss, where the rows were at hand."""
    iterations: int
    """Steps taken."""
    seconds: float
    interrupted: bool


class Pegasos:
    r"""Minimises ``lambda/2 |W|^2 + (1/m) sum_i max_l [1[l != y_i] + f_l(x_i) - f_{y_i}(x_i)]`` by steps
    ``1/(lambda t)``.

    With ``lambda = 1/(C m)`` it is the problem of `DualSVM` divided by ``C m``. After each step ``W`` is scaled back
    into the ball of radius ``sqrt(2/lambda)``, which contains the optimum; the result averages the second half of
    the steps.

    Args:
        C: as in `DualSVM`; sets ``lambda = 1/(C m)``.
        regularisation: ``lambda`` itself instead, needed for `fit_stream`.
        epochs: passes over the rows.
        batch_size: rows a step.
        bias: append a constant feature 1, regularised like any other.
        generator: draws the order of the rows; by default one seeded with 0.

    Reference: Shalev-Shwartz, Singer, Srebro and Cotter (2011), *Pegasos: primal estimated sub-gradient
    solver for SVM*.

    Example:
        >>> import torch
        >>> x = torch.tensor([[0.0, 1.0], [1.0, 0.0], [-1.0, -1.0]]).repeat(20, 1)
        >>> scorer, report = Pegasos(C=1.0).fit(x, torch.arange(60) % 3)
        >>> scorer(x[:3]).argmax(1)
        tensor([0, 1, 2])
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        regularisation: float | None = None,
        epochs: int = 20,
        batch_size: int = 32,
        bias: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        check.positive("C", C)
        if regularisation is not None:
            check.positive("regularisation", regularisation)
        check.whole("epochs", epochs)
        check.whole("batch_size", batch_size)
        self.C, self.regularisation, self.epochs, self.batch_size = C, regularisation, epochs, batch_size
        self.bias, self.generator = bias, generator

    def __repr__(self) -> str:
        return f"Pegasos(C={self.C:g}, regularisation={self.regularisation}, epochs={self.epochs})"

    @torch.no_grad()
    def fit(self, features: Tensor, target: Tensor, *, num_classes: int | None = None) -> Fit[PegasosReport]:
        """Train on rows at hand.

        Shape:
            features ``(N, D)``; target ``(N)``.
        """
        features, target = check_rows(features, target)
        classes = int(target.max()) + 1 if num_classes is None else num_classes
        check.label_range("target", target, classes, validate_args=True)
        generator = torch.Generator().manual_seed(0) if self.generator is None else self.generator
        strength = 1 / (self.C * len(features)) if self.regularisation is None else self.regularisation
        steps = self.epochs * -(-len(features) // self.batch_size)

        def batches() -> Iterable[tuple[Tensor, Tensor]]:
            for _ in range(self.epochs):
                for rows in torch.split(torch.randperm(len(features), generator=generator), self.batch_size):
                    yield features[rows.to(target.device)], target[rows.to(target.device)]

        scorer, report = self._descend(batches(), features.shape[1], classes, strength, steps, features)
        weight = scorer.weight.double()
        squares = weight.square().sum()
        if scorer.bias is not None:
            squares = squares + scorer.bias.double().square().sum()
        losses = _losses(scorer(features), target).double().mean()
        primal = float(strength / 2 * squares + losses)
        return Fit(scorer, PegasosReport(primal, report.iterations, report.seconds, report.interrupted))

    @torch.no_grad()
    def fit_stream(
        self, batches: Iterable[tuple[Tensor, Tensor]], in_features: int, num_classes: int
    ) -> Fit[PegasosReport]:
        """Train on ``(features, target)`` batches that come once; needs ``regularisation``."""
        if self.regularisation is None:
            raise ValueError("regularisation: got None; accepted for a stream is a number > 0")
        return Fit(*self._descend(batches, in_features, num_classes, self.regularisation, None, None))

    def _descend(
        self,
        batches: Iterable[tuple[Tensor, Tensor]],
        in_features: int,
        classes: int,
        strength: float,
        steps: int | None,
        like: Tensor | None,
    ) -> tuple[LinearScorer, PegasosReport]:
        started, taken, interrupted = time.perf_counter(), 0, False
        weight = (
            torch.zeros(classes, in_features + self.bias)
            if like is None
            else (like.new_zeros(classes, in_features + self.bias))
        )
        average, averaged = weight.clone(), 0
        try:
            for features, target in batches:
                features, target = check_rows(features, target)
                check.label_range("target", target, classes, validate_args=True)
                weight = weight.to(features)
                rows = torch.cat([features, torch.ones_like(features[:, :1])], 1) if self.bias else features
                taken += 1
                slopes = _slopes(rows @ weight.mT, target)
                weight = (1 - 1 / taken) * weight - slopes.mT @ rows / (strength * taken * len(rows))
                weight = weight * ((2 / strength) ** 0.5 / weight.norm().clamp_min(1e-30)).clamp_max(1)
                if steps is None or 2 * taken > steps:
                    averaged += 1
                    average = average.to(weight).lerp_(weight, 2 / (averaged + 1) if steps is None else 1 / averaged)
        except KeyboardInterrupt:
            interrupted = True
        final = average if averaged else weight
        scorer = LinearScorer(in_features, classes, self.bias, device=final.device, dtype=final.dtype)
        scorer.weight.copy_(final[:, :in_features])
        if scorer.bias is not None:
            scorer.bias.copy_(final[:, -1])
        return scorer, PegasosReport(None, taken, time.perf_counter() - started, interrupted)


def _augmented(scores: Tensor, target: Tensor) -> Tensor:
    """``1[l != y] + f_l - f_y``."""
    label = target[:, None]
    return (scores - scores.gather(1, label) + 1).scatter_(1, label, 0.0)


def _losses(scores: Tensor, target: Tensor) -> Tensor:
    return _augmented(scores, target).amax(1)


def _slopes(scores: Tensor, target: Tensor) -> Tensor:
    """The sub-gradient in the scores: ``e_worst - e_y``, which is 0 where the label itself is the worst."""
    worst = torch.nn.functional.one_hot(_augmented(scores, target).argmax(1), scores.shape[1])
    return (worst - torch.nn.functional.one_hot(target, scores.shape[1])).to(scores.dtype)
