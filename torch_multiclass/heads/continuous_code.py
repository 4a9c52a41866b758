"""The head whose code is learned with the margins."""

from __future__ import annotations

from typing import Any

import torch
from typing_extensions import Unpack

from torch_multiclass.calibration import TemperatureScaling
from torch_multiclass.codes import CodeLike
from torch_multiclass.decoders import ArgmaxDecoder, Decoder
from torch_multiclass.heads._codes import written_code
from torch_multiclass.heads._start import step_scale
from torch_multiclass.heads.base import Head, Options
from torch_multiclass.losses import Loss
from torch_multiclass.losses.names import as_loss
from torch_multiclass.options import HeadOptions, Weight
from torch_multiclass.scorers.base import Scorer, sample_of
from torch_multiclass.scorers.coded import ContinuousCodeScorer


class ContinuousCodeHead(Head):
    r"""Margins read by a code of real numbers that is learned with them; the most similar code word wins.

    Args:
        in_features: ``D``; or a scorer of the margins, in place of a linear one.
        num_classes: ``K``, as for `ECOCHead`.
        loss: any loss of one label; by default `CrammerSingerLoss`, the multi-class SVM, scaled as for `ECOCHead`;
            another name likewise, a loss itself is taken as it is. Gaussian similarities lie in
            (0, 1], so that a margin well below 1 suits them.
        decoder: by default `ArgmaxDecoder`.
        code: where the code starts, as for `ECOCHead`.
        similarity: ``"inner_product"`` or ``"gaussian"``; see `ContinuousCodeScorer`.
        gamma: of the Gaussian; ``1 / L`` by default.
        bias, generator, weight, label_smoothing, device, dtype: as for `ECOCHead`.

    Shape:
        features ``(*, D)``; scores ``(*, K)``; target and labels ``(*)``.

    Raises:
        ValueError: a code that `torch_multiclass.codes.check` refuses or of another number of classes, an unknown
            similarity, a ``gamma`` that is not above 0, features of another width.
        TypeError: a code that is no table of numbers, a generator that is not of torch, a loss or decoder that is not
            one of this library.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.4.3 (continuous codes).

    Example:
        >>> import torch
        >>> head = ContinuousCodeHead(16, 4, code="hadamard")
        >>> scores = head(torch.randn(32, 16))
        >>> head.loss(scores, torch.randint(4, (32,))).backward()
        >>> head.predict(scores).shape, head.predict_proba(scores).shape
        (torch.Size([32]), torch.Size([32, 4]))
    """

    scorer: ContinuousCodeScorer
    _adapts = False

    def __init__(
        self,
        in_features: int | Scorer,
        num_classes: int | None = None,
        loss: Loss | str | None = None,
        decoder: Decoder | None = None,
        *,
        code: str | CodeLike = "dense_random",
        similarity: str = "inner_product",
        gamma: float | None = None,
        generator: torch.Generator | None = None,
        **options: Unpack[HeadOptions],
    ) -> None:
        own = Options.of(type(self), options)
        matrix = written_code(code, num_classes, generator)
        scorer = ContinuousCodeScorer(in_features, matrix, similarity, gamma, **own.scorer)
        super().__init__(scorer, loss, decoder, **own.head)
        self.temperature = TemperatureScaling(device=sample_of(scorer).device)

    def _criterion(self, loss: Any, weight: Weight, label_smoothing: float) -> Loss:
        return as_loss(
            "crammer_singer" if loss is None else loss,
            weight=weight,
            label_smoothing=label_smoothing,
            scale=lambda name: step_scale(self.scorer.codewords.shape[1]),
        )

    def _decoder(self) -> Decoder:
        return ArgmaxDecoder()

    def learn(self, what: str = "both") -> None:
        """Let the optimiser change the ``"code"``, the ``"margins"`` or ``"both"``; to alternate, call it in turn."""
        self.scorer.learn(what)
