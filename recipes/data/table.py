"""Rows of an ``.npz``, ``.csv``, ``.tsv`` or ``.parquet`` file, with or without a label each.

In a table of text a first line without a number is a heading, an empty entry or ``?`` is missing, a column of words is
nominal, one with another word in each row is left out, and the label is the column that ``label`` names, else the last.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..names import apart, listed
from ..start import heard, note
from .arrays import check_squares, checked_features, checked_nominal, checked_split, counted, digest, named_labels, read
from .cells import Column, Remarks, is_number, settled
from .entries import Text, entries, suffix
from .text import shortened

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Ignored", "Table", "absent", "labels_of", "laid_out", "numbers", "of_fit", "read_or_digits", "spelled"]


@dataclass(frozen=True)
class Table:
    """What a file holds.

    Args:
        features: ``(n, columns)``, NaN where missing, nominal columns as numbers of their categories; or images.
        labels: ``(n,)`` positions in ``classes``; None where the rows were read to be labelled.
        classes: the names of the labels.
        nominal: ``(columns,)``, true where a column is nominal.
        split: row numbers for training and for testing, where the file has them.
        columns: their names; None where they have none.
        categories: of each nominal column of words, its values in the order of their numbers.
        label: the column of the labels, in words.
        left_out: columns of the file that are no features, by name or number, and why.
        kept: of a file with such columns, the places of the others among all but the label, and how many there are.
    """

    features: np.ndarray
    labels: np.ndarray | None
    classes: list[str]
    nominal: np.ndarray
    split: list[np.ndarray] | None
    columns: list[str] | None
    categories: dict[int, list[str]]
    label: str = "y"
    left_out: dict[str, str] = field(default_factory=dict)
    kept: tuple[list[int], int] | None = None

    @classmethod
    def read(cls, path: str, label: str | None = None, ignore: Ignored = None) -> Table:
        """A file with labels, without the columns that ``ignore`` names; one that was read is kept for a second time.

        Columns have names, else their numbers from 1.
        """
        facts = os.stat(path) if Path(path).is_file() else None
        key = None if facts is None else (facts.st_mtime_ns, facts.st_size)
        return cls._read(path, label, asked(ignore), key)

    @classmethod
    @lru_cache(maxsize=2)
    def _read(cls, path: str, label: str | None, ignore: tuple[str, ...], key: object) -> Table:
        if suffix(path, "path") == ".npz":
            held = of_npz(path)
            if ignore and held.features.ndim != 2:
                raise ValueError(f"ignore: {path} has images; accepted is a table")
            return held.without(ignored(path, ignore, None, held.features.shape[1])) if ignore else held
        text = entries(path, "path")
        numbers_of, classes, named = labelled_by(text, path, label)
        at = place(path, label, text.names, len(text.cells))
        names = None if text.names is None else [name for i, name in enumerate(text.names) if i != at]
        cells = [column for i, column in enumerate(text.cells) if i != at]
        if not cells:
            raise ValueError(
                f"path: {path} has one column; accepted are features and a label, parted by commas, semicolons or tabs"
            )
        out = ignored(path, ignore, names, len(cells), text.names and text.names[at])
        remarks = Remarks(path, text.row)
        columns: dict[int, Column] = {}
        for i, column in enumerate(cells):
            if i not in out:
                columns[i] = settled(_name(names, i), column, remarks, text.mark == ",")
                filled = [entry for entry in columns[i].entries if entry]
                if columns[i].words and len({*filled}) == len(filled) > 2:
                    out[i] = f"has another word in each of {len(filled)} rows"
        left = [i for i in range(len(cells)) if i not in out]
        if not left:
            raise ValueError(f"path: no column of {path} is left to learn from; accepted are features and a label")
        categories = {n: sorted({*columns[i].entries} - {""}) for n, i in enumerate(left) if columns[i].words}
        read_as = [columns[i].entries for i in left]
        called = [_name(names, i) for i in left]
        features = numbers(path, "path", read_as, called, categories, remarks)
        check_squares(path, "path", features, called)
        remarks.say()
        if missing := absent(read_as):
            note(f"{path}: {missing}{remarks.among()}")
        return cls(
            features,
            numbers_of,
            classes,
            np.array([n in categories for n in range(len(left))]),
            None,
            None if names is None else [names[i] for i in left],
            categories,
            named,
            {_name(names, i): why for i, why in sorted(out.items())},
            (left, len(cells)) if out else None,
        )

    def without(self, out: dict[int, str]) -> Table:
        """Of an array: without some columns."""
        left = [i for i in range(self.features.shape[1]) if i not in out]
        if not left:
            raise ValueError("ignore: no column is left to learn from")
        return replace(
            self,
            features=self.features[:, left],
            nominal=self.nominal[left],
            left_out={_name(None, i): why for i, why in sorted(out.items())},
            kept=(left, self.features.shape[1]),
        )

    def digest(self) -> str:
        """A short name of the contents."""
        return digest(self.features, self.labels, np.array(self.classes))

    def schema(self) -> dict[str, Any]:
        """What the rows to be labelled later must be like, as plain values."""
        return {
            "shape": list(self.features.shape[1:]),
            "columns": self.columns,
            "categories": {str(i): values for i, values in self.categories.items()},
            "classes": self.classes,
            **({} if self.kept is None else {"kept": list(self.kept[0]), "width": self.kept[1]}),
            **({"left_out": [*self.left_out]} if self.left_out else {}),
        }


def of_npz(path: str) -> Table:
    """The table, or the images, in an ``.npz`` file."""
    arrays = read(path, "path", needs=("X", "y"))
    features = checked_features(path, "path", arrays["X"])
    labels, classes = named_labels(path, arrays["y"], len(features), arrays.get("classes"))
    nominal = checked_nominal(path, arrays.get("nominal"), features)
    nominal = np.zeros(features.shape[1], bool) if nominal is None else nominal
    return Table(features, labels, classes, nominal, checked_split(path, arrays, len(features)), None, {})


Ignored = str | Sequence[str] | None
"""Columns to leave out: their names in a list, or parted by commas."""


def asked(ignore: Ignored) -> tuple[str, ...]:
    """The columns to leave out."""
    names = () if ignore is None else ignore if isinstance(ignore, (list, tuple)) else str(ignore).split(",")
    return tuple(str(name).strip() for name in names)


def ignored(
    path: str, ignore: Sequence[str], names: Sequence[str] | None, count: int, label: str | None = None
) -> dict[int, str]:
    """The places of columns to leave out, by their names, else by their numbers."""
    accepted = [_name(names, i) for i in range(count)]
    for name in ignore:
        if name not in accepted:
            there = f"1 to {count}" if names is None else listed(accepted)
            what = "is the label" if name == label else "is no column"
            raise ValueError(f"ignore: {shortened(name)} {what} of {path}; accepted are {there}")
    return {accepted.index(name): "is ignored, as asked" for name in ignore}


def _name(names: Sequence[str] | None, place: int) -> str:
    """Of a column, else its number from 1."""
    return str(place + 1) if names is None else names[place]


def labelled_by(text: Text, path: str, label: str | None) -> tuple[np.ndarray, list[str], str]:
    """The labels as numbers, their names, and their column in words."""
    at = place(path, label, text.names, len(text.cells))
    words, named = text.cells[at], column_name(text.names, at, label)
    without = [row for row, word in enumerate(words) if not word]
    if without:
        where = "" if text.lines is None else f", which is line {text.lines[without[0]]} of the file"
        where += f"; {len(without)} rows have none" if len(without) > 1 else ""
        raise ValueError(
            f"path: row {without[0] + 1} of {path} has no label in column {named}{where}; accepted is one for each "
            "row, in the column that label names"
        )
    classes = sorted(set(words))
    if all(word.isascii() and word.isdigit() and len(word) < 10 for word in classes):
        classes.sort(key=int)
    if len(classes) < 2:
        raise ValueError(f"path: the label of {path}, column {named}, has one class; accepted are two or more")
    number = {name: i for i, name in enumerate(classes)}
    return np.array([number[word] for word in words]), classes, named


def labels_of(path: str, label: str | None) -> tuple[np.ndarray, list[str], list[np.ndarray] | None]:
    """Of a file's rows, their labels as numbers, the names of these, and the split; nothing is said of the rest."""
    if suffix(path, "data") == ".npz":
        held = Table.read(path, label)
        assert held.labels is not None
        return held.labels, held.classes, held.split
    return *labelled_by(entries(path, "data"), path, label)[:2], None


def place(path: str, label: str | None, names: list[str] | None, count: int) -> int:
    """Where the label is."""
    if label is None:
        return count - 1
    if names is None or label not in names:
        there = "none: the first line is no heading" if names is None else listed(names)
        raise ValueError(f"label: {path} has no column {shortened(label)}; accepted are {there}")
    return names.index(label)


def column_name(names: list[str] | None, at: int, asked: str | None) -> str:
    """The column of the labels in words, and that it was taken unasked."""
    name = str(at + 1) if names is None else apart(names[at])
    return name if asked is not None else f"{name} (the last column)"


def numbers(
    path: str,
    argument: str,
    cells: Sequence[Sequence[str]],
    columns: Sequence[str],
    categories: Mapping[int, Sequence[str]],
    remarks: Remarks,
) -> np.ndarray:
    """Numbers, and of nominal columns those of the categories; NaN for a category that training did not show."""
    features = np.full((len(cells[0]), len(cells)), np.nan)
    for i, column in enumerate(cells):
        known = {value: n for n, value in enumerate(categories[i])} if i in categories else None
        for row, entry in enumerate(column):
            if known is not None:
                features[row, i] = known.get(entry, np.nan)
            elif entry:
                if not is_number(entry) or np.isinf(float(entry)):
                    raise ValueError(
                        f"{argument}: column {apart(columns[i])} of {path} has {shortened(entry)} in row {row + 1}; "
                        f"accepted are finite numbers{remarks.within(row)}"
                    )
                features[row, i] = float(entry)
    return features


def absent(cells: Sequence[Sequence[str]]) -> str:
    """How many entries of columns are missing, in words."""
    return counted(np.array([[not entry for entry in column] for column in cells]).T)


def laid_out(held: Table) -> tuple[Tensor, Tensor, list[str], np.ndarray, np.ndarray]:
    """Features without scaling, labels, class names, and the row numbers for training and for testing."""
    import torch

    from .encoding import stratified_split

    assert held.labels is not None
    train, test = held.split or stratified_split(held.labels, 0.25, 0, f"label {held.label}")
    return spelled(held.features, held.categories), torch.tensor(held.labels), held.classes, train, test


def spelled(features: np.ndarray, categories: Mapping[Any, Sequence[str]]) -> Tensor:
    """Numbers as they are, then for each value of each column of words whether it is this one."""
    import torch

    words = sorted(int(column) for column in categories)
    rows = features.reshape(len(features), -1)
    asked = [rows[:, [column]] == np.arange(len(categories[_key(categories, column)])) for column in words]
    return torch.tensor(np.concatenate([np.delete(rows, words, 1), *asked], 1), dtype=torch.float32)


def _key(categories: Mapping[Any, Sequence[str]], column: int) -> Any:
    """Columns are numbers, in files words."""
    return column if column in categories else str(column)


def of_fit(path: str | None, label: str | None, known: str | None, ignore: Ignored = None) -> Table:
    """The table that a model was fitted to; refused where it has other contents by now."""
    with heard(False):  # the fit said what is worth a line
        held = read_or_digits(path, label, ignore)
    if known is not None and held.digest() != known:
        raise ValueError(
            f"path: {path} has other rows by now than those that the model was fitted to; accepted is a file that is "
            "named with this command"
        )
    return held


def read_or_digits(path: str | None, label: str | None = None, ignore: Ignored = None) -> Table:
    """The table of a file, or the digits."""
    if path is not None:
        return Table.read(path, label, ignore)
    from sklearn.datasets import load_digits

    features, labels = load_digits(return_X_y=True)
    nominal = np.zeros(features.shape[1], bool)
    return Table(features, labels.astype(np.int64), [str(k) for k in range(10)], nominal, None, None, {})
