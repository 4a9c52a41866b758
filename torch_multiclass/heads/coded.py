"""Heads that answer binary questions and read the class off a code."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from typing_extensions import Unpack

from torch_multiclass import checks as check
from torch_multiclass import codes
from torch_multiclass.calibration import PlattScaling, TemperatureScaling
from torch_multiclass.codes import CodeLike
from torch_multiclass.decoders import Decoder
from torch_multiclass.decoders.coded import LossBasedDecoder, VotingDecoder
from torch_multiclass.heads._codes import written_code
from torch_multiclass.heads._hints import warn_of_imbalance
from torch_multiclass.heads._start import constant_margins, step_scale
from torch_multiclass.heads.base import Head, Options
from torch_multiclass.losses import Loss
from torch_multiclass.losses.coded import CodedLoss
from torch_multiclass.losses.names import own_options
from torch_multiclass.ops.constants import home
from torch_multiclass.ops.coupling import coupled_log_probabilities
from torch_multiclass.ops.margins import MarginLoss, MarginLossLike
from torch_multiclass.options import HeadOptions, Weight
from torch_multiclass.scorers import LinearScorer
from torch_multiclass.scorers.base import Scorer, sample_of
from torch_multiclass.scorers.coded import CodedScorer
from torch_multiclass.scores.coded import CodedScores
from torch_multiclass.scores.flat import FlatScores

LABELS = 1000  # after which it is said that classes are not balanced


class CodedHead(Head):
    r"""What the heads with a code share: absent classes, calibration and probabilities.

    A binary loss by name is scaled to the step size that suits cross-entropy, in ``n`` the columns that ask a class:
    half of a dense code is wrong before training, little of one against many. Linear margins start at what the loss
    prefers where nothing is known, as -1 of the hinge there. The exponential loss has no bound on its slope: train it
    by Adam, or clip the gradient.

    Args:
        scorer: features to `CodedScores`.
        loss: a loss of `CodedScores`.
        decoder: `CodedScores` to labels.

    Reference: Allwein, Schapire and Singer (2000), section 3.
    """

    scorer: CodedScorer
    temperature: TemperatureScaling
    _adapts = False
    _own_margins = False

    def __init__(
        self, scorer: CodedScorer, loss: Any, decoder: Decoder | None, *, own: bool = False, **head: Any
    ) -> None:
        self.__dict__["_own_margins"] = own
        super().__init__(scorer, loss, decoder, **head)
        device = sample_of(scorer).device
        self.temperature = TemperatureScaling(device=device)
        self.platt = PlattScaling(scorer.num_columns, device=device)
        self._counts: Tensor | None = torch.zeros(scorer.num_classes, dtype=torch.int64, device=home())

    def _criterion(self, loss: Any, weight: Weight, label_smoothing: float) -> Loss:
        if not isinstance(loss, (str, MarginLoss)):
            return own_options(loss, weight, label_smoothing)
        asked, share = self.scorer.shares()
        undecided = asked * float((4 * share * (1 - share)).mean())
        return CodedLoss(loss, label_smoothing, weight=weight).scaled(step_scale(undecided))

    def _decoder(self) -> Decoder:
        return LossBasedDecoder(self.criterion.loss if isinstance(self.criterion, CodedLoss) else "hinge")

    @torch.no_grad()
    def _start(self) -> None:
        """Start each column at the margin that its loss prefers where nothing is known, if the margins are ours."""
        margins = self.scorer.margins
        if not (self._own_margins and isinstance(margins, LinearScorer) and isinstance(self.criterion, CodedLoss)):
            return
        if margins.bias is None or margins.bias.is_meta:
            return
        margins.bias.copy_(constant_margins(self.criterion.loss, self.scorer.shares()[1]))

    def loss(self, scores: CodedScores, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """The training loss, where asked with a weight for each example.

        Warns once where the labels of the first batches are far from balanced, and neither classes nor examples have a
        weight.
        """
        value = super().loss(scores, target, sample_weight)
        weighted = sample_weight is not None or self.criterion.weight is not None
        if self._counts is not None and self.training and self._outvoted and not weighted:
            self._watch(target)
        return value

    @property
    def _outvoted(self) -> bool:
        """Whether a column asks more than two classes, of which one may be drowned."""
        return self.scorer.name != "one_vs_one"

    def _watch(self, target: Tensor) -> None:
        """Count labels until there are enough to say whether class weights are wanted."""
        if self._counts is None or target.is_floating_point() or not check.values_readable(target):
            return
        target = target.long()
        seen = target[(target >= 0) & (target < self.num_classes)].flatten()
        self._counts = self._counts + torch.bincount(seen, minlength=self.num_classes)
        if int(self._counts.sum()) < max(LABELS, 20 * self.num_classes):
            return
        counts, self._counts = self._counts, None
        warn_of_imbalance(counts)

    def reset_parameters(self) -> None:
        """Reset the scorer and the calibration; every class takes part in decoding again."""
        super().reset_parameters()
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
        self.scorer.leave_out_absent(self._known(target))

    @torch.no_grad()
    def calibrate(self, scores: CodedScores, target: Tensor, method: str = "temperature") -> TemperatureScaling:
        """Fit the probabilities to held-out scores and labels; `predict` stays as it is.

        ``"temperature"`` divides the evidence for the classes by one number (`TemperatureScaling`); ``"platt"`` first
        fits a logistic curve to each column (`PlattScaling`): the temperature then makes up for the columns being
        combined as if they were independent. The last call counts.
        """
        check.choice("method", method, ("temperature", "platt"))
        _coded(scores)
        self._check(scores)
        self.temperature.reset_parameters()
        self.platt.reset_parameters()
        if method == "platt":
            self.platt.fit(scores, self._known(target))
        return self.temperature.fit(self._evidence(scores), self._known(target))

    def _evidence(self, scores: CodedScores) -> FlatScores:
        """Log probabilities of the classes up to a constant, ``(*, K)``."""
        _coded(scores)
        return FlatScores(self._log_likelihood(scores))

    def _log_likelihood(self, scores: CodedScores) -> Tensor:
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

    A loss by name is scaled by ``\min(1, 3 / \sqrt{n})``, ``n = 4 (K - 1) / K``, which is 1; one itself is taken as is.

    Args:
        in_features: ``D``; or a scorer of the margins, in place of a linear one.
        num_classes: ``K``.
        loss: a binary loss, by name or as an object, or a loss of `CodedScores`.
        decoder: by default `LossBasedDecoder` of the same loss, on this code the arg max of the margins.
        bias: whether the margins have a bias.
        weight: ``(K,)`` a weight for each class in a loss by name, or ``"balanced"``, see `balance`.
        label_smoothing: the share that each label gives to all classes, in a loss by name.
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
        **options: Unpack[HeadOptions],
    ) -> None:
        own = Options.of(type(self), options)
        scorer = CodedScorer(in_features, codes.OneVsAll(num_classes), **own.scorer)
        super().__init__(scorer, loss, decoder, own=not isinstance(in_features, nn.Module), **own.head)


class OneVsOneHead(CodedHead):
    r"""One binary problem for each pair of classes; the class that wins most pairs wins.

    Probabilities come from pairwise coupling, so their arg max may differ from the vote. A loss by name is scaled by
    ``\min(1, 3 / \sqrt{n})``, ``n = K - 1`` being the pairs of a class; a loss itself is taken as it is.

    A row concerns the ``K-1`` pairs of its label only. With ``sparse=True`` the gradients of linear margins are sparse
    tensors of those pairs, as of `torch.nn.Embedding`: for `torch.optim.SGD` without weight decay, or `SparseAdam`.
    With 1,000 classes and batches of 32 a step takes a seventh of the time, and a sixteenth of the memory. They are
    dense all the same under autocast, in a compiled step, with label smoothing or soft targets.

    Args:
        in_features: ``D``; or a scorer of the margins, in place of a linear one.
        num_classes: ``K``.
        loss: a binary loss, by name or as an object, or a loss of `CodedScores`.
        decoder: by default `VotingDecoder`.
        bias: whether the margins have a bias.
        weight: ``(K,)`` a weight for each class in a loss by name, or ``"balanced"``, see `balance`.
        label_smoothing: the share that each label gives to all classes, in a loss by name.
        sparse: whether the gradients of linear margins are sparse.
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
        sparse: bool = False,
        **options: Unpack[HeadOptions],
    ) -> None:
        own = Options.of(type(self), options)
        scorer = CodedScorer(in_features, codes.OneVsOne(num_classes), sparse=sparse, **own.scorer)
        super().__init__(scorer, loss, decoder, own=not isinstance(in_features, nn.Module), **own.head)

    def _decoder(self) -> Decoder:
        return VotingDecoder()

    def _log_likelihood(self, scores: CodedScores) -> Tensor:
        """Log of the coupled probabilities."""

        def coupled(part: CodedScores) -> Tensor:
            return coupled_log_probabilities(self._calibrated(part).margins, self.num_classes, self.scorer.absent)

        return scores.without_absent(scores.in_parts(coupled))


class ECOCHead(CodedHead):
    r"""Binary problems given by any coding matrix; the class of the nearest row wins.

    A loss by name is scaled by ``\min(1, 3 / \sqrt{n})``, ``n`` being how many columns ask a class, on average, times
    the mean of ``4 p_s (1 - p_s)``, ``p_s`` the share of +1 in a column; a loss itself is taken as it is.

    Args:
        in_features: ``D``; or a scorer of the margins, in place of a linear one.
        num_classes: ``K``; with a code that is not a name it may be left out, or has to agree.
        loss: a binary loss, by name or as an object, or a loss of `CodedScores`.
        decoder: by default `LossBasedDecoder` of the same loss.
        code: ``(K, L)`` of -1, 0 and +1 as a tensor or nested lists, or the name of a construction of
            `torch_multiclass.codes`.
        bias: whether the margins have a bias.
        weight: ``(K,)`` a weight for each class in a loss by name, or ``"balanced"``, see `balance`.
        label_smoothing: the share that each label gives to all classes, in a loss by name.
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
        generator: torch.Generator | None = None,
        **options: Unpack[HeadOptions],
    ) -> None:
        own = Options.of(type(self), options)
        scorer = CodedScorer(in_features, written_code(code, num_classes, generator), **own.scorer)
        super().__init__(scorer, loss, decoder, own=not isinstance(in_features, nn.Module), **own.head)


def _coded(scores: object) -> None:
    if not isinstance(scores, CodedScores):
        raise TypeError(f"scores: got {check.shown(scores)}; accepted are CodedScores, as head(features) gives them")
