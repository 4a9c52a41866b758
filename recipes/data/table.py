"""Rows of an ``.npz``, ``.csv``, ``.tsv`` or ``.parquet`` file, with or without a label each.

In a table of text a first line without a number is a heading, an empty entry is missing, a column of words is nominal,
and the label is the column that ``label`` names, else the last.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import checked_features, checked_nominal, checked_split, digest, named_labels, read, remark
from .packed import LARGEST, reasonable
from .text import lines, shortened

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Table", "entries", "laid_out", "numbers", "of_fit", "read_or_digits", "spelled", "suffix"]

SUFFIXES = (".npz", ".csv", ".tsv", ".parquet")


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
    """

    features: np.ndarray
    labels: np.ndarray | None
    classes: list[str]
    nominal: np.ndarray
    split: list[np.ndarray] | None
    columns: list[str] | None
    categories: dict[int, list[str]]
    label: str = "y"

    @classmethod
    def read(cls, path: str, label: str | None = None) -> Table:
        """A file with labels; one that was read is kept for a second time."""
        facts = os.stat(path) if Path(path).is_file() else None
        return cls._read(path, label, None if facts is None else (facts.st_mtime_ns, facts.st_size))

    @classmethod
    @lru_cache(maxsize=2)
    def _read(cls, path: str, label: str | None, key: object) -> Table:
        if suffix(path, "path") == ".npz":
            arrays = read(path, "path", needs=("X", "y"))
            features = checked_features(path, "path", arrays["X"])
            labels, classes = named_labels(path, arrays["y"], len(features), arrays.get("classes"))
            nominal = checked_nominal(path, arrays.get("nominal"), features)
            nominal = np.zeros(features.shape[1], bool) if nominal is None else nominal
            split = checked_split(path, arrays, len(features))
            return cls(features, labels, classes, nominal, split, None, {})
        names, cells = entries(path, "path")
        at = place(path, label, names, len(cells))
        words, named = cells.pop(at), column_name(names, at, label)
        columns = None if names is None else [name for i, name in enumerate(names) if i != at]
        if "" in words:
            raise ValueError(
                f"path: row {words.index('') + 1} of {path} has no label in column {named}; accepted is one for each "
                "row, in the column that label names"
            )
        classes = sorted(set(words))
        if all(word.isascii() and word.isdigit() and len(word) < 10 for word in classes):
            classes.sort(key=int)
        if len(classes) < 2:
            raise ValueError(f"path: the label of {path}, column {named}, has one class; accepted are two or more")
        if not cells:
            raise ValueError(f"path: {path} has one column; accepted are features and a label")
        categories = {i: sorted({*column} - {""}) for i, column in enumerate(cells) if not numeric(column)}
        features = numbers(path, "path", cells, columns, categories)
        number = {name: i for i, name in enumerate(classes)}
        labels = np.array([number[word] for word in words])
        nominal = np.array([i in categories for i in range(len(cells))])
        return cls(features, labels, classes, nominal, None, columns, categories, named)

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
        }


def suffix(path: str, argument: str) -> str:
    """Of the four that are read, the one that a file has."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"{argument}: there is no file {path}; accepted is a {', '.join(SUFFIXES)} file")
    ending = Path(path.removesuffix(".gz")).suffix.lower()
    if ending not in SUFFIXES:
        raise ValueError(f"{argument}: {path} ends in {ending or 'nothing'}; accepted are {', '.join(SUFFIXES)}")
    return ending


def entries(path: str, argument: str) -> tuple[list[str] | None, list[list[str]]]:
    """The names of the columns, where there are any, and the columns as text."""
    if suffix(path, argument) == ".parquet":
        return parquet(path, argument)
    try:
        text = list(lines(path))
        mark = "\t" if "\t" in text[0] else ";" if ";" in text[0] and "," not in text[0] else ","
        rows = [[entry.strip() for entry in row] for row in csv.reader(text, delimiter=mark, strict=True) if row]
    except csv.Error as problem:
        raise ValueError(f"{argument}: {path} is no table ({problem}); accepted is a CSV file") from None
    heading = rows[0] if rows and not any(is_number(entry) for entry in rows[0]) else None
    if heading is not None:
        rows = rows[1:]
        refuse_doubled(path, argument, heading)
    widths = {len(row) for row in rows} | ({len(heading)} if heading else set())
    if not rows or len(widths) != 1:
        raise ValueError(f"{argument}: {path} is no table; accepted are lines of equally many entries")
    return heading, [list(column) for column in zip(*rows, strict=True)]


def parquet(path: str, argument: str) -> tuple[list[str], list[list[str]]]:
    """The same of a Parquet file."""
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise ImportError(f"{argument}: {path} needs pyarrow; pip install pyarrow, or save the table as CSV") from None
    try:
        facts = parquet.read_metadata(path)
        names = facts.schema.to_arrow_schema().names
        size = max(sum(facts.row_group(i).total_byte_size for i in range(facts.num_row_groups)), 0)
        cells = facts.num_rows * facts.num_columns
        if not reasonable(os.stat(path).st_size, max(size, 8 * cells)):
            raise ValueError(
                f"{argument}: {path} of {os.stat(path).st_size} bytes claims {cells} entries in {size} bytes; accepted "
                f"are up to {LARGEST >> 30} GB, packed to no less than a five-hundredth"
            )
        refuse_doubled(path, argument, names)
        held = parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as problem:
        raise ValueError(f"{argument}: cannot read {path} ({problem}); accepted is a Parquet file") from None
    columns = [["" if entry is None else str(entry) for entry in column.to_pylist()] for column in held.columns]
    if not columns or not columns[0]:
        raise ValueError(f"{argument}: {path} has no rows; accepted is a table with some")
    return list(held.column_names), columns


def refuse_doubled(path: str, argument: str, names: Sequence[str]) -> None:
    """Refuse a heading that has a name twice."""
    doubled = [name for name, times in Counter(names).items() if times > 1]
    if doubled:
        raise ValueError(f"{argument}: {path} has two columns {shortened(doubled[0])}; accepted are distinct names")


def place(path: str, label: str | None, names: list[str] | None, count: int) -> int:
    """Where the label is."""
    if label is None:
        return count - 1
    if names is None or label not in names:
        there = "none: the first line is no heading" if names is None else ", ".join(names)
        raise ValueError(f"label: {path} has no column {shortened(label)}; accepted are {there}")
    return names.index(label)


def column_name(names: list[str] | None, at: int, asked: str | None) -> str:
    """The column of the labels in words, and that it was taken unasked."""
    name = str(at + 1) if names is None else names[at]
    return name if asked is not None else f"{name} (the last column)"


def numbers(
    path: str, argument: str, cells: list[list[str]], columns: list[str] | None, categories: dict[int, list[str]]
) -> np.ndarray:
    """Numbers, and of nominal columns those of the categories; a category that training did not show is missing."""
    features = np.full((len(cells[0]), len(cells)), np.nan)
    for i, column in enumerate(cells):
        name = str(i + 1) if columns is None else columns[i]
        known = {value: n for n, value in enumerate(categories[i])} if i in categories else None
        for row, entry in enumerate(column):
            if known is not None:
                features[row, i] = known.get(entry, np.nan)
            elif entry:
                if not is_number(entry) or np.isinf(float(entry)):
                    raise ValueError(
                        f"{argument}: column {name} of {path} has {shortened(entry)} in row {row + 1}; "
                        "accepted are finite numbers"
                    )
                features[row, i] = float(entry)
    remark(path, features)
    return features


def numeric(column: Sequence[str]) -> bool:
    """Whether it holds numbers; a column of words with a few numbers among them is nominal."""
    return all(is_number(entry) for entry in column if entry)


def is_number(entry: str) -> bool:
    """Whether it can be read as one."""
    try:
        float(entry)
    except ValueError:
        return False
    return True


def laid_out(held: Table) -> tuple[Tensor, Tensor, list[str], np.ndarray, np.ndarray]:
    """Features without scaling, labels, class names, and the row numbers for training and for testing."""
    import torch

    from .encoding import stratified_split

    assert held.labels is not None
    train, test = held.split or stratified_split(held.labels, 0.25, 0)
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


def of_fit(path: str | None, label: str | None, known: str | None) -> Table:
    """The table that a model was fitted to; refused where it has other contents by now."""
    held = read_or_digits(path, label)
    if known is not None and held.digest() != known:
        raise ValueError(
            f"path: {path} has other rows by now than those that the model was fitted to; accepted is a file that is "
            "named with this command"
        )
    return held


def read_or_digits(path: str | None, label: str | None = None) -> Table:
    """The table of a file, or the digits."""
    if path is not None:
        return Table.read(path, label)
    from sklearn.datasets import load_digits

    features, labels = load_digits(return_X_y=True)
    nominal = np.zeros(features.shape[1], bool)
    return Table(features, labels.astype(np.int64), [str(k) for k in range(10)], nominal, None, None, {})
