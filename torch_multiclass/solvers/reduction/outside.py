"""Classifiers of other libraries as binary learners: what scikit-learn's conventions say of them, and their fit."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import torch
from torch import Tensor

from torch_multiclass.ops.margins import MarginLoss, as_margin_loss
from torch_multiclass.ops.sparse_rows import is_sparse, take_rows
from torch_multiclass.scorers.base import Scorer
from torch_multiclass.scorers.columns import OutsideScorer
from torch_multiclass.scorers.linear import LinearScorer
from torch_multiclass.solvers.space import linear_scorer

LOOKED_AT = 1024  # rows whose margins are checked after a fit
_ENTRIES = 1 << 22  # of them written out, where they are sparse

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


def some(features: Tensor) -> Tensor:
    """Rows from all over, few enough to look at; dense."""
    count, width = features.shape
    if not is_sparse(features):
        return features[:: -(-count // LOOKED_AT)]
    most = max(1, min(LOOKED_AT, _ENTRIES // width))
    return take_rows(features, torch.arange(0, count, -(-count // most), device=features.device)).to_dense()


def loss_of_outside(classifier: Any) -> MarginLoss:
    """The binary loss that its ``loss`` or its name says it makes small."""
    inner = _last(classifier)
    own = getattr(inner, "loss", None)
    if isinstance(own, str) and own in _LOSSES:
        return as_margin_loss(_LOSSES[own])
    for name, loss in _BY_NAME.items():
        if type(inner).__name__.startswith(name):
            return as_margin_loss(loss)
    return as_margin_loss("hinge" if hasattr(classifier, "decision_function") else "squared")


def weight_name(classifier: Any) -> str | None:
    """The keyword by which its ``fit`` takes weights of rows, if it does."""
    if not _takes(classifier, "sample_weight"):
        return None
    steps = getattr(classifier, "steps", None)
    if not isinstance(steps, list):
        return "sample_weight"
    inner = weight_name(steps[-1][1])
    return None if inner is None else f"{steps[-1][0]}__{inner}"


def takes_missing(classifier: Any) -> bool:
    """Whether features may be NaN, as its ``allow_nan`` or scikit-learn's tags say; what an imputer fills is filled."""
    if hasattr(classifier, "allow_nan"):
        return bool(classifier.allow_nan)
    if hasattr(classifier, "param_grid") or hasattr(classifier, "param_distributions"):
        return takes_missing(classifier.estimator)
    for _, step in getattr(classifier, "steps", ()):
        if step not in (None, "passthrough") and not takes_missing(step):
            return False
        if "Imputer" in type(step).__name__:
            return True
    if hasattr(classifier, "steps"):
        return True
    if hasattr(classifier, "__sklearn_tags__"):
        return bool(classifier.__sklearn_tags__().input_tags.allow_nan)
    if hasattr(classifier, "_get_tags"):  # before scikit-learn 1.6
        return bool(classifier._get_tags().get("allow_nan", False))
    return False


def pairwise(classifier: Any) -> bool:
    """Whether features are values of pairs of rows, as scikit-learn's tags say."""
    if isinstance(classifier, type):
        return False
    if hasattr(classifier, "__sklearn_tags__"):
        return bool(classifier.__sklearn_tags__().input_tags.pairwise)
    return bool(classifier._get_tags().get("pairwise", False)) if hasattr(classifier, "_get_tags") else False


def with_seed(classifier: Any, column: int) -> Any:
    """A copy; where scikit-learn would draw from NumPy's global generator, it draws from a seed of the column's."""
    twin = copy.deepcopy(classifier)
    if callable(getattr(twin, "get_params", None)) and callable(getattr(twin, "set_params", None)):
        known = twin.get_params(deep=True)
        seeds = [name for name in known if name.rpartition("__")[2] == "random_state" and known[name] is None]
        if seeds:
            twin.set_params(**dict.fromkeys(seeds, column))
    return twin


def fit_outside(classifier: Any, features: Tensor, signs: Tensor, weight: Tensor | None) -> Scorer:
    """A linear layer where it is one, else the classifier itself behind a scorer."""
    name = weight_name(classifier)
    options = {} if weight is None or name is None else {name: weight.cpu().numpy()}
    classifier.fit(features.cpu().numpy(), signs.cpu().numpy(), **options)
    logistic = loss_of_outside(classifier).name == "logistic"
    if not hasattr(classifier, "decision_function"):
        return OutsideScorer(classifier, features.shape[1], log_odds=logistic)
    scorer = OutsideScorer(classifier, features.shape[1], 0.5 if logistic else 1.0)  # log-odds are 2 f(x) here
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
    rows = some(features)
    with torch.no_grad():
        close = torch.allclose(linear(rows), scorer(rows), rtol=1e-4, atol=1e-5)
    return linear if close else None


def _takes(classifier: Any, wanted: str) -> bool:
    parameters = inspect.signature(classifier.fit).parameters
    return wanted in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _last(classifier: Any) -> Any:
    """The classifier at the end of a pipeline, or inside a search."""
    steps = getattr(classifier, "steps", None)
    if isinstance(steps, list) and steps:
        return _last(steps[-1][1])
    if hasattr(classifier, "param_grid") or hasattr(classifier, "param_distributions"):
        return _last(classifier.estimator)
    return classifier
