"""What a tagger knows of words: numbers for tags, words, affixes, shapes and characters, learned from training files.

A vocabulary is plain lists and numbers, so that it travels inside a checkpoint that loads with ``weights_only=True``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from recipes.data.conllu import Column, Sentence

UNKNOWN = 0
"""The number of a feature value that training did not show often enough to learn."""
PADDING = 1
"""The character that fills words up to one length; other features never take this number."""
LONGEST_WORD = 24
"""Characters of a word that are looked at: the first and the last 12 (links are longer, and tell no more)."""


def lowered(form: str) -> str:
    """The form without case and with every digit as 0."""
    return re.sub(r"\d", "0", form.lower())


def shape(form: str) -> str:
    """The form's look: X, x, 0 and o for upper case, lower case, digit and other letter; runs count once."""
    kinds = (
        "X" if c.isupper() or c.istitle() else "x" if c.islower() else "0" if c.isdigit() else "o" if c.isalpha() else c
        for c in form
    )
    return re.sub(r"(.)\1+", r"\1\1", "".join(kinds), flags=re.DOTALL)[:12]


def clipped(form: str) -> str:
    """The characters of a form that the character features see."""
    half = LONGEST_WORD // 2
    return form if len(form) <= LONGEST_WORD else form[:half] + form[-half:]


FEATURES: dict[str, Callable[[str], str]] = {
    "word": lowered,
    "form": lambda form: form,
    "shape": shape,
    **{f"prefix{n}": (lambda form, n=n: lowered(form)[:n]) for n in (1, 2, 3)},
    **{f"suffix{n}": (lambda form, n=n: lowered(form)[-n:]) for n in (1, 2, 3, 4)},
}


class Vocabulary:
    """Numbers for tags and features.

    Args:
        column: the CoNLL-U column of the tags.
        tags: the tags, in the order of their numbers.
        features: for each feature its values, in the order of their numbers from 2 on.
        characters: likewise for characters.
        counts: how often training showed each of the words of ``features["word"]``.
    """

    def __init__(
        self,
        column: str,
        tags: Sequence[str],
        features: dict[str, Sequence[str]],
        characters: Sequence[str],
        counts: Sequence[int],
    ):
        self.column = Column.parse(column)
        self.tags = list(tags)
        self.features = {name: list(values) for name, values in features.items()}
        self.characters = list(characters)
        self.counts = list(counts)
        self.unseen_tags: list[str] = []
        self._tag_numbers = {tag: i for i, tag in enumerate(self.tags)}
        self._numbers = {name: _numbered(values) for name, values in self.features.items()}
        self._character_numbers = _numbered(self.characters)

    @classmethod
    def learn(cls, sentences: Iterable[Sentence], column: str, least: int = 2) -> Vocabulary:
        """The vocabulary of training sentences; affixes and shapes seen fewer than ``least`` times stay unknown."""
        where = Column.parse(column)
        tags: Counter[str] = Counter()
        forms: Counter[str] = Counter()
        path = ""
        for sentence in sentences:
            path = sentence.path
            forms.update(sentence.forms)
            tags.update(tag for tag in sentence.tags(where) if tag is not None)
        if not tags:
            raise ValueError(f"{path}: got no tag in column {column}; accepted is a column that holds tags")
        features: dict[str, list[str]] = {}
        counts: list[int] = []
        for name, of in FEATURES.items():
            values: Counter[str] = Counter()
            for form, times in forms.items():
                values[of(form)] += times
            kept = sorted(value for value, times in values.items() if times >= (1 if name == "word" else least))
            features[name] = kept
            if name == "word":
                counts = [values[value] for value in kept]
        characters = sorted(set().union(*map(clipped, forms)))
        return cls(column, sorted(tags), features, characters, counts)

    def tag_number(self, tag: str) -> int:
        """The tag's number; one that training did not show gets a number beyond those that a model can predict."""
        if tag not in self._tag_numbers:
            self._tag_numbers[tag] = len(self._tag_numbers)
            self.unseen_tags.append(tag)
        return self._tag_numbers[tag]

    def encode(self, form: str) -> tuple[list[int], list[int]]:
        """The numbers of a form's features, in the order of ``FEATURES``, and of its characters."""
        numbers = [self._numbers[name].get(of(form), UNKNOWN) for name, of in FEATURES.items()]
        return numbers, [self._character_numbers.get(c, UNKNOWN) for c in clipped(form)]

    def knows(self, form: str) -> bool:
        """Whether training showed the word, in whatever case."""
        return lowered(form) in self._numbers["word"]

    def sizes(self) -> dict[str, int]:
        """How many numbers each feature takes, ``UNKNOWN`` and ``PADDING`` included."""
        return {name: len(values) + 2 for name, values in self.features.items()}

    def state(self) -> dict[str, Any]:
        """Everything as plain lists and strings; ``Vocabulary(**state)`` brings it back."""
        return {
            "column": str(self.column),
            "tags": self.tags,
            "features": self.features,
            "characters": self.characters,
            "counts": self.counts,
        }


def _numbered(values: Sequence[str]) -> dict[str, int]:
    return {value: i for i, value in enumerate(values, start=2)}
