"""Rows to be labelled by a model: a file, a data frame or an array, with the columns of the training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..names import apart, listed
from ..start import warn
from .arrays import check_squares, checked_features, read
from .cells import Remarks, settled
from .entries import Text, entries, suffix
from .table import absent, numbers
from .text import shortened

__all__ = ["features_of", "new_features"]


def features_of(rows: Any, schema: dict[str, Any], argument: str = "path") -> np.ndarray:
    """The features of a file, of a data frame, whose columns go by their names, or of an array of numbers or words.

    ``argument`` is what a file was given as.

    Raises:
        ValueError: rows unlike those that ``schema`` (`Table.schema`) tells of.
    """
    if isinstance(rows, (str, Path)):
        return new_features(str(rows), schema, argument)
    if hasattr(rows, "columns") and hasattr(rows, "__getitem__"):
        names = [str(name) for name in rows.columns]
        held = [np.asarray(rows[name], object) for name in rows.columns]
        if schema["columns"] is not None or not all(map(plain, held)):
            cells = [[word(entry) for entry in column] for column in held]
            return of_cells("the data frame", "rows", Text(names, cells), schema)
        rows = np.stack(held, 1)
    shape = tuple(schema["shape"])
    array = array_of(rows, ", ".join(["rows", *map(str, shape)]))
    if array.ndim != len(shape) + 1:
        wanted = ", ".join(["rows", *map(str, shape)])
        raise ValueError(f"rows: got shape {tuple(array.shape)}; accepted is ({wanted}), as in training")
    if array.ndim == 2 and array.dtype.kind in "OUS" and not plain(array):
        cells = [[word(entry) for entry in column] for column in array.T]
        return of_cells("the array", "rows", Text(None, cells), schema)
    if array.shape[1:] == (schema.get("width"),):
        array = array[:, schema["kept"]]
    if array.shape[1:] != shape:
        raise ValueError(f"rows: got {unlike(array.shape[1:], schema)}")
    return finite(array)


def array_of(rows: Any, shape: str, argument: str = "rows") -> np.ndarray:
    """What was handed over as an array of numbers or words, from wherever; raise where it is none."""
    if hasattr(rows, "toarray"):  # a sparse one
        rows = rows.toarray()
    if hasattr(rows, "detach"):
        rows = rows.detach().cpu()
    try:
        array = np.asarray(rows)
    except (ValueError, TypeError, RuntimeError) as problem:
        got = type(rows).__name__
        raise ValueError(f"{argument}: got a {got} that is no array ({problem}); accepted is ({shape})") from None
    if array.dtype.kind not in "buifOUS":
        raise ValueError(f"{argument}: got dtype {array.dtype}; accepted are real numbers, ({shape})")
    return array


def finite(array: np.ndarray, argument: str = "rows") -> np.ndarray:
    """The array as floats; raise where it holds an infinite number. NaN is a missing value."""
    try:
        array = array.astype(float)
    except (ValueError, TypeError) as problem:
        raise ValueError(f"{argument}: {problem}; accepted are numbers") from None
    if np.isinf(array).any():
        at = ", ".join(map(str, np.argwhere(np.isinf(array))[0]))
        raise ValueError(
            f"{argument}: is infinite at ({at}); accepted are finite numbers, and NaN where one is missing"
        )
    return array


def new_features(path: str, schema: dict[str, Any], argument: str = "path") -> np.ndarray:
    """The features of a file of rows like those that a `Table.schema` tells of; a label among them plays no part."""
    if suffix(path, argument) == ".npz":
        features = checked_features(path, argument, read(path, argument, needs=("X",))["X"])
        if features.shape[1:] == (schema.get("width"),):
            features = features[:, schema["kept"]]
        if features.shape[1:] != tuple(schema["shape"]):
            shape = tuple(schema["shape"])
            raise ValueError(
                f"{argument}: rows of X in {path} have shape {features.shape[1:]}; accepted is {shape}, as in training"
            )
        return features
    return of_cells(path, argument, entries(path, argument), schema)


def check_columns(path: str, schema: dict[str, Any]) -> None:
    """Raise for a table of text that lacks a column."""
    if suffix(path, "path") != ".npz":
        chosen(path, "path", entries(path, "path"), schema)


def chosen(where: str, argument: str, text: Text, schema: dict[str, Any]) -> list[list[str]]:
    """The columns of the training out of those there are, by their names where both have some, else by their places."""
    shape, columns, names, cells = tuple(schema["shape"]), schema["columns"], text.names, text.cells
    if names is not None and columns is not None:
        missing = [name for name in columns if name not in names]
        if missing:
            raise ValueError(f"{argument}: {where} has no column {apart(missing[0])}; it has {listed(names)}")
        cells = [cells[names.index(name)] for name in columns]
    elif "width" in schema and len(cells) in (schema["width"], schema["width"] + 1):
        cells = [cells[place] for place in schema["kept"]]
    elif len(shape) != 1 or len(cells) not in (shape[0], shape[0] + 1):
        raise ValueError(f"{argument}: {where} has {unlike((len(cells),), schema)}")
    return cells[: shape[0]]


def of_cells(where: str, argument: str, text: Text, schema: dict[str, Any]) -> np.ndarray:
    """Of columns of text."""
    shape, columns, cells = tuple(schema["shape"]), schema["columns"], chosen(where, argument, text, schema)
    categories = {int(i): values for i, values in schema["categories"].items()}
    remarks, called = Remarks(where, text.row), columns or [str(i + 1) for i in range(shape[0])]
    read = []
    for i, column in enumerate(cells):
        known = categories.get(i)
        given = column if known is None else [truth(entry, known) for entry in column]
        read.append(settled(called[i], given, remarks, text.mark == ",", known).entries)
    features = numbers(where, argument, read, called, categories, remarks)
    check_squares(where, argument, features, called)
    missing = absent(read)
    remarks.say_in_one_line(f"{missing}{remarks.among()}" if missing else "")
    warn_of(where, read, columns, categories)
    return features


def unlike(shape: Sequence[int], schema: dict[str, Any]) -> str:
    """How many columns there are in place of how many."""
    wanted, names = tuple(schema["shape"]), schema["columns"]
    if len(shape) != 1 or len(wanted) != 1:
        return f"rows of shape {tuple(shape)}; accepted is {wanted}, as in training"
    named = f": {listed(names)}" if names else ""
    return f"{shape[0]} columns; accepted are {wanted[0]}, as in training{named}"


def warn_of(where: str, cells: list[list[str]], columns: list[str] | None, categories: dict[int, list[str]]) -> None:
    """Say which columns are empty, and which words the training did not show: they count as missing."""
    for i, column in enumerate(cells):
        name = shortened(str(i + 1) if columns is None else columns[i])
        strange = sorted({*column} - {*categories[i], ""}) if i in categories else []
        if not any(column):
            warn(f"column {name} of {where} is empty: every value counts as missing")
        elif strange:
            count = sum(entry in strange for entry in column)
            shown = ", ".join([*map(shortened, strange[:3]), *(["..."] if len(strange) > 3 else [])])
            warn(
                f"column {name} of {where} has {shown} in {count} of {len(column)} rows, which training did not show: "
                "it counts as missing"
            )


def word(entry: Any) -> str:
    """An entry as a table of text has it; nothing where it is missing."""
    if isinstance(entry, str):
        return entry.strip()
    return "" if entry is None or str(entry) in ("nan", "<NA>", "NaT") else str(entry)


def truth(entry: str, known: Sequence[str]) -> str:
    """A truth value as the training spelled it."""
    spellings = (entry, entry.lower(), entry.upper()) if entry in ("True", "False") else ()
    return next((one for one in spellings if one in known), entry)


def plain(column: np.ndarray) -> bool:
    """Whether it holds numbers alone."""
    return all(isinstance(entry, (int, float, np.number)) or entry is None for entry in column.ravel().tolist())
