"""Balanced Winnow: weights that are multiplied, of two classes or of several."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from typing_extensions import Unpack

from torch_multiclass import checks as check
from torch_multiclass.ops.online import Rule, State
from torch_multiclass.scorers.linear import LinearScorer
from torch_multiclass.solvers.online.examples import Examples, Features, labels_asked, opened
from torch_multiclass.solvers.online.learner import Mistakes, OnlineLearner, Passes, Watch
from torch_multiclass.solvers.problem import Problem, RowWeights
from torch_multiclass.solvers.space import linear_scorer

__all__ = ["BalancedWinnow", "WinnowReport"]


@dataclass(frozen=True, kw_only=True)
class WinnowReport(Mistakes):
    """How the learner ended, with the weights that it multiplied.

    Reference: Littlestone (1988), *Learning quickly when irrelevant attributes abound*.

    Example:
        >>> import torch
        >>> from torch_multiclass.solvers import BalancedWinnow
        >>> report = BalancedWinnow().fit(torch.eye(3), torch.arange(3)).report
        >>> type(report).__name__, report.converged
        ('WinnowReport', True)
    """

    weights: Tensor = field(repr=False)
    """``(K, D)``, or ``(K, D + 1)`` with a bias, float64, > 0; of two classes with a threshold ``w-``, then ``w+``."""


class BalancedWinnow(OnlineLearner):
    r"""Weights ``w > 0`` that a mistake multiplies, from 1 on: a promotion by ``r^{x_i}``, a demotion by ``r^{-x_i}``.

    With ``binary`` there are ``w+`` and ``w-``, and the guess is + where ``(w+ - w-) · x >= theta``; a mistake on +
    promotes ``w+`` and demotes ``w-``, one on - the other way round. Else there is a ``w_l`` for each class, and where
    ``w_y · x <= w_z · x``, ``y`` is promoted and ``z`` demoted: the best of the others, the lowest among equals, or
    each. Learns fast where few of many features matter. Weights are kept as exponents of ``r``, which do not overflow.

    Args:
        ratio: ``r > 1``.
        binary: two classes, ±1 or 0/1, one score.
        theta: the threshold, of ``binary`` only.
        rule: of several classes, ``"conservative"``, or ``"all"`` for each violating one, with the weights as they were
            before.
        shuffle, bias, max_passes, generator, progress: as in `Perceptron`.

    Shape:
        features ``(N, D)``; target ``(N)``; the scorer's scores ``(N, K)``, or ``(N, 1)``, ``(w+ - w-) · x - theta``,
        with + where they are at least 0. Where weights would overflow, all scores are scaled down alike.

    Raises:
        ValueError: a ratio that is not above 1; a threshold without ``binary``; what `fit` and `partial_fit` refuse.

    Reference: Littlestone (1988), *Learning quickly when irrelevant attributes abound*; Dagan, Karov and Roth (1997),
    *Mistake-driven learning in text categorization*, §3.2, for the balanced version; Mohri, Rostamizadeh and Talwalkar,
    *Foundations of Machine Learning*, §8.3.2.

    Example:
        >>> import torch
        >>> x = torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 1, 0]])
        >>> scorer, report = BalancedWinnow(2.0, binary=True).fit(x, torch.tensor([1, -1, 1, -1, 1, -1]))
        >>> report.weights
        tensor([[0.5000, 2.0000, 2.0000, 2.0000],
                [2.0000, 0.5000, 0.5000, 0.5000]], dtype=torch.float64)
        >>> report.mistakes, scorer(x).ge(0).squeeze(1)
        ([3, 0], tensor([ True, False,  True, False,  True, False]))
    """

    def __init__(
        self,
        ratio: float = 2.0,
        *,
        binary: bool = False,
        theta: float = 0.0,
        rule: str = "conservative",
        **options: Unpack[Passes],
    ) -> None:
        super().__init__(**options)
        self.ratio = _check_ratio(ratio)
        check.flag("binary", binary)
        if not math.isfinite(check.real(theta)):
            raise ValueError(f"theta: got {check.shown(theta)}; accepted is a finite number")
        if theta != 0 and not binary:
            raise ValueError(
                f"theta: got {theta!r} without binary=True; accepted is 0, since classes have no threshold"
            )
        check.choice("rule", rule, ["conservative", "all"])
        self.binary, self.theta, self._rule = binary, float(theta), rule

    def __repr__(self) -> str:
        return f"BalancedWinnow(ratio={self.ratio:g}, binary={self.binary}, theta={self.theta:g}, rule={self._rule!r})"

    @property
    def rule(self) -> Rule:
        return Rule("winnow_binary" if self.binary else "winnow", self._rule, self.theta, self.ratio)

    @property
    def rate(self) -> float:
        return 1.0

    def problem(
        self, features: Features, target: Tensor, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> Examples:
        if not self.binary:
            return super().problem(features, target, weight, num_classes)
        self._check_two(num_classes)
        dense, compressed = opened(features)
        return Examples.of(Problem.binary(dense, target, weight), compressed, labels_asked(_zero_one(target)))

    def batch(
        self, features: Features, target: Tensor, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> Examples:
        if not self.binary:
            return super().batch(features, target, weight, num_classes)
        self._check_two(num_classes)
        dense, compressed = opened(features)
        problem = Problem.labelled(dense, target, weight)
        outside = problem.labels[(problem.labels.abs() > 1)]
        if len(outside):
            raise ValueError(
                f"target: has the labels [{int(outside[0])}] with a binary learner; accepted are -1/1 and 0/1"
            )
        return Examples.of(replace(problem, classes=2), compressed, labels_asked(_zero_one(target)))

    def _check_two(self, num_classes: int | None) -> None:
        if num_classes not in (None, 2):
            raise ValueError(f"num_classes: got {num_classes!r} with binary=True; accepted are None and 2")

    def start(self, classes: int, width: int) -> State:
        return State.zero(classes, width, exponents=True)

    def scorer(self, problem: Problem, monitor: Watch) -> LinearScorer:
        exponents = _exponents(monitor.state)
        room = 0.5 * math.log(torch.finfo(problem.features.dtype).max) / math.log(self.ratio)
        shift = max(0.0, float(exponents.max()) - room)
        weights = self.ratio ** (exponents - shift)
        if not self.binary:
            return linear_scorer(weights.to(problem.features), self.bias)
        weight = weights[1:] - weights[:1]
        if self.theta:
            threshold = torch.full((1, 1), self.theta * self.ratio**-shift, dtype=weight.dtype)
            weight = torch.cat([weight[:, :-1], weight[:, -1:] - threshold] if self.bias else [weight, -threshold], 1)
        return linear_scorer(weight.to(problem.features), self.bias or self.theta != 0)

    def report(self, problem: Problem, monitor: Watch) -> WinnowReport:
        report = super().report(problem, monitor)
        return WinnowReport(**vars(report), weights=self.ratio ** _exponents(monitor.state))


def _check_ratio(ratio: object) -> float:
    """A number that powers can be taken of."""
    given = check.real(ratio)
    if not 1 + 1e-6 <= given <= 1e6:
        raise ValueError(f"ratio: got {check.shown(ratio)}; accepted is a number > 1 (from 1 + 1e-6 to 1e6)")
    return given


def _exponents(state: State) -> Tensor:
    """``(K, D)``."""
    assert state.exponents is not None
    return state.exponents[:, : state.classes].mT


def _zero_one(target: Tensor) -> Tensor:
    """Signs, or 0 and 1, as classes; what has no label is not looked at."""
    return (target > 0).long()
