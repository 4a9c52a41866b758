"""Columns that go along into a file of labels: those that say which row is which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..names import listed
from .arrays import read
from .entries import Text, entries, suffix
from .table import Ignored, asked
from .text import shortened

__all__ = ["Kept", "kept"]


class Kept(NamedTuple):
    """Columns as text, and their names."""

    names: list[str]
    columns: list[list[str]]


def kept(
    path: str | None, schema: dict[str, Any], keep: Ignored, rows: Sequence[int] | None = None, argument: str = "path"
) -> Kept | None:
    """The columns of a file that ``keep`` names, by default those that the fit left out and the file has.

    Args:
        path: the file; None has none.
        schema: of the fit (`Table.schema`).
        keep: names, or numbers where there is no heading; of an ``.npz`` file arrays of an entry a row.
        rows: only these.
        argument: which names the file.

    Raises:
        ValueError: a column that is asked for and is not there.
    """
    wanted = asked(keep)
    if path is None or (keep is None and suffix(path, argument) == ".npz"):
        there: dict[str, list[str]] = {}
    elif suffix(path, argument) == ".npz":
        arrays = read(path, argument, needs=("X",))
        count = len(arrays["X"])
        there = {name: [*map(str, array.tolist())] for name, array in arrays.items() if array.shape == (count,)}
    else:
        text = entries(path, argument)
        there = dict(zip(text.names or map(str, range(1, len(text.cells) + 1)), text.cells, strict=True))
        if keep is None:
            there = left_out(text, there, schema)
            wanted = (*there,)
    for name in wanted:
        if name not in there:
            has = f"it has {listed(there)}" if there else "it has none to keep"
            raise ValueError(f"keep: {path or 'the data'} has no column {shortened(name)}; {has}")
    if not wanted:
        return None
    columns = [there[name] for name in wanted]
    return Kept([*wanted], columns if rows is None else [[column[row] for row in rows] for column in columns])


def left_out(text: Text, there: dict[str, list[str]], schema: dict[str, Any]) -> dict[str, list[str]]:
    """Those that the fit left out: by their names where both files have some, else by their places."""
    names, width = schema.get("left_out", []), schema.get("width")
    if text.names is not None and schema["columns"] is not None:
        return {name: there[name] for name in names if name in there}
    places = [place for place in range(width or 0) if place not in schema["kept"]]
    fits = len(text.cells) in (width, (width or 0) + 1) and len(places) == len(names)
    return {name: text.cells[place] for name, place in zip(names, places, strict=True)} if fits else {}
