"""What every head shares: a scorer, a loss and a decoder in one module."""

from __future__ import annotations

from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.decoders import Decoder
from torch_multiclass.losses import Loss
from torch_multiclass.losses.names import as_loss
from torch_multiclass.scorers.base import Scorer
from torch_multiclass.scores import CodedScores, Scores, as_scores


class Head(nn.Module):
    """Scorer, loss and decoder in one module, to be attached to anything that yields features.

    ``head(features)`` gives scores, ``head.loss(scores, target)`` what to minimise, ``head.predict(scores)`` labels
    and ``head.predict_proba(scores)`` class probabilities. Only the scorer has parameters.

    Args:
        scorer: features to scores.
        loss: the training criterion, or the name of one, such as ``"crammer_singer"``; replace it with
            ``head.criterion = ...``.
        decoder: scores to labels.

    Raises:
        TypeError: a scorer, loss or decoder that is not one of this library, or a subclass.
        ValueError: a name that no loss has, scores of another number of classes than the scorer's.

    Example:
        >>> import torch
        >>> from torch_multiclass import ArgmaxDecoder, CrammerSingerLoss, KernelScorer, kernels
        >>> machine = KernelScorer(torch.randn(20, 8), 3, kernels.Gaussian(0.1))
        >>> head = Head(machine, CrammerSingerLoss(), ArgmaxDecoder())
        >>> head.predict(head(torch.randn(5, 8))).shape
        torch.Size([5])
    """

    scorer: Scorer

    def __init__(self, scorer: Scorer, loss: Loss | str, decoder: Decoder) -> None:
        super().__init__()
        if not isinstance(scorer, Scorer):
            raise TypeError(f"scorer: got {type(scorer).__name__}; accepted is a torch_multiclass scorer")
        loss = as_loss(loss)
        if not isinstance(decoder, Decoder):
            raise TypeError(f"decoder: got {type(decoder).__name__}; accepted is a torch_multiclass decoder")
        self.scorer, self.criterion, self.decoder = scorer, loss, decoder
        self.in_features, self.num_classes = scorer.in_features, scorer.num_classes

    def reset_parameters(self) -> None:
        """Reset the scorer."""
        self.scorer.reset_parameters()

    def forward(self, features: Tensor, **structure: Any) -> Any:
        """The scores of the features."""
        return self.scorer(features, **structure)

    def loss(self, scores: Any, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """The training loss, where asked with a weight for each example."""
        self._check(scores, self._class_dim(self.criterion))
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if weights and "sample_weight" not in signature(self.criterion.forward).parameters:
            kind = type(self.criterion).__name__
            raise TypeError(f"sample_weight: got {check.shown(sample_weight)}; accepted is None for {kind}")
        loss: Tensor = self.criterion(scores, target, **weights)
        return loss

    def predict(self, scores: Any) -> Tensor:
        """The labels, without gradient."""
        self._check(scores, self._class_dim(self.decoder))
        labels: Tensor = self.decoder(scores)  # which turns gradients off: once, or an export cannot be saved
        return labels

    def class_scores(self, scores: Any) -> Tensor:
        """A score for each class, ``(*, K)``, on which any metric of class scores works."""
        self._check(scores, self._class_dim(self.decoder))
        return self.decoder.class_scores(scores)

    @torch.no_grad()
    def predict_proba(self, scores: Any) -> Tensor:
        """The probability of each label, ``(*, K)``, for sequences ``(*, T, K)``: the model's own under `CRFLoss`,
        uncalibrated otherwise."""
        class_dim = self._class_dim(self.decoder)
        self._check(scores, class_dim)
        if isinstance(scores, CodedScores):
            return as_scores(self.decoder.class_scores(scores)).marginals()
        return as_scores(scores, class_dim).marginals()

    @staticmethod
    def _class_dim(part: Loss | Decoder) -> int:
        """The dimension of a plain tensor of scores that holds the classes, for a loss or a decoder."""
        frame = part.frame if isinstance(part, Loss) else vars(part)
        return int(frame.get("class_dim", -1))

    def _check(self, scores: Any, class_dim: int = -1) -> None:
        """Raise where scores are of another number of classes: features, most likely, in their place."""
        if isinstance(scores, Tensor):
            check.dense("scores", scores)
            if not -scores.ndim <= class_dim < scores.ndim:
                return  # named where the scores are read
            given = scores.shape[class_dim]
        elif isinstance(scores, (Scores, CodedScores)):
            given = scores.num_classes
        else:
            return
        if given != self.num_classes:
            raise ValueError(
                f"scores: are of {given} classes; accepted are {self.num_classes}, as head(features) gives them"
            )
