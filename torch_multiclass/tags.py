"""Tags of spans: which may follow which, as scores of 0 and ``-inf``.

A tag is ``O``, or a prefix, a hyphen and a type, such as ``B-PER``; where there is one type only, the prefix alone.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.ops.constants import home
from torch_multiclass.schemes import LENIENT, OUTSIDE, SCHEMES, Scheme, Tag, read_tag

__all__ = ["SCHEMES", "Constraints", "tag_constraints"]


class Constraints(NamedTuple):
    """Scores that are 0 where allowed and ``-inf`` where forbidden, to be added to those of a chain.

    Reference: Ramshaw and Marcus (1995), Text chunking using transformation-based learning.

    Example:
        >>> import torch_multiclass as tm
        >>> transitions, start, end = tm.tag_constraints(["O", "B-X", "I-X"])
        >>> start
        tensor([0., 0., -inf])
    """

    transitions: Tensor  # (K, K), [from, to]
    start: Tensor  # (K,)
    end: Tensor  # (K,)


def known_scheme(name: str, given: object) -> None:
    """Raise unless ``given`` is the name of a scheme; of ``IOB``, which is a name of two, say so."""
    try:
        check.choice(name, given, SCHEMES)
    except ValueError as error:
        if not (isinstance(given, str) and given == "IOB"):
            raise
        raise ValueError(
            f"{error}. 'IOB' is said of two: 'IOB1', where B- stands only between neighbours of one type, and "
            "'IOB2', which is 'BIO', where every span starts with B-"
        ) from None


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
        known_scheme("scheme", scheme)
    return [read_tag(tag, scheme) for tag in check.label_names("tags", tags)]


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

    Warns where a tag can stand in no tagging, as ``I-PER`` of ``"BIO"`` without ``B-PER``: most likely the tags are of
    another scheme, and the loss of every sequence with that tag is infinite.

    Shape:
        transitions ``(K, K)``, ``[from, to]``; start and end ``(K,)``.

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
    known_scheme("scheme", scheme)
    tags = tag_names(tags)
    parsed, follows, device = parse(tags, scheme), SCHEMES[scheme].follows, home()
    _warn_of_impossible(tags, parsed, scheme)

    def scores(befores: Sequence[Tag], afters: Sequence[Tag]) -> Tensor:
        allowed = [[0.0 if follows(before, after) else -math.inf for after in afters] for before in befores]
        return torch.tensor(allowed, device=device)

    return Constraints(
        scores(parsed, parsed), scores([OUTSIDE], parsed).squeeze(0), scores(parsed, [OUTSIDE]).squeeze(1)
    )


def _warn_of_impossible(tags: Sequence[str], parsed: Sequence[Tag], scheme: str) -> None:
    """Say which tags the scheme leaves no place, and the schemes that leave each of them one."""
    lost = impossible(parsed, SCHEMES[scheme])
    if not lost:
        return
    names = [tags[n] for n in lost]
    shown = ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    others = [name for name in SCHEMES if name != scheme and SCHEMES[name] != SCHEMES[scheme] and _fits(tags, name)]
    hint = f"; each tag has one in {', '.join(others)}" if others else ""
    rest = [tag for tag in tags if tag not in names]
    hint += next(filter(None, (check.nearest(name, rest) for name in names)), "")
    warnings.warn(
        f"tags: {shown} can stand in no tagging of {scheme} that is made of these {len(tags)} tags{hint}",
        UserWarning,
        stacklevel=3,
    )


def _fits(tags: Sequence[str], scheme: str) -> bool:
    """Whether the scheme has these tags, and a place for each."""
    try:
        return not impossible(parse(tags, scheme), SCHEMES[scheme])
    except ValueError:
        return False


def impossible(tags: Sequence[Tag], scheme: Scheme) -> list[int]:
    """Which of the tags no well-formed sequence of them holds: those not reached from its start, or without an end."""

    def met(follows: Callable[[Tag, Tag], bool]) -> set[int]:
        new = {n for n, tag in enumerate(tags) if follows(OUTSIDE, tag)}
        found = set(new)
        while new:
            rest = [n for n in range(len(tags)) if n not in found]
            new = {n for n in rest if any(follows(tags[before], tags[n]) for before in new)}
            found |= new
        return found

    possible = met(scheme.follows) & met(lambda after, before: scheme.follows(before, after))
    return [n for n in range(len(tags)) if n not in possible]


def reading(scheme: str | None, strict: bool) -> Scheme:
    """The rules by which spans are read from tags of a scheme."""
    check.flag("strict", strict)
    if scheme is not None:
        known_scheme("scheme", scheme)
    if not strict:
        return LENIENT
    if scheme is None:
        raise ValueError(f"scheme: got None with strict=True; accepted there are {', '.join(map(repr, SCHEMES))}")
    return SCHEMES[scheme]


check.lacks(__name__)
