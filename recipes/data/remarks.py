"""What is worth a line about a table before learning: the label, its classes, columns that teach nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from ..names import apart, listed
from ..start import note, warn
from .table import Table
from .text import shortened

__all__ = ["remark"]

UNEVEN = 5
"""How often the most frequent class is as frequent as the rarest, where weights are worth a thought."""
MOST = 12
"""Classes whose rows are counted one by one."""
SOME = 8
"""Names that are listed."""


def remark(held: Table, train: np.ndarray, test: np.ndarray, prefix: str = "", weighted: bool = True) -> None:
    """Say which column is the label, that it may be none, and which columns cannot help.

    Args:
        held: the table.
        train: the rows for training.
        test: those for testing.
        prefix: of the options of the data.
        weighted: whether the classes have been given no weights, so that they may be named.
    """
    assert held.labels is not None
    counts = np.bincount(held.labels, minlength=len(held.classes))
    print(
        f"label {held.label}: {len(held.classes)} classes, {len(train)} rows for training + {len(test)} for testing"
        f"{spread(held.classes, counts)}",
        flush=True,
    )
    for line in doubts(held, counts, train, test):
        note(f"label {held.label}: {line}")
    if weighted and len(train) and (advice := uneven(held, train, prefix)):
        note(f"label {held.label}: {advice}")
    if 2 * (counts == 1).sum() > len(held.labels):
        others = "" if held.columns is None else f"; --{prefix}label names another: {listed(held.columns, SOME)}"
        warn(f"label {held.label}: {(counts == 1).sum()} of {len(held.labels)} rows are alone in their class{others}")
    for name, why in held.left_out.items():
        if "asked" not in why:
            note(f"column {shortened(name)} {why}: it is left out, and predict writes it beside the labels")
    for name, why in idle(held, train):
        note(f"column {shortened(name)} {why}: nothing can be learned from it")


def spread(classes: Sequence[str], counts: np.ndarray) -> str:
    """The rows of each class, from the most frequent on, where they are not much the same."""
    if 2 * counts.max() < 3 * counts.min():
        return ""
    order = np.argsort(-counts, kind="stable")
    words = [f"{apart(classes[i])} {counts[i]}" for i in order]
    middle = [] if len(words) <= MOST else ["..."]
    return f"; {', '.join(words if not middle else [*words[: MOST - 3], *middle, *words[-2:]])}"


def doubts(held: Table, counts: np.ndarray, train: np.ndarray, test: np.ndarray) -> Iterator[str]:
    """Classes that cannot be learned, and names that may be one."""
    assert held.labels is not None
    learned, tested = (np.bincount(held.labels[rows], minlength=len(counts)) for rows in (train, test))
    for name, seen, asked in zip(held.classes, learned, tested, strict=True):
        if not seen and asked:
            rows = "1 test row is" if asked == 1 else f"{asked} test rows are"
            yield f"no training row is of class {apart(name)}; {rows}"
    alone = [name for name, count in zip(held.classes, counts, strict=True) if count == 1]
    if alone and 2 * len(alone) <= len(held.labels):
        several = f"classes {listed(alone, SOME)} have one row each"
        yield several if len(alone) > 1 else f"class {apart(alone[0])} has one row"
    known = dict(zip(held.classes, counts.tolist(), strict=True))
    for first, second in combinations(held.classes if len(held.classes) <= 200 else [], 2):
        how = alike(first, second, known)
        if how:
            yield f"classes {first} ({rows_of(known[first])}) and {second} ({rows_of(known[second])}) differ {how}"


def rows_of(count: int) -> str:
    """``3 rows``."""
    return "1 row" if count == 1 else f"{count} rows"


def alike(first: str, second: str, counts: dict[str, int]) -> str:
    """How two names differ, if by case or, where one of the two is rare, by a letter; else nothing."""
    if first.casefold() == second.casefold():
        return "by case alone"
    rare = min(counts[first], counts[second]) * 10 <= max(counts[first], counts[second])
    return "by one letter" if rare and one_letter(first, second) else ""


def one_letter(first: str, second: str) -> bool:
    """Whether a letter more, less or another, or two that are swapped, make one of the other; numbers do not count."""
    if min(len(first), len(second)) < 4 or abs(len(first) - len(second)) > 1:
        return False
    start = next(
        (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    left, right = first[start:], second[start:]
    changed = left[:1] + right[:1]
    if any(map(str.isdigit, changed)):
        return False
    swapped = left[:2] == right[1::-1] and left[2:] == right[2:]
    return swapped or left[1:] in (right, right[1:]) or left == right[1:]


def uneven(held: Table, train: np.ndarray, prefix: str) -> str:
    """How to have classes count the same where one has many times the rows of another; else nothing."""
    counts = np.bincount(held.labels[train], minlength=len(held.classes))
    there = counts[counts > 0]
    if there.max() < UNEVEN * there.min() or len(there) < 2:
        return ""
    how = "--weight balanced has each count the same"
    if prefix:
        weights = [f"{len(train) / len(there) / max(count, 1):.3g}" for count in counts.tolist()]
        how = f"--model.head.weight '[{', '.join(weights)}]' has each count the same" if len(weights) <= MOST else ""
    said = f"the most frequent class has {there.max()} training rows, the rarest {there.min()}"
    return f"{said}; {how}" if how else said


def idle(held: Table, train: np.ndarray) -> list[tuple[str, str]]:
    """The named columns that teach nothing, and why: empty, or of one value."""
    found = []
    for i, name in enumerate(held.columns or ()):
        column = held.features[train, i]
        there = column[~np.isnan(column)]
        distinct = len(np.unique(there))
        if len(there) == 0:
            found.append((name, "is empty"))
        elif distinct == 1 and len(there) == len(column) > 1:
            found.append((name, "has one value"))
    return found
