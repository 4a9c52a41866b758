"""Decoding a ranking of all classes."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.decoders.base import Decoder
from torch_multiclass.ops.precision import unrecorded
from torch_multiclass.scores import FlatScores, as_scores
from torch_multiclass.scores.flat import check_scores

__all__ = ["RankingDecoder"]


class RankingDecoder(Decoder):
    r"""All classes from the best score to the worst, the lowest first among equals.

    Args:
        class_dim: the dimension of the scores that holds the classes; the ranking is last all the same.

    Shape:
        scores ``(*, K)``, a tensor or `FlatScores`; labels ``(*, K)``.

    Raises:
        TypeError: scores that are not a dense floating-point tensor or `FlatScores`.
        ValueError: scores without any class.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §10.1, for rankings by scores.

    Example:
        >>> import torch
        >>> RankingDecoder()(torch.tensor([[0.1, 0.7, 0.7, 0.3]]))
        tensor([[1, 2, 3, 0]])
    """

    reads = (FlatScores,)

    def __init__(self, class_dim: int = -1) -> None:
        super().__init__()
        self.class_dim = check.integer("class_dim", class_dim)

    def forward(self, scores: Tensor | FlatScores) -> Tensor:
        """The classes, the best first."""
        with unrecorded():
            return self.class_scores(scores).argsort(dim=-1, descending=True, stable=True)

    def class_scores(self, scores: Tensor | FlatScores) -> Tensor:
        """The scores themselves."""
        flat: Any = as_scores(scores, self.class_dim)
        if not isinstance(flat, FlatScores):
            raise TypeError(f"scores: got {check.came(flat)}; accepted are a tensor (*, K) and FlatScores")
        check_scores(flat.values)
        return flat.tensor

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return "" if self.class_dim == -1 else f"class_dim={self.class_dim}"
