"""The head whose code is learned with the margins."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_multiclass.calibration import TemperatureScaling
from torch_multiclass.codes import CodeLike
from torch_multiclass.decoders import ArgmaxDecoder, Decoder
from torch_multiclass.heads.base import Head
from torch_multiclass.heads.coded import written_code
from torch_multiclass.losses import CrammerSingerLoss, Loss
from torch_multiclass.scorers.base import Scorer, sample_of
from torch_multiclass.scorers.coded import ContinuousCodeScorer


class ContinuousCodeHead(Head):
    r"""Margins read by a code of real numbers that is learned with them; the most similar code word wins.

    Args:
        in_features: ``D``; or a scorer of the margins, in place of a linear one.
        num_classes: ``K``, as for `ECOCHead`.
        loss: any loss of one label; by default `CrammerSingerLoss`, the multi-class SVM. Gaussian similarities lie in
            (0, 1], so that a margin well below 1 suits them.
        decoder: by default `ArgmaxDecoder`.
        code: where the code starts, as for `ECOCHead`.
        similarity: ``"inner_product"`` or ``"gaussian"``; see `ContinuousCodeScorer`.
        gamma: of the Gaussian; ``1 / L`` by default.
        bias, generator, device, dtype: as for `ECOCHead`.

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

    def __init__(
        self,
        in_features: int | Scorer,
        num_classes: int | None = None,
        loss: Loss | None = None,
        decoder: Decoder | None = None,
        *,
        code: str | CodeLike = "dense_random",
        similarity: str = "inner_product",
        gamma: float | None = None,
        bias: bool = True,
        generator: torch.Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        matrix = written_code(code, num_classes, generator)
        scorer = ContinuousCodeScorer(in_features, matrix, similarity, gamma, bias, device=device, dtype=dtype)
        super().__init__(
            scorer, CrammerSingerLoss() if loss is None else loss, ArgmaxDecoder() if decoder is None else decoder
        )
        self.temperature = TemperatureScaling(device=sample_of(scorer).device)

    def reset_parameters(self) -> None:
        """Reset the scorer and the calibration."""
        super().reset_parameters()
        self.temperature.reset_parameters()

    def learn(self, what: str = "both") -> None:
        """Let the optimiser change the ``"code"``, the ``"margins"`` or ``"both"``; to alternate, call it in turn."""
        self.scorer.learn(what)

    @torch.no_grad()
    def predict_proba(self, scores: Tensor) -> Tensor:
        """The soft-max of the scores over the temperature, ``(*, K)``."""
        self._check(scores)
        probabilities: Tensor = self.temperature(scores)
        return probabilities

    @torch.no_grad()
    def calibrate(self, scores: Tensor, target: Tensor) -> None:
        """Fit the temperature to held-out scores and labels."""
        self._check(scores)
        self.temperature.fit(scores, target)
