"""Sentences of CoNLL-U files: read strictly, written back as they were but for the one column that was tagged.

A file is kept as its lines, so comments, multiword tokens (``3-4``), empty nodes (``8.1``) and the nine other columns
come out as they went in; line ends come out as LF, with one empty line behind each sentence. Every complaint names the
file and the line.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
MISSING = "_"
_ID = re.compile(r"(?P<word>[1-9]\d*)|[1-9]\d*-[1-9]\d*|\d+\.[1-9]\d*")


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

    def tags(self, column: Column) -> list[str | None]:
        """The words' tags in ``column``; None where a word has none."""
        return [column.read(self.lines[i]) for i in self.words]

    def tagged(self, column: Column, tags: Sequence[str]) -> Sentence:
        """The same sentence with ``tags`` written into ``column``."""
        if len(tags) != len(self.words):
            raise ValueError(f"tags: got {len(tags)}; accepted is one for each of the {len(self.words)} words")
        lines = list(self.lines)
        for i, tag in zip(self.words, tags, strict=True):
            lines[i] = column.write(lines[i], tag)
        return Sentence(self.path, self.first_line, tuple(lines), self.words)

    def place(self, word: int) -> str:
        """``file:line`` of a word, for messages."""
        return f"{self.path}:{self.first_line + self.words[word]}"

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in (*self.lines, ""))


def read(path: str | Path) -> list[Sentence]:
    """All sentences of a CoNLL-U file, plain or gzipped; a file without a word is an error."""
    if not Path(path).exists() or Path(path).is_dir():
        raise FileNotFoundError(f"there is no file {path}; accepted is a CoNLL-U file, plain or gzipped")
    sentences = list(_sentences(str(path), _lines(Path(path))))
    if not any(sentence.words for sentence in sentences):
        raise ValueError(f"{path}:1: got no word in the whole file; accepted is a CoNLL-U file with sentences")
    return sentences


def _lines(path: Path) -> Iterator[str]:
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path}: got a damaged gzip file ({error}); accepted is a whole one") from None
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        try:
            yield line.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}:{number}: got byte 0x{line[error.start]:02x} at position {error.start}; accepted is UTF-8"
            ) from None


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
        raise ValueError(f"{place}: got ID {cells[0]!r}; accepted are 3 (word), 3-4 (multiword), 8.1 (empty node)")
    if match["word"] and int(match["word"]) != expected:
        hint = "; is the blank line between two sentences missing?" if match["word"] == "1" else ""
        raise ValueError(f"{place}: got word {match['word']}; accepted here is word {expected}{hint}")
    return match["word"] is not None
