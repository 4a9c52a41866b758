"""Sentences of JSON lines: ``{"tokens": ["Paris", "sleeps"], "tags": ["B-LOC", "O"]}``, all other keys kept."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..names import listed
from .conllu import Column
from .text import shortened

TOKENS = "tokens"


@dataclass(frozen=True)
class JsonSentence:
    """One line."""

    path: str
    first_line: int
    entry: dict[str, Any]

    @property
    def forms(self) -> list[str]:
        """The tokens."""
        return self.entry[TOKENS]

    @property
    def words(self) -> tuple[int, ...]:
        """Their places."""
        return tuple(range(len(self.forms)))

    def name(self, column: Column | str | None) -> str:
        """What messages call the column."""
        return "tags" if column is None else str(column)

    def tags(self, column: Column | str | None) -> list[str | None]:
        """The tags under a key; None where there is null. Numbers are names like others."""
        key, place = self.name(column), self.place(0)
        if key not in self.entry:
            there = [key for key, value in self.entry.items() if isinstance(value, list) and key != TOKENS]
            how = f", as --model.column {shlex.quote(there[0])}" if there and column is None else ""
            raise ValueError(
                f"column: got {shortened(key)}, which {place} does not have; accepted are "
                f"{listed(there) or 'none'}{how}"
            )
        tags = self.entry[key]
        if not isinstance(tags, list) or len(tags) != len(self.forms):
            got = f"{len(tags)} tags" if isinstance(tags, list) else type(tags).__name__
            raise ValueError(f"{place}: got {got} under {key}; accepted is a list of {len(self.forms)}, one a token")
        for tag in tags:
            if not isinstance(tag, (str, int, type(None))) or isinstance(tag, bool) or tag == "":
                raise ValueError(f"{place}: got tag {shortened(repr(tag))}; accepted are strings, numbers and null")
        return [None if tag is None else str(tag) for tag in tags]

    def tagged(
        self,
        column: Column | str | None,
        tags: Sequence[str],
        probabilities: Sequence[float] | None = None,
        others: Sequence[tuple[Sequence[str], float]] = (),
        best: float | None = None,
    ) -> JsonSentence:
        """The same sentence with the tags under their key."""
        entry = {**self.entry, self.name(column): list(tags)}
        if probabilities is not None:
            entry["probabilities"] = [float(f"{p:.6g}") for p in probabilities]
        if best is not None:
            entry["log_probability"] = round(best, 4)
        if others:
            entry["k_best"] = [{"tags": list(other), "log_probability": round(p, 4)} for other, p in others]
        return JsonSentence(self.path, self.first_line, entry)

    def layout(self, column: Column | str | None, probabilities: bool, k_best: int) -> str:
        """What `tagged` writes where, in words."""
        names = [f"tags under {self.name(column)}", *["their probabilities under probabilities"] * probabilities]
        if k_best > 1:
            names += [
                "the log-probability of the tagging under log_probability",
                "the next best, with theirs, under k_best",
            ]
        return ", ".join(names)

    def place(self, word: int) -> str:
        """``file:line``, for messages."""
        return f"{self.path}:{self.first_line}"

    def __str__(self) -> str:
        return json.dumps(self.entry, ensure_ascii=False) + "\n"


def sentences(path: str, lines: Iterable[str]) -> Iterator[JsonSentence]:
    """One sentence a line."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        accepted = 'accepted is {"tokens": ["a", "word"], "tags": ["X", "Y"]}'
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as problem:
            raise ValueError(f"{path}:{number}: is no JSON ({problem}); {accepted}") from None
        tokens = entry.get(TOKENS) if isinstance(entry, dict) else None
        if not isinstance(tokens, list) or not all(isinstance(token, str) and token for token in tokens):
            keys = ", ".join(map(str, entry)) if isinstance(entry, dict) else type(entry).__name__
            raise ValueError(f"{path}:{number}: has no list of words under tokens (it has {keys}); {accepted}")
        yield JsonSentence(path, number, entry)
