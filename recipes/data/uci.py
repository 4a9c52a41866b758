"""The sets that papers of the field are tested on: tables with missing values, nominal columns and official splits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .arrays import checked_features, checked_nominal, checked_split, named_labels, read

Split = tuple[np.ndarray, np.ndarray]
"""The rows for training, and those for testing."""


@dataclass(frozen=True)
class Table:
    """One set.

    Shape:
        features ``(N, D)``, float64, NaN where a value is missing; labels ``(N)``, positions in ``classes``; nominal
        ``(D)``, true where a column holds the number of a category.
    """

    name: str
    features: np.ndarray
    labels: np.ndarray
    classes: list[str]
    nominal: np.ndarray
    official: Split | None

    @staticmethod
    def read(path: str | Path) -> Table:
        """Read an ``.npz`` file with ``X``, ``y`` and, where it has them, names, nominal columns and a split."""
        arrays = read(str(path), "path", needs=("X", "y"))
        features = checked_features(str(path), "path", arrays["X"])
        features = features.reshape(len(features), -1)
        labels, classes = named_labels(str(path), arrays["y"], len(features), arrays.get("classes"))
        nominal = checked_nominal(str(path), arrays.get("nominal"), features)
        split = checked_split(str(path), arrays, len(features))
        return Table(
            Path(path).stem,
            features,
            labels,
            classes,
            np.zeros(features.shape[1], bool) if nominal is None else nominal,
            None if split is None else (split[0], split[1]),
        )

    def folds(self, official: bool, count: int = 10, seed: int = 0) -> list[Split]:
        """The official split, or those of cross-validation over all rows in a random order."""
        if official:
            if self.official is None:
                raise ValueError(f"{self.name}: has no official split; accepted are train_idx and test_idx in the file")
            return [self.official]
        order = torch.randperm(len(self.labels), generator=torch.Generator().manual_seed(seed)).numpy()
        part = np.arange(len(order)) % count
        return [(np.sort(order[part != fold]), np.sort(order[part == fold])) for fold in range(count)]


class Questions:
    """Columns as numbers that questions and kernels can be about, from what the training rows show.

    - Numeric column: a missing value becomes the median. With ``unit``, the training range becomes [0, 1].
    - Nominal column: one indicator for each value seen, which asks whether it is this value; of a missing one none is.
    """

    def __init__(self, train: np.ndarray, nominal: np.ndarray, *, unit: bool = False) -> None:
        self.nominal = nominal
        self.values = [np.unique(column[~np.isnan(column)]) for column in train[:, nominal].T]
        numeric = train[:, ~nominal]
        known = [column[~np.isnan(column)] for column in numeric.T]
        self.median = np.array([np.median(column) if len(column) else 0.0 for column in known])
        low = np.array([column.min(initial=np.inf) if len(column) else 0.0 for column in known])
        high = np.array([column.max(initial=-np.inf) if len(column) else 0.0 for column in known])
        self.low, self.range = (low, np.where(high > low, high - low, 1.0)) if unit else (0.0 * low, np.ones_like(low))

    def __call__(self, features: np.ndarray) -> Tensor:
        """Encode rows, in float64."""
        numeric = features[:, ~self.nominal]
        numeric = (np.where(np.isnan(numeric), self.median, numeric) - self.low) / self.range
        columns = zip(features[:, self.nominal].T, self.values, strict=True)
        return torch.from_numpy(np.concatenate([numeric, *(c[:, None] == v for c, v in columns)], axis=1))
