"""Tables as text: the entries of a ``.csv``, ``.tsv`` or ``.parquet`` file, and which line each row was."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .cells import is_number
from .packed import LARGEST, reasonable
from .text import lines, shortened

__all__ = ["Text", "entries", "suffix"]

SUFFIXES = (".npz", ".csv", ".tsv", ".parquet")


class Text(NamedTuple):
    """A table as text: names of the columns if it has some, the columns, the line of each row, what parts entries."""

    names: list[str] | None
    cells: list[list[str]]
    lines: list[int] | None = None
    mark: str = ","

    def row(self, number: int) -> str:
        """A row's place, from its number from 0: its line in the file, if that has lines."""
        return f"row {number + 1}" if self.lines is None else f"line {self.lines[number]}"


NAMED = {",": "commas", ";": "semicolons", "\t": "tabs"}
"""What may part the entries of a line."""


def suffix(path: str, argument: str) -> str:
    """Of the four that are read, the one that a file has."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"{argument}: there is no file {path}; accepted is a {', '.join(SUFFIXES)} file")
    ending = Path(path.removesuffix(".gz")).suffix.lower()
    if ending not in SUFFIXES:
        raise ValueError(f"{argument}: {path} ends in {ending or 'nothing'}; accepted are {', '.join(SUFFIXES)}")
    return ending


def entries(path: str, argument: str) -> Text:
    """A file as text."""
    if suffix(path, argument) == ".parquet":
        return parquet(path, argument)
    try:
        text = list(lines(path))
        mark = "\t" if "\t" in text[0] else ";" if ";" in text[0] and "," not in text[0] else ","
        reader = csv.reader(text, delimiter=mark, strict=True)
        found = [(reader.line_num, [entry.strip() for entry in row]) for row in reader if row]
    except csv.Error as problem:
        raise ValueError(f"{argument}: {path} is no table ({problem}); accepted is a CSV file") from None
    lined, rows = [line for line, _ in found], [row for _, row in found]
    heading = rows[0] if rows and not any(is_number(entry) for entry in rows[0]) else None
    if heading is not None:
        lined, rows = lined[1:], rows[1:]
        refuse_doubled(path, argument, heading)
    widths = {len(row) for row in rows} | ({len(heading)} if heading else set())
    if not rows:
        has = "is empty" if heading is None else f"has one line, {shortened(','.join(heading))}, and no row below it"
        raise ValueError(f"{argument}: {path} {has}; accepted is a table with rows")
    if len(widths) != 1:
        first = len(heading if heading is not None else rows[0])
        line, width = next((line, len(row)) for line, row in zip(lined, rows, strict=True) if len(row) != first)
        raise ValueError(
            f"{argument}: {path} is no table: line {line} has {width} entries, the first {first}; accepted are lines "
            f"of equally many entries, parted by {NAMED[mark]}"
        )
    return Text(heading, [list(column) for column in zip(*rows, strict=True)], lined, mark)


def parquet(path: str, argument: str) -> Text:
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
    return Text(list(held.column_names), columns)


def refuse_doubled(path: str, argument: str, names: Sequence[str]) -> None:
    """Refuse a heading that has a name twice."""
    doubled = [name for name, times in Counter(names).items() if times > 1]
    if doubled:
        raise ValueError(f"{argument}: {path} has two columns {shortened(doubled[0])}; accepted are distinct names")
