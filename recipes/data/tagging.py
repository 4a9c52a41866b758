"""What the tags of a file are: of which scheme, where they break it, which are seen once. All without torch."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from ..start import note
from .sentences import Sentence

__all__ = ["Tags", "check", "look", "notes"]

KINDS = ("BIO", "IOB1", "BIOES", "BILOU", "BMES", "BMEWO", "IOE2", "IOE1", "IO")
"""The schemes that tags are compared with, the usual first; the others are other names of these."""


@lru_cache
def rules() -> ModuleType:
    """The package's rules of schemes, by their file: importing the package would load torch."""
    name = "torch_multiclass.schemes"
    if name in sys.modules:
        return sys.modules[name]
    package = importlib.util.find_spec("torch_multiclass")
    if package is None or package.origin is None:
        raise ImportError("torch_multiclass is not installed")
    spec = importlib.util.spec_from_file_location(name, Path(package.origin).with_name("schemes.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Judged(NamedTuple):
    """How tags fit a scheme."""

    scheme: str
    strange: list[str]
    """Tags that are not of it."""
    broken: list[int]
    """Sentences in which a tag may not follow the one before it, by their numbers from 0."""


class Tags:
    """The tags of some sentences, and which follow which.

    Args:
        sentences: of one file.
        column: where the tags are.
    """

    def __init__(self, sentences: Sequence[Sentence], column: str | None) -> None:
        self.sentences = [sentence for sentence in sentences if sentence.words]
        self.path = self.sentences[0].path if self.sentences else "the file"
        self.rows = [sentence.tags(column) for sentence in self.sentences]
        self.counts = Counter(tag for row in self.rows for tag in row if tag is not None)
        self.follow: dict[tuple[str, str], set[int]] = {}
        for number, row in enumerate(self.rows):
            for before, after in pairwise(["O", *row, "O"]):  # what is outside a sentence is as an O
                if before is not None and after is not None:
                    self.follow.setdefault((before, after), set()).add(number)
        if not self.counts:
            name = self.sentences[0].name(column) if self.sentences else column
            raise ValueError(f"{self.path}: got no tag in column {name}; accepted is a column that holds tags")

    def judged(self, scheme: str) -> Judged:
        """How they fit a scheme."""
        said = meaning(scheme, frozenset(self.counts))
        follows = rules().SCHEMES[scheme].follows
        known = said | {"O": rules().OUTSIDE}
        broken: set[int] = set()
        for (before, after), numbers in self.follow.items():
            if before in known and after in known and not follows(known[before], known[after]):
                broken |= numbers
        return Judged(scheme, sorted(tag for tag in self.counts if tag not in said), sorted(broken))

    def fitting(self) -> Judged:
        """The scheme that they fit best, the usual first."""
        return min(map(self.judged, KINDS), key=self.misfit)

    def misfit(self, judged: Judged) -> int:
        """How many words and sentences do not fit a scheme."""
        return sum(self.counts[tag] for tag in judged.strange) + len(judged.broken)

    def spans(self) -> Judged | None:
        """The scheme that they are of, but for a few; None where they do not look like spans."""
        best = self.fitting()
        typed = any("-" in tag for tag in self.counts if tag not in best.strange)
        few = sum(self.counts[tag] for tag in best.strange) <= 1 + self.counts.total() // 100
        return best if typed and few and 10 * len(best.broken) <= len(self.sentences) else None

    def place(self, tag: str) -> str:
        """``file:line`` of the first word with a tag."""
        number = next(number for number, row in enumerate(self.rows) if tag in row)
        return self.sentences[number].place(self.rows[number].index(tag))

    def first_break(self, judged: Judged) -> str:
        """Where a scheme is broken first, and how."""
        number = judged.broken[0]
        row, sentence = self.rows[number], self.sentences[number]
        known = meaning(judged.scheme, frozenset(self.counts)) | {"O": rules().OUTSIDE}
        follows = rules().SCHEMES[judged.scheme].follows
        for at, (before, after) in enumerate(pairwise(["O", *row, "O"])):
            if before in known and after in known and not follows(known[before], known[after]):
                place = sentence.place(min(at, len(row) - 1))
                return f"{place}: {how(row, at)} (in sentence {number + 1})"
        raise AssertionError("a sentence that breaks a scheme does so somewhere")


def how(tags: Sequence[str | None], at: int) -> str:
    """A tag and what is before it, in words; behind the last tag is the end."""
    if at == len(tags):
        return f"{tags[-1]} at the end"
    return f"{tags[at]} {'at the start' if at == 0 else f'after {tags[at - 1]}'}"


@lru_cache(maxsize=64)
def meaning(scheme: str, tags: frozenset[str]) -> dict[str, Any]:
    """What the tags of a scheme say; those that are not of it are left out."""
    said: dict[str, Any] = {}
    for tag in tags:
        try:
            said[tag] = rules().read_tag(tag, scheme)
        except ValueError:
            continue
    return said


def check(parts: Mapping[str, Tags], scheme: str | None, constrained: bool) -> None:
    """Raise for tags that are not of the scheme, and for a file that fits another.

    Args:
        parts: the tags by what they are for, ``train``, ``dev`` or ``test``; what was held out of the training file
            is judged with it.
        scheme: of the spans; None where the tags are none.
        constrained: whether the training forbids what breaks it.
    """
    if scheme is None:
        return
    train = parts.get("train")
    for part, tags in sorted(parts.items(), key=lambda held: held[0] != "train"):  # the scheme is the training file's
        ours, best = tags.judged(scheme), tags.fitting()
        if ours.strange:
            raise ValueError(unlike(part, tags, ours.strange, scheme, tags.spans() or (train and train.spans())))
        held_out = train is not None and part != "train" and tags.path == train.path
        if constrained and not held_out and 10 * tags.misfit(best) < len(ours.broken):
            accepted = f"--model.scheme {best.scheme}, or --model.constrained false"
            raise ValueError(
                f"scheme: got {scheme}, which {len(ours.broken)} of {len(tags.sentences)} sentences break, first "
                f"{tags.first_break(ours)}; {tags.path} fits {best.scheme}: accepted is "
                f"{accepted if part == 'train' else translated(scheme)}"
            )


def translated(scheme: str) -> str:
    """What is accepted of a file beside the training file."""
    return f"a file in {scheme}, into which torch_multiclass.convert_tags turns tags"


def unlike(part: str, tags: Tags, strange: Sequence[str], scheme: str, spans: Judged | None) -> str:
    """The words for tags that are not of the scheme: where the first of them is, and what would do."""
    first = strange[0]
    times = tags.counts[first]
    said = f"tags: {first!r} is not {rules().article(scheme)} {scheme} tag ({tags.place(first)}"
    said += f", {times} times" if times > 1 else ""
    others = len(strange) - 1
    said += f", and {others} other tag{'s' * (others > 1)}" if others else ""
    said += f"); accepted are {rules().accepted(scheme)}"
    if spans is None:
        return f"{said}; tags that are no spans need no --model.scheme" if part == "train" else said
    rest = spans.strange
    of_scheme = [tag for tag in tags.counts if tag not in rest]
    like = get_close_matches(first, of_scheme, 1, 0.6) if first in rest and len(first) > 2 else []
    if spans.scheme != scheme:
        option = "--model.scheme " if part == "train" else ""
        said += f"; the file {'would fit' if rest else 'fits'} {option}{spans.scheme}"
        said += f", but for {', '.join(f'{tag} ({tags.counts[tag]})' for tag in rest[:3])}" if rest else ""
        said += "" if option else f": accepted is {translated(scheme)}"
    return f"{said}; did you mean {like[0]}?" if like else said


def notes(parts: Mapping[str, Tags], scheme: str | None, resumed: bool = False) -> None:
    """Say what looks like a mistake and need not be one."""
    for line in remarks(parts, scheme, resumed):
        note(line)


def remarks(parts: Mapping[str, Tags], scheme: str | None, resumed: bool) -> Iterator[str]:
    """One line each."""
    train = parts["train"]
    spans = None if scheme is not None or resumed else train.spans()
    if spans is not None:
        yield (
            f"{train.path}: the tags look like spans in {spans.scheme}; --model.scheme {spans.scheme} measures spans "
            "and forbids ill-formed ones"
        )
        for part, tags in parts.items():
            yield from otherwise(part, tags, train, spans.scheme)
    once = [tag for tag, times in train.counts.items() if times == 1]
    if once and len(train.counts) > 2:
        yield f"{train.path}: {listed(once, 'seen once', train, [*train.counts])}"
    for part, tags in parts.items():
        yield from unlearned(part, tags, [*train.counts], f"not in {train.path}")


def otherwise(part: str, tags: Tags, train: Tags, scheme: str) -> Iterator[str]:
    """A line where a file of its own fits another scheme than the training file."""
    best = tags.fitting()
    if tags.path != train.path and 10 * tags.misfit(best) < tags.misfit(tags.judged(scheme)):
        yield f"{part}: {tags.path} fits {best.scheme}, {train.path} {scheme}; accepted is {translated(scheme)}"


def unlearned(part: str, tags: Tags, known: Sequence[str], why: str) -> Iterator[str]:
    """A line where there are tags that a model cannot give."""
    new = [tag for tag in tags.counts if tag not in known]
    if new:
        yield f"{part}: {listed(new, why, tags, known)}"


def look(part: str, tags: Tags, known: Sequence[str], scheme: str | None, constrained: bool) -> None:
    """Raise for tags that a model which knows others is not to be measured by, and say those that it cannot give."""
    check({part: tags}, scheme, constrained)
    for line in unlearned(part, tags, known, "unknown to the model"):
        note(line)


def listed(names: Sequence[str], what: str, tags: Tags, known: Sequence[str], most: int = 3) -> str:
    """``2 tags are seen once: I-PRE (a.conll:7, like I-PER), X (a.conll:9)``."""
    words = []
    for name in names[:most]:
        like = get_close_matches(name, [one for one in known if one != name], 1, 0.7) if len(name) > 2 else []
        words.append(f"{name} ({tags.place(name)}{f', like {like[0]}' if like else ''})")
    more = [f"{len(names) - most} more"] if len(names) > most else []
    count = "1 tag is" if len(names) == 1 else f"{len(names)} tags are"
    return f"{count} {what}: {', '.join([*words, *more])}"
