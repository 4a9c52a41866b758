"""What every head shares: a scorer, a loss and a decoder in one module."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from torch_multiclass.decoders import Decoder
from torch_multiclass.losses import Loss


class Head(nn.Module):
    """Scorer, loss and decoder in one module, to be attached to anything that yields features.

    ``head(features)`` gives scores, ``head.loss(scores, target)`` what to minimise, ``head.predict(scores)`` labels
    and ``head.predict_proba(scores)`` class probabilities. Only the scorer has parameters.

    Args:
        scorer: features to scores.
        loss: the training criterion; replace it with ``head.criterion = ...``.
        decoder: scores to labels.
    """

    def __init__(self, scorer: nn.Module, loss: Loss, decoder: Decoder) -> None:
        super().__init__()
        if not isinstance(loss, Loss):
            raise TypeError(f"loss: got {type(loss).__name__}; accepted is a torch_multiclass loss, such as CRFLoss()")
        if not isinstance(decoder, Decoder):
            raise TypeError(f"decoder: got {type(decoder).__name__}; accepted is a torch_multiclass decoder")
        self.scorer, self.criterion, self.decoder = scorer, loss, decoder

    def forward(self, features: Tensor, **structure: Any) -> Any:
        """The scores of the features."""
        return self.scorer(features, **structure)

    def loss(self, scores: Any, target: Tensor) -> Tensor:
        """The training loss."""
        loss: Tensor = self.criterion(scores, target)
        return loss

    @torch.no_grad()
    def predict(self, scores: Any) -> Tensor:
        """The labels."""
        labels: Tensor = self.decoder(scores)
        return labels

    def class_scores(self, scores: Any) -> Tensor:
        """A score for each class, ``(*, K)``, on which any metric of class scores works."""
        return self.decoder.class_scores(scores)
