"""Tag schemes for spans: which tags may follow which, as scores of 0 and ``-inf``.

A tag is ``O`` or a prefix, a hyphen and a type, such as ``B-PER``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass import checks as check

__all__ = ["SCHEMES", "Constraints", "tag_constraints"]


class Constraints(NamedTuple):
    """Scores that are 0 where allowed and ``-inf`` where forbidden, to be added to those of a chain."""

    transitions: Tensor
    """``(K, K)`` ``[from, to]``."""
    start: Tensor
    """``(K,)``."""
    end: Tensor
    """``(K,)``."""


Tag = tuple[str, str]  # prefix and type
OUTSIDE: Tag = ("O", "")


def _bio(before: Tag, after: Tag) -> bool:
    # a span opens with B; I goes on with a span of its type
    return after[0] != "I" or (before[0] in "BI" and before[1] == after[1])


def _iob1(before: Tag, after: Tag) -> bool:
    # a span opens with I, and with B only where it follows another of its type at once
    return after[0] != "B" or (before[0] in "BI" and before[1] == after[1])


def _bioes(before: Tag, after: Tag) -> bool:
    # B I* E, or S alone: an open span goes on with its type, and nothing else may
    is_open, goes_on = before[0] in "BI", after[0] in "IE"
    return is_open == goes_on and (not is_open or before[1] == after[1])


SCHEMES: dict[str, tuple[str, Callable[[Tag, Tag], bool]]] = {
    "BIO": ("BI", _bio),
    "IOB1": ("BI", _iob1),
    "BIOES": ("BIES", _bioes),
}
"""The prefixes of each scheme, and whether one tag may follow another; outside the sequence stands ``O``."""


def tag_constraints(tags: Sequence[str], scheme: str = "BIO") -> Constraints:
    """What a scheme of span tags allows, for likelihood and decoding alike.

    Args:
        tags: the ``K`` tags in the order of their numbers: ``"O"``, or ``"B-PER"`` and the like. A tag without a type
            (``"B"``) has the empty type.
        scheme: ``"BIO"`` (also known as IOB2), ``"IOB1"`` or ``"BIOES"``.

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
    tags = check.label_names("tags", tags)
    prefixes, follows = SCHEMES[scheme]
    if len(set(tags)) != len(tags):
        twice = next(tag for tag in tags if tags.count(tag) > 1)
        raise ValueError(f"tags: {twice!r} is given twice; accepted are distinct tags")
    parsed = [_parse(tag, prefixes, scheme) for tag in tags]

    def score(before: Tag, after: Tag) -> float:
        return 0.0 if follows(before, after) else -math.inf

    return Constraints(
        torch.tensor([[score(before, after) for after in parsed] for before in parsed]).view(len(tags), len(tags)),
        torch.tensor([score(OUTSIDE, tag) for tag in parsed]),
        torch.tensor([score(tag, OUTSIDE) for tag in parsed]),
    )


def _parse(tag: str, prefixes: str, scheme: str) -> Tag:
    prefix, _, kind = tag.partition("-")
    if tag == "O":
        return OUTSIDE
    if len(prefix) != 1 or prefix not in prefixes:
        accepted = ", ".join(f"'{p}-...'" for p in prefixes)
        raise ValueError(f"tags: {tag!r} is not a {scheme} tag; accepted are 'O', {accepted}")
    return prefix, kind
