"""What is worth a line about a table before learning: which column is the label, and which teach nothing."""

from __future__ import annotations

import warnings

import numpy as np

from .table import Table
from .text import shortened

__all__ = ["remark"]


def remark(held: Table, train: np.ndarray, test: np.ndarray) -> None:
    """Say which column is the label, and warn of one that is none, and of columns that cannot help."""
    assert held.labels is not None
    print(
        f"label {held.label}: {len(held.classes)} classes, {len(train)} rows for training + {len(test)} for testing",
        flush=True,
    )
    counts = np.bincount(held.labels, minlength=len(held.classes))
    if 2 * (counts == 1).sum() > len(held.labels):
        others = "" if held.columns is None else f"; --label names another: {listed(held.columns)}"
        warnings.warn(
            f"label {held.label}: {(counts == 1).sum()} of {len(held.labels)} rows are alone in their class{others}",
            stacklevel=2,
        )
    for name, why in idle(held, train):
        warnings.warn(f"column {shortened(name)} {why}: nothing can be learned from it", stacklevel=2)


def idle(held: Table, train: np.ndarray) -> list[tuple[str, str]]:
    """The named columns that teach nothing, and why: empty, of one value, or another word in every row."""
    found = []
    for i, name in enumerate(held.columns or ()):
        column = held.features[train, i]
        there = column[~np.isnan(column)]
        distinct = len(np.unique(there))
        if len(there) == 0:
            found.append((name, "is empty"))
        elif distinct == 1 and len(there) == len(column) > 1:
            found.append((name, "has one value"))
        elif i in held.categories and len(there) == distinct > 2:
            found.append((name, f"has another word in each of {distinct} rows"))
    return found


def listed(names: list[str], most: int = 8) -> str:
    """Some names, and that there are more."""
    return ", ".join([*names[:most], *(["..."] if len(names) > most else [])])
