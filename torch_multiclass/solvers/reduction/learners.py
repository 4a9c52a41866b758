"""What is a binary learner: solvers of this package, and classifiers that look like scikit-learn's."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.kernels import Precomputed
from torch_multiclass.ops.margins import MarginLoss, as_margin_loss
from torch_multiclass.scorers.base import Scorer
from torch_multiclass.scorers.columns import margin_of
from torch_multiclass.solvers.base import Solver
from torch_multiclass.solvers.boosting.booster import Booster
from torch_multiclass.solvers.certified import CertifiedSolver
from torch_multiclass.solvers.online.learner import OnlineLearner
from torch_multiclass.solvers.pegasos import Pegasos
from torch_multiclass.solvers.reduction import outside


def check_learner(learner: object) -> None:
    """Raise unless it fits rows with signs."""
    fits = callable(getattr(learner, "fit", None)) and not isinstance(learner, type)
    ours = isinstance(learner, Solver)
    if not fits or not (ours or hasattr(learner, "decision_function") or hasattr(learner, "predict_proba")):
        raise TypeError(
            f"learner: got {check.shown(learner)}; accepted is a solver of two classes, such as BinaryLogistic(), "
            "or a classifier with fit and decision_function (or predict_proba)"
        )
    if ours and getattr(learner, "binary", True) is False and hasattr(learner, "C"):
        raise ValueError(f"learner: got {learner!r}; accepted is DualSVM(binary=True), which has one score")


def loss_of(learner: Any) -> MarginLoss:
    """The binary loss that the learner makes small, by which its margins are decoded."""
    if not isinstance(learner, Solver):
        return outside.loss_of_outside(learner)
    own = getattr(learner, "loss", None)
    if isinstance(own, MarginLoss):
        return own
    if isinstance(learner, Booster):
        return as_margin_loss("exponential")
    if _is_tree(learner):
        return as_margin_loss(own if isinstance(own, str) else "squared")
    return as_margin_loss("hinge")


def takes_weights(learner: Any) -> bool:
    """Whether rows can be weighted."""
    if isinstance(learner, Solver):
        return "weight" in inspect.signature(learner.fit).parameters
    return outside.weight_name(learner) is not None


def takes_missing(learner: Any) -> bool:
    """Whether features may be NaN."""
    if isinstance(learner, Solver):
        return isinstance(learner, Booster) or _is_tree(learner)
    return outside.takes_missing(learner)


def takes_sparse(learner: Any) -> bool:
    """Whether features may be sparse rows."""
    return isinstance(learner, (CertifiedSolver, Pegasos, OnlineLearner))


def reads_gram(learner: Any) -> bool:
    """Whether features are rows of a Gram matrix, of which it can do without a row only if its column goes too."""
    return isinstance(learner, CertifiedSolver) and isinstance(learner.kernel, Precomputed)


def of_column(learner: Any, column: int, progress: bool | None) -> Any:
    """A learner that draws from its own generator, so that columns do not depend on the order of their fits.

    It shows its own ``progress`` where it was told to, else as it is told here.
    """
    if not isinstance(learner, Solver):
        return outside.with_seed(learner, column)
    learner = copy.copy(learner)
    learner.progress = progress if learner.progress is None else learner.progress
    if learner.generator is not None:
        learner.generator = torch.Generator().manual_seed((learner.generator.initial_seed() + column) % 2**63)
    return learner


def fit_signs(learner: Any, features: Tensor, signs: Tensor, weight: Tensor | None) -> tuple[Scorer, Any]:
    """A scorer of one or two outputs, whose margins are numbers, and a report."""
    if isinstance(learner, Solver):
        options = {} if weight is None else {"weight": weight}
        target = signs if getattr(learner, "binary", None) or "Binary" in type(learner).__name__ else (signs > 0).long()
        scorer, report = learner.fit(features, target, **options)
    else:
        scorer, report = outside.fit_outside(learner, features, signs, weight), None
    rows = outside.some(features)
    margins = margin_of(scorer(rows))
    if margins.shape != (len(rows),):
        raise ValueError(f"learner: gives margins of shape {tuple(margins.shape)}; accepted is one for each row")
    if not bool(margins.isfinite().all()):
        raise ValueError("learner: gives margins that are not finite; accepted are numbers")
    return scorer, report


def _is_tree(learner: Solver[Any, Any, Any]) -> bool:
    return any(hasattr(getattr(learner, "options", None), name) for name in ("impurity", "max_leaves"))
