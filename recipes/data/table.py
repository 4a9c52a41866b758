"""Rows with a label each, of an ``.npz`` or a ``.csv`` file, split for training and testing."""

from __future__ import annotations

import csv

import numpy as np
import torch
from torch import Tensor

from .npz import checked_features, checked_split, named_labels, read
from .rows import stratified_split

__all__ = ["new_rows", "table"]


def table(path: str | None) -> tuple[Tensor, Tensor, list[str], np.ndarray, np.ndarray]:
    """Features, labels, class names, and the row numbers for training and for testing."""
    split = None
    if path is None:
        from sklearn.datasets import load_digits

        features, labels = load_digits(return_X_y=True)
        names = [str(label) for label in range(10)]
    elif path.endswith(".csv"):
        features, words = columns(path, labelled=True)
        names = sorted(set(words))
        if len(names) < 2:
            raise SystemExit(f"error: path: the last column of {path} has one class; accepted are two or more")
        labels = np.array([names.index(word) for word in words])
    else:
        arrays = read(path, "path", needs=("X", "y"))
        features = checked_features(path, "path", arrays["X"])
        features = features.reshape(len(features), -1)
        labels, names = named_labels(path, arrays["y"], len(features), arrays.get("classes"))
        split = checked_split(path, arrays, len(features))
    train, test = split or stratified_split(labels, 0.25, 0)
    return torch.tensor(features, dtype=torch.float32), torch.tensor(labels), names, train, test


def columns(path: str, labelled: bool) -> tuple[np.ndarray, list[str]]:
    """The numbers of a CSV file, empty ones being missing, and the words of its last column, where that is the label.

    A first line without a number is a heading.
    """
    try:
        with open(path, newline="", encoding="utf-8") as file:
            lines = [line for line in csv.reader(file) if line]
    except (OSError, UnicodeDecodeError) as problem:
        raise SystemExit(
            f"error: path: {path} cannot be read ({type(problem).__name__}); accepted is a CSV file"
        ) from None
    if lines and not any(is_number(entry) for entry in lines[0]):
        lines = lines[1:]
    if not lines or len({len(line) for line in lines}) != 1 or len(lines[0]) < 1 + labelled:
        raise SystemExit(f"error: path: {path} is no table; accepted are lines of equally many entries, the label last")
    words = [line.pop().strip() for line in lines] if labelled else []
    try:
        return np.array([[float(entry) if entry.strip() else np.nan for entry in line] for line in lines]), words
    except ValueError as problem:
        raise SystemExit(f"error: path: {path}: {problem}; accepted are numbers and empty entries") from None


def is_number(entry: str) -> bool:
    """Whether it can be read as one."""
    try:
        float(entry)
    except ValueError:
        return False
    return True


def new_rows(path: str | None) -> Tensor:
    """Features alone: of a file without labels, or the test rows of the digits."""
    if path is None:
        digits, _, _, _, test = table(None)
        return digits[test]
    if path.endswith(".csv"):
        features, _ = columns(path, labelled=False)
    else:
        features = checked_features(path, "path", read(path, "path", needs=("X",))["X"])
    return torch.tensor(features.reshape(len(features), -1), dtype=torch.float32)
