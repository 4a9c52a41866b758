"""Spans from tags and back: reading what is well-formed or not, writing in any scheme."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.schemes import BIO, IO, IOB1, IOE1, IOE2, OUTSIDE, SCHEMES
from torch_multiclass.tags import known_scheme, parse, reading

__all__ = ["Span", "convert_tags", "spans_to_tags", "tag_spans"]


class Span(NamedTuple):
    """Positions ``start`` to ``end - 1``, of one type, which is empty where tags have none.

    Reference: Tjong Kim Sang and Buchholz (2000), section 4 and its scorer ``conlleval``.

    Example:
        >>> Span(0, 2, "PER").end
        2
    """

    start: int
    end: int
    kind: str


def tag_spans(tags: Iterable[str], scheme: str | None = None, *, strict: bool = False) -> list[Span]:
    """The spans that a sequence of tags stands for, in order.

    Args:
        tags: the tags of one sequence.
        scheme: what they are written in; None for any.
        strict: leave out what is not well-formed in the scheme; by default every tag but ``O`` is in a span, by the
            rules of the CoNLL shared tasks.

    Raises:
        ValueError: an unknown scheme, a tag that is not of it, ``strict`` without one.
        TypeError: tags that are not strings.

    Reference: Tjong Kim Sang and Buchholz (2000), section 4 and its scorer ``conlleval``; strict as in seqeval.

    Example:
        >>> tag_spans(["B-PER", "I-PER", "O", "I-LOC"])
        [Span(start=0, end=2, kind='PER'), Span(start=3, end=4, kind='LOC')]
        >>> tag_spans(["B-PER", "I-PER", "O", "I-LOC"], "BIO", strict=True)
        [Span(start=0, end=2, kind='PER')]
    """
    rules, given = reading(scheme, strict), _sequence(tags)
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
    known_scheme("scheme", scheme)
    ordered = sorted(_triples(spans))
    length = check.whole("length", length, least=0)
    tags = ["O"] * length
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
    if rules is IO and (follows or leads):
        raise ValueError("spans: has neighbours of one type, which 'IO' cannot keep apart; accepted are other schemes")
    if "S" in rules.letters.values():
        return "S" if length == 1 else "B" + "I" * (length - 2) + "E"
    first = rules is BIO or (rules is IOB1 and follows)
    last = rules is IOE2 or (rules is IOE1 and leads)
    inner = "I" * (length - first - last)
    return "B" * first + inner + "E" * last


@check.told
def convert_tags(tags: Iterable[str], to: str, *, scheme: str | None = None) -> list[str]:
    """The same spans in another scheme.

    Args:
        tags: the tags of one sequence, read leniently.
        to: the scheme to write.
        scheme: the scheme they are written in; None for any.

    Warns where the tags are not well formed in the ``scheme`` that they are said to be written in, and of the first.

    Raises:
        ValueError: unknown schemes, tags that are none; with ``"IO"``, neighbours of one type.
        TypeError: tags that are not strings; the ``scheme`` without its name, which is easily taken for ``to``.

    Reference: Ramshaw and Marcus (1995), Text chunking using transformation-based learning.

    Example:
        >>> convert_tags(["B-PER", "I-PER", "O", "B-LOC"], "BIOES")
        ['B-PER', 'E-PER', 'O', 'S-LOC']
        >>> convert_tags(["I-PER", "I-PER", "O", "I-LOC"], to="BIO", scheme="IOB1")
        ['B-PER', 'I-PER', 'O', 'B-LOC']
    """
    given = _sequence(tags)
    known_scheme("to", to)
    spans = tag_spans(given, scheme)
    if scheme is not None:
        _warn_of_misfit(given, scheme)
    if SCHEMES[to] is IO and any(a.end == b.start and a.kind == b.kind for a, b in pairwise(spans)):
        raise ValueError(f"to: got {to!r}, which cannot keep neighbours of one type apart; accepted are other schemes")
    return spans_to_tags(spans, len(given), to)


def _misfit(tags: list[str], scheme: str) -> int | None:
    """The first position whose tag may not follow the one before it, ``len(tags)`` for the end; None where each may."""
    parsed = [OUTSIDE, *parse(tags, scheme), OUTSIDE] if tags else []
    follows = SCHEMES[scheme].follows
    wrong = [at for at, (before, after) in enumerate(pairwise(parsed)) if not follows(before, after)]
    return wrong[0] if wrong else None


def _warn_of_misfit(tags: list[str], scheme: str) -> None:
    """Say which tag is the first that is not well formed in its scheme, and in which schemes all are."""
    at = _misfit(tags, scheme)
    if at is None:
        return
    others = [name for name in SCHEMES if SCHEMES[name] is not SCHEMES[scheme] and _written_in(tags, name)]
    last = min(at, len(tags) - 1)
    where = "at the end" if at > last else f"after {tags[at - 1]!r}" if at else "at the start"
    warnings.warn(
        f"tags: {tags[last]!r}, position {last}, {where}, is not well formed in {scheme}, the scheme that they are "
        "said to be written in; they were read leniently"
        + (f". They are well formed in {', '.join(others)}" if others else ""),
        UserWarning,
        stacklevel=check.caller(),
    )


def _written_in(tags: list[str], scheme: str) -> bool:
    """Whether the tags are well formed in the scheme."""
    try:
        return _misfit(tags, scheme) is None
    except ValueError:
        return False


def _sequence(tags: Iterable[str]) -> list[str]:
    """The tags of one sequence, of which there may be none."""
    if isinstance(tags, (str, bytes, Tensor)) or not isinstance(tags, Iterable) or getattr(tags, "shape", None) == ():
        raise TypeError(f"tags: got {check.shown(tags)}; accepted are the tags of one sequence, strings")
    return list(tags)


def _triples(spans: Iterable[tuple[int, int, str]]) -> list[Span]:
    """The spans, after the check that they are some."""
    if (
        isinstance(spans, (str, bytes, Tensor))
        or not isinstance(spans, Iterable)
        or getattr(spans, "shape", None) == ()
    ):
        raise TypeError(f"spans: got {check.shown(spans)}; accepted are spans (start, end, type)")
    found = []
    for span in spans:
        if not isinstance(span, (tuple, list)) or len(span) != 3 or not isinstance(span[2], str):
            raise TypeError(f"spans: holds {check.shown(span)}; accepted are spans (start, end, type)")
        found.append(Span(check.integer("spans", span[0]), check.integer("spans", span[1]), span[2]))
    return found


check.lacks(__name__)
