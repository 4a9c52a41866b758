"""Decoding several labels at once."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.decoders.base import Decoder
from torch_multiclass.ops.precision import unrecorded
from torch_multiclass.scores import MultilabelScores

__all__ = ["SignDecoder"]


class SignDecoder(Decoder):
    r"""+1 for the labels with a positive score, -1 for the others, ``\mathrm{sign} f_l``.

    Shape:
        `MultilabelScores` of ``(*, K)``; labels ``(*, K)``; class scores ``(*, K)``, the scores themselves.

    Raises:
        TypeError: scores that are not `MultilabelScores`.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.1.

    Example:
        >>> import torch
        >>> from torch_multiclass import MultilabelScores
        >>> SignDecoder()(MultilabelScores(torch.tensor([[0.3, -0.2, 0.0]])))
        tensor([[ 1, -1, -1]])
    """

    reads = (MultilabelScores,)

    def forward(self, scores: MultilabelScores) -> Tensor:
        """The labels."""
        with unrecorded():
            return _several(scores).decode().labels

    def class_scores(self, scores: MultilabelScores) -> Tensor:
        """The scores ``f``."""
        return _several(scores).tensor


def _several(scores: Any) -> MultilabelScores:
    if not isinstance(scores, MultilabelScores):
        raise TypeError(f"scores: got {check.came(scores)}; accepted are MultilabelScores")
    return scores
