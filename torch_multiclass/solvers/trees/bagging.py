"""Bagging: trees, or scorers of any solver, each of its own draw of the rows."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from typing_extensions import Unpack

from torch_multiclass import checks as check
from torch_multiclass.scorers.averaged import AveragedScorer
from torch_multiclass.scorers.base import Scorer
from torch_multiclass.scorers.coded import CodedScorer
from torch_multiclass.solvers.base import Solver
from torch_multiclass.solvers.confidence import guess
from torch_multiclass.solvers.monitor import Interrupted
from torch_multiclass.solvers.problem import Problem, RowWeights
from torch_multiclass.solvers.trees.bag import Bag, BagOptions, Counts, Member, Members
from torch_multiclass.solvers.trees.forest import GrowOptions, Trees, parted

__all__ = ["Bagging"]

BAG_OPTIONS = tuple(BagOptions.__annotations__)


@dataclass(frozen=True)
class Given(Problem):
    """The rows that count, and all of them as they were given."""

    features_given: Tensor
    target_given: Tensor


class Scorers(Members[Scorer]):
    """What a solver makes of each draw: it is given all rows, and how often each was drawn as a weight.

    Args:
        base: the solver.
        vote: whether scores are averaged or votes counted.
        decide: from scores to labels.
    """

    def __init__(self, base: Solver[Any, Any, Any], vote: str, decide: Callable[[Any], Tensor] | None) -> None:
        self.base, self.vote, self.decide = copy.copy(base), vote, decide
        if base.progress is None:  # the line is of the whole
            self.base.progress = False
        parameters = inspect.signature(base.fit).parameters
        self.counts_classes = "num_classes" in parameters

    def problem(self, features: Tensor, target: Tensor, weight: RowWeights | None, classes: int | None) -> Problem:
        known = Problem.labelled(features, target, weight, missing=True).some()
        if bool((known.labels == -1).any()):
            made = Problem.binary(features, target, weight, missing=True)
        else:
            made = Problem.multiclass(features, target, weight, classes, missing=True)
        return Given(**vars(made), features_given=features, target_given=target)

    def enough(self, rows: Given, in_bag: Counts) -> bool:
        labels = rows.labels.cpu().numpy()[in_bag > 0]
        return bool((labels != labels[0]).any())

    def member(self, rows: Given, in_bag: Counts, draw: np.random.Generator) -> Member:
        weight = rows.weight.new_zeros(rows.given)
        weight[rows.positions] = rows.weight * torch.from_numpy(in_bag).to(rows.weight)
        options = {"num_classes": rows.classes} if self.counts_classes else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Interrupted)
            warnings.filterwarnings("ignore", "target: no row has the label")
            scorer, report = self.base.fit(rows.features_given, rows.target_given, weight=weight, **options)
        out = np.flatnonzero(in_bag == 0)
        labels = rows.labels.new_empty(0)
        if len(out):
            scores = scorer(rows.features[torch.from_numpy(out).to(rows.features.device)])
            labels = guess(scores, rows.labels) if self.decide is None else self.decide(scores)
        return Member(scorer, in_bag, out, labels.clamp(min=0).cpu().numpy(), report.interrupted)

    def scorer(self, problem: Problem, made: Sequence[Scorer]) -> Scorer:
        coded = [scorer for scorer in made if isinstance(scorer, CodedScorer)]
        if not coded:
            return AveragedScorer(made, self.vote)
        if self.vote == "majority":
            raise ValueError("vote: got 'majority', but the base has margins of a code; accepted is 'average'")
        code = coded[0].coding_matrix if coded[0].coding is None else coded[0].coding
        whole = CodedScorer(AveragedScorer([scorer.margins for scorer in coded]), code)
        whole.absent.copy_(torch.stack([scorer.absent for scorer in coded]).all(0))
        return whole


class Bagging(Bag[Scorer]):
    r"""Trees of bootstrap draws of the rows, by all features, or scorers of any solver; their scores are averaged, or
    their votes counted.

    A solver that is given as ``base`` is fitted to all rows, with how often each was drawn as their weights; a draw of
    one class is drawn again. The result is an `AveragedScorer`; of solvers with an output code a `CodedScorer` of the
    mean margins.

    Args:
        trees: how many.
        base: a solver of classes, or of two; None grows trees.
        decide: from scores of the base to labels, for the out-of-bag error; by default the argmax, and the sign of a
            single score. `CodedScores` need it.
        options: as in `RandomForest`; with a base, those that are not of trees: sample, replace, vote, generator,
            progress and on_step.

    Shape:
        features ``(N, D)``, NaN where a value is missing; target ``(N)``; the scorer's scores ``(*, K)``, or those of
        the base.

    Raises:
        ValueError: options that are none of these; what `fit` refuses.

    Reference: Breiman (1996), *Bagging predictors*.

    Example:
        >>> import torch
        >>> x = torch.arange(40.0)[:, None]
        >>> scorer, report = Bagging(trees=20).fit(x, (x[:, 0] > 15).long())
        >>> scorer(torch.tensor([[3.0], [33.0]])).argmax(1), report.in_bag.shape, report.oob_error
        (tensor([0, 1]), torch.Size([20, 40]), 0.025)
    """

    def __init__(
        self,
        trees: int = 100,
        base: Solver[Any, Any, Any] | None = None,
        *,
        decide: Callable[[Any], Tensor] | None = None,
        **options: Unpack[GrowOptions],
    ) -> None:
        of_a_tree, rest = parted(type(self), options)
        self.base, self.decide = base, decide
        if base is None:
            if decide is not None:
                raise ValueError("decide: is for a base; accepted is None where trees are grown")
            super().__init__(trees, **rest)
            self.options, self.members = of_a_tree, Trees(of_a_tree, self.vote)
            return
        if not isinstance(base, Solver):
            raise TypeError(f"base: got {check.shown(base)}; accepted is None, for trees, or a solver")
        if decide is not None and not callable(decide):
            raise TypeError(f"decide: got {check.shown(decide)}; accepted is None or a function of scores")
        for name in options:
            if name not in BAG_OPTIONS:
                raise ValueError(f"{name}: is for trees, not for a base; accepted are {', '.join(BAG_OPTIONS)}")
        super().__init__(trees, jobs=1, **rest)  # a solver has threads of its own, and Ctrl-C reaches it
        self.members = Scorers(base, self.vote, decide)

    def __repr__(self) -> str:
        base = "" if self.base is None else f", base={self.base!r}"
        return f"Bagging(trees={self.trees}{base}, vote={self.vote!r})"
