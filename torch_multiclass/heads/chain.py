"""The head of a label sequence."""

from __future__ import annotations

from typing_extensions import Unpack

from torch_multiclass.decoders import Decoder
from torch_multiclass.heads.base import Options
from torch_multiclass.heads.sequence import SequenceHead
from torch_multiclass.losses import Loss
from torch_multiclass.options import HeadOptions
from torch_multiclass.scorers import ChainScorer, Scorer
from torch_multiclass.tags import Constraints


class ChainHead(SequenceHead):
    r"""Linear emissions, learned transitions, any structured loss over them, and Viterbi.

    ``head(features, mask=mask)`` gives `ChainScores`; changing `CRFLoss` to `M3NLoss` or `SVMStructLoss` changes no
    weight.

    Args:
        in_features: ``D``, the width of the features at each position; or any scorer, whose scores are the emissions.
        num_tags: ``K``.
        loss: `CRFLoss` by default, the negative log-likelihood; `M3NLoss`, `SVMStructLoss`, `StructuredPerceptronLoss`.
        decoder: by default `ViterbiDecoder`.
        constraints: from `torch_multiclass.tag_constraints`.
        bias: whether the emissions have a bias.
        label_smoothing: for `CRFLoss` by name.
        device, dtype: of the parameters.

    Shape:
        features ``(*, T, D)``, mask ``(*, T)`` or lengths ``(*)``; target and labels ``(*, T)``, -100 where masked or
        not observed.

    Raises:
        ValueError: sizes that are not whole numbers >= 1, constraints of another number of tags; what
            `ChainScorer` and the loss raise for features and labels.
        TypeError: a loss or decoder that is not one of this library.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.5.

    Example:
        >>> import torch
        >>> from torch_multiclass import M3NLoss
        >>> head = ChainHead(16, 5, loss=M3NLoss())
        >>> scores = head(torch.randn(2, 7, 16), lengths=torch.tensor([7, 4]))
        >>> head.loss(scores, torch.randint(5, (2, 7))).backward()
        >>> head.predict(scores).shape, head.predict_proba(scores).shape
        (torch.Size([2, 7]), torch.Size([2, 7, 5]))
    """

    def __init__(
        self,
        in_features: int | Scorer,
        num_tags: int,
        loss: Loss | str | None = None,
        decoder: Decoder | None = None,
        *,
        constraints: Constraints | None = None,
        **options: Unpack[HeadOptions],
    ) -> None:
        own = Options.of(type(self), options)
        super().__init__(ChainScorer(in_features, num_tags, constraints, **own.scorer), loss, decoder, **own.head)
        self.num_tags = self.num_classes
