"""What the entries of a table of text are: numbers however they are spelled, missing ones, or words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..start import note, warn
from .text import shortened

__all__ = ["Column", "Remarks", "is_number", "settled"]

MISSING = frozenset({"", "?", "na", "n/a", "#n/a", "<na>", "nan", "nat", "null"})
"""Entries that are missing ones, in small letters."""
UNTOLD = frozenset({"-", "--", ".", "none"})
"""Those that are so among numbers; among words they may be words."""
GERMAN = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)?(,\d+)?([eE][+-]?\d+)?")
ENGLISH = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?([eE][+-]?\d+)?")
MANY = 50
"""More words than a column should have unsaid: each becomes a column."""


class Column(NamedTuple):
    """A column once its entries are understood.

    Args:
        entries: numbers as Python reads them or words; empty where missing.
        words: whether they are words.
        strange: the rows of entries that are no numbers, of a column of numbers.
    """

    entries: list[str]
    words: bool
    strange: list[int]


@dataclass
class Remarks:
    """What is worth a line about the entries of a file, collected over its columns, said once.

    Args:
        where: the file.
        place: a row's number, from 0, as messages have it.
    """

    where: str
    place: Callable[[int], str]
    commas: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)

    def say(self) -> None:
        """All but what is missing, which `recipes.data.arrays.remark` says."""
        if self.commas:
            others = len(self.commas) - 1
            more = f", and likewise in {others} other column{'s' * (others > 1)}" if others else ""
            note(f"{self.where}: {self.commas[0]}{more}")
        for line in self.lines:
            note(f"{self.where}: {line}")
        for line in self.lost:
            warn(f"{self.where}: {line}")

    def say_in_one_line(self, missing: str) -> None:
        """Of rows to be labelled, whose columns the fit has spoken of; a warning where an entry is lost."""
        others = len(self.commas) - 1
        commas = [f"{self.commas[0]}{f' (and in {others} more)' if others else ''}"] if self.commas else []
        said = "; ".join([*self.lost, *([missing] if missing else []), *commas])
        if said:
            (warn if self.lost else note)(f"{self.where}: {said}")

    def within(self, row: int) -> str:
        """The line of a row, where the file has lines."""
        place = self.place(row)
        return f" ({place} of the file)" if place.startswith("line") else ""

    def among(self) -> str:
        """Which words are counted as missing, and how often, after the count of all; nothing where there are none."""
        named = [f"{shortened(word)} {times} time{'s' * (times > 1)}" for word, times in self.missing.most_common(4)]
        return f" ({', '.join([*named, *(['...'] if len(self.missing) > 4 else [])])})" if named else ""

    def listed(self, column: Sequence[str], rows: Sequence[int], most: int = 3) -> str:
        """Some entries and where they are."""
        named = [f"{shortened(column[row])} ({self.place(row)})" for row in rows[:most]]
        return ", ".join([*named, *(["..."] if len(rows) > most else [])])


def is_number(entry: str) -> bool:
    """Whether it can be read as one."""
    try:
        float(entry)
    except ValueError:
        return False
    return True


def python(entry: str) -> str | None:
    """A number as Python writes it; None where the entry is none."""
    return entry if is_number(entry) else None


def german(entry: str) -> str | None:
    """The same of ``1.234,5``."""
    fits = GERMAN.fullmatch(entry) and any(map(str.isdigit, entry))
    return entry.replace(".", "").replace(",", ".") if fits else None


def english(entry: str) -> str | None:
    """The same of ``1,234.5``."""
    return entry.replace(",", "") if ENGLISH.fullmatch(entry) else python(entry)


def respelled(column: Sequence[str], comma_parts_entries: bool) -> list[str | None]:
    """The numbers of a column by the spelling in which most of its entries are some, Python's where that does as well.

    A comma is a decimal one first, but where commas part the entries: there it is first one of thousands.
    """
    ways = [python]
    if any("," in entry for entry in column):
        ways += [english, german] if comma_parts_entries else [german, english]
    tried = [[way(entry) if entry else "" for entry in column] for way in ways]
    return min(tried, key=lambda one: one.count(None))


def settled(
    name: str, column: Sequence[str], remarks: Remarks, comma_parts_entries: bool, known: Collection[str] | None = None
) -> Column:
    """Understand a column: of words if ``known`` are those of the training, else as its entries say.

    A column of numbers but for a tenth of its entries or less is one of numbers; the others of it count as missing.
    """
    if known is not None:
        plain = [entry if entry in known or entry.lower() not in MISSING else "" for entry in column]
        remarks.missing.update(entry for entry, left in zip(column, plain, strict=True) if entry and not left)
        return Column(plain, True, [])
    there = [entry if entry.lower() not in MISSING else "" for entry in column]
    found = respelled(["" if entry.lower() in UNTOLD else entry for entry in there], comma_parts_entries)
    filled = sum(entry != "" for entry in found)
    strange = [row for row, entry in enumerate(found) if entry is None]
    if 10 * len(strange) > filled:
        remarks.missing.update(entry for entry, left in zip(column, there, strict=True) if entry and not left)
        doubt(name, there, strange, filled, remarks)
        return Column(there, True, strange)
    odd, read = {*strange}, [entry or "" for entry in found]
    remarks.missing.update(
        entry
        for row, (entry, left) in enumerate(zip(column, read, strict=True))
        if entry and not left and row not in odd
    )
    if strange:
        count = "1 entry" if len(strange) == 1 else f"{len(strange)} entries"
        verb = "counts" if len(strange) == 1 else "count"
        remarks.lost.append(
            f"column {shortened(name)} is numbers but for {count}, which {verb} as missing: "
            f"{remarks.listed(column, strange)}"
        )
    changed = next((row for row, entry in enumerate(read) if entry and entry != column[row]), None)
    if changed is not None:
        remarks.commas.append(f"in column {shortened(name)} {column[changed]!r} is read as {read[changed]}")
    return Column(read, False, strange)


def doubt(name: str, column: Sequence[str], strange: Sequence[int], filled: int, remarks: Remarks) -> None:
    """Of a column that is taken as words: that half of it are numbers, or that the words are many."""
    words = {*column} - {""}
    numbers = filled - len(strange)
    if 2 * numbers >= filled:
        remarks.lines.append(
            f"column {shortened(name)}: {numbers} of {filled} entries are numbers, but {len(strange)} are not, "
            f"{remarks.listed(column, strange)}: all are taken as words"
        )
    elif len(words) > MANY and len(words) < filled:
        remarks.lines.append(
            f"column {shortened(name)} has {len(words)} words in {filled} rows, each of which becomes a column; "
            "--ignore leaves it out"
        )
