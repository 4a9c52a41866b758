"""The head of one label among K."""

from __future__ import annotations

import torch

from torch_multiclass.decoders import ArgmaxDecoder, Decoder
from torch_multiclass.heads.base import Head
from torch_multiclass.losses import CRFLoss, Loss
from torch_multiclass.scorers import LinearScorer


class MulticlassHead(Head):
    r"""One linear score for each class, any loss over them, and the arg max.

    Args:
        in_features: ``D``, the width of the features.
        num_classes: ``K``.
        loss: any loss of one label, or its name: ``"cross_entropy"`` (the default, `CRFLoss`), ``"crammer_singer"``,
            ``"weston_watkins"``, ``"m3n"``, ``"svmstruct"``, ``"structured_perceptron"``, ``"adaboost_mh"``,
            ``"adaboost_mr"`` or ``"adaboost_averaged"``.
        decoder: by default `ArgmaxDecoder`.
        bias: whether the scores have a bias.
        device, dtype: of the parameters.

    Shape:
        features ``(*, D)``; scores ``(*, K)``; target and labels ``(*)``.

    Raises:
        ValueError: sizes that are not whole numbers >= 1, features of another width, scores of another number of
            classes, a label outside ``0..K-1``, a name that no loss has.
        TypeError: features that are not floating-point tensors, a loss or decoder that is not one of this library.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.2 and §9.3.1.

    Example:
        >>> import torch
        >>> head = MulticlassHead(16, 4, loss="crammer_singer")  # or loss=CrammerSingerLoss(margin=2)
        >>> scores = head(torch.randn(32, 16))
        >>> head.loss(scores, torch.randint(4, (32,))).backward()
        >>> head.predict(scores).shape, head.predict_proba(scores).shape
        (torch.Size([32]), torch.Size([32, 4]))
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        loss: Loss | str | None = None,
        decoder: Decoder | None = None,
        *,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        scorer = LinearScorer(in_features, num_classes, bias, device=device, dtype=dtype)
        super().__init__(scorer, CRFLoss() if loss is None else loss, ArgmaxDecoder() if decoder is None else decoder)
