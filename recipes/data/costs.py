"""What each mistake costs: a file, or a mapping of names."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..names import listed

__all__ = ["check_size", "costs", "read"]

ACCEPTED = "a file of numbers, a line a true class, with or without the classes' names before the lines and above them"


def costs(given: str | Mapping[Any, Any], names: Sequence[str]) -> list[list[float]]:
    """``(K, K)``, its rows the true classes, in the order of ``names``.

    Args:
        given: a file, see `read`; or for each true class what its mistakes cost, ``{cat: {dog: 5}}``: those not named
            cost 1, the right answer nothing.
        names: of the classes.
    """
    if isinstance(given, Mapping):
        return of_mapping(given, names)
    rows, columns, table = read(given)
    if columns is None:
        if len(table) != len(names):
            accepted = f"{len(names)}, one a class, in the order {listed(names, 40)}"
            raise SystemExit(f"error: cost: {given} has {len(table)} lines; accepted are {accepted}")
        return table
    for found, what in ((rows, "line"), (columns, "column")):
        for name in names:
            if name not in found:
                raise SystemExit(f"error: cost: {given} has no {what} {name}; accepted is one for each class")
        for name in found:
            if name not in names:
                raise SystemExit(f"error: cost: {given} has {name}; the classes are {listed(names)}")
    at, to = [rows.index(name) for name in names], [columns.index(name) for name in names]
    return [[table[i][j] for j in to] for i in at]


def read(path: str) -> tuple[list[str], list[str] | None, list[list[float]]]:
    """The names of its lines and columns, none and None where it has numbers alone, and the costs."""
    try:
        lines = [line for line in Path(path).read_text(encoding="utf-8-sig").splitlines() if line.strip()]
        plain = [line.replace(",", " ").split() for line in lines]
        if all(is_number(cell) for cell in (plain or [[""]])[0]):
            return [], None, square([[cost_of(cell) for cell in row] for row in plain])
        mark = next((mark for mark in ",;\t" if lines and mark in lines[0]), None)
        cells = [line.split() for line in lines] if mark is None else [*csv.reader(lines, delimiter=mark)]
        cells = [[cell.strip() for cell in row] for row in cells]
        if not cells:
            raise ValueError("it has no line")
        above = cells[0][len(cells[0]) - len(cells) + 1 :]
        table = square([[cost_of(cell) for cell in row[1:]] for row in cells[1:]])
        names = [row[0] for row in cells[1:]]
        for found in (above, names):
            doubled = [name for name in found if found.count(name) > 1]
            if doubled:
                raise ValueError(f"{doubled[0]} is there twice")
        return names, above, table
    except (OSError, ValueError, csv.Error) as problem:
        raise SystemExit(f"error: cost: {path}: {problem}; accepted is {ACCEPTED}") from None


def check_size(size: int, tags: Sequence[str]) -> None:
    """Raise for a matrix of costs of another number of tags than there are."""
    if size != len(tags):
        k = len(tags)
        raise ValueError(
            f"cost: is {size} x {size}; accepted is {k} x {k}, in the order {listed(tags, 40)}, or costs by name, "
            "--model.cost"
        )


def of_mapping(given: Mapping[Any, Any], names: Sequence[str]) -> list[list[float]]:
    """Of what was typed."""
    table = [[float(i != j) for j in range(len(names))] for i in range(len(names))]
    for true, mistakes in given.items():
        if not isinstance(mistakes, Mapping):
            raise SystemExit(f"error: cost: got {mistakes!r} for {true}; accepted is as in {{cat: {{dog: 5}}}}")
        for guess, value in mistakes.items():
            for name in (true, guess):
                if str(name) not in names:
                    raise SystemExit(f"error: cost: got {name}; the classes are {listed(names)}")
            try:
                table[names.index(str(true))][names.index(str(guess))] = cost_of(value)
            except ValueError as problem:
                raise SystemExit(f"error: cost: {problem}; accepted are numbers >= 0") from None
    return table


def square(table: list[list[float]]) -> list[list[float]]:
    """The table; raise unless it has as many columns as lines."""
    for number, row in enumerate(table, 1):
        if len(row) != len(table):
            raise ValueError(f"line {number} has {len(row)} numbers, there are {len(table)} lines")
    return table


def cost_of(cell: Any) -> float:
    """A number >= 0."""
    value = float(cell)
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{cell} is no cost")
    return value


def is_number(cell: str) -> bool:
    """Whether a cell is no name."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
