"""Sentences of any file that the tagger reads: the format shows in the name and the first lines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Protocol

from ..start import note
from . import columns, conllu, jsonl
from .conllu import Column
from .text import lines

FORMATS = ("conllu", "columns", "jsonl", "text")
SUFFIXES = {".conllu": "conllu", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
LONG = 1000
"""Words that are more than a sentence has, most likely for want of empty lines."""
_TOKEN = re.compile(r"\w+(?:[-'’.]\w+)*|[^\w\s]")


class Sentence(Protocol):
    """What every format knows of a sentence."""

    @property
    def path(self) -> str:
        """The file."""

    @property
    def words(self) -> tuple[int, ...]:
        """The places of the words."""

    @property
    def forms(self) -> list[str]:
        """The words."""

    def tags(self, column: Column | str | None) -> list[str | None]:
        """The words' tags in a column, by default that of the format; an error lists those there are."""

    def name(self, column: Column | str | None) -> str:
        """What messages call the column."""

    def tagged(
        self,
        column: Column | str | None,
        tags: Sequence[str],
        probabilities: Sequence[float] | None = None,
        others: Sequence[tuple[Sequence[str], float]] = (),
        best: float | None = None,
    ) -> Sentence:
        """The sentence with tags written in."""

    def layout(self, column: Column | str | None, probabilities: bool, k_best: int) -> str:
        """What `tagged` writes where, in words."""

    def place(self, word: int) -> str:
        """Where a word is, for messages."""


def read(path: str | Path, kind: str | None = None, *, untagged: bool = False, split: bool = True) -> list[Sentence]:
    """All sentences of a file, plain or gzipped; a file without a word is an error.

    Args:
        path: the file.
        kind: one of `FORMATS`; by default what the name and the first lines say.
        untagged: the file is to be tagged, so it may be plain text, a sentence a line.
        split: part the words and punctuation marks of plain text; without, what blanks part are the words.
    """
    if kind is not None and kind not in FORMATS:
        raise ValueError(f"format: got {kind!r}; accepted are {', '.join(FORMATS)}")
    facts = os.stat(path) if Path(path).is_file() else None
    key = None if facts is None else (facts.st_mtime_ns, facts.st_size)
    found = list(_read(str(path), kind, untagged, split, key))
    long = next((sentence for sentence in found if len(sentence.words) > LONG), None)
    if long is not None and (kind or format_of(str(path), untagged)) == "columns":
        note(f"{long.place(0)}: a sentence of {len(long.words)} words begins; an empty line ends a sentence")
    return found


@lru_cache(maxsize=8)
def _read(path: str, kind: str | None, untagged: bool, split: bool, key: object) -> tuple[Sentence, ...]:
    kind = kind or format_of(path, untagged)
    if kind == "conllu":
        return tuple(conllu.read(path))
    made = {"columns": columns.sentences, "jsonl": jsonl.sentences, "text": partial(plain, split=split)}[kind]
    found = tuple(made(path, lines(path)))
    if not any(sentence.words for sentence in found):
        raise ValueError(f"{path}:1: got no word in the whole file; {conllu.ACCEPTED}")
    return found


def format_of(path: str, untagged: bool) -> str:
    """What the name and the first lines of a file say that it is."""
    suffix = Path(path.removesuffix(".gz")).suffix.lower()
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    content = (line for line in lines(path) if line.strip() and not line.startswith(("# ", columns.START)))
    first = list(islice(content, 50))
    if not first:
        return "conllu"
    if first[0].startswith("{"):
        return "jsonl"
    cells = first[0].split("\t")
    if len(cells) == len(conllu.COLUMNS) and re.match(r"\d", cells[0]):
        return "conllu"
    widths = {len(columns.parted(line, "\t" in first[0].strip())) for line in first}
    return "text" if untagged and (len(widths) > 1 or max(widths) > columns.MOST) else "columns"


def plain(path: str, text: Iterable[str], split: bool = True) -> list[columns.ColumnSentence]:
    """The words of each line, one below the other."""
    found = []
    for number, line in enumerate(text, start=1):
        words = words_of(line, split)
        if words:
            found.append(columns.ColumnSentence(path, number, tuple(words), tuple(range(len(words))), 1, True))
    return found


def words_of(line: str, split: bool = True) -> list[str]:
    """The words and punctuation marks of a line; without ``split``, what blanks part."""
    return _TOKEN.findall(line) if split else line.split()


def remark(path: str, sentences: Sequence[Sentence], split: bool) -> None:
    """Say how a file to be tagged was read, where it may have been meant otherwise."""
    kind = format_of(path, untagged=True)
    if kind == "text" and split and any(words_of(line) != line.split() for line in lines(path)):
        note(f"{path}: text, parted into words and punctuation marks; --data.split_text false parts at blanks alone")
    first = sentences[0]
    if kind == "columns" and len(sentences) == 1 and len(first.words) and getattr(first, "width", 1) > 1:
        note(f"{path}: read as columns, the first of which has the words; --data.format text reads a sentence a line")
