"""Linear emissions, and learned scores of two and of three neighbouring labels."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from torch_multiclass.scorers.base import Scorer
from torch_multiclass.scorers.chain import ChainScorer
from torch_multiclass.scores import ChainScores, SecondOrderScores
from torch_multiclass.tags import Constraints

__all__ = ["SecondOrderScorer"]


class SecondOrderScorer(Scorer):
    r"""A `ChainScorer` with a learned score for three labels in a row.

    Args:
        in_features: ``D``, the width of the features at each position.
        num_tags: ``K``.
        constraints: from `torch_multiclass.tag_constraints`: what is forbidden, in training and decoding alike.
        bias: whether the emissions have a bias.
        device, dtype: of the parameters.

    Shape:
        features ``(*, T, D)``; mask ``(*, T)`` bool or lengths ``(*)``; the result is `SecondOrderScores`.

    Raises:
        ValueError: features whose last dimension is not ``D``; what `SecondOrderScores` raises.

    Reference: Collins (2002), Discriminative training methods for hidden Markov models, section 2 (trigram taggers).

    Example:
        >>> import torch
        >>> import torch_multiclass as tm
        >>> scorer, loss = SecondOrderScorer(8, 3), tm.CRFLoss()
        >>> scores = scorer(torch.randn(2, 5, 8), lengths=torch.tensor([5, 2]))
        >>> loss(scores, torch.zeros(2, 5, dtype=torch.long)).backward()
        >>> tm.ViterbiDecoder()(scores)[1, 2:]
        tensor([-100, -100, -100])
    """

    gives = SecondOrderScores

    def __init__(
        self,
        in_features: int,
        num_tags: int,
        constraints: Constraints | None = None,
        *,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.first = ChainScorer(in_features, num_tags, constraints, bias=bias, device=device, dtype=dtype)
        num_tags = self.first.num_tags
        self.in_features, self.num_classes, self.num_tags = self.first.in_features, num_tags, num_tags
        self.trans2 = nn.Parameter(torch.empty(num_tags, num_tags, num_tags, device=device, dtype=dtype))
        self._draw()

    def _draw(self) -> None:
        nn.init.uniform_(self.trans2, -0.1, 0.1)

    def reset_parameters(self) -> None:
        """Draw emission weights and transitions anew."""
        super().reset_parameters()
        self.first.reset_parameters()
        self._draw()

    def forward(self, features: Tensor, mask: Tensor | None = None, lengths: Tensor | None = None) -> SecondOrderScores:
        """The scores of every labelling."""
        chain: ChainScores = self.first(features, mask=mask, lengths=lengths)
        return SecondOrderScores(
            chain.emissions,
            chain.transitions,
            self.trans2.clone(),
            start=chain.start,
            end=chain.end,
            mask=mask,
            lengths=lengths,
        )

    def class_norms(self) -> Tensor:
        """The norms of the emission weights of each tag, ``(K,)``."""
        return self.first.class_norms()
