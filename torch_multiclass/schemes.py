"""Tag schemes for spans: what a tag says, and which tags may follow which. The standard library is all it needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

__all__ = ["SCHEMES", "Scheme", "Tag"]


class Tag(NamedTuple):
    """What a tag says."""

    prefix: str  # O, B, I, E or S: outside, the first of several, between, the last, alone
    kind: str  # the type of the span, empty where it has none

    @property
    def outside(self) -> bool:
        """Whether it is ``O``, which belongs to no span."""
        return self.prefix == "O"


OUTSIDE = Tag("O", "")
"""What stands before and after every sequence."""
Pair = Callable[[Tag, Tag], bool]
"""Something that holds for a tag and the one after it."""


class Scheme(NamedTuple):
    """A way to write spans as tags; well-formed spans are those that seqeval's strict mode counts."""

    letters: dict[str, str]
    """Of the tags that belong to a span: the letter, and which of B, I, E and S it stands for."""
    follows: Pair
    """Whether one tag may follow another."""
    starts: Pair
    """Whether a well-formed span may start at the second, unless one goes on there."""
    inside: Pair
    """Whether a span goes on from the first to the second."""
    ends: Pair
    """Whether a span that stops before the second is well-formed."""


def _same(before: Tag, after: Tag, prefixes: str, then: str) -> bool:
    return before.prefix in prefixes and after.prefix in then and before.kind == after.kind


def _anything(before: Tag, after: Tag) -> bool:
    return True


# a span opens with B; I goes on with a span of its type
BIO = Scheme(
    {"B": "B", "I": "I"},
    follows=lambda before, after: after.prefix != "I" or _same(before, after, "BI", "I"),
    starts=lambda before, after: after.prefix == "B",
    inside=lambda before, after: _same(before, after, "BI", "I"),
    ends=_anything,
)
# a span opens with I, and with B only where it follows another of its type at once
IOB1 = Scheme(
    {"I": "I", "B": "B"},
    follows=lambda before, after: after.prefix != "B" or _same(before, after, "BI", "B"),
    starts=lambda before, after: (
        _same(before, after, "BI", "B")
        if after.prefix == "B"
        else after.prefix == "I" and (before.prefix in "OB" or before.kind != after.kind)
    ),
    inside=lambda before, after: _same(before, after, "BI", "I"),
    ends=lambda before, after: not (before.prefix == after.prefix == "B" and before.kind != after.kind),
)
# the mirror of BIO: a span closes with E, and I is before one of its type
IOE2 = Scheme(
    {"I": "I", "E": "E"},
    follows=lambda before, after: before.prefix != "I" or _same(before, after, "I", "IE"),
    starts=lambda before, after: not after.outside and (before.prefix in "OE" or before.kind != after.kind),
    inside=lambda before, after: _same(before, after, "I", "IE"),
    ends=lambda before, after: before.prefix == "E",
)
# the mirror of IOB1: E only where another span of its type follows at once
IOE1 = Scheme(
    {"I": "I", "E": "E"},
    follows=lambda before, after: before.prefix != "E" or _same(before, after, "E", "IE"),
    starts=lambda before, after: (
        _same(before, after, "E", "E")
        if after.prefix == "E"
        else after.prefix == "I" and (before.prefix in "OE" or before.kind != after.kind)
    ),
    inside=lambda before, after: _same(before, after, "I", "IE"),
    ends=lambda before, after: before.prefix == "I" or _same(before, after, "E", "IE"),
)
# B I* E, or S alone: an open span goes on with its type, and nothing else may
BIOES = Scheme(
    {"B": "B", "I": "I", "E": "E", "S": "S"},
    follows=lambda before, after: (
        _same(before, after, "BI", "IE") if before.prefix in "BI" else after.prefix not in "IE"
    ),
    starts=lambda before, after: after.prefix in "BS",
    inside=lambda before, after: _same(before, after, "BI", "IE"),
    ends=lambda before, after: before.prefix in "ES",
)
# neighbours of one type are one span
IO = Scheme(
    {"I": "I"},
    follows=_anything,
    starts=lambda before, after: not after.outside and (before.outside or before.kind != after.kind),
    inside=lambda before, after: _same(before, after, "I", "I"),
    ends=_anything,
)

SCHEMES = (
    {"BIO": BIO, "IOB1": IOB1, "BIOES": BIOES}
    | {
        "BILOU": BIOES._replace(letters={"B": "B", "I": "I", "L": "E", "U": "S"}),
        "BMES": BIOES._replace(letters={"B": "B", "M": "I", "E": "E", "S": "S"}),
        "BMEWO": BIOES._replace(letters={"B": "B", "M": "I", "E": "E", "W": "S"}),
    }
    | {"IO": IO, "IOE1": IOE1, "IOE2": IOE2}
)
SCHEMES |= {"IOB2": SCHEMES["BIO"], "IOBES": SCHEMES["BIOES"], "BILUO": SCHEMES["BILOU"], "BMESO": SCHEMES["BMES"]}
"""The schemes by their names; the last four are other names."""
_LETTERS = {"B": "B", "I": "I", "E": "E", "S": "S", "L": "E", "U": "S", "M": "I", "W": "S"}  # in any scheme


def read_tag(tag: str, scheme: str | None = None) -> Tag:
    """What a tag says, in a scheme or, without one, in any.

    Raises:
        ValueError: a tag that is not of it.
    """
    letters = _LETTERS if scheme is None else SCHEMES[scheme].letters
    prefix, _, kind = tag.partition("-")
    if tag == "O":
        return OUTSIDE
    if prefix not in letters:
        what = f"got {tag!r}" if scheme is None else f"{tag!r} is not {article(scheme)} {scheme} tag"
        raise ValueError(f"tags: {what}; accepted are {accepted(scheme)}")
    return Tag(letters[prefix], kind)


def accepted(scheme: str | None = None) -> str:
    """The tags of a scheme, for messages."""
    letters = _LETTERS if scheme is None else SCHEMES[scheme].letters
    return ", ".join(["'O'", *(f"'{prefix}-...'" for prefix in letters)])


def article(name: str) -> str:
    """That of a scheme's name."""
    return "an" if name[0] in "AEIOU" else "a"


def opens(before: Tag, tag: Tag) -> bool:
    """Whether a span starts at ``tag`` after the tag ``before``, well formed or not, as ``conlleval`` counts.

    One rule reads every scheme: a span starts at ``B`` and ``S``, after a span has ended, and where the type changes.

    Reference: Tjong Kim Sang and Buchholz (2000), section 4 and its scorer ``conlleval``.
    """
    return not tag.outside and (tag.prefix in "BS" or before.prefix in "OES" or before.kind != tag.kind)


LENIENT = Scheme(
    _LETTERS, _anything, opens, lambda before, after: not (after.outside or opens(before, after)), _anything
)
"""Any scheme, where what is not well-formed counts as well."""
