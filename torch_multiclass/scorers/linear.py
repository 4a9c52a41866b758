"""A linear score for each class."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.options import factory
from torch_multiclass.scorers.base import Scorer, as_wide_as, check_features, width
from torch_multiclass.scores import FlatScores


class LinearScorer(Scorer):
    r"""``f(x) = W x + b``, one row of ``W`` for each class.

    Args:
        in_features: ``D``.
        num_classes: ``K``.
        bias: whether to learn ``b``.
        device, dtype: of the parameters.

    Shape:
        features ``(*, D)``, of the weights' dtype or a narrower one; scores ``(*, K)``.

    Raises:
        ValueError: features whose last dimension is not ``D``.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.3.1.

    Example:
        >>> import torch
        >>> scorer = LinearScorer(8, 3)
        >>> scorer(torch.randn(5, 8)).shape
        torch.Size([5, 3])
        >>> sorted(scorer.state_dict())
        ['bias', 'weight']
    """

    bias: nn.Parameter | None

    gives = FlatScores

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        bias: bool = True,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        factory(device, dtype)
        super().__init__()
        in_features = width(in_features)
        num_classes = check.whole("num_classes", num_classes)
        check.flag("bias", bias)
        self.in_features, self.num_classes = in_features, num_classes
        self.weight = nn.Parameter(torch.empty(num_classes, in_features, device=device, dtype=dtype))
        self.register_parameter(
            "bias", nn.Parameter(torch.empty(num_classes, device=device, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights uniformly in ``±1/sqrt(D)`` and set the bias to 0."""
        bound = self.in_features**-0.5
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, features: Tensor) -> Tensor:
        """The scores."""
        check_features(features, self.in_features)
        return nn.functional.linear(as_wide_as(self.weight, features), self.weight, self.bias)

    def class_norms(self) -> Tensor:
        """``|w_l|``, the norms of the rows of ``W``.

        Shape:
            the result ``(K)``.
        """
        norms: Tensor = self.weight.norm(dim=1)
        return norms

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return f"in_features={self.in_features}, num_classes={self.num_classes}, bias={self.bias is not None}"
