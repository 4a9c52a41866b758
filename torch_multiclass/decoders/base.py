"""What every decoder shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import Tensor, nn

from torch_multiclass import checks as check


class Decoder(check.Told, nn.Module, ABC):
    """A stateless module from scores to labels.

    ``decoder(scores)`` gives labels; ``decoder.class_scores(scores)`` the ``(*, K)`` scores behind them, on which any
    metric of class scores works.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, (9.16)-(9.20).

    Example:
        >>> import torch, torch_multiclass as tm
        >>> isinstance(tm.ArgmaxDecoder(), Decoder), tm.ArgmaxDecoder()(torch.tensor([[0.0, 2.0, 1.0]]))
        (True, tensor([1]))
    """

    reads: ClassVar[tuple[type, ...]] = (object,)
    """The kinds of scores that it decodes, by which a head refuses another when it is made."""
    reads_probabilities: ClassVar[bool] = False
    """Whether it decides by the probabilities ``e^{f_y} / sum``, so that a head gives it calibrated scores."""

    @abstractmethod
    def forward(self, scores: Any) -> Tensor:
        """The predicted labels, without gradient: a ``with unrecorded()`` of its own."""

    @abstractmethod
    def class_scores(self, scores: Any) -> Tensor:
        """A score for each class, ``(*, K)``, larger for better."""
