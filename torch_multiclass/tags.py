"""Tag schemes for spans: what a tag says, and which tags may follow which, as scores of 0 and ``-inf``.

A tag is ``O``, or a prefix, a hyphen and a type, such as ``B-PER``; where there is one type only, the prefix alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.ops.constants import home

__all__ = ["SCHEMES", "Constraints", "tag_constraints"]


class Constraints(NamedTuple):
    """Scores that are 0 where allowed and ``-inf`` where forbidden, to be added to those of a chain."""

    transitions: Tensor
    """``(K, K)`` ``[from, to]``."""
    start: Tensor
    """``(K,)``."""
    end: Tensor
    """``(K,)``."""


class Tag(NamedTuple):
    """What a tag says."""

    prefix: str
    """``O``, ``B``, ``I``, ``E`` or ``S``."""
    kind: str
    """The type of the span, empty where it has none."""

    @property
    def outside(self) -> bool:
        """Whether it is ``O``, which belongs to no span."""
        return self.prefix == "O"


OUTSIDE = Tag("O", "")
"""What stands before and after every sequence."""


class Scheme(NamedTuple):
    """A way to write spans as tags."""

    prefixes: str
    """Of the tags that belong to a span."""
    follows: Callable[[Tag, Tag], bool]
    """Whether one tag may follow another."""


def _bio(before: Tag, after: Tag) -> bool:
    # a span opens with B; I goes on with a span of its type
    return after.prefix != "I" or (before.prefix in "BI" and before.kind == after.kind)


def _iob1(before: Tag, after: Tag) -> bool:
    # a span opens with I, and with B only where it follows another of its type at once
    return after.prefix != "B" or (before.prefix in "BI" and before.kind == after.kind)


def _bioes(before: Tag, after: Tag) -> bool:
    # B I* E, or S alone: an open span goes on with its type, and nothing else may
    is_open, goes_on = before.prefix in "BI", after.prefix in "IE"
    return is_open == goes_on and (not is_open or before.kind == after.kind)


SCHEMES = {"BIO": Scheme("BI", _bio), "IOB1": Scheme("BI", _iob1), "BIOES": Scheme("BIES", _bioes)}
SCHEMES |= {"IOB2": SCHEMES["BIO"], "IOBES": SCHEMES["BIOES"]}
"""The schemes by their names; the last two are other names."""


def parse(tags: Sequence[str], scheme: str | None = None) -> list[Tag]:
    """What each of ``tags`` says, in one scheme or, without a name, in any.

    Raises:
        ValueError: an unknown scheme, or a tag that is not of it.

    Example:
        >>> parse(["O", "B-PER", "I"])
        [Tag(prefix='O', kind=''), Tag(prefix='B', kind='PER'), Tag(prefix='I', kind='')]
    """
    if scheme is not None:
        check.choice("scheme", scheme, SCHEMES)
    prefixes = "BIES" if scheme is None else SCHEMES[scheme].prefixes
    return [_parse(tag, prefixes, scheme) for tag in check.label_names("tags", tags)]


def _parse(tag: str, prefixes: str, scheme: str | None) -> Tag:
    prefix, _, kind = tag.partition("-")
    if tag == "O":
        return OUTSIDE
    if len(prefix) != 1 or prefix not in prefixes:
        accepted = ", ".join(f"'{p}-...'" for p in prefixes)
        what = f"got {tag!r}" if scheme is None else f"{tag!r} is not a {scheme} tag"
        raise ValueError(f"tags: {what}; accepted are 'O', {accepted}")
    return Tag(prefix, kind)


def opens(before: Tag, tag: Tag) -> bool:
    """Whether a span starts at ``tag`` after the tag ``before``, well formed or not, as ``conlleval`` counts.

    One rule reads every scheme: a span starts at ``B`` and ``S``, after a span has ended, and where the type changes.

    Reference: Tjong Kim Sang and Buchholz (2000), section 4 and its scorer ``conlleval``.
    """
    return not tag.outside and (tag.prefix in "BS" or before.prefix in "OES" or before.kind != tag.kind)


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
        scheme: ``"BIO"`` (also known as ``"IOB2"``), ``"IOB1"`` or ``"BIOES"`` (``"IOBES"``).

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
