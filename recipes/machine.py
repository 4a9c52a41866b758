"""A support vector machine that is kept: how its features were scaled, its files, and the labels it gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import torch_multiclass as tm
from torch_multiclass.solvers import Certificate
from torch_multiclass.solvers.report import Step

from .answers import named, probabilities
from .data.encoding import Encoder, stratified_split
from .data.new import features_of
from .data.table import Table
from .files import check_weights, facts_of, locked, model_file, read, save, write_atomically
from .start import one_line

__all__ = ["certificate", "chances", "keep", "labelled", "learned", "load", "measured", "parts", "scaled"]


def parts(held: Table) -> tuple[np.ndarray, np.ndarray]:
    """The rows for training and for testing: those of the file, else a quarter of each class is for testing."""
    assert held.labels is not None
    train, test = held.split or stratified_split(held.labels, 0.25, 0, f"label {held.label}")
    return train, test


def learned(held: Table, train: np.ndarray, divide_by: float | None) -> dict[str, Any]:
    """How the features are scaled, as plain values: over ``divide_by``, else as the training rows say."""
    if held.features.ndim != 2:
        raise ValueError("path: has images; accepted is a table")
    if divide_by is None:
        return Encoder(held.features[train], held.nominal).state()
    if not divide_by > 0:
        raise SystemExit(f"error: divide_by: got {divide_by}; accepted is a number > 0")
    if np.isnan(held.features).any() or held.nominal.any():
        raise ValueError("path: has missing values or nominal columns; accepted is a full table, or no divide_by")
    return {"divide_by": divide_by}


def scaled(features: np.ndarray, scaling: dict[str, Any]) -> Tensor:
    """Features as the machine sees them."""
    if "divide_by" in scaling:
        return torch.tensor(features / scaling["divide_by"], dtype=torch.float32)
    return Encoder.from_state(scaling)(features)


def keep(folder: Path, scorer: tm.Scorer, facts: dict[str, Any], model: dict[str, Any]) -> None:
    """Keep a fitted machine: scorer.pt is all that `load` needs, beside it are files to look at."""
    with locked(folder):
        save(folder / "scorer.pt", scorer.state_dict(), {**facts, **model})
        write_atomically(folder / "report.json", json.dumps(facts, indent=1))
        write_atomically(folder / "model.json", json.dumps(model))


def load(folder: Path, recipe: str = "svm", argument: str = "checkpoint") -> tuple[tm.Scorer, dict[str, Any]]:
    """The machine that a recipe kept, by its folder or file, and its facts."""
    path, accepted = model_file(folder, argument), f"the output folder of {recipe} fit"
    state = read(path, argument, accepted)
    facts = facts_of(path, argument, accepted)
    if facts.get("recipe") != recipe:
        raise ValueError(f"{argument}: {path} is of {facts.get('recipe')}; accepted is {accepted}")
    try:
        scorer = made(state, kernel(facts["kernel"]))
        scorer.load_state_dict(state)
    except (RuntimeError, LookupError, TypeError, AttributeError) as problem:
        raise ValueError(f"{argument}: {folder} does not fit together: {one_line(problem, 300)}") from None
    check_weights(state, path, argument)
    for name in {"svm": ("schema", "scaling", "split"), "ocr": ("alphabet", "shape")}[recipe]:
        if name not in facts:
            raise ValueError(f"{argument}: {path} has no {name}; accepted is {accepted}")
    return scorer.eval(), facts


def measured(report: Certificate) -> dict[str, Any]:
    """What a report says of the fit, as plain values."""
    names = ("primal", "dual", "gap", "converged", "interrupted", "iterations", "seconds", "rows")
    return {name: getattr(report, name) for name in names} | {"history": [list(step) for step in report.history]}


def certificate(facts: dict[str, Any]) -> Certificate | None:
    """The report of a machine that is kept, without its multipliers; None where it was kept without."""
    if "certificate" not in facts:
        return None
    kept = dict(facts["certificate"])
    try:
        history = [Step(int(number), *map(float, rest)) for number, *rest in kept.pop("history")]
        support = torch.zeros(1).expand(facts["support_vectors"])  # how many; which they were is not kept
        none = torch.empty(0)
        return Certificate(history=history, support=support, alpha=none, weight=none, C=facts["C"], **kept)
    except (TypeError, ValueError, LookupError, RuntimeError, OverflowError) as problem:
        raise ValueError(f"checkpoint: its certificate does not fit together: {one_line(problem)}") from None


def kernel(facts: dict[str, Any]) -> tm.kernels.Kernel:
    """A kernel from its name and its constants."""
    name, *constants = facts.values()
    kinds = {"linear": tm.kernels.Linear, "gaussian": tm.kernels.Gaussian, "polynomial": tm.kernels.Polynomial}
    return kinds[name](*constants)


def made(state: dict[str, Tensor], kernel: tm.kernels.Kernel) -> tm.Scorer:
    """The scorer that a state is of, its weights still to be loaded."""
    bias = any(name.endswith("bias") for name in state)
    if "chain.transitions" in state:
        inner = {name.removeprefix("emissions."): part for name, part in state.items() if name.startswith("emissions.")}
        tags = len(state["chain.transitions"])
        if "weight" in inner:
            return tm.ChainScorer(inner["weight"].shape[1], tags, bias=bias, dtype=inner["weight"].dtype)
        return tm.ChainScorer(made(inner, kernel), tags, dtype=inner["coefficients"].dtype)
    if "weight" in state:
        return tm.LinearScorer(state["weight"].shape[1], state["weight"].shape[0], bias, dtype=state["weight"].dtype)
    if "support" in state:
        support, coefficients = state["support"], state["coefficients"]
        return tm.KernelScorer(support, coefficients.shape[1], kernel, bias=bias, dtype=coefficients.dtype)
    features = tm.NystromFeatures(state["features.landmarks"], kernel)
    return tm.NystromScorer(features, state["linear.weight"].shape[0], bias)


def scores_of(scorer: tm.Scorer, facts: dict[str, Any], rows: Any, argument: str) -> Tensor:
    """The scores of a file, which was given as ``argument``, a data frame or features."""
    try:
        features = features_of(rows, facts["schema"], argument)
        with torch.no_grad():
            scores = scorer(scaled(features, facts["scaling"]))
    except (LookupError, AttributeError) as problem:
        raise ValueError(
            f"folder: its facts do not fit together: {one_line(problem)}; accepted is a whole one"
        ) from None
    far = ~scores.isfinite().all(1)
    if bool(far.any()):
        raise ValueError(
            f"{argument}: the scores of row {int(far.int().argmax()) + 1} overflow; accepted are smaller numbers"
        )
    return scores


def labelled(scorer: tm.Scorer, facts: dict[str, Any], rows: Any, argument: str = "path") -> list[str]:
    """The labels of rows, by name."""
    return named(facts["schema"]["classes"], scores_of(scorer, facts, rows, argument).argmax(1))


def chances(scorer: tm.Scorer, facts: dict[str, Any], rows: Any, argument: str = "path") -> np.ndarray:
    """The probability of each class, for each row."""
    return probabilities(scores_of(scorer, facts, rows, argument), facts.get("temperature"))
