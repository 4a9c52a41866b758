"""Heads that answer binary questions and read the class off a code."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass import codes
from torch_multiclass.calibration import PlattScaling, TemperatureScaling
from torch_multiclass.codes import CodeLike
from torch_multiclass.codes.names import NAMES
from torch_multiclass.decoders import Decoder
from torch_multiclass.decoders.coded import LossBasedDecoder, VotingDecoder
from torch_multiclass.heads.base import Head
from torch_multiclass.losses import Loss
from torch_multiclass.losses.coded import CodedLoss
from torch_multiclass.ops.coupling import coupled_log_probabilities
from torch_multiclass.ops.margins import MarginLoss, MarginLossLike
from torch_multiclass.scorers.base import Scorer, sample_of
from torch_multiclass.scorers.coded import CodedScorer
from torch_multiclass.scores.coded import CodedScores


class CodedHead(Head):
    """What the heads with a code share: absent classes, calibration and probabilities.

    Args:
        scorer: features to `CodedScores`.
        loss: a loss of `CodedScores`.
        decoder: `CodedScores` to labels.
    """

    scorer: CodedScorer

    def __init__(self, scorer: CodedScorer, loss: Loss, decoder: Decoder) -> None:
        super().__init__(scorer, loss, decoder)
        device = sample_of(scorer).device
        self.temperature = TemperatureScaling(device=device)
        self.platt = PlattScaling(scorer.num_columns, device=device)

    def reset_parameters(self) -> None:
        """Reset the scorer and the calibration."""
        super().reset_parameters()
        self.temperature.reset_parameters()
        self.platt.reset_parameters()

    def _check(self, scores: CodedScores, class_dim: int = -1) -> None:
        super()._check(scores, class_dim)
        if isinstance(scores, CodedScores) and scores.num_columns != self.scorer.num_columns:
            raise ValueError(
                f"scores: have {scores.num_columns} columns; accepted are {self.scorer.num_columns}, as head(features) "
                "gives them"
            )

    def leave_out_absent(self, target: Tensor) -> None:
        """Leave every class without a label in ``target``, the whole training data, out of decoding; warn which."""
        self.scorer.leave_out_absent(target)

    @torch.no_grad()
    def predict_proba(self, scores: CodedScores) -> Tensor:
        """Class probabilities ``(*, K)``, calibrated if `calibrate` was called; the arg max need not be `predict`'s."""
        self._check(scores)
        probabilities: Tensor = self.temperature(self._evidence(scores))
        return probabilities

    @torch.no_grad()
    def calibrate(self, scores: CodedScores, target: Tensor, method: str = "temperature") -> None:
        """Fit the probabilities to held-out scores and labels; `predict` stays as it is.

        ``"temperature"`` divides the evidence for the classes by one number (`TemperatureScaling`); ``"platt"`` first
        fits a logistic curve to each column (`PlattScaling`): the temperature then makes up for the columns being
        combined as if they were independent. The last call counts.
        """
        check.choice("method", method, ("temperature", "platt"))
        if not isinstance(scores, CodedScores):
            raise TypeError(
                f"scores: got {check.shown(scores)}; accepted are CodedScores, as head(features) gives them"
            )
        self._check(scores)
        self.temperature.reset_parameters()
        self.platt.reset_parameters()
        if method == "platt":
            self.platt.fit(scores, target)
        self.temperature.fit(self._evidence(scores), target)

    def _evidence(self, scores: CodedScores) -> Tensor:
        """Log probabilities of the classes up to a constant, ``(*, K)``: minus the distance that the decoder takes.

        After Platt scaling, minus the logistic distance, which is then the log-likelihood.
        """
        fitted = self.platt.fitted
        if not check.values_readable(fitted):
            likelihood = self.platt(scores).class_scores("logistic")
            return torch.where(fitted, likelihood, self.decoder.class_scores(scores))
        if not bool(fitted):
            return self.decoder.class_scores(scores)
        return scores.in_parts(lambda part: self.platt(part).class_scores("logistic"))

    def _calibrated(self, scores: CodedScores) -> CodedScores:
        """The margins through Platt's curves, where they have been fitted."""
        fitted = self.platt.fitted
        if check.values_readable(fitted):
            return self.platt(scores) if bool(fitted) else scores
        return scores._with(margins=torch.where(fitted, self.platt(scores).margins, scores.margins))


class OneVsAllHead(CodedHead):
    r"""One binary problem for each class, that class against the rest; the largest margin wins.

    Args:
        in_features: ``D``; or a scorer of the margins, in place of a linear one.
        num_classes: ``K``.
        loss: a binary loss, by name or as an object, or a loss of `CodedScores`.
        decoder: by default `LossBasedDecoder` of the same loss, on this code the arg max of the margins.
        bias: whether the margins have a bias.
        device, dtype: of the parameters.

    Shape:
        features ``(*, D)``; `CodedScores` of margins ``(*, K)``; target and labels ``(*)``.

    Raises:
        ValueError: fewer than two classes, an unknown binary loss, features of another width, a label outside
            ``0..K-1``.
        TypeError: features that are not floating-point tensors, a loss or decoder that is not one of this library.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.4.1; Allwein, Schapire and
    Singer (2000), section 3.

    Example:
        >>> import torch
        >>> head = OneVsAllHead(16, 4)
        >>> scores = head(torch.randn(32, 16))
        >>> head.loss(scores, torch.randint(4, (32,))).backward()
        >>> head.predict(scores).shape, head.predict_proba(scores).shape
        (torch.Size([32]), torch.Size([32, 4]))
    """

    def __init__(
        self,
        in_features: int | Scorer,
        num_classes: int,
        loss: MarginLossLike | Loss = "hinge",
        decoder: Decoder | None = None,
        *,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        scorer = CodedScorer(in_features, codes.OneVsAll(num_classes), bias, device=device, dtype=dtype)
        criterion = _criterion(loss)
        super().__init__(scorer, criterion, _loss_based(criterion) if decoder is None else decoder)


class OneVsOneHead(CodedHead):
    r"""One binary problem for each pair of classes; the class that wins most pairs wins.

    Probabilities come from pairwise coupling, so their arg max may differ from the vote.

    Args:
        in_features: ``D``; or a scorer of the margins, in place of a linear one.
        num_classes: ``K``.
        loss: a binary loss, by name or as an object, or a loss of `CodedScores`.
        decoder: by default `VotingDecoder`.
        bias: whether the margins have a bias.
        device, dtype: of the parameters.

    Shape:
        features ``(*, D)``; `CodedScores` of margins ``(*, K(K-1)/2)``; target and labels ``(*)``.

    Raises:
        ValueError: fewer than two classes, an unknown binary loss, features of another width, a label outside
            ``0..K-1``.
        TypeError: features that are not floating-point tensors, a loss or decoder that is not one of this library.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.4.2 and (9.17); for the
    probabilities Wu, Lin and Weng (2004), second method.

    Example:
        >>> import torch
        >>> head = OneVsOneHead(16, 4)
        >>> scores = head(torch.randn(32, 16))
        >>> head.loss(scores, torch.randint(4, (32,))).backward()
        >>> head.predict(scores).shape, head.predict_proba(scores).shape
        (torch.Size([32]), torch.Size([32, 4]))
    """

    def __init__(
        self,
        in_features: int | Scorer,
        num_classes: int,
        loss: MarginLossLike | Loss = "hinge",
        decoder: Decoder | None = None,
        *,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        scorer = CodedScorer(in_features, codes.OneVsOne(num_classes), bias, device=device, dtype=dtype)
        super().__init__(scorer, _criterion(loss), VotingDecoder() if decoder is None else decoder)

    def _evidence(self, scores: CodedScores) -> Tensor:
        """Log of the coupled probabilities."""

        def coupled(part: CodedScores) -> Tensor:
            return coupled_log_probabilities(self._calibrated(part).margins, self.num_classes, self.scorer.absent)

        return scores.without_absent(scores.in_parts(coupled))


class ECOCHead(CodedHead):
    r"""Binary problems given by any coding matrix; the class of the nearest row wins.

    Args:
        in_features: ``D``; or a scorer of the margins, in place of a linear one.
        num_classes: ``K``; with a code that is not a name it may be left out, or has to agree.
        loss: a binary loss, by name or as an object, or a loss of `CodedScores`.
        decoder: by default `LossBasedDecoder` of the same loss.
        code: ``(K, L)`` of -1, 0 and +1 as a tensor or nested lists, or the name of a construction of
            `torch_multiclass.codes`.
        bias: whether the margins have a bias.
        generator: for a random code by name.
        device, dtype: of the parameters.

    Shape:
        features ``(*, D)``; `CodedScores` of margins ``(*, L)``; target and labels ``(*)``.

    Raises:
        ValueError: a code with equal rows or an all-zero column, or of another number of classes.
        TypeError: a code that is no table of numbers, a generator that is not of torch.

    Reference: Allwein, Schapire and Singer (2000), section 3; Mohri, Rostamizadeh and Talwalkar, *Foundations of
    Machine Learning*, §9.4.3.

    Example:
        >>> import torch
        >>> from torch_multiclass import codes
        >>> head = ECOCHead(16, code=codes.hadamard(4), loss="logistic")
        >>> scores = head(torch.randn(32, 16))
        >>> head.loss(scores, torch.randint(4, (32,))).backward()
        >>> head.predict(scores).shape, head.predict_proba(scores).shape
        (torch.Size([32]), torch.Size([32, 4]))
    """

    def __init__(
        self,
        in_features: int | Scorer,
        num_classes: int | None = None,
        loss: MarginLossLike | Loss = "logistic",
        decoder: Decoder | None = None,
        *,
        code: str | CodeLike = "dense_random",
        bias: bool = True,
        generator: torch.Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        scorer = CodedScorer(in_features, written_code(code, num_classes, generator), bias, device=device, dtype=dtype)
        criterion = _criterion(loss)
        super().__init__(scorer, criterion, _loss_based(criterion) if decoder is None else decoder)


def _criterion(loss: MarginLossLike | Loss) -> Loss:
    return CodedLoss(loss) if isinstance(loss, (str, MarginLoss)) else loss


def _loss_based(criterion: Loss) -> Decoder:
    return LossBasedDecoder(criterion.loss if isinstance(criterion, CodedLoss) else "hinge")


def written_code(code: str | CodeLike, num_classes: int | None, generator: torch.Generator | None) -> Tensor:
    """The coding matrix itself, of the right number of classes."""
    check.generator(generator)
    if num_classes is not None:
        check.whole("num_classes", num_classes, least=2)
    if isinstance(code, str):
        check.choice("code", code, NAMES)
        if num_classes is None:
            raise ValueError(f"num_classes: got None with the code {code!r}; accepted is the number of classes")
        return codes.by_name(code, num_classes, generator)
    matrix = codes.as_code(code)
    if num_classes is not None and num_classes != len(matrix):
        raise ValueError(f"code: has {len(matrix)} rows; accepted are {num_classes}, one for each class")
    return matrix
