"""A classifier of scikit-learn over any solver."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils import check_random_state
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.calibration import TemperatureScaling
from torch_multiclass.codes import CodeLike
from torch_multiclass.codes.names import by_name
from torch_multiclass.decoders import Decoder, ExpectedCostDecoder, LossBasedDecoder
from torch_multiclass.integrations.sklearn.base import TorchClassifier
from torch_multiclass.solvers import (
    AdaBoost,
    AdaBoostMH,
    AdaBoostMO,
    CodedReduction,
    DecisionTree,
    DualSVM,
    Pegasos,
    Solver,
)
from torch_multiclass.solvers.online.learner import OnlineLearner
from torch_multiclass.solvers.reduction.learners import loss_of, reads_gram, takes_missing
from torch_multiclass.solvers.reduction.outside import pairwise
from torch_multiclass.solvers.trees.bag import Bag
from torch_multiclass.solvers.trees.forest import Trees

AnySolver = Solver[Any, Any, Any]
CodeOf = CodeLike | str | Callable[[int], Tensor]
"""A code, its name, or a function from the number of classes to one."""


class SolverClassifier(TorchClassifier):
    r"""Any solver of classes as a classifier of scikit-learn; with a ``code``, any binary one for each of its columns.

    The scores are those of ``solver.fit(X, y).scorer``. The parameters of the solver are searched as ``solver__C``,
    those of a learner or kernel in it as ``solver__learner__C``, ``solver__kernel__gamma``. Probabilities are there
    without calibration where training gives them: class shares of trees and forests, and log-odds of the logistic loss.
    For others there are `calibrate` on held-out rows and `sklearn.calibration.CalibratedClassifierCV`.

    Args:
        solver: what trains, such as ``tm.solvers.DualSVM(C=10)``, which is left as it is; `DualSVM` by default. With a
            code also a binary classifier of scikit-learn.
        code: makes a `CodedReduction` of a binary solver: ``"one_vs_all"``, ``"one_vs_one"``, ``"dense_random"`` or
            another name of `torch_multiclass.codes`, a matrix, or a function of the number of classes.
        decoder: reads coded scores; by default the loss-based one of what the solver makes small. Or an
            `ExpectedCostDecoder`: the class of the lowest expected cost by the probabilities of `predict_proba`, where
            there are none by the soft-max of the scores.
        class_weight: a weight by label, or ``"balanced"``: ``n / (K n_k)``, rows counted with their ``sample_weight``.
        device: where to train; the CPU by default.
        random_state: a seed for all that is random; None leaves the solver's own generator, and then fits repeat.

    Attributes:
        classes_: the labels in order, ``(K)``.
        scorer_: what was trained.
        report_: how it went, as the solver says it: of certified ones ``gap``, of boosting ``bound``, and so on.
        solver_: what it was trained by.
        n_features_in_, feature_names_in_, n_iter_: as everywhere in scikit-learn.

    Shape:
        X ``(N, D)``; y ``(N)`` of labels, or for `AdaBoostMH` also ``(N, K)`` of 0 and 1, a set of labels each.

    Raises:
        TypeError: a solver that is none.
        ValueError: what `fit` says; three classes for a binary solver without a code.

    Note:
        scikit-learn's checks pass but one, as with its own forests, bags and online learners: an integer weight is no
        repetition of its row where rows are drawn or visited in their order. And of classes that weigh next to nothing
        boosters of discrete votes, and perceptrons that do not shuffle, still tell some rows right.

    Reference: Allwein, Schapire and Singer (2000), section 3, for codes.

    Example:
        >>> import torch_multiclass as tm
        >>> from torch_multiclass.integrations.sklearn import SolverClassifier
        >>> X, y = [[0.0, 0.0], [0.2, 0.1], [3.0, 0.0], [3.1, 0.2], [0.0, 3.0], [0.1, 3.2]], list("aabbcc")
        >>> svm = SolverClassifier(tm.solvers.DualSVM(bias=True)).fit(X, y)
        >>> svm.predict([[2.9, 0.1], [0.0, 2.8]]), svm.report_.converged
        (array(['b', 'c'], dtype='<U1'), True)
        >>> pairs = SolverClassifier(tm.solvers.BinaryLogistic(bias=True), code="one_vs_one")
        >>> pairs.set_params(solver__C=10.0).fit(X, y).predict_proba([[3.0, 0.0]]).argmax()
        np.int64(1)
    """

    solver_: AnySolver
    scorer_: Any
    decoder_: Any
    costs_: ExpectedCostDecoder | None

    @check.told
    def __init__(
        self,
        solver: AnySolver | Any | None = None,
        *,
        code: CodeOf | None = None,
        decoder: Decoder | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        device: torch.device | str | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.solver = solver
        self.code = code
        self.decoder = decoder
        self.class_weight = class_weight
        self.device = device
        self.random_state = random_state

    def _train(self, features: Any, target: Tensor, weight: Tensor | None) -> None:
        solver = self._checked()
        classes = len(self.classes_)
        if classes > 2 and not self._takes_more_classes():
            raise ValueError(
                "y: Only binary classification is supported. The type of the target is multiclass: "
                f"{type(solver).__name__} tells two classes apart; accepted is it with a code, as code='one_vs_one'"
            )
        solver = clone(solver)  # draws anew in each fit
        code = None if self.code is None else self._code(classes)
        if code is not None:
            solver = CodedReduction(code, solver)
        if self.random_state is not None:
            _seed(solver, check_random_state(self.random_state))
        options: dict[str, Any] = {} if weight is None else {"weight": weight.to(target.device)}
        if "num_classes" in inspect.signature(solver.fit).parameters:
            options["num_classes"] = classes
        self.solver_ = solver
        self.scorer_, self.report_ = solver.fit(features, 2 * target - 1 if self._sets else target, **options)
        self.decoder_ = self._decoder(solver)
        self.costs_ = self.decoder if isinstance(self.decoder, ExpectedCostDecoder) and not self._sets else None

    def _class_scores(self, features: Tensor) -> Any:
        if self.costs_ is None:
            return self._evidence(features)
        probabilities = self._probabilities(features)
        return -self.costs_._expected(probabilities.double()).to(probabilities.dtype)

    def _labels(self, features: Tensor) -> Any:
        if self._sets:
            return self.scorer_(features) > 0
        if self.costs_ is not None:
            return self.costs_._expected(self._probabilities(features).double()).argmin(1)
        if self.decoder_ is not None:
            return self.decoder_(self.scorer_(features))
        scores = self.scorer_(features)
        return (scores[:, 0] > 0).long() if scores.shape[1] == 1 else scores.argmax(1)

    def _probabilities(self, features: Tensor) -> Any:
        scores = self._evidence(features)
        if self._gives_shares() and self.calibration_ is None:
            return scores
        return (TemperatureScaling() if self.calibration_ is None else self.calibration_)(_of_each_class(scores))

    def _evidence(self, features: Tensor) -> Any:
        """What probabilities are read off: scores of classes, or a margin, before what their mistakes cost."""
        scores = self.scorer_(features)
        return scores if self.decoder_ is None else self.decoder_.class_scores(scores)

    def _has_probabilities(self) -> bool:
        if getattr(self, "_sets", False):
            return False
        if getattr(self, "calibration_", None) is not None or self._gives_shares():
            return True
        solver = self._checked()
        learner = solver.learner if isinstance(solver, CodedReduction) else solver
        if loss_of(learner).name != "logistic":
            return False
        decoder = self._decoder(solver)
        if self.code is not None:
            decoder = decoder or LossBasedDecoder("logistic")
        return decoder is None or (isinstance(decoder, LossBasedDecoder) and decoder.loss.name == "logistic")

    def _calibrate(self, parts: list[Tensor], target: Tensor) -> None:
        if self._sets:
            raise ValueError("calibrate: is for one label a row; accepted is a fit to such")
        with torch.no_grad():
            scores = torch.cat([_of_each_class(self._evidence(part)) for part in parts])
            self.calibration_ = TemperatureScaling(device=scores.device).fit(scores, target)

    def _gives_shares(self) -> bool:
        """Whether the scores are shares of classes."""
        solver = self._checked()
        if isinstance(solver, Bag):
            return self.code is None and isinstance(solver.members, Trees)
        return self.code is None and isinstance(solver, DecisionTree) and solver.loss is None

    def _takes_sets(self) -> bool:
        return self.code is None and isinstance(self.solver, AdaBoostMH)

    def _takes_sparse(self) -> bool:
        return self.code is None and isinstance(self.solver, (Pegasos, OnlineLearner))

    def _takes_missing(self) -> bool:
        solver = self._checked()
        return takes_missing(solver.learner if isinstance(solver, CodedReduction) else solver)

    def _takes_gram(self) -> bool:
        solver = self._checked()
        inside = solver.get_params(deep=True).values() if hasattr(solver, "get_params") else ()
        return any(reads_gram(part) or pairwise(part) for part in (solver, *inside))

    def _takes_more_classes(self) -> bool:
        return self.code is not None or not _binary(self._checked())

    def _checked(self) -> Any:
        solver = DualSVM() if self.solver is None else self.solver
        if isinstance(solver, type):
            raise TypeError(f"solver: got the class {solver.__name__}; accepted is an instance, {solver.__name__}()")
        if not isinstance(solver, Solver) and self.code is None:
            raise TypeError(
                f"solver: got {check.shown(solver)}; accepted is one of torch_multiclass.solvers, or with a code any "
                "binary learner that CodedReduction takes"
            )
        return solver

    def _code(self, classes: int) -> CodeLike:
        assert self.code is not None
        if isinstance(self.code, str):
            seed = 0 if self.random_state is None else _draw(check_random_state(self.random_state))
            return by_name(self.code, classes, torch.Generator().manual_seed(seed))
        code: CodeLike = self.code(classes) if callable(self.code) else self.code
        return code

    def _decoder(self, solver: AnySolver) -> Decoder | None:
        """What reads coded scores; None for plain ones. Costs are none of its matter."""
        if self.decoder is not None and not isinstance(self.decoder, Decoder):
            raise TypeError(f"decoder: got {check.shown(self.decoder)}; accepted is a decoder, or None")
        if self.decoder is not None and not isinstance(self.decoder, ExpectedCostDecoder):
            return self.decoder
        solver = _member(solver)
        if isinstance(solver, AdaBoostMO):
            return LossBasedDecoder("exponential")
        return solver.decoder if isinstance(solver, CodedReduction) else None


def _binary(solver: AnySolver) -> bool:
    """Whether it tells two classes apart only."""
    solver = _member(solver)
    if isinstance(solver, (CodedReduction, AdaBoostMO)):
        return len(solver.code) == 2
    two = bool(getattr(solver, "binary", False)) or "num_classes" not in inspect.signature(solver.fit).parameters
    return two or isinstance(solver, AdaBoost) or (isinstance(solver, DecisionTree) and solver.loss is not None)


def _member(solver: Any) -> Any:
    """What each scorer of a bag is made by."""
    base = getattr(solver, "base", None) if isinstance(solver, Bag) else None
    return solver if base is None else base


def _of_each_class(scores: Tensor) -> Tensor:
    """A score for each of two classes where there is a margin: their log-odds are twice it."""
    return torch.cat([-scores, scores], 1) if scores.shape[1] == 1 else scores


def _seed(solver: AnySolver, random: np.random.RandomState) -> None:
    """Set every generator and ``random_state`` in it, from one draw each."""
    seeds: dict[str, Any] = {}
    for name in sorted(solver.get_params(deep=True)):
        last = name.rpartition("__")[2]
        if last in ("generator", "random_state"):
            seeds[name] = torch.Generator().manual_seed(_draw(random)) if last == "generator" else _draw(random)
    solver.set_params(**seeds)


def _draw(random: np.random.RandomState) -> int:
    return int(random.randint(2**31 - 1))
