"""AdaBoost, AdaBoost.MH, AdaBoost.MR and the averaged objective."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from torch import Tensor
from typing_extensions import Unpack

from torch_multiclass import checks as check
from torch_multiclass.ops.boosting import Averaged, Confidence, Discrete, Objective, Ranking
from torch_multiclass.ops.splits.codes import Floats
from torch_multiclass.options import known_keywords
from torch_multiclass.solvers.boosting.booster import Booster
from torch_multiclass.solvers.boosting.report import BOOST_OPTIONS, BoostOptions
from torch_multiclass.solvers.boosting.samples import Sample, class_or_set, known_classes, rows_of
from torch_multiclass.solvers.problem import RowWeights, check_signs

__all__ = ["AdaBoost", "AdaBoostAveraged", "AdaBoostMH", "AdaBoostMR"]


class _RealOrNot(Booster):
    """Base classifiers that vote ±1, or a real number."""

    shown = ("rounds", "real", "leaves", "bins", "patience")

    def __init__(self, rounds: int = 100, *, real: bool = False, **options: Unpack[BoostOptions]) -> None:
        known_keywords(type(self), options, BOOST_OPTIONS)
        super().__init__(rounds, **options)
        check.flag("real", real)
        self.real = bool(real)

    def objective(self, sample: Sample) -> Objective:
        kind = Confidence if self.real else Discrete
        return kind(sample.signs, sample.weight.cpu().numpy())


class AdaBoost(_RealOrNot):
    r"""Two classes: ``alpha_t = ½ ln((1 - eps_t)/eps_t)``, training error at most ``prod_t Z_t``.

    Args:
        rounds: how many base classifiers at most. A round that is no better than chance ends the fit, one that is never
            wrong too, with a weight that smoothing keeps finite.
        real: confidence-rated votes ``½ ln((W+ + s)/(W- + s))`` in place of ±1.
        leaves: of each base classifier; 2 for stumps, more for trees grown by the decrease of the error (of ``Z``).
        bins: how many ranges of values each feature is put into; None for every threshold.
        patience: rounds without a smaller validation error after which to end.
        progress: whether to print a line now and then.
        on_step: called after every round, with the product of all ``Z`` as the primal objective.

    Shape:
        features ``(N, D)``, NaN a missing value; target ``(N)``, ±1 or 0/1. The scorer gives ``(*, 1)``, whose sign is
        the class.

    Raises:
        ValueError: what `fit` says.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, figure 7.1; Freund and Schapire
    (1997).

    Example:
        >>> import torch
        >>> x = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
        >>> scorer, report = AdaBoost(rounds=20).fit(x, torch.tensor([1, -1, -1, 1]))
        >>> scorer(x).sign().squeeze(1).tolist(), report.bound[-1] < 0.1
        ([1.0, -1.0, -1.0, 1.0], True)
    """

    def sample(self, features: Tensor, target: Tensor, weight: RowWeights | None, num_classes: int | None) -> Sample:
        known_classes(num_classes, 2, "those of a binary learner")
        rows = rows_of(features, target, weight)
        labels = check_signs(rows.labels)
        signs = labels.double().cpu().numpy()[:, None]
        return Sample(**vars(replace(rows, labels=labels, classes=2)), signs=signs, single=True)

    def wrong(self, scores: Floats, sample: Sample) -> float:
        return float(((scores > 0) != (sample.signs > 0)).mean())


class _Classes(Booster):
    """A column for each class, or label of a set."""

    def sample(self, features: Tensor, target: Tensor, weight: RowWeights | None, num_classes: int | None) -> Sample:
        return class_or_set(features, target, weight, num_classes)

    def wrong(self, scores: Floats, sample: Sample) -> float:
        if sample.single:
            return float((scores.argmax(1) != sample.labels.cpu().numpy()).mean())
        return float(((scores > 0) != (sample.signs > 0)).mean())


class AdaBoostMH(_RealOrNot, _Classes):
    r"""A distribution over (row, label) pairs: every base classifier says of every label whether it holds.

    ``D(i, l)`` is proportional to ``exp(-y_il f_l(x_i))``. ``prod_t Z_t`` bounds the share of wrong pairs, and
    ``(K/2) prod_t Z_t`` the share of wrong classes; ``Z`` of real-valued votes is what they leave after smoothing.

    Args:
        rounds: how many base classifiers at most.
        real: confidence-rated votes in place of ±1.
        leaves, bins, patience, progress, on_step: as in `AdaBoost`.

    Shape:
        features ``(N, D)``, NaN a missing value; target ``(N)`` of classes, or ``(N, K)`` of ±1, a sign for each label.
        The scorer gives ``(*, K)``: the class is the argmax, the set of labels the signs.

    Raises:
        ValueError: what `fit` says.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, figure 9.1; Schapire and Singer
    (1999), sections 4 and 6.

    Example:
        >>> import torch
        >>> x = torch.tensor([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
        >>> scorer, report = AdaBoostMH(rounds=30, real=True).fit(x, torch.tensor([0, 0, 1, 1, 2, 2]))
        >>> scorer(x).argmax(1).tolist()
        [0, 0, 1, 1, 2, 2]
        >>> report.rounds, bool(report.bound[-1] < 0.01)
        (30, True)
    """


class AdaBoostMR(_Classes):
    r"""A distribution over pairs of a label that holds and one that does not; ``prod_t Z_t`` bounds those out of order.

    ``D(i, a, b)`` is proportional to ``exp(-½ (f_a(x_i) - f_b(x_i)))``, ``alpha_t = ½ ln(W+/W-)`` and
    ``Z_t = W0 + 2 sqrt(W+ W-)``; ``(K - 1) prod_t Z_t`` bounds the share of wrong classes. It is RankBoost on those
    pairs.

    Args:
        rounds: how many base classifiers at most.
        leaves, bins, patience, progress, on_step: as in `AdaBoost`.

    Shape:
        features ``(N, D)``, NaN a missing value; target ``(N)`` of classes, or ``(N, K)`` of ±1. The scorer gives
        ``(*, K)``.

    Raises:
        ValueError: what `fit` says; sets of labels without a pair to be put in order.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, eq. (9.26); Schapire and Singer
    (1999), section 9.

    Example:
        >>> import torch
        >>> x = torch.tensor([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
        >>> scorer, report = AdaBoostMR(rounds=30).fit(x, torch.tensor([0, 0, 1, 1, 2, 2]))
        >>> scorer(x).argmax(1).tolist()
        [0, 0, 1, 1, 2, 2]
    """

    def objective(self, sample: Sample) -> Objective:
        held = (sample.signs > 0).sum(1)
        if not bool(np.any((held > 0) & (held < sample.classes))):
            raise ValueError("target: no row has a label that holds and one that does not; accepted is at least one")
        return Ranking(sample.signs, sample.weight.cpu().numpy())


class AdaBoostAveraged(_Classes):
    r"""Coordinate descent on ``G(f) = (1/m) sum_i exp(-(1/K) sum_l y_il f_l(x_i))``, each step by an exact line search.

    For comparison: with three classes or more, votes against all labels lower ``G``, so that few rows may get the right
    class; `AdaBoostMH` and `AdaBoostMR` do better. By Jensen's inequality ``G`` is below the objective of AdaBoost.MH.
    ``prod_t Z_t = G`` bounds the share of rows with ``sum_l y_il f_l <= 0``, and not the share of wrong classes.

    Args:
        rounds: how many base classifiers at most.
        leaves, bins, patience, progress, on_step: as in `AdaBoost`.

    Shape:
        features ``(N, D)``, NaN a missing value; target ``(N)`` of classes, or ``(N, K)`` of ±1. The scorer gives
        ``(*, K)``.

    Raises:
        ValueError: what `fit` says.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, eq. (9.25) and exercise 9.3.

    Example:
        >>> import torch
        >>> x = torch.tensor([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
        >>> scorer, report = AdaBoostAveraged(rounds=30).fit(x, torch.tensor([0, 1, 0, 2, 1, 2]))
        >>> report.rounds, bool(report.bound[-1] < report.bound[0])
        (30, True)
    """

    def objective(self, sample: Sample) -> Objective:
        return Averaged(sample.signs, sample.weight.cpu().numpy())
