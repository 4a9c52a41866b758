"""Decoding one label among K."""

from __future__ import annotations

from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.decoders.base import Decoder
from torch_multiclass.ops.precision import unrecorded
from torch_multiclass.scores import FlatScores, as_scores
from torch_multiclass.scores.flat import check_scores


class ArgmaxDecoder(Decoder):
    r"""The class of the largest score, ``\arg\max_y f_y``, the lowest among equals.

    Args:
        class_dim: the dimension of the scores that holds the classes.

    Shape:
        scores ``(*, K)``; labels ``(*)``.

    Raises:
        TypeError: scores that are not a dense floating-point tensor or `FlatScores`.
        ValueError: a ``class_dim`` that the scores do not have, or no class at all.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.2 and (9.16).

    Example:
        >>> import torch
        >>> ArgmaxDecoder()(torch.tensor([[0.1, 0.7, 0.7]]))
        tensor([1])
    """

    def __init__(self, class_dim: int = -1) -> None:
        super().__init__()
        self.class_dim = check.integer("class_dim", class_dim)

    def forward(self, scores: Tensor | FlatScores) -> Tensor:
        """The labels."""
        with unrecorded():
            return self._flat(scores).decode().labels

    def class_scores(self, scores: Tensor | FlatScores) -> Tensor:
        """The scores themselves, classes last."""
        return self._flat(scores).tensor

    def _flat(self, scores: Tensor | FlatScores) -> FlatScores:
        flat = as_scores(scores, self.class_dim)
        if not isinstance(flat, FlatScores):
            raise TypeError(f"scores: got {type(flat).__name__}; accepted are a tensor (*, K) and FlatScores")
        check_scores(flat.values)
        return flat

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return "" if self.class_dim == -1 else f"class_dim={self.class_dim}"
