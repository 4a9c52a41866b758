"""What the heads of label sequences and of other structures share."""

from __future__ import annotations

from torch_multiclass.decoders import Decoder, ViterbiDecoder
from torch_multiclass.heads.base import Head
from torch_multiclass.losses import CRFLoss, Loss
from torch_multiclass.scorers import Scorer


class SequenceHead(Head):
    """A scorer of labellings; by default the likelihood is trained and the best labelling is decoded.

    Args:
        scorer: features to scores of labellings.
        loss: `CRFLoss` by default, the negative log-likelihood.
        decoder: by default `ViterbiDecoder`.
    """

    def __init__(self, scorer: Scorer, loss: Loss | str | None = None, decoder: Decoder | None = None) -> None:
        super().__init__(scorer, CRFLoss() if loss is None else loss, ViterbiDecoder() if decoder is None else decoder)
