"""What the heads of label sequences and of other structures share."""

from __future__ import annotations

from typing import Any

from torch_multiclass.decoders import Decoder, ViterbiDecoder
from torch_multiclass.heads.base import Head
from torch_multiclass.losses import Loss
from torch_multiclass.losses.names import as_loss
from torch_multiclass.options import Weight


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
