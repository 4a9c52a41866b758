"""A support vector machine that is kept: how its features were scaled, its files, and the labels it gives."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import torch_multiclass as tm

from .data.encoding import Encoder, stratified_split
from .data.table import Table, new_features

__all__ = ["labelled", "learned", "load", "parts", "scaled"]


def parts(held: Table) -> tuple[np.ndarray, np.ndarray]:
    """The rows for training and for testing: those of the file, else a quarter of each class is for testing."""
    assert held.labels is not None
    train, test = held.split or stratified_split(held.labels, 0.25, 0)
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


def load(folder: Path) -> tuple[tm.Scorer, dict[str, Any]]:
    """The machine that `fit` kept in its folder, and its facts."""
    try:
        facts = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        facts |= json.loads((folder / "model.json").read_text(encoding="utf-8"))
        state = torch.load(folder / "scorer.pt", weights_only=True, map_location="cpu")
        kernel, bias = (
            tm.kernels.Gaussian(facts["kernel"].get("gamma", 1.0)),
            any(name.endswith("bias") for name in state),
        )
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, EOFError, pickle.UnpicklingError) as problem:
        raise SystemExit(
            f"error: checkpoint: {folder} cannot be read ({type(problem).__name__}: {problem}); accepted is the output "
            "folder of svm fit, with scorer.pt, model.json and report.json"
        ) from None
    scorer: tm.Scorer
    if "weight" in state:
        scorer = tm.LinearScorer(state["weight"].shape[1], state["weight"].shape[0], bias)
    elif "support" in state:
        scorer = tm.KernelScorer(state["support"], state["coefficients"].shape[1], kernel, bias=bias)
    else:
        features = tm.NystromFeatures(state["features.landmarks"], kernel)
        scorer = tm.NystromScorer(features, state["linear.weight"].shape[0], bias)
    try:
        scorer.load_state_dict(state)
    except RuntimeError as problem:
        raise ValueError(f"folder: {folder} does not fit together: {problem}") from None
    for name, value in state.items():
        if value.isnan().any():
            raise ValueError(f"folder: {name} in {folder / 'scorer.pt'} is NaN; accepted are finite weights")
    return scorer.eval(), facts


def labelled(scorer: tm.Scorer, facts: dict[str, Any], rows: str | Path | np.ndarray) -> list[str]:
    """The labels of a file or of features, by name."""
    schema = facts["schema"]
    features = new_features(str(rows), schema) if isinstance(rows, (str, Path)) else np.asarray(rows, float)
    with torch.no_grad():
        labels = scorer(scaled(features, facts["scaling"])).argmax(1)
    return [schema["classes"][label] for label in labels.tolist()]
