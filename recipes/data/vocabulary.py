"""What a tagger knows of words: numbers for tags, words, affixes, shapes and characters, learned from training files.

A vocabulary is plain lists and numbers, so that it travels inside a checkpoint that loads with ``weights_only=True``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from .columns import ColumnSentence
from .sentences import Sentence

UNKNOWN = 0
"""The number of a feature value that training did not show often enough to learn."""
PADDING = 1
"""The character that fills words up to one length; other features never take this number."""
LONGEST_WORD = 24
"""Characters of a word that are looked at: the first and the last 12 (links are longer, and tell no more)."""


_DIGIT = re.compile(r"\d")
_RUN = re.compile(r"(.)\1+", re.DOTALL)


def lowered(form: str) -> str:
    """The form without case and with every digit as 0."""
    return _DIGIT.sub("0", form.lower())


def shape(form: str) -> str:
    """The form's look: X, x, 0 and o for upper case, lower case, digit and other letter; a run counts as two."""
    kinds = "".join(
        "X" if c.isupper() or c.istitle() else "x" if c.islower() else "0" if c.isdigit() else "o" if c.isalpha() else c
        for c in form
    )
    return _RUN.sub(r"\1\1", kinds)[:12]


def clipped(form: str) -> str:
    """The characters of a form that the character features see."""
    half = LONGEST_WORD // 2
    return form if len(form) <= LONGEST_WORD else form[:half] + form[-half:]


FEATURES = ("word", "form", "shape", "prefix1", "prefix2", "prefix3", "suffix1", "suffix2", "suffix3", "suffix4")
"""What a word is described by beside its characters."""


def features_of(form: str) -> tuple[str, ...]:
    """The values of ``FEATURES``."""
    word = lowered(form)
    return word, form, shape(form), word[:1], word[:2], word[:3], word[-1:], word[-2:], word[-3:], word[-4:]


class Vocabulary:
    """Numbers for tags and features.

    Args:
        column: where the tags are; None for where they are by default in a file's format.
        tags: the tags, in the order of their numbers.
        features: for each feature its values, in the order of their numbers from 2 on.
        characters: likewise for characters.
        counts: how often training showed each value of the feature ``word``.
        rare: the words that training showed too seldom to have a number.
        width: the number of columns of a training file of columns; 0 of another.
    """

    def __init__(
        self,
        column: str | None,
        tags: Sequence[str],
        features: dict[str, Sequence[str]],
        characters: Sequence[str],
        counts: Sequence[int],
        rare: Sequence[str],
        width: int = 0,
    ):
        self.column, self.width = column, width
        self.tags = list(tags)
        self.features = {name: list(values) for name, values in features.items()}
        self.characters = list(characters)
        self.counts, self.rare = list(counts), list(rare)
        self.unseen_tags: list[str] = []
        self._tag_numbers = {tag: i for i, tag in enumerate(self.tags)}
        self._numbers = {name: _numbered(values) for name, values in self.features.items()}
        self._character_numbers = _numbered(self.characters)
        self._known = {*self.features["word"], *self.rare}

    @classmethod
    def learn(cls, sentences: Iterable[Sentence], column: str | None, least: int = 2) -> Vocabulary:
        """The vocabulary of training sentences; feature values seen fewer than ``least`` times get no number."""
        tags: Counter[str] = Counter()
        forms: Counter[str] = Counter()
        path, name, width = "", column, 0
        for sentence in sentences:
            path, name = sentence.path, sentence.name(column)
            width = sentence.width if isinstance(sentence, ColumnSentence) else 0
            forms.update(sentence.forms)
            tags.update(tag for tag in sentence.tags(column) if tag is not None)
        if not tags:
            raise ValueError(f"{path}: got no tag in column {name}; accepted is a column that holds tags")
        values: dict[str, Counter[str]] = {name: Counter() for name in FEATURES}
        for form, times in forms.items():
            for counter, value in zip(values.values(), features_of(form), strict=True):
                counter[value] += times
        kept = {name: sorted(v for v, times in counter.items() if times >= least) for name, counter in values.items()}
        counts = [values["word"][word] for word in kept["word"]]
        rare = sorted(word for word, times in values["word"].items() if times < least)
        return cls(column, sorted(tags), kept, sorted(set().union(*map(clipped, forms))), counts, rare, width)

    def written(self, sentence: Sentence) -> str | None:
        """The column of a sentence that tags go into: its last, if that was learned from, unless it has fewer columns
        than the training had, whose last it lacks.
        """
        last = self.column is None or str(self.column).lower() == "last"
        fewer = isinstance(sentence, ColumnSentence) and sentence.width < self.width
        return str(self.width) if last and fewer else self.column

    def tag_number(self, tag: str) -> int:
        """The tag's number; one that training did not show gets a number beyond those that a model can predict."""
        if tag not in self._tag_numbers:
            self._tag_numbers[tag] = len(self._tag_numbers)
            self.unseen_tags.append(tag)
        return self._tag_numbers[tag]

    def encode(self, form: str) -> tuple[list[int], list[int]]:
        """The numbers of a form's features, in the order of ``FEATURES``, and of its characters."""
        known = zip(self._numbers.values(), features_of(form), strict=True)
        features = [numbers.get(value, UNKNOWN) for numbers, value in known]
        return features, [self._character_numbers.get(c, UNKNOWN) for c in clipped(form)]

    def knows(self, form: str) -> bool:
        """Whether training showed the word, in whatever case."""
        return lowered(form) in self._known

    def sizes(self) -> dict[str, int]:
        """How many numbers each feature takes, ``UNKNOWN`` and ``PADDING`` included."""
        return {name: len(values) + 2 for name, values in self.features.items()}

    def state(self) -> dict[str, Any]:
        """Everything as plain lists and strings; ``Vocabulary(**state)`` brings it back."""
        return {
            "column": self.column,
            "tags": self.tags,
            "features": self.features,
            "characters": self.characters,
            "counts": self.counts,
            "rare": self.rare,
            "width": self.width,
        }


def _numbered(values: Sequence[str]) -> dict[str, int]:
    return {value: i for i, value in enumerate(values, start=2)}
