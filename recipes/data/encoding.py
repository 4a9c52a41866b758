"""How rows are split and what numbers stand for them, learned from the rows for training."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor


def stratified_split(labels: np.ndarray, fraction: float, seed: int, name: str = "y") -> tuple[np.ndarray, np.ndarray]:
    """Split row numbers into two parts, the second holding ``fraction`` of every class.

    It is scikit-learn's split, but a class of one row, which cannot be split, stays in the first part.
    """
    from sklearn.model_selection import train_test_split

    values, positions, counts = np.unique(labels, return_inverse=True, return_counts=True)
    alone = counts[positions] == 1
    rows = np.flatnonzero(~alone)
    size = max(math.ceil(fraction * len(rows)), int((counts > 1).sum()))
    if size >= len(rows):
        why = ": another label in each row" if len(values) == len(labels) > 1 else ""
        raise ValueError(f"{name}: {len(labels)} rows of {len(values)} classes are too few to split{why}")
    first, second = train_test_split(rows, test_size=size, stratify=labels[rows], random_state=seed)
    return np.concatenate([first, np.flatnonzero(alone)]), second


class Encoder:
    """Standardise columns and spell out nominal ones, from what the training rows show.

    - Numeric column: training mean 0 and variance 1. A missing value becomes the mean, 0, and a column with
      missing training values gains an indicator column.
    - Nominal column: one indicator for each value seen in training; a missing or new value has none.
    - Images ``(n, channels, height, width)``: one mean and one variance a channel.
    """

    def __init__(self, train: np.ndarray, nominal: np.ndarray) -> None:
        self.nominal = nominal
        self.values = [np.unique(column[~np.isnan(column)]) for column in train[:, nominal].T]
        numeric = train[:, ~nominal]
        axes = tuple(axis for axis in range(numeric.ndim) if axis != 1)
        seen = ~np.isnan(numeric)
        count = np.maximum(seen.sum(axes, keepdims=True), 1)
        self.mean = np.where(seen, numeric, 0).sum(axes, keepdims=True) / count
        deviation = np.sqrt((np.where(seen, numeric - self.mean, 0) ** 2).sum(axes, keepdims=True) / count)
        self.scale = np.where(deviation > 1e-9 * np.abs(self.mean), deviation, 1.0)  # constant columns stay 0
        self.has_missing = ~seen.all(axes)

    def state(self) -> dict[str, Any]:
        """Everything as plain lists; `from_state` brings it back."""
        kept = {name: getattr(self, name).tolist() for name in ("nominal", "mean", "scale", "has_missing")}
        return {**kept, "values": [values.tolist() for values in self.values]}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Encoder:
        """What `state` told of."""
        encoder = cls.__new__(cls)
        for name in ("nominal", "mean", "scale", "has_missing"):
            setattr(encoder, name, np.array(state[name]))
        encoder.values = [np.array(values, float) for values in state["values"]]
        return encoder

    def __call__(self, features: np.ndarray) -> Tensor:
        """Encode rows as float32."""
        numeric = features[:, ~self.nominal]
        missing = np.isnan(numeric)
        encoded = np.where(missing, 0, (numeric - self.mean) / self.scale)
        if features.ndim == 2:
            columns = zip(features[:, self.nominal].T, self.values, strict=True)
            indicators = [column[:, None] == values for column, values in columns]
            encoded = np.concatenate([encoded, missing[:, self.has_missing], *indicators], axis=1)
        return torch.from_numpy(encoded.astype(np.float32))
