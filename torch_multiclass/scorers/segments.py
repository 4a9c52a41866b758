"""Linear scores of the tags that segments are written in, and learned scores of lengths and neighbouring kinds."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.ops.precision import upcast
from torch_multiclass.options import factory
from torch_multiclass.scorers.base import Scorer, as_wide_as, check_features, width
from torch_multiclass.scorers.chain import Chain
from torch_multiclass.scores import ChainScores, SegmentScores
from torch_multiclass.scores.segments import check_longest

__all__ = ["SegmentScorer"]


class SegmentScorer(Scorer):
    r"""The score of a segment from linear scores of its tags, ``W x_t + b``, and a learned score of its length.

    A segment of kind ``k`` and length ``l`` adds the score of ``B-k`` where it begins, of ``I-k`` at its other
    positions, and ``length_scores[l - 1, k]``; neighbouring kinds add transitions.

    Args:
        in_features: ``D``, the width of the features at each position.
        num_kinds: ``K``.
        max_length: ``S``, the length of the longest segments.
        longest: how long a segment of each kind may be, in ``1..S``; None for ``S``.
        bias: whether the scores of tags have a bias.
        device, dtype: of the parameters.

    Shape:
        features ``(*, T, D)``; mask ``(*, T)`` bool or lengths ``(*)``; the result is `SegmentScores`.

    Raises:
        ValueError: sizes that are not whole numbers >= 1, a ``longest`` outside ``1..S``, features whose last dimension
            is not ``D``; what `SegmentScores` raises.

    Reference: Sarawagi and Cohen (2004), Semi-Markov conditional random fields for information extraction, section 2.

    Example:
        >>> import torch
        >>> import torch_multiclass as tm
        >>> scorer, loss = SegmentScorer(8, 2, 4, longest=(1, 4)), tm.CRFLoss()
        >>> tags = tm.segment_tags(["O", "PER"], longest=4)
        >>> tags
        ['O', 'B-PER', 'I-PER']
        >>> scores = scorer(torch.randn(2, 5, 8), lengths=torch.tensor([5, 2]))
        >>> loss(scores, torch.tensor([[0, 1, 2, 2, 1], [1, 2, 0, 0, 0]])).backward()
        >>> tm.ViterbiDecoder()(scores)[1, 2:]
        tensor([-100, -100, -100])
    """

    gives = SegmentScores

    def __init__(
        self,
        in_features: int,
        num_kinds: int,
        max_length: int,
        *,
        longest: Sequence[int] | None = None,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        factory(device, dtype)
        check.flag("bias", bias)
        super().__init__()
        in_features = width(in_features)
        num_kinds = check.whole("num_kinds", num_kinds)
        max_length = check.whole("max_length", max_length)
        self.longest = check_longest(longest, max_length, num_kinds)
        self.in_features, self.num_kinds, self.max_length = in_features, num_kinds, max_length
        self.num_classes = num_kinds + sum(most > 1 for most in self.longest)
        self.tags = nn.Linear(in_features, self.num_classes, bias, device=device, dtype=dtype)
        self.length_scores = nn.Parameter(torch.empty(max_length, num_kinds, device=device, dtype=dtype))
        self.kinds = Chain(num_kinds, device=device, dtype=dtype)
        self._draw()

    def _draw(self) -> None:
        nn.init.uniform_(self.length_scores, -0.1, 0.1)

    def reset_parameters(self) -> None:
        """Draw the weights of tags, the scores of lengths and the transitions anew."""
        super().reset_parameters()
        self.tags.reset_parameters()
        self.kinds.reset_parameters()
        self._draw()

    def forward(self, features: Tensor, mask: Tensor | None = None, lengths: Tensor | None = None) -> SegmentScores:
        """The scores of every segmentation."""
        check_features(features, self.in_features)
        tags = upcast(self.tags(as_wide_as(self.tags.weight, features)))
        kinds: ChainScores = self.kinds(tags[..., : self.num_kinds], mask=mask, lengths=lengths)
        of_lengths = upcast(self.length_scores).expand(*tags.shape[:-1], *self.length_scores.shape)
        scores = SegmentScores(
            of_lengths,
            kinds.transitions,
            start=kinds.start,
            end=kinds.end,
            mask=mask,
            lengths=lengths,
            longest=self.longest,
        )
        return scores.plus(tags)

    def class_norms(self) -> Tensor:
        """The norms of the weights of each tag."""
        norms: Tensor = self.tags.weight.norm(dim=1)
        return norms

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return f"num_kinds={self.num_kinds}, max_length={self.max_length}, longest={self.longest}"
