"""The head of one label among K."""

from __future__ import annotations

from typing import Any

from typing_extensions import Unpack

from torch_multiclass.decoders import ArgmaxDecoder, Decoder
from torch_multiclass.heads._start import step_scale
from torch_multiclass.heads.base import Head, Options
from torch_multiclass.losses import Loss
from torch_multiclass.losses.names import SUMS, as_loss
from torch_multiclass.options import HeadOptions, Weight
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
        weight: ``(K,)`` a weight for each class in a loss by name, or ``"balanced"``, see `balance`.
        label_smoothing: for ``"cross_entropy"``.
        device, dtype: of the parameters.

    A loss by name that adds up terms of all rivals is scaled to the step size that suits cross-entropy, by
    ``min(1, 3 / sqrt(K - 1))``; a loss itself is taken as it is. Exponential losses have no bound on their slope: train
    them by Adam, or clip the gradient.

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
        **options: Unpack[HeadOptions],
    ) -> None:
        own = Options.of(type(self), options)
        super().__init__(LinearScorer(in_features, num_classes, **own.scorer), loss, decoder, **own.head)

    def _criterion(self, loss: Any, weight: Weight, label_smoothing: float) -> Loss:
        return as_loss(
            "cross_entropy" if loss is None else loss,
            weight=weight,
            label_smoothing=label_smoothing,
            scale=lambda name: step_scale(self.num_classes - 1) if name in SUMS else 1.0,
        )

    def _decoder(self) -> Decoder:
        return ArgmaxDecoder()
