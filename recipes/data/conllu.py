"""Sentences of CoNLL-U files: read strictly, written back as they were but for the one column that was tagged.

A file is kept as its lines, so comments, multiword tokens (``3-4``), empty nodes (``8.1``) and the nine other columns
come out as they went in; line ends come out as LF, with one empty line behind each sentence. Every complaint names the
file and the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .text import lines, shortened

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
MISSING = "_"
_ID = re.compile(r"(?P<word>[1-9]\d{0,8})|[1-9]\d{0,8}-[1-9]\d{0,8}|\d{1,9}\.[1-9]\d{0,8}")


@dataclass(frozen=True)
class Column:
    """Where tags stand: a column such as ``UPOS``, or a key of the last one, written ``MISC:NER``."""

    name: str
    key: str | None = None

    @classmethod
    def parse(cls, text: str) -> Column:
        """The column that ``text`` names; an error that lists the accepted names otherwise."""
        name, colon, key = text.partition(":")
        name = name.upper()
        taggable = COLUMNS[2:]
        if name not in taggable or (colon and (name != "MISC" or not key or set(key) & set("=|\t\n"))):
            raise ValueError(f"column: got {text!r}; accepted are {', '.join(taggable)} and MISC:KEY")
        return cls(name, key or None)

    @classmethod
    def of(cls, column: Column | str | None) -> Column:
        """A column, its name, or UPOS where none is given."""
        return column if isinstance(column, Column) else cls.parse("UPOS" if column is None else column)

    def __str__(self) -> str:
        return f"{self.name}:{self.key}" if self.key else self.name

    def read(self, line: str) -> str | None:
        """The tag on a word's line; None where there is none."""
        cell = line.split("\t")[COLUMNS.index(self.name)]
        if self.key is None:
            return None if cell in ("", MISSING) else cell
        values = [entry[len(self.key) + 1 :] for entry in cell.split("|") if entry.startswith(f"{self.key}=")]
        return values[0] if values else None

    def write(self, line: str, tag: str) -> str:
        """The word's line with ``tag`` in this column and everything else as it was."""
        cells = line.split("\t")
        at = COLUMNS.index(self.name)
        if self.key is None:
            cells[at] = tag
            return "\t".join(cells)
        entry, found = f"{self.key}={tag}", False
        entries = [] if cells[at] in ("", MISSING) else cells[at].split("|")
        for i, old in enumerate(entries):
            if old.startswith(f"{self.key}="):
                entries[i], found = entry, True
        cells[at] = "|".join(entries if found else [*entries, entry])
        return "\t".join(cells)


@dataclass(frozen=True)
class Sentence:
    """One block of a CoNLL-U file: its lines, and which of them are words."""

    path: str
    first_line: int
    lines: tuple[str, ...]
    words: tuple[int, ...]

    @property
    def forms(self) -> list[str]:
        """The word forms, in order; multiword tokens and empty nodes are not words."""
        return [self.lines[i].split("\t", 2)[1] for i in self.words]

    def tags(self, column: Column | str | None) -> list[str | None]:
        """The words' tags in ``column``; None where a word has none."""
        where = Column.of(column)
        return [where.read(self.lines[i]) for i in self.words]

    def name(self, column: Column | str | None) -> str:
        """What messages call the column."""
        return str(Column.of(column))

    def tagged(
        self,
        column: Column | str | None,
        tags: Sequence[str],
        probabilities: Sequence[float] | None = None,
        others: Sequence[tuple[Sequence[str], float]] = (),
        best: float | None = None,
    ) -> Sentence:
        """The same sentence with ``tags`` written into ``column``, which is ``MISC:TAG`` where it is no column of this.

        Probabilities become ``MISC:P``; the log-probability of the best labelling and the others with theirs comments.
        """
        if len(tags) != len(self.words):
            raise ValueError(f"tags: got {len(tags)}; accepted is one for each of the {len(self.words)} words")
        where = self.target(column)
        lines = list(self.lines)
        for n, (i, tag) in enumerate(zip(self.words, tags, strict=True)):
            lines[i] = where.write(lines[i], tag)
            if probabilities is not None:
                lines[i] = Column("MISC", "P").write(lines[i], f"{probabilities[n]:.6g}")
        notes = [] if best is None else [f"# log p = {best:.4f}"]
        notes += [f"# tags_{n} (log p {p:.4f}) = {' '.join(other)}" for n, (other, p) in enumerate(others, start=1)]
        words = tuple(i + len(notes) for i in self.words)
        return Sentence(self.path, self.first_line, (*notes, *lines), words)

    def target(self, column: Column | str | None) -> Column:
        """The column that is written."""
        try:
            return Column.of(column)
        except ValueError:
            return Column("MISC", "TAG")

    def layout(self, column: Column | str | None, probabilities: bool, k_best: int) -> str:
        """What `tagged` writes where, in words."""
        names = [f"tags in {self.target(column)}", *["their probabilities in MISC:P"] * probabilities]
        names += ["the log-probability and the next best taggings in comments above each sentence"] * (k_best > 1)
        return ", ".join(names)

    def place(self, word: int) -> str:
        """``file:line`` of a word, for messages."""
        return f"{self.path}:{self.first_line + self.words[word]}"

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in (*self.lines, ""))


ACCEPTED = "accepted are sentences, in CoNLL-U, in columns of CoNLL or in JSON lines"


def read(path: str | Path) -> list[Sentence]:
    """All sentences of a CoNLL-U file, plain or gzipped; a file without a word is an error."""
    if not Path(path).exists() or Path(path).is_dir():
        raise FileNotFoundError(f"there is no file {path}; accepted is a CoNLL-U file, plain or gzipped")
    sentences = list(_sentences(str(path), lines(path)))
    if not any(sentence.words for sentence in sentences):
        raise ValueError(f"{path}:1: got no word in the whole file; {ACCEPTED}")
    return sentences


def _sentences(path: str, lines: Iterable[str]) -> Iterator[Sentence]:
    block: list[str] = []
    words: list[int] = []
    number = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            if block:
                yield Sentence(path, number - len(block), tuple(block), tuple(words))
            block, words = [], []
            continue
        if not line.startswith("#") and _is_word(f"{path}:{number}", line, expected=len(words) + 1):
            words.append(len(block))
        block.append(line)
    if block:
        yield Sentence(path, number - len(block) + 1, tuple(block), tuple(words))


def _is_word(place: str, line: str, expected: int) -> bool:
    cells = line.split("\t")
    if len(cells) != len(COLUMNS):
        raise ValueError(f"{place}: got {len(cells)} tab-separated columns; accepted are the 10 of CoNLL-U")
    match = _ID.fullmatch(cells[0])
    if match is None:
        raise ValueError(
            f"{place}: got ID {shortened(cells[0])}; accepted are 3 (word), 3-4 (multiword), 8.1 (empty node)"
        )
    if match["word"] and int(match["word"]) != expected:
        hint = "; is the blank line between two sentences missing?" if match["word"] == "1" else ""
        raise ValueError(f"{place}: got word {match['word']}; accepted here is word {expected}{hint}")
    return match["word"] is not None
