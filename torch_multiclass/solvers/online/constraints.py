"""Constraint classification: any preferences among classes, learned by one linear machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor
from typing_extensions import Unpack

from torch_multiclass import checks as check
from torch_multiclass.ops.online import Asked, Rule
from torch_multiclass.ops.online.records import RULES
from torch_multiclass.preferences import check_signs, checked_pairs
from torch_multiclass.solvers.online.examples import Examples, Features, opened
from torch_multiclass.solvers.online.learner import OnlineLearner, OnlineOptions
from torch_multiclass.solvers.problem import Problem, RowWeights, check_constant

__all__ = ["ConstraintClassifier"]


class ConstraintClassifier(OnlineLearner):
    r"""The perceptron on preferences ``a ≻ b``, which are violated where ``w_a · x <= w_b · x``: then ``w_a += eta x``,
    ``w_b -= eta x``.

    It is the binary perceptron on Kesler's construction, vectors ``(K, D)`` with ``x`` at ``a`` and ``-x`` at ``b``,
    which are never built. Classes ask that each be above all others, signs that each +1 be above each -1, and pairs may
    ask for anything that goes in no circle: rankings, ordered classes (`torch_multiclass.preferences`).

    If some ``W*`` keeps all preferences with the margin ``gamma = min (w*_a - w*_b) · x / sqrt(2 |W*|^2)`` and
    ``|x_i| <= R``, then there are at most ``R^2 / gamma^2`` updates under the rules "conservative" and "uniform", and
    under "all" they are for at most ``K R^2 / (2 gamma^2)`` preferences.

    Args:
        rule: of an example's violated preferences, ``"conservative"`` takes the one with the smallest
            ``(w_a - w_b) · x``, the first listed among equals; ``"all"`` takes each, with the weights as they were
            before; ``"uniform"`` does too, each with a share of ``1/n`` of the step.
        learning_rate: ``eta``; from weights of 0 it scales them and changes no decision.
        averaged, shuffle, bias, max_passes, generator, progress: as in `Perceptron`.

    Shape:
        features ``(N, D)``; target ``(N)`` class indices, ``(N, K)`` of ±1, or ``(N, P, 2)`` pairs; -100 marks rows,
        signs or pairs that there are not. The scorer's scores ``(N, K)``.

    Raises:
        ValueError: a rate that is not positive, an unknown rule; what `fit` and `partial_fit` refuse, preferences in a
            circle among it.

    Reference: Har-Peled, Roth and Zimak (2002), *Constraint classification: a new approach to multiclass
    classification*, §3 and §5; Crammer and Singer (2003), *Ultraconservative online algorithms for multiclass
    problems*, for the rules.

    Example:
        >>> import torch
        >>> from torch_multiclass import RankingDecoder, preferences
        >>> x = torch.tensor([[1.0, 0, 1], [0, 1, 1], [-1, -1, 1]])
        >>> order = torch.tensor([[0, 1, 2], [1, 0, 2], [2, 1, 0]])
        >>> scorer, report = ConstraintClassifier(rule="all").fit(x, preferences.ranking(order))
        >>> RankingDecoder()(scorer(x))
        tensor([[0, 1, 2],
                [1, 0, 2],
                [2, 1, 0]])
    """

    def __init__(
        self,
        rule: str = "conservative",
        *,
        learning_rate: float = 1.0,
        **options: Unpack[OnlineOptions],
    ) -> None:
        super().__init__(**options)
        check.choice("rule", rule, RULES)
        self._rule = rule
        self.learning_rate = check_constant("learning_rate", learning_rate)

    def __repr__(self) -> str:
        return f"ConstraintClassifier(rule={self._rule!r}, learning_rate={self.learning_rate:g})"

    @property
    def rule(self) -> Rule:
        return Rule("perceptron", self._rule)

    @property
    def rate(self) -> float:
        return self.learning_rate

    def problem(
        self, features: Features, target: Tensor, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> Examples:
        if not _tells_preferences(target):
            return super().problem(features, target, weight, num_classes)
        found = self.batch(features, target, weight, num_classes)
        found.some()
        return found

    def batch(
        self, features: Features, target: Tensor, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> Examples:
        if not _tells_preferences(target):
            return super().batch(features, target, weight, num_classes)
        dense, compressed = opened(features)
        if num_classes is not None:
            num_classes = check.whole("num_classes", num_classes, least=2)
        check.integers("target", target, "class indices, signs or pairs")
        check.with_values("target", target)
        if target.ndim == 3:
            target = checked_pairs("target", target, num_classes)
            most = int(target.max()) if target.numel() else 0
            classes = max(most + 1, 2) if num_classes is None else num_classes
        else:
            target, classes = target.detach().long(), target.shape[1]
            if num_classes not in (None, classes):
                raise ValueError(
                    f"target: got shape {tuple(target.shape)}; accepted is (N, {num_classes}), a sign for each class"
                )
            if classes < 2:
                raise ValueError(f"target: got shape {tuple(target.shape)}; accepted is (N, K) with K >= 2 classes")
            check_signs("target", target)
        known = (target != check.IGNORE).flatten(1).any(1)
        problem = Problem.labelled(dense, torch.where(known, 0, check.IGNORE), weight)
        return Examples.of(replace(problem, classes=classes), compressed, _preferences_asked(target))


def _tells_preferences(target: object) -> bool:
    """Whether it is signs or pairs rather than classes."""
    return isinstance(target, Tensor) and target.ndim in (2, 3)


def _preferences_asked(target: Tensor) -> Callable[[Tensor | None], Asked]:
    def asked(rows: Tensor | None) -> Asked:
        chosen = (target if rows is None else target[rows]).cpu()
        if target.ndim == 2:
            return Asked("signs", torch.where(chosen == check.IGNORE, 0, chosen).to(torch.int8).contiguous())
        there = chosen[..., 0] != check.IGNORE
        first = torch.cat([torch.zeros(1, dtype=torch.long), there.sum(1).cumsum(0)])
        return Asked("pairs", chosen[there].contiguous(), first)

    return asked
