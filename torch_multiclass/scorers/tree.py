"""Linear emissions on the nodes of a tree, and learned scores of a label under that of its parent."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.ops.precision import upcast
from torch_multiclass.options import factory
from torch_multiclass.scorers.base import Scorer, as_wide_as, check_features, width
from torch_multiclass.scores import TreeScores

__all__ = ["LabelTreeScorer"]


class LabelTreeScorer(Scorer):
    r"""Linear emissions ``W x_t + b`` at every node, and learned transitions from the label of its parent.

    Args:
        in_features: ``D``, the width of the features of a node.
        num_tags: ``K``.
        bias: whether the emissions have a bias.
        device, dtype: of the parameters.

    Shape:
        features ``(*, T, D)``; parents ``(*, T)`` or ``(T,)``, -1 for a root; mask ``(*, T)`` bool or lengths ``(*)``;
        the result is `TreeScores`.

    Raises:
        ValueError: features whose last dimension is not ``D``; what `TreeScores` raises.

    Reference: Pearl (1988), Probabilistic reasoning in intelligent systems, chapter 4.

    Example:
        >>> import torch
        >>> import torch_multiclass as tm
        >>> scorer, parents = LabelTreeScorer(8, 3), torch.tensor([-1, 0, 0, 1, 1])
        >>> scores = scorer(torch.randn(2, 5, 8), parents)
        >>> tm.M3NLoss()(scores, torch.zeros(2, 5, dtype=torch.long)).backward()
        >>> scores.marginals().shape
        torch.Size([2, 5, 3])
    """

    gives = TreeScores

    def __init__(
        self,
        in_features: int,
        num_tags: int,
        *,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        factory(device, dtype)
        check.flag("bias", bias)
        super().__init__()
        in_features = width(in_features)
        num_tags = check.whole("num_tags", num_tags)
        self.in_features, self.num_classes, self.num_tags = in_features, num_tags, num_tags
        self.emissions = nn.Linear(in_features, num_tags, bias, device=device, dtype=dtype)
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags, device=device, dtype=dtype))
        self._draw()

    def _draw(self) -> None:
        nn.init.uniform_(self.transitions, -0.1, 0.1)

    def reset_parameters(self) -> None:
        """Draw emission weights and transitions anew."""
        super().reset_parameters()
        self.emissions.reset_parameters()
        self._draw()

    @check.told
    def forward(
        self, features: Tensor, parents: Tensor, mask: Tensor | None = None, lengths: Tensor | None = None
    ) -> TreeScores:
        """The scores of every labelling."""
        check_features(features, self.in_features)
        emissions = self.emissions(as_wide_as(self.emissions.weight, features))
        return TreeScores(upcast(emissions), self.transitions.clone(), parents, mask=mask, lengths=lengths)

    def class_norms(self) -> Tensor:
        """The norms of the emission weights of each tag, ``(K,)``."""
        norms: Tensor = self.emissions.weight.norm(dim=1)
        return norms
