"""A linear score for each of several labels that may hold at once."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.scorers.base import Scorer
from torch_multiclass.scorers.linear import LinearScorer
from torch_multiclass.scores import MultilabelScores

__all__ = ["MultilabelScorer"]


class MultilabelScorer(Scorer):
    r"""``f(x) = W x + b`` as `MultilabelScores`: label ``l`` holds where ``f_l > 0``.

    Args:
        in_features: ``D``, or any scorer of one score for each label.
        num_labels: ``K``; with a scorer, not given.
        bias: whether the scores have a bias.
        device, dtype: of the parameters.

    Shape:
        features ``(*, D)``; the result is `MultilabelScores` of ``(*, K)``.

    Raises:
        ValueError: sizes that are not whole numbers >= 1, features whose last dimension is not ``D``.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.1.

    Example:
        >>> import torch
        >>> scorer = MultilabelScorer(8, 3)
        >>> scorer(torch.randn(5, 8)).decode().labels.unique().tolist()
        [-1, 1]
    """

    gives = MultilabelScores

    def __init__(
        self,
        in_features: int | Scorer,
        num_labels: int | None = None,
        bias: bool = True,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if isinstance(in_features, Scorer):
            self.margins: Scorer = in_features
        else:
            num_labels = check.whole("num_labels", num_labels)
            self.margins = LinearScorer(in_features, num_labels, bias, device=device, dtype=dtype)
        self.in_features, self.num_classes = self.margins.in_features, self.margins.num_classes

    def reset_parameters(self) -> None:
        """Draw the parameters of the margins anew."""
        super().reset_parameters()
        self.margins.reset_parameters()

    def forward(self, features: Tensor) -> MultilabelScores:
        """The scores."""
        return MultilabelScores(self.margins(features))

    def class_norms(self) -> Tensor:
        """The norm of the weight vector of each label, ``(K,)``."""
        return self.margins.class_norms()
