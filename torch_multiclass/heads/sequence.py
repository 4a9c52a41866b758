"""What the heads of label sequences and of other structures share."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.decoders import Decoder, ViterbiDecoder
from torch_multiclass.heads._hints import (
    looks_inverted,
    looks_padded,
    warn_of_forbidden,
    warn_of_inversion,
    warn_of_padding,
)
from torch_multiclass.heads.base import Head
from torch_multiclass.losses import Loss
from torch_multiclass.losses.names import as_loss
from torch_multiclass.options import Weight
from torch_multiclass.scores.structured import Structured


class SequenceHead(Head):
    """A scorer of labellings; by default the likelihood is trained and the best labelling is decoded.

    Args:
        scorer: features to scores of labellings.
        loss: `CRFLoss` by default, the negative log-likelihood.
        decoder: by default `ViterbiDecoder`.
        label_smoothing: for `CRFLoss` by name.
        weight: None; see Raises.

    Raises:
        ValueError: a class weight: a labelling has no one class; say what each mistake costs by ``cost=`` of the loss,
            or weigh whole sequences by ``sample_weight``.
    """

    _mask_unsaid = True
    _forbidden_unsaid = True
    """Whether it is still to be said that a mask seems forgotten, and which labels are forbidden."""

    def loss(self, scores: Any, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """The training loss, where asked with a weight for each example.

        Where values may be read, warns once of each: labels that are forbidden, for which the loss is ``inf``, and, in
        training, a target that -100 pads while the scores have neither mask nor lengths, or whose labels all stand
        where the mask is False.
        """
        value = super().loss(scores, target, sample_weight)
        if (self._forbidden_unsaid or (self._mask_unsaid and self.training)) and check.values_readable(value):
            self._watch(scores, target, value.detach())
        return value

    def _watch(self, scores: Any, target: Tensor, value: Tensor) -> None:
        """Look at the first target with unknown labels, and at the first infinite loss."""
        ignored = self.criterion.frame["ignore_index"]
        if self._mask_unsaid and self.training:
            padded, inverted = looks_padded(scores, target, ignored), looks_inverted(scores, target, ignored)
            self._mask_unsaid = padded is None and inverted is None
            if padded:
                warn_of_padding()
            if inverted:
                warn_of_inversion()
        if self._forbidden_unsaid and bool((value == math.inf).any()):
            self._forbidden_unsaid = False
            if isinstance(scores, Structured) and target.shape == scores.sites:
                warn_of_forbidden(scores, target.where(target != ignored, check.IGNORE))

    def _criterion(self, loss: Any, weight: Weight, label_smoothing: float) -> Loss:
        if weight is not None:
            self._takes_class_weights("weight")
        return as_loss("crf" if loss is None else loss, label_smoothing=label_smoothing)

    def _decoder(self) -> Decoder:
        return ViterbiDecoder()

    def _takes_class_weights(self, name: str) -> None:
        raise ValueError(
            f"{name}: a class weight has no meaning with {type(self).__name__}, whose examples have many labels; "
            "accepted are a cost matrix, cost=matrix with matrix[true, predicted], of M3NLoss, SVMStructLoss or "
            "CRFLoss, and sample_weight"
        )
