"""What is a binary learner: solvers of this package, and classifiers that look like scikit-learn's."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import torch
from torch import Tensor

from torch_multiclass.ops.margins import MarginLoss, as_margin_loss
from torch_multiclass.scorers.base import Scorer
from torch_multiclass.scorers.columns import OutsideScorer, margin_of
from torch_multiclass.scorers.linear import LinearScorer
from torch_multiclass.solvers.base import Solver
from torch_multiclass.solvers.boosting.booster import Booster
from torch_multiclass.solvers.space import linear_scorer

_LOOKED_AT = 64  # rows whose margins are checked after a fit
_LOSSES = {
    "log_loss": "logistic", "deviance": "logistic", "logistic": "logistic", "log": "logistic", "hinge": "hinge",
    "squared_hinge": "squared_hinge", "squared_error": "squared", "squared_loss": "squared", "squared": "squared",
    "exponential": "exponential",
}  # fmt: skip
_BY_NAME = {
    "LogisticRegression": "logistic",
    "LinearDiscriminantAnalysis": "logistic",
    "QuadraticDiscriminantAnalysis": "logistic",
    "Ridge": "squared",
    "AdaBoost": "exponential",
}


def check_learner(learner: object) -> None:
    """Raise unless it fits rows with signs."""
    fits = callable(getattr(learner, "fit", None)) and not isinstance(learner, type)
    ours = isinstance(learner, Solver)
    if not fits or not (ours or hasattr(learner, "decision_function") or hasattr(learner, "predict_proba")):
        raise TypeError(
            f"learner: got {learner!r}; accepted is a solver of two classes, such as BinaryLogistic(), or a classifier "
            "with fit and decision_function (or predict_proba)"
        )
    if ours and getattr(learner, "binary", True) is False and hasattr(learner, "C"):
        raise ValueError(f"learner: got {learner!r}; accepted is DualSVM(binary=True), which has one score")


def loss_of(learner: Any) -> MarginLoss:
    """The binary loss that the learner makes small, by which its margins are decoded."""
    own = getattr(learner, "loss", None)
    if isinstance(learner, Solver):
        if isinstance(own, MarginLoss):
            return own
        if isinstance(learner, Booster):
            return as_margin_loss("exponential")
        if _is_tree(learner):
            return as_margin_loss(own if isinstance(own, str) else "squared")
        return as_margin_loss("hinge")
    if isinstance(own, str) and own in _LOSSES:
        return as_margin_loss(_LOSSES[own])
    for name, loss in _BY_NAME.items():
        if type(learner).__name__.startswith(name):
            return as_margin_loss(loss)
    return as_margin_loss("hinge" if hasattr(learner, "decision_function") else "squared")


def _is_tree(learner: Solver[Any, Any, Any]) -> bool:
    return any(hasattr(getattr(learner, "options", None), name) for name in ("impurity", "max_leaves"))


def of_column(learner: Any, column: int) -> Any:
    """A learner that draws from its own generator, so that columns do not depend on the order of their fits."""
    generator = getattr(learner, "generator", None)
    if isinstance(learner, Solver):
        learner = copy.copy(learner)
        if generator is not None:
            learner.generator = torch.Generator().manual_seed((generator.initial_seed() + column) % 2**63)
        return learner
    return copy.deepcopy(learner)


def fit_signs(learner: Any, features: Tensor, signs: Tensor, weight: Tensor | None) -> tuple[Scorer, Any]:
    """A scorer of one or two outputs, whose margins are numbers, and a report."""
    if isinstance(learner, Solver):
        options = {} if weight is None else {"weight": weight}
        target = signs if getattr(learner, "binary", None) or "Binary" in type(learner).__name__ else (signs > 0).long()
        scorer, report = learner.fit(features, target, **options)
    else:
        scorer, report = _fit_outside(learner, features, signs, weight), None
    margins = margin_of(scorer(features[:_LOOKED_AT]))
    if margins.shape != (min(len(features), _LOOKED_AT),):
        raise ValueError(f"learner: gives margins of shape {tuple(margins.shape)}; accepted is one for each row")
    if not bool(margins.isfinite().all()):
        raise ValueError("learner: gives margins that are not finite; accepted are numbers")
    return scorer, report


def takes_weights(learner: Any) -> bool:
    """Whether rows can be weighted."""
    parameters = inspect.signature(learner.fit).parameters
    wanted = "weight" if isinstance(learner, Solver) else "sample_weight"
    return wanted in parameters or (any(p.kind is p.VAR_KEYWORD for p in parameters.values()) and wanted != "weight")


def _fit_outside(learner: Any, features: Tensor, signs: Tensor, weight: Tensor | None) -> Scorer:
    options = {} if weight is None else {"sample_weight": weight.cpu().numpy()}
    learner.fit(features.cpu().numpy(), signs.cpu().numpy(), **options)
    halved = loss_of(learner).name == "logistic"  # log-odds are 2 f(x) here
    scorer = OutsideScorer(learner, features.shape[1], 0.5 if halved else 1.0)
    return _as_linear(scorer, features) or scorer


def _as_linear(scorer: OutsideScorer, features: Tensor) -> LinearScorer | None:
    """The same as a linear layer, where the classifier is one as far as these rows show."""
    weight, bias = (getattr(scorer.classifier, name, None) for name in ("coef_", "intercept_"))
    try:
        row, constant = torch.as_tensor(weight).double().reshape(1, -1), torch.as_tensor(bias).double().reshape(1, 1)
    except (TypeError, ValueError, RuntimeError):
        return None
    if row.shape[1] != features.shape[1]:
        return None
    linear = linear_scorer(scorer.factor * torch.cat([row, constant], 1).to(features), bias=True)
    some = features[:_LOOKED_AT]
    with torch.no_grad():
        close = torch.allclose(linear(some), scorer(some), rtol=1e-4, atol=1e-5)
    return linear if close else None
