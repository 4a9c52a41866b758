"""Tag schemes for spans: what a tag says, which tags may follow which, and the spans that tags stand for.

A tag is ``O``, or a prefix, a hyphen and a type, such as ``B-PER``; where there is one type only, the prefix alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.ops.constants import home

__all__ = ["SCHEMES", "Constraints", "Span", "convert_tags", "spans_to_tags", "tag_constraints", "tag_spans"]


class Constraints(NamedTuple):
    """Scores that are 0 where allowed and ``-inf`` where forbidden, to be added to those of a chain."""

    transitions: Tensor  # (K, K), [from, to]
    start: Tensor  # (K,)
    end: Tensor  # (K,)


class Span(NamedTuple):
    """Positions ``start`` to ``end - 1``, of one type, which is empty where tags have none."""

    start: int
    end: int
    kind: str


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
_BIO = Scheme(
    {"B": "B", "I": "I"},
    follows=lambda before, after: after.prefix != "I" or _same(before, after, "BI", "I"),
    starts=lambda before, after: after.prefix == "B",
    inside=lambda before, after: _same(before, after, "BI", "I"),
    ends=_anything,
)
# a span opens with I, and with B only where it follows another of its type at once
_IOB1 = Scheme(
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
_IOE2 = Scheme(
    {"I": "I", "E": "E"},
    follows=lambda before, after: before.prefix != "I" or _same(before, after, "I", "IE"),
    starts=lambda before, after: not after.outside and (before.prefix in "OE" or before.kind != after.kind),
    inside=lambda before, after: _same(before, after, "I", "IE"),
    ends=lambda before, after: before.prefix == "E",
)
# the mirror of IOB1: E only where another span of its type follows at once
_IOE1 = Scheme(
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
_BIOES = Scheme(
    {"B": "B", "I": "I", "E": "E", "S": "S"},
    follows=lambda before, after: (
        _same(before, after, "BI", "IE") if before.prefix in "BI" else after.prefix not in "IE"
    ),
    starts=lambda before, after: after.prefix in "BS",
    inside=lambda before, after: _same(before, after, "BI", "IE"),
    ends=lambda before, after: before.prefix in "ES",
)
# neighbours of one type are one span
_IO = Scheme(
    {"I": "I"},
    follows=_anything,
    starts=lambda before, after: not after.outside and (before.outside or before.kind != after.kind),
    inside=lambda before, after: _same(before, after, "I", "I"),
    ends=_anything,
)

SCHEMES = (
    {"BIO": _BIO, "IOB1": _IOB1, "BIOES": _BIOES}
    | {
        "BILOU": _BIOES._replace(letters={"B": "B", "I": "I", "L": "E", "U": "S"}),
        "BMES": _BIOES._replace(letters={"B": "B", "M": "I", "E": "E", "S": "S"}),
        "BMEWO": _BIOES._replace(letters={"B": "B", "M": "I", "E": "E", "W": "S"}),
    }
    | {"IO": _IO, "IOE1": _IOE1, "IOE2": _IOE2}
)
SCHEMES |= {"IOB2": SCHEMES["BIO"], "IOBES": SCHEMES["BIOES"], "BILUO": SCHEMES["BILOU"], "BMESO": SCHEMES["BMES"]}
"""The schemes by their names; the last four are other names."""
_LETTERS = {"B": "B", "I": "I", "E": "E", "S": "S", "L": "E", "U": "S", "M": "I", "W": "S"}  # in any scheme


def parse(tags: Sequence[str], scheme: str | None = None) -> list[Tag]:
    """What each of ``tags`` says, in one scheme or, without a name, in any.

    Raises:
        ValueError: an unknown scheme, or a tag that is not of it.

    Example:
        >>> parse(["O", "B-PER", "I"])
        [Tag(prefix='O', kind=''), Tag(prefix='B', kind='PER'), Tag(prefix='I', kind='')]
        >>> parse(["U-PER", "L-PER"], "BILOU")
        [Tag(prefix='S', kind='PER'), Tag(prefix='E', kind='PER')]
    """
    if scheme is not None:
        check.choice("scheme", scheme, SCHEMES)
    letters = _LETTERS if scheme is None else SCHEMES[scheme].letters
    return [_parse(tag, letters, scheme) for tag in check.label_names("tags", tags)]


def _parse(tag: str, letters: dict[str, str], scheme: str | None) -> Tag:
    prefix, _, kind = tag.partition("-")
    if tag == "O":
        return OUTSIDE
    if prefix not in letters:
        accepted = ", ".join(f"'{p}-...'" for p in letters)
        what = f"got {tag!r}" if scheme is None else f"{tag!r} is not a {scheme} tag"
        raise ValueError(f"tags: {what}; accepted are 'O', {accepted}")
    return Tag(letters[prefix], kind)


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


def tag_names(given: Sequence[str]) -> list[str]:
    """The tags as a list; raise unless they are distinct strings."""
    tags = check.label_names("tags", given)
    if len(set(tags)) != len(tags):
        twice = next(tag for tag in tags if tags.count(tag) > 1)
        raise ValueError(f"tags: {twice!r} is given twice; accepted are distinct tags")
    return tags


def tag_constraints(tags: Sequence[str], scheme: str = "BIO") -> Constraints:
    """What a scheme of span tags allows, for likelihood and decoding alike.

    Args:
        tags: the ``K`` tags in the order of their numbers: ``"O"``, or ``"B-PER"`` and the like. A tag without a type
            (``"B"``) has the empty type.
        scheme: ``"BIO"`` (also known as ``"IOB2"``), ``"IOB1"``, ``"BIOES"`` (``"IOBES"``), ``"BILOU"``
            (``"BILUO"``), ``"BMES"`` (``"BMESO"``), ``"BMEWO"``, ``"IOE1"``, ``"IOE2"`` or ``"IO"``.

    Raises:
        ValueError: an unknown scheme, a tag given twice, or a tag that is not of the scheme.

    Reference: Ramshaw and Marcus (1995), Text chunking using transformation-based learning.

    Example:
        >>> tags = ["O", "B-X", "I-X"]
        >>> allowed = tag_constraints(tags)
        >>> allowed.start
        tensor([0., 0., -inf])
        >>> allowed.transitions[0]  # from O
        tensor([0., 0., -inf])
    """
    check.choice("scheme", scheme, SCHEMES)
    tags = tag_names(tags)
    parsed, follows, device = parse(tags, scheme), SCHEMES[scheme].follows, home()

    def scores(befores: Sequence[Tag], afters: Sequence[Tag]) -> Tensor:
        allowed = [[0.0 if follows(before, after) else -math.inf for after in afters] for before in befores]
        return torch.tensor(allowed, device=device)

    return Constraints(
        scores(parsed, parsed), scores([OUTSIDE], parsed).squeeze(0), scores(parsed, [OUTSIDE]).squeeze(1)
    )


def reading(scheme: str | None, strict: bool) -> Scheme:
    """The rules by which spans are read from tags of a scheme."""
    check.flag("strict", strict)
    if scheme is not None:
        check.choice("scheme", scheme, SCHEMES)
    if not strict:
        return LENIENT
    if scheme is None:
        raise ValueError(f"scheme: got None with strict=True; accepted there are {', '.join(map(repr, SCHEMES))}")
    return SCHEMES[scheme]


def tag_spans(tags: Iterable[str], scheme: str | None = None, *, strict: bool = False) -> list[Span]:
    """The spans that a sequence of tags stands for, in order.

    Args:
        tags: the tags of one sequence.
        scheme: what they are written in; None for any.
        strict: leave out what is not well-formed in the scheme; by default every tag but ``O`` is in a span, by the
            rules of the CoNLL shared tasks.

    Raises:
        ValueError: an unknown scheme, a tag that is not of it, ``strict`` without one.

    Reference: Tjong Kim Sang and Buchholz (2000), section 4 and its scorer ``conlleval``; strict as in seqeval.

    Example:
        >>> tag_spans(["B-PER", "I-PER", "O", "I-LOC"])
        [Span(start=0, end=2, kind='PER'), Span(start=3, end=4, kind='LOC')]
        >>> tag_spans(["B-PER", "I-PER", "O", "I-LOC"], "BIO", strict=True)
        [Span(start=0, end=2, kind='PER')]
    """
    rules, given = reading(scheme, strict), tags if isinstance(tags, str) else list(tags)
    parsed = [OUTSIDE, *(parse(given, scheme) if given else ()), OUTSIDE]
    found: list[Span] = []
    start: int | None = None
    for at, (before, after) in enumerate(pairwise(parsed)):
        if start is not None and rules.inside(before, after):
            continue
        if start is not None and rules.ends(before, after):
            found.append(Span(start, at, before.kind))
        start = at if rules.starts(before, after) else None
    return found


def spans_to_tags(spans: Iterable[tuple[int, int, str]], length: int, scheme: str = "BIO") -> list[str]:
    """Spans as the tags of a sequence of that length.

    Args:
        spans: ``(start, end, type)``, ``end`` past the last position; in any order, none over another.
        length: the number of positions.
        scheme: as `tag_constraints` has them. ``"IO"`` cannot keep neighbours of one type apart.

    Raises:
        ValueError: an unknown scheme, spans that are empty, outside the sequence, over one another, or, with ``"IO"``,
            neighbours of one type.

    Reference: Ramshaw and Marcus (1995), Text chunking using transformation-based learning.

    Example:
        >>> spans_to_tags([(0, 2, "PER"), (3, 4, "LOC")], 5, "BILOU")
        ['B-PER', 'L-PER', 'O', 'U-LOC', 'O']
    """
    check.choice("scheme", scheme, SCHEMES)
    ordered = sorted(Span(*span) for span in spans)
    tags = ["O"] * check.whole("length", length, least=0)
    letter = {role: name for name, role in SCHEMES[scheme].letters.items()}
    for before, span, after in zip([None, *ordered], ordered, [*ordered[1:], None], strict=False):
        start, end, kind = span
        if not 0 <= start < end <= length or (before is not None and before.end > start):
            raise ValueError(f"spans: got {tuple(span)}; accepted are spans in 0..{length} that do not overlap")
        follows = before is not None and before.end == start and before.kind == kind
        leads = after is not None and after.start == end and after.kind == kind
        for at, role in enumerate(_roles(scheme, end - start, follows, leads), start):
            tags[at] = f"{letter[role]}-{kind}" if kind else letter[role]
    return tags


def _roles(scheme: str, length: int, follows: bool, leads: bool) -> str:
    """The prefixes of a span; whether another of its type comes at once before it, and after it."""
    rules = SCHEMES[scheme]
    if rules is _IO and (follows or leads):
        raise ValueError("spans: has neighbours of one type, which 'IO' cannot keep apart; accepted are other schemes")
    if "S" in rules.letters.values():
        return "S" if length == 1 else "B" + "I" * (length - 2) + "E"
    first = rules is _BIO or (rules is _IOB1 and follows)
    last = rules is _IOE2 or (rules is _IOE1 and leads)
    inner = "I" * (length - first - last)
    return "B" * first + inner + "E" * last


def convert_tags(tags: Iterable[str], to: str, scheme: str | None = None) -> list[str]:
    """The same spans in another scheme.

    Args:
        tags: the tags of one sequence, read leniently.
        to: the scheme to write.
        scheme: the scheme they are written in; None for any.

    Raises:
        ValueError: as `tag_spans` and `spans_to_tags`.

    Reference: Ramshaw and Marcus (1995), Text chunking using transformation-based learning.

    Example:
        >>> convert_tags(["B-PER", "I-PER", "O", "B-LOC"], "BIOES")
        ['B-PER', 'E-PER', 'O', 'S-LOC']
    """
    tags = tags if isinstance(tags, str) else list(tags)
    return spans_to_tags(tag_spans(tags, scheme), len(tags), to)
