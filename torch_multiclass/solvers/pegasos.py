"""Stochastic sub-gradient descent for the multi-class SVM: no certificate on the way, but rows may stream."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.scorers.linear import LinearScorer
from torch_multiclass.solvers.base import Fit
from torch_multiclass.solvers.problem import check_constant, check_rows, labelled_rows, one_label

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

    Shape:
        features ``(N, D)``; target ``(N)``; the scorer's scores ``(N, K)``.

    Raises:
        ValueError: constants that are not positive; what `fit` and `fit_stream` refuse.

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
        C = check_constant("C", C)
        if regularisation is not None:
            regularisation = check_constant("regularisation", regularisation)
        check.whole("epochs", epochs)
        check.whole("batch_size", batch_size)
        check.generator(generator)
        self.C, self.regularisation, self.epochs, self.batch_size = C, regularisation, epochs, batch_size
        self.bias, self.generator = bias, generator

    def __repr__(self) -> str:
        return f"Pegasos(C={self.C:g}, regularisation={self.regularisation}, epochs={self.epochs})"

    @torch.no_grad()
    def fit(self, features: Tensor, target: Tensor, *, num_classes: int | None = None) -> Fit[PegasosReport]:
        """Train on rows at hand.

        Args:
            features: the rows; half precision is worked on in float32, and so is the scorer.
            target: their labels, integers; rows labelled -100 are left out.
            num_classes: ``K``; by default one more than the largest label.

        Shape:
            features ``(N, D)``; target ``(N)``.

        Raises:
            ValueError: no rows, one class, or features that are not finite.
        """
        features, target = check_rows(features, target)
        if bool((target == target[0]).all()):
            raise one_label(int(target[0]))
        classes = int(target.max()) + 1 if num_classes is None else num_classes
        check.whole("num_classes", classes, least=2)
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
        """Train on batches that come once; needs ``regularisation``. A batch without labelled rows is passed over.

        Args:
            batches: pairs of features and target.
            in_features: ``D``.
            num_classes: ``K``.

        Shape:
            of each batch, features ``(B, D)`` and target ``(B)``.

        Raises:
            ValueError: no batch with labelled rows; a batch of another width.
        """
        if self.regularisation is None:
            raise ValueError("regularisation: got None; accepted for a stream is a number > 0")
        if isinstance(batches, Tensor) or not isinstance(batches, Iterable):
            raise TypeError(f"batches: got {type(batches).__name__}; accepted are pairs of features and target")
        check.whole("in_features", in_features)
        check.whole("num_classes", num_classes, least=2)
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
        shape = classes, in_features + self.bias
        weight = torch.zeros(shape) if like is None else like.new_zeros(shape)
        average, averaged = weight.clone(), 0
        try:
            for number, batch in enumerate(batches):
                features, target = _checked(number, batch, in_features, classes)
                if len(features) == 0:
                    continue
                weight = weight.to(features)
                taken += 1
                weight = self._step(weight, features, target, strength, taken)
                if steps is None or 2 * taken > steps:
                    averaged += 1
                    average = average.to(weight).lerp_(weight, 2 / (averaged + 1) if steps is None else 1 / averaged)
        except KeyboardInterrupt:
            interrupted = True
        if taken == 0 and not interrupted:
            raise ValueError("batches: none had a labelled row; accepted is at least one that has")
        final = average if averaged else weight
        scorer = LinearScorer(in_features, classes, self.bias, device=final.device, dtype=final.dtype)
        scorer.weight.copy_(final[:, :in_features])
        if scorer.bias is not None:
            scorer.bias.copy_(final[:, -1])
        return scorer, PegasosReport(None, taken, time.perf_counter() - started, interrupted)

    def _step(self, weight: Tensor, features: Tensor, target: Tensor, strength: float, number: int) -> Tensor:
        """``W <- (1 - 1/t) W - slope/(lambda t)``, then back into the ball."""
        rows = torch.cat([features, torch.ones_like(features[:, :1])], 1) if self.bias else features
        slopes = _slopes(rows @ weight.mT, target)
        weight = (1 - 1 / number) * weight - slopes.mT @ rows / (strength * number * len(rows))
        norm = weight.double().norm().clamp_min(1e-30)
        inside: Tensor = weight * ((2 / strength) ** 0.5 / norm).clamp_max(1).to(weight)
        return inside


def _checked(number: int, batch: tuple[Tensor, Tensor], in_features: int, classes: int) -> tuple[Tensor, Tensor]:
    """A batch's labelled rows; what is wrong with it names it."""
    if not isinstance(batch, (tuple, list)) or len(batch) != 2:
        raise TypeError(f"batches: batch {number} is a {type(batch).__name__}; accepted is a pair, features and target")
    try:
        features, target = batch
        features, target = labelled_rows(features, target)
        check.label_range("target", target, classes, validate_args=True)
    except (TypeError, ValueError) as wrong:
        raise type(wrong)(f"batches: batch {number}: {wrong}") from wrong
    if features.shape[1] != in_features:
        raise ValueError(
            f"batches: batch {number} has features of shape {tuple(features.shape)}; accepted is (B, {in_features})"
        )
    return features, target


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
