"""Sentences of CoNLL files of one to five columns: the word first, a tag in any other, by default the last.

Columns are parted by tabs where the first line has one, else by blanks; an empty line ends a sentence. Lines such as
``-DOCSTART- -X- O O`` and comments are kept and are no words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .conllu import MISSING, Column
from .text import shortened

START = "-DOCSTART-"
MOST = 5


@dataclass(frozen=True)
class ColumnSentence:
    """One block of a file of columns: its lines, which of them are words, and the number of columns."""

    path: str
    first_line: int
    lines: tuple[str, ...]
    words: tuple[int, ...]
    width: int
    tabs: bool

    def cells(self, word: int) -> list[str]:
        """The columns of a word."""
        return parted(self.lines[self.words[word]], self.tabs)

    @property
    def forms(self) -> list[str]:
        """The words."""
        return [self.cells(i)[0] for i in range(len(self.words))]

    def place_of(self, column: Column | str | None) -> int:
        """The column's number, from 0: ``2`` to ``5`` or ``last`` is what a user writes."""
        text = "last" if column is None else str(column)
        if text.lower() == "last" and self.width > 1:
            return self.width - 1
        if text.isascii() and text.isdigit() and 2 <= int(text[:9]) <= self.width:
            return int(text) - 1
        there = "last"
        if self.width == 1:
            there = "none: the file has words alone, as tabs or blanks part the columns of words and tags"
        numbers = ", ".join(str(i) for i in range(2, self.width + 1))
        raise ValueError(
            f"column: got {shortened(text)}; accepted for {self.path} are {', '.join(filter(None, (numbers, there)))}"
        )

    def tags(self, column: Column | str | None) -> list[str | None]:
        """The words' tags; None where a word has ``_``."""
        at = self.place_of(column)
        return [None if cells[at] in ("", MISSING) else cells[at] for cells in map(self.cells, range(len(self.words)))]

    def name(self, column: Column | str | None) -> str:
        """What messages call the column."""
        return "last" if column is None else str(column)

    def tagged(
        self,
        column: Column | str | None,
        tags: Sequence[str],
        probabilities: Sequence[float] | None = None,
        others: Sequence[tuple[Sequence[str], float]] = (),
        best: float | None = None,
    ) -> ColumnSentence:
        """The same sentence with the tags in their column, a new one where there is none, and all else behind it:
        probabilities, and of each other labelling its tag and, the same on every line, its log-probability; before them
        that of the best.
        """
        at = self.target(column)
        lines, mark = list(self.lines), self.mark
        for i, line in enumerate(self.words):
            cells = self.cells(i)
            cells[at : at + 1] = [tags[i]]
            cells += [] if probabilities is None else [f"{probabilities[i]:.6g}"]
            cells += [] if best is None else [f"{best:.4f}"]
            lines[line] = mark.join([*cells, *(cell for other, p in others for cell in (other[i], f"{p:.4f}"))])
        return ColumnSentence(self.path, self.first_line, tuple(lines), self.words, self.width, self.tabs)

    @property
    def mark(self) -> str:
        """What parts the columns that are written: as in the file, behind words alone a tab."""
        return "\t" if self.tabs or self.width == 1 else " "

    def target(self, column: Column | str | None) -> int:
        """The number of the column that is written: the one named where there is such, else a new one."""
        try:
            return self.place_of(column)
        except ValueError:
            return self.width

    def replaced(self, column: Column | str | None) -> str:
        """What stood in the column that is written and is there no more, in words; nothing where all is kept."""
        at = self.target(column)
        if at >= self.width or not any(tag is not None for tag in self.tags(str(at + 1))):
            return ""
        return f"the tags replace what stood in column {at + 1}"

    def layout(self, column: Column | str | None, probabilities: bool, k_best: int) -> str:
        """What `tagged` writes where, in words."""
        at = self.target(column)
        names = ["word", *(f"column {number}" for number in range(2, self.width + 1))]
        names[at : at + 1] = ["tag"]
        names += ["its probability"] * probabilities
        names += ["the tagging's log-probability"] * (k_best > 1)
        for number in range(2, k_best + 1):
            names += [f"tag of the {ordinal(number)} best tagging", "its log-probability"]
        return f"columns {', '.join(names)}"

    def place(self, word: int) -> str:
        """``file:line`` of a word, for messages."""
        return f"{self.path}:{self.first_line + self.words[word]}"

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in (*self.lines, ""))


def ordinal(number: int) -> str:
    """``2nd``."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number // 10 % 10 == 1 else ending}"


def parted(line: str, tabs: bool) -> list[str]:
    """The columns of a line."""
    return [cell.strip() for cell in line.rstrip("\t ").split("\t")] if tabs else line.split()


def sentences(path: str, lines: Iterable[str]) -> Iterator[ColumnSentence]:
    """The sentences of a file; each word has as many columns as the first."""
    text = list(lines)
    first = next((line for line in text if is_line(line) and not line.startswith("#")), "")
    tabs = "\t" in first.strip()
    width = len(parted(first, tabs))
    block: list[str] = []
    words: list[int] = []
    for number, line in enumerate([*text, ""], start=1):
        if not line.strip():
            if block:
                yield ColumnSentence(path, number - len(block), tuple(block), tuple(words), width, tabs)
            block, words = [], []
            continue
        count = len(parted(line, tabs))
        if is_line(line) and (count == width or not line.startswith("#")):
            if count != width or width > MOST:
                accepted = f"1 to {MOST}" if width > MOST else f"{width}, as in the first line"
                raise ValueError(
                    f"{path}:{number}: got {count} columns; accepted are {accepted}: a word a line, its tags behind "
                    "tabs or blanks, an empty line between sentences"
                )
            words.append(len(block))
        block.append(line)


def is_line(line: str) -> bool:
    """Whether it may be a word's."""
    return bool(line.strip()) and not line.startswith(START)
