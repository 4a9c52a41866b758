"""The rounds that every kind of boosting goes through."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.ops.boosting import Objective, Round
from torch_multiclass.ops.splits.codes import Floats, encode
from torch_multiclass.ops.splits.dense import DenseSearch
from torch_multiclass.ops.splits.hamming import hamming_tree
from torch_multiclass.ops.splits.tree import Tree, single
from torch_multiclass.scorers.base import Scorer
from torch_multiclass.scorers.ensemble import EnsembleScorer
from torch_multiclass.solvers.base import Fit, Solver
from torch_multiclass.solvers.boosting.descent import leaf_of
from torch_multiclass.solvers.boosting.report import Ending, Rounds
from torch_multiclass.solvers.boosting.samples import Sample
from torch_multiclass.solvers.monitor import Monitor, warn
from torch_multiclass.solvers.problem import Problem, RowWeights
from torch_multiclass.solvers.report import Step


class Watch(Monitor):
    """Keeps the rounds."""

    def __init__(
        self, name: str, rounds: int, progress: bool | None, on_step: Callable[[Step], None] | None = None
    ) -> None:
        super().__init__(name, rounds, progress, on_step)
        self.primal = 1.0
        self.found: list[Round] = []
        self.trees: list[Tree] = []
        self.validation_errors: list[float] = []
        self.ending: Ending = "rounds"
        self.others: Sample | None = None
        self.resumed: list[tuple[Tree, Round]] = []
        self.complete = False

    def settle(self) -> Tensor:
        return torch.empty(0)

    def add(self, tree: Tree, found: Round) -> None:
        """One more round."""
        self.trees.append(tree)
        self.found.append(found)
        self.primal *= found.normaliser
        self.note(self.primal, self.dual)

    @property
    def kept(self) -> int:
        """How many rounds the scorer has: all, or those up to the first best on other rows."""
        errors = self.validation_errors
        return errors.index(min(errors)) + 1 if errors else min(len(self.found), len(self.trees))


class Booster(Solver[Watch, Scorer, Rounds]):
    """Adds a base classifier a round, each for the weights that those before it have left.

    Args:
        rounds: how many at most.
        leaves: of each base classifier, 2 for stumps; it has a vote for every column at each leaf.
        bins: how many ranges of values each feature is put into; None for every threshold.
        patience: end after so many rounds without a smaller error on the rows for validation; None for never.
        progress: as in `Solver`.
        on_step: called after every round, with the product of all ``Z`` as the primal objective.
    """

    shown: ClassVar[tuple[str, ...]] = ("rounds", "leaves", "bins", "patience")

    def __init__(
        self,
        rounds: int = 100,
        *,
        leaves: int = 2,
        bins: int | None = None,
        patience: int | None = None,
        progress: bool | None = None,
        on_step: Callable[[Step], None] | None = None,
    ) -> None:
        rounds = check.whole("rounds", rounds)
        leaves = check.whole("leaves", leaves, least=2)
        if bins is not None:
            bins = check.whole("bins", bins, least=2)
        if patience is not None:
            patience = check.whole("patience", patience)
        super().__init__(bias=False, max_passes=rounds, progress=progress, on_step=on_step)
        self.rounds, self.leaves, self.bins, self.patience = rounds, leaves, bins, patience

    def fit(
        self,
        features: Tensor,
        target: Tensor,
        *,
        weight: RowWeights | None = None,
        num_classes: int | None = None,
        validation: tuple[Tensor, Tensor] | None = None,
        resume: Fit[Any, Rounds] | Rounds | None = None,
    ) -> Fit[Scorer, Rounds]:
        """Train.

        Args:
            features: the rows; NaN is a missing value.
            target: their labels; rows of -100 are left out.
            weight: how much each row counts, >= 0; 2 is the row twice, 0 leaves it out.
            num_classes: ``K``; by default one more than the largest label.
            validation: features and target of other rows, whose error ends the fit early (`patience`); the scorer then
                has the rounds up to the first best.
            resume: go on from the rounds of a fit of the same rows, as if it had not ended; ``rounds`` counts them too.

        Shape:
            features ``(N, D)``; target ``(N)``, or ``(N, K)`` of ±1 where sets of labels are accepted; weight ``(N)``.

        Raises:
            ValueError: no rows, one class, features that are infinite; weights that do not fit; rounds of other
                features or classes.
        """
        problem = self.problem(features, target, weight, num_classes)
        monitor = self.monitor(problem)
        self._begin(problem, monitor, validation, resume)
        return self.solve(problem, monitor)

    def _begin(
        self,
        problem: Sample,
        monitor: Watch,
        validation: tuple[Tensor, Tensor] | None,
        resume: Fit[Any, Rounds] | Rounds | None,
    ) -> None:
        """What the passes need beside the rows."""
        if self.patience is not None and validation is None:
            raise ValueError("patience: needs other rows; accepted is None, or fit(validation=(features, target))")
        monitor.others = None if validation is None else self._other_rows(problem, validation)
        if resume is not None:
            monitor.resumed, monitor.complete = self._earlier(problem, resume)

    def _other_rows(self, problem: Sample, given: tuple[Tensor, Tensor]) -> Sample:
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise TypeError(f"validation: got {check.shown(given)}; accepted is (features, target)")
        features, target = given
        try:
            others = self.sample(features, target, None, self.classes_of(problem))
        except (TypeError, ValueError) as problem_there:
            raise type(problem_there)(f"validation: {problem_there}") from None
        if others.features.shape[1] != problem.features.shape[1]:
            raise ValueError(
                f"validation: has {others.features.shape[1]} features; accepted are {problem.features.shape[1]}"
            )
        return others

    def _earlier(self, problem: Sample, resume: Fit[Any, Rounds] | Rounds) -> tuple[list[tuple[Tree, Round]], bool]:
        """The rounds, and whether nothing is left to be done after them."""
        report = resume.report if isinstance(resume, Fit) else resume
        if not isinstance(report, Rounds):
            raise TypeError(f"resume: got {check.came(resume)}; accepted is a Fit of boosting, or its report")
        for tree in report.trees[:1]:
            width, columns = problem.features.shape[1], problem.signs.shape[1]
            if (tree.features, tree.values.shape[1]) != (width, columns):
                raise ValueError(
                    f"resume: is of {tree.features} features and {tree.values.shape[1]} columns; accepted are rounds "
                    f"of {width} features and {columns} columns"
                )
        if report.kind != self.kind:
            raise ValueError(f"resume: is of {report.kind}; accepted are rounds of {self.kind}")
        if report.sample != problem.check_sum:
            raise ValueError("resume: is of other rows, labels or weights; accepted is a fit of the same")
        if report.rounds > self.rounds:
            raise ValueError(f"resume: has {report.rounds} rounds; accepted are at most rounds={self.rounds}")
        found = zip(report.trees, report.alphas, report.errors, report.Z, strict=True)
        rounds = [(tree, Round(tree.values, alpha, error, z)) for tree, alpha, error, z in found]
        return rounds, report.ending == "perfect"

    @property
    def kind(self) -> str:
        """What the rounds are of."""
        return f"{type(self).__name__}{' with real votes' if getattr(self, 'real', False) else ''}"

    def classes_of(self, problem: Sample) -> int | None:
        """How many classes other rows have to have."""
        return problem.classes

    @abstractmethod
    def sample(self, features: Tensor, target: Tensor, weight: RowWeights | None, num_classes: int | None) -> Sample:
        """The rows with a sign for each column."""

    @abstractmethod
    def objective(self, sample: Sample) -> Objective:
        """What the weights follow."""

    @abstractmethod
    def wrong(self, scores: Floats, sample: Sample) -> float:
        """The error of scores, by which rounds are kept."""

    def problem(
        self, features: Tensor, target: Tensor, weight: RowWeights | None = None, num_classes: int | None = None
    ) -> Sample:
        return self.sample(features, target, weight, num_classes)

    def monitor(self, problem: Problem) -> Watch:
        return Watch(type(self).__name__, self.rounds, self.progress, self.on_step)

    def steps(self, problem: Problem, monitor: Watch) -> Iterator[None]:
        assert isinstance(problem, Sample)
        weight, table = problem.weight.cpu().numpy(), problem.table
        objective = self.objective(problem)
        others = _Others(self, monitor)
        for tree, earlier in monitor.resumed:
            yield
            objective.add(leaf_of(tree, table), earlier)
            monitor.add(tree, earlier)
            others.add(tree, earlier)
        if monitor.complete:
            monitor.ending = "perfect"
            return
        search = DenseSearch(encode(table, self.bins, weight), weight, objective.layout)
        while True:
            yield
            part = hamming_tree(search, objective.channels, objective.criterion, self.leaves)
            found = objective.weigh(part)
            if found is None:
                monitor.ending = "no better than chance"
                return
            objective.add(part.leaf, found)
            tree = part.tree.with_values(found.votes)
            monitor.add(tree, found)
            others.add(tree, found)
            if found.last or others.patience_is_over:
                monitor.ending = "perfect" if found.last else "validation"
                return

    def ensemble(self, problem: Problem, monitor: Watch) -> EnsembleScorer:
        """The weighted votes."""
        kept = monitor.kept
        trees, alphas = monitor.trees[:kept], [found.alpha for found in monitor.found[:kept]]
        if not trees:
            assert isinstance(problem, Sample)
            warn(f"{type(self).__name__}: no base classifier is better than chance; all scores are 0")
            trees, alphas = [single(np.zeros(problem.signs.shape[1]), problem.features.shape[1])], [0.0]
        features = problem.features
        return EnsembleScorer(
            trees, torch.tensor(alphas, dtype=torch.float64), device=features.device, dtype=features.dtype
        )

    def scorer(self, problem: Problem, monitor: Watch) -> Scorer:
        return self.ensemble(problem, monitor)

    def report(self, problem: Problem, monitor: Watch) -> Rounds:
        assert isinstance(problem, Sample)
        found = monitor.found[: monitor.kept]
        normalisers = [one.normaliser for one in found]
        return Rounds(
            iterations=len(monitor.found),
            seconds=monitor.seconds,
            interrupted=monitor.interrupted,
            errors=[one.error for one in found],
            alphas=[one.alpha for one in found],
            Z=normalisers,
            bound=[math.exp(value) for value in np.cumsum(np.log(normalisers)).tolist()],
            smoothed=monitor.complete or any(one.smoothed for one in found),
            ending="interrupted" if monitor.interrupted else monitor.ending,
            validation_errors=monitor.validation_errors,
            kind=self.kind,
            sample=problem.check_sum,
            trees=monitor.trees[: monitor.kept],
        )

    def __repr__(self) -> str:
        given = {name: getattr(self, name) for name in self.shown}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    def _state(self, monitor: Watch) -> str:
        return f"after {len(monitor.found)} rounds"


class _Others:
    """The rows for validation, and the scores that the ensemble gives them so far."""

    def __init__(self, booster: Booster, monitor: Watch) -> None:
        self.booster, self.errors, self.rows = booster, monitor.validation_errors, monitor.others
        if self.rows is not None:
            self.table, self.scores = self.rows.table, np.zeros(self.rows.signs.shape)

    def add(self, tree: Tree, found: Round) -> None:
        """One more round."""
        if self.rows is not None:
            self.scores += found.alpha * found.votes[leaf_of(tree, self.table)]
            self.errors.append(self.booster.wrong(self.scores, self.rows))

    @property
    def patience_is_over(self) -> bool:
        """Whether the best error is as many rounds ago as the booster waits."""
        patience = self.booster.patience
        return patience is not None and len(self.errors) - 1 - self.errors.index(min(self.errors)) >= patience
