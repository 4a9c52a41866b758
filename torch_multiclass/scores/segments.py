"""A sequence cut into segments, each with a kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar

import torch
from torch import Tensor
from typing_extensions import Self

from torch_multiclass import checks as check
from torch_multiclass.checks import Target
from torch_multiclass.ops.chain.layout import lay_out
from torch_multiclass.ops.joined import Joined
from torch_multiclass.ops.segments import Segments
from torch_multiclass.scores._chain_checks import check_ends, check_part, check_positions
from torch_multiclass.scores._emitted import counted_positions
from torch_multiclass.scores._padded import Padded
from torch_multiclass.scores._travel import registered
from torch_multiclass.scores.recorded import Recorded

__all__ = ["SegmentScores", "segment_tags"]


@registered
@dataclass(eq=False)
class SegmentScores(Padded, Recorded):
    r"""The score of every segmentation of a sequence (a semi-Markov model).

    .. math::
        s(y) = start_{k_1} + \sum_i segments_{t_i, l_i - 1, k_i} + \sum_{i > 1} trans_{k_{i-1}, k_i} + end_{k_m}

    over the segments ``i`` of ``y``, which end at ``t_i``, are ``l_i`` long and of kind ``k_i``. A labelling is written
    as tags: label ``k`` is ``B-k``, where a segment begins, and the labels from ``K`` on are the ``I-k`` of the kinds
    that may be longer than 1, in order (see `segment_tags`); a labelling of tags that is no segmentation, or has a
    segment that is too long, is forbidden. Costs are paid by position, so that losses, costs, decoders and span metrics
    are those of tags. With ``S = 1`` it is `ChainScores`.

    Masked positions are taken out of the sequence, and lengths count the positions that remain. ``-inf`` forbids.

    Args:
        segments: ``(*, T, S, K)``, the score of the segment of length ``s + 1`` and kind ``k`` that ends at ``t``. What
            stands where that would begin before the sequence is of no meaning.
        transitions: ``(K, K)`` scores ``[from, to]`` of neighbouring kinds.
        start, end: ``(K,)`` or ``(*, K)``, scores of the first and last kind; None for 0.
        mask: ``(*, T)`` bool, True where a position counts; any shape of mask.
        lengths: ``(*)`` numbers of positions in ``0..T``; an alternative to ``mask``.
        longest: how long a segment of each kind may be, in ``1..S``; None for ``S``.
        reference, allowed, sharpness, costs, factor: set by verbs, see `Structured`.

    Raises:
        ValueError: shapes, dtypes or devices that disagree, no kind or no length at all, a ``longest`` outside
            ``1..S``; of a target, a label out of range, or a segment that is longer than its kind may be.
        TypeError: scores that are not floating-point tensors, a mask that is not bool, lengths that are not integers.

    Reference: Sarawagi and Cohen (2004), Semi-Markov conditional random fields for information extraction, (3)-(6).

    Example:
        >>> import torch
        >>> segments = torch.zeros(1, 4, 3, 2)
        >>> segments[0, 2, 2, 0] = 5.0  # positions 0, 1, 2 as one segment of kind 0
        >>> scores = SegmentScores(segments, torch.zeros(2, 2), longest=(3, 1))
        >>> segment_tags(["PER", "O"], longest=(3, 1))
        ['B-PER', 'O', 'I-PER']
        >>> scores.decode().labels
        tensor([[0, 2, 2, 0]])
    """

    segments: Tensor
    transitions: Tensor
    start: Tensor | None = field(default=None, kw_only=True)
    end: Tensor | None = field(default=None, kw_only=True)
    mask: Tensor | None = field(default=None, kw_only=True)
    lengths: Tensor | None = field(default=None, kw_only=True)
    longest: tuple[int, ...] | None = field(default=None, kw_only=True)
    leading: ClassVar[str] = "segments"

    def __post_init__(self) -> None:
        """Check what was given."""
        if self.lengths is not None:
            self.lengths = check.signed(self.lengths)
        check.floating("segments", self.segments)
        shape = tuple(self.segments.shape)
        if len(shape) < 3 or 0 in shape[-2:]:
            raise ValueError(
                f"segments: got shape {shape}; accepted is (*, T, S, K) with S >= 1 lengths and K >= 1 kinds"
            )
        *batch, steps, most, k = shape
        like = ("segments", self.segments)
        check_part("transitions", self.transitions, like)
        check.shape("transitions", self.transitions, (k, k), "[from, to]")
        check_ends(self.start, self.end, like, tuple(batch), k)
        check_positions(self.mask, self.lengths, like, tuple(batch), steps)
        self.longest = check_longest(self.longest, most, k)
        super().__post_init__()

    # ------------------------------------------------------------------------------------------------------ the record

    @property
    def num_kinds(self) -> int:
        """How many kinds of segments there are."""
        return self.segments.shape[-1]

    @property
    def num_classes(self) -> int:
        """How many labels ``B-k`` and ``I-k`` there are."""
        return self.num_kinds + sum(most > 1 for most in self._longest())

    @property
    def sites(self) -> torch.Size:
        """``(*, T)``."""
        return self.segments.shape[:-2]

    @property
    def raw(self) -> Joined:
        """The record of the raw scores, in float32 at least, masked positions taken out."""
        flat, mask, order = lay_out(
            self.segments.flatten(-2), self.transitions, self.start, self.end, self.mask, self.lengths
        )
        none = torch.zeros_like(flat.transitions[0])
        start, end = (none if part is None else getattr(flat, name) for name, part in self._ends())
        scores = flat.emissions.reshape(*flat.emissions.shape[:2], *self.segments.shape[-2:])
        return Joined(Segments(scores, flat.transitions, start, end, flat.lengths, self._longest()), mask, order)

    def _ends(self) -> list[tuple[str, Tensor | None]]:
        return [("start", self.start), ("end", self.end)]

    def _longest(self) -> tuple[int, ...]:
        assert self.longest is not None
        return self.longest

    def _counted(self) -> Tensor | None:
        return counted_positions(self.mask, self.lengths, self.sites[-1])

    def _own_dims(self) -> dict[str, int]:
        own = super()._own_dims() | {"segments": 3, "mask": 1, "lengths": 0}
        return own | {name: 1 for name, part in self._ends() if getattr(part, "ndim", 1) > 1}

    def plus(self, tags: Tensor) -> Self:
        """With scores of tags ``(*, T, labels)`` added: a segment has ``B-k`` where it begins, ``I-k`` after that."""
        check_part("tags", tags, ("segments", self.segments))
        check.shape("tags", tags, (*self.sites, self.num_classes), "a score of each label at each position")
        laid = self.raw.plus(self._rows(tags, 2))
        return self._with(segments=laid.back(laid.record.scores).reshape(self.segments.shape))

    # ------------------------------------------------------------------------------------------------------ the target

    def _read_target(self, target: Tensor, ignore_index: int, validate_args: bool | None) -> Target:
        found = super()._read_target(target, ignore_index, validate_args)
        if check.values_readable(target, validate_args):
            self._check_lengths(found)
        return found

    def _check_lengths(self, target: Target) -> None:
        """Raise where a segment of known labels is longer than its kind may be."""
        raw = self.raw
        k, record = self.num_kinds, raw.record
        # a label that is not known ends what stands before it
        labels = raw.left(self._rows(torch.where(target.kept, target.labels, 0), 1))
        most = torch.tensor(self._longest(), device=labels.device)[record.kinds(labels)]
        long = (record.lengths_at(labels) > most) & (labels >= k) & record.inside()
        if bool(long.any()):
            row, at = long.nonzero()[0].tolist()
            kind = int(record.kinds(labels)[row, at])
            raise ValueError(
                f"target: has a segment of kind {kind} with {int(record.lengths_at(labels)[row, at])} positions or "
                f"more; accepted are at most {self._longest()[kind]}"
            )


def check_longest(longest: Any, most: int, kinds: int) -> tuple[int, ...]:
    """The maximum length of each kind, as numbers of Python's."""
    if longest is None:
        return (most,) * kinds
    if isinstance(longest, Tensor):
        check.integers("longest", longest, "lengths")
        check.with_values("longest", longest)
        check.shape("longest", longest, (kinds,), "one length for each kind")
    if isinstance(longest, (str, bytes)) or not isinstance(longest, (Sequence, Tensor)) or len(longest) != kinds:
        raise ValueError(f"longest: got {check.shown(longest)}; accepted are {kinds} whole numbers, one for each kind")
    numbers = longest.tolist() if isinstance(longest, Tensor) else longest
    found = tuple(check.whole("longest", entry) for entry in numbers)
    if max(found) > most:
        raise ValueError(f"longest: {max(found)} is outside 1..{most} ({most} lengths with a score)")
    return found


def segment_tags(kinds: Sequence[str], longest: Sequence[int] | int) -> list[str]:
    """The tags behind the labels of `SegmentScores`, for `torch_multiclass.tag_constraints` and `metrics.SpanF1`.

    Args:
        kinds: the name of each kind; ``"O"`` is the kind outside of all spans, and its segments are of length 1.
        longest: how long a segment of each kind may be; one number for all but ``"O"``.

    Raises:
        ValueError: numbers that are not one for each kind, or an ``"O"`` longer than 1.

    Reference: Sarawagi and Cohen (2004), Semi-Markov conditional random fields for information extraction, section 2.

    Example:
        >>> segment_tags(["O", "PER", "LOC"], longest=4)
        ['O', 'B-PER', 'B-LOC', 'I-PER', 'I-LOC']
    """
    names = check.label_names("kinds", kinds)
    if isinstance(check.plain(longest), Integral):
        longest = check.whole("longest", longest)
        longest = [1 if name == "O" else longest for name in names]
    if not isinstance(longest, Sequence) or isinstance(longest, (str, bytes)):
        raise TypeError(f"longest: got {check.shown(longest)}; accepted is a whole number, or a list of one a kind")
    most_of_all = max([check.whole("longest", most) for most in longest], default=1)
    found = check_longest(list(longest), most_of_all, len(names))
    for name, most in zip(names, found, strict=True):
        if name == "O" and most > 1:
            raise ValueError(f"longest: got {most} for 'O'; accepted there is 1, since 'O' has no tag that goes on")
    begins = [name if name == "O" else f"B-{name}" for name in names]
    return begins + [f"I-{name}" for name, most in zip(names, found, strict=True) if most > 1]
