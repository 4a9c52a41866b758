"""The digits that come with scikit-learn, as rows of 64 numbers in 0..1."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import Tensor

from ..data.rows import stratified_split

NAMES = [str(digit) for digit in range(10)]


def rows() -> tuple[Tensor, Tensor]:
    """All 1,797 of them, and their labels."""
    features, labels = load_digits(return_X_y=True)
    return torch.tensor(features / 16, dtype=torch.float32), torch.tensor(labels)


def parts() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Training rows and labels, and those for testing: a quarter, of every class alike."""
    x, y = rows()
    train, test = (torch.tensor(part) for part in stratified_split(y.numpy(), 0.25, 0))
    return x[train], y[train], x[test], y[test]
