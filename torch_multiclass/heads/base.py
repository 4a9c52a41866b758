"""What every head shares: a scorer, a loss and a decoder in one module."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.calibration import TemperatureScaling
from torch_multiclass.decoders import Decoder
from torch_multiclass.heads._hints import holds_nan, refuse_nan, warn_of_nan
from torch_multiclass.heads._parts import check_reads, check_sizes
from torch_multiclass.losses import Loss
from torch_multiclass.losses.names import as_loss
from torch_multiclass.ops.precision import upcast
from torch_multiclass.options import FACTORY, HEAD_OPTIONS, Weight, known_keywords
from torch_multiclass.scorers.base import Scorer, class_counts, place, sample_of, warn_of_absent
from torch_multiclass.scores import CodedScores, FlatScores, Scores, SegmentScores, as_scores

Verb = TypeVar("Verb", bound=Callable[..., Any])


class Options(NamedTuple):
    """The keyword arguments of a head, by whom they are for."""

    scorer: dict[str, Any]
    head: dict[str, Any]

    @classmethod
    def of(cls, head: type, given: Mapping[str, Any]) -> Options:
        """Those given to a head; raise for one that no head has."""
        known_keywords(head, given, HEAD_OPTIONS)
        scorer = {name: part for name, part in given.items() if name in ("bias", *FACTORY)}
        return cls(scorer, {name: part for name, part in given.items() if name not in scorer})


VERBS = ("loss", "predict", "predict_proba", "class_scores", "calibrate")
STRUCTURE = dict.fromkeys(("mask", "lengths"), "of a sequence, head(features, mask=...) or lengths=... keeps it")


def scored(verb: Verb) -> Verb:
    """A verb of scores that is told of a mask that the scores have already."""
    return check.told(verb, STRUCTURE)


class Head(check.Told, nn.Module):
    """Scorer, loss and decoder in one module, to be attached to anything that yields features.

    ``head(features)`` gives scores, ``head.loss(scores, target)`` what to minimise, ``head.predict(scores)`` labels
    and ``head.predict_proba(scores)`` class probabilities, after `calibrate` those that fit held-out data. Only the
    scorer has parameters.

    Args:
        scorer: features to scores.
        loss: the training criterion, or the name of one, such as ``"crammer_singer"``.
            ``head.criterion = ...`` replaces it.
        decoder: scores to labels.
        weight: ``(K,)`` a weight for each class in the loss, or ``"balanced"``: then `balance` has to be called once
            with the labels of the training data before `loss` is.
        label_smoothing: the share that each label gives to all classes, for a loss by a name that has it.

    Raises:
        TypeError: a scorer, loss or decoder that is not one of this library, or a subclass.
        ValueError: a name that no loss has, scores of another number of classes than the scorer's, a weight or
            smoothing that the loss has no meaning for.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.2 and §9.3.

    Example:
        >>> import torch
        >>> from torch_multiclass import ArgmaxDecoder, CrammerSingerLoss, KernelScorer, kernels
        >>> machine = KernelScorer(torch.randn(20, 8), 3, kernels.Gaussian(0.1))
        >>> head = Head(machine, CrammerSingerLoss(), ArgmaxDecoder())
        >>> head.predict(head(torch.randn(5, 8))).shape
        torch.Size([5])
    """

    scorer: Scorer
    temperature: TemperatureScaling | None
    absent: Tensor | None

    def __init_subclass__(cls, **options: Any) -> None:
        """Verbs are told of a mask."""
        super().__init_subclass__(**options)
        for name in VERBS:
            if name in vars(cls):
                setattr(cls, name, scored(vars(cls)[name]))

    def __init__(
        self,
        scorer: Scorer,
        loss: Any,
        decoder: Decoder | None,
        *,
        weight: Weight | str = None,
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        if not isinstance(scorer, Scorer):
            raise TypeError(f"scorer: got {check.came(scorer)}; accepted is a torch_multiclass scorer{place(scorer)}")
        if isinstance(weight, str):
            check.choice("weight", weight, ("balanced",), hint=" and one weight for each class, (K,)")
        self.scorer = scorer
        self.in_features, self.num_classes = scorer.in_features, scorer.num_classes
        balanced = isinstance(weight, str)
        self._uncounted = balanced
        self.criterion = self._criterion(loss, None if isinstance(weight, str) else weight, label_smoothing)
        check_reads("loss", self.criterion, scorer)
        if self.criterion.weight is not None or balanced:
            self._takes_class_weights("weight")
        decoder = self._decoder() if decoder is None else decoder
        if not isinstance(decoder, Decoder):
            raise TypeError(f"decoder: got {check.came(decoder)}; accepted is a torch_multiclass decoder")
        check_reads("decoder", decoder, scorer)
        for part in (self.criterion, decoder):
            check_sizes(part, scorer)
        self.decoder = decoder
        self.register_module("temperature", None)
        self.register_buffer("absent", None)
        self._start()

    # ---------------------------------------------------------------------------------- what kinds differ in

    def _criterion(self, loss: Any, weight: Weight, label_smoothing: float) -> Loss:
        """The loss behind what was given."""
        return as_loss(loss, weight=weight, label_smoothing=label_smoothing)

    def _decoder(self) -> Decoder:
        """The decoder where none is given."""
        raise TypeError("decoder: got None; accepted is a torch_multiclass decoder")

    def _start(self) -> None:
        """Write what the scorer starts at because of the loss."""

    def _takes_class_weights(self, name: str) -> None:
        """Raise where a class weight has no meaning."""

    # ---------------------------------------------------------------------------------- training

    _nan_unsaid = True
    """Whether it is still to be said that a loss is NaN."""

    def reset_parameters(self) -> None:
        """Reset the scorer and the calibration; every class takes part in decoding again."""
        self.scorer.reset_parameters()
        self._start()
        if self.temperature is not None:
            self.temperature.reset_parameters()
        self.register_buffer("absent", None)

    def forward(self, features: Tensor, *structure: Any, **named: Any) -> Any:
        """The scores of the features; what else there is, such as a mask, is as the scorer takes it."""
        if named and not torch.compiler.is_compiling():
            check.takes(type(self).__name__, self.scorer.forward, named)
        return self.scorer(features, *structure, **named)

    @scored
    def loss(self, scores: Any, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """The training loss, where asked with a weight for each example.

        Where values may be read, on the CPU and not in a captured graph, warns once of a loss that is NaN because of
        scores that are, as NaN features make, and names their examples.
        """
        self._check(scores, self._class_dim(self.criterion))
        if self._uncounted:
            raise RuntimeError(
                'weight: is "balanced", and no labels have been counted, which no checkpoint holds; accepted after '
                "head.balance(labels of the training data)"
            )
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if weights and not torch.compiler.is_compiling():
            check.takes(type(self.criterion).__name__, self.criterion.forward, weights)
        loss: Tensor = self.criterion(scores, target, **weights)
        if self._nan_unsaid and holds_nan(loss):
            self._nan_unsaid = False
            warn_of_nan(scores, self._class_dim(self.criterion))
        return loss

    def balance(self, target: Tensor) -> None:
        """Weigh classes by ``m / (K n_k)``, with ``n_k`` of the ``m`` labels in ``target``, the whole training data.

        As scikit-learn's ``class_weight="balanced"``: ``K`` counts the classes that occur, and the others weigh 1.
        Labels -100, and the loss's ``ignore_index``, do not count.
        Class weights are no part of a checkpoint: a training that goes on balances again.
        """
        self._takes_class_weights("balance")
        counts = class_counts(self._known(target), self.num_classes).double()
        there = counts > 0
        weight = torch.where(there, counts.sum() / (there.sum() * counts.clamp(min=1)), 1.0)
        sample = sample_of(self.scorer)
        self.criterion = copy.deepcopy(self.criterion)  # which may be another head's too
        self.criterion.weigh(weight.to(sample.device, sample.dtype))
        self._uncounted = False

    # ---------------------------------------------------------------------------------- prediction

    @scored
    def predict(self, scores: Any) -> Tensor:
        """The labels, without gradient.

        Raises:
            ValueError: NaN among the scores, as NaN features make, which no label can stand for. Read on the CPU only
                and not in a captured graph: elsewhere the label of such an example is any class.
        """
        self._check(scores, self._class_dim(self.decoder))
        refuse_nan(scores, self._class_dim(self.decoder))
        labels: Tensor = self.decoder(self._decided(scores))  # which turns gradients off: once, or no export is saved
        return labels

    @scored
    def class_scores(self, scores: Any) -> Tensor:
        """A score for each class, ``(*, K)``, on which any metric of class scores works."""
        self._check(scores, self._class_dim(self.decoder))
        return self.decoder.class_scores(self._decided(scores))

    @scored
    @torch.no_grad()
    def predict_proba(self, scores: Any) -> Tensor:
        """The probability of each label, ``(*, K)``, for sequences ``(*, T, K)``: the model's own under `CRFLoss`,
        for other losses of no meaning before `calibrate`. NaN is refused as by `predict`."""
        self._check(scores, self._class_dim(self.decoder))
        refuse_nan(scores, self._class_dim(self.decoder), "probability")
        evidence = self._evidence(scores)
        probabilities: Tensor = evidence.marginals() if self.temperature is None else self.temperature(evidence)
        return probabilities

    @scored
    @torch.no_grad()
    def calibrate(self, scores: Any, target: Tensor, method: str = "temperature") -> TemperatureScaling:
        """Fit the probabilities to held-out scores and labels; `predict` stays as it is, unless its decoder reads them.

        ``"temperature"`` divides the scores by one number, that of the `TemperatureScaling` which is returned and kept
        as ``head.temperature``. The last call counts.

        Warns where that number is extreme: of rows without an error, of too few, or of scores that tell nothing.
        """
        check.choice("method", method, ("temperature",))
        self._check(scores, self._class_dim(self.decoder))
        scaling = TemperatureScaling(device=sample_of(self.scorer).device)
        evidence = self._evidence(scores)
        if isinstance(scores, Tensor):
            check.rows_behind("scores", scores, target, self._class_dim(self.decoder))
        self.temperature = scaling.fit(evidence, self._known(target))
        return scaling

    def leave_out_absent(self, target: Tensor) -> None:
        """Leave every class without a label in ``target``, the whole training data, out of decoding; warn which.

        Labels -100, and the loss's ``ignore_index``, do not count. Calling it again with other labels starts afresh.
        """
        absent = class_counts(self._known(target), self.num_classes) == 0
        self.register_buffer("absent", absent.to(sample_of(self.scorer).device) if bool(absent.any()) else None)
        warn_of_absent(absent)

    def _evidence(self, scores: Any) -> Scores:
        """What probabilities are read off, up to the temperature."""
        if isinstance(scores, CodedScores):
            return as_scores(self.decoder.class_scores(scores))
        return as_scores(self._left(scores), self._class_dim(self.decoder))

    def _decided(self, scores: Any) -> Any:
        """What labels are read off: with the temperature where the decoder reads probabilities."""
        left = self._left(scores)
        if self.temperature is None or not self.decoder.reads_probabilities:
            return left
        if isinstance(left, Tensor):
            return upcast(left) / self.temperature.temperature
        return FlatScores(left.tensor / self.temperature.temperature) if isinstance(left, FlatScores) else left

    def _left(self, scores: Any) -> Any:
        """The scores without the classes that are left out."""
        if self.absent is None or isinstance(scores, CodedScores) or not isinstance(scores, (Tensor, Scores)):
            return scores  # of another type: the decoder refuses it
        held = scores if isinstance(scores, Tensor) else getattr(scores, scores.leading)
        check.same_device("scores", held, "the head", self.absent)
        if isinstance(scores, Tensor):
            if not scores.ndim:
                return scores  # named where the scores are read
            own = [1] * scores.ndim
            own[self._class_dim(self.decoder)] = self.num_classes
            return scores.masked_fill(self.absent.view(own), -torch.inf)
        if isinstance(scores, SegmentScores):
            return scores.plus(torch.where(self.absent, -torch.inf, 0.0).to(scores.dtype).expand(*scores.sites, -1))
        name = scores.leading
        return scores._with(**{name: getattr(scores, name).masked_fill(self.absent, -torch.inf)})

    # ---------------------------------------------------------------------------------- what came in

    def _known(self, target: Tensor) -> Tensor:
        """Labels with -100 where the loss reads none, whatever it has for ``ignore_index``."""
        missing = self.criterion.frame["ignore_index"] if isinstance(self.criterion, Loss) else check.IGNORE
        if missing == check.IGNORE or not isinstance(target, Tensor) or target.dtype not in check.INTEGERS:
            return target  # another is named where labels are read
        check.dense("target", target)
        labels: Tensor = check.signed(target).long()
        return labels.masked_fill(labels == missing, check.IGNORE)

    @staticmethod
    def _class_dim(part: Loss | Decoder) -> int:
        """The dimension of a plain tensor of scores that holds the classes, for a loss or a decoder."""
        frame = part.frame if isinstance(part, Loss) else vars(part)
        return int(frame.get("class_dim", -1))

    def _check(self, scores: Any, class_dim: int = -1) -> None:
        """Raise where scores are of another number of classes: features, most likely, in their place."""
        if isinstance(scores, Tensor):
            check.floating("scores", scores)
            if not -scores.ndim <= class_dim < scores.ndim:
                return  # named where the scores are read
            given = scores.shape[class_dim]
        elif isinstance(scores, (Scores, CodedScores)):
            given = scores.num_classes
        else:
            return
        if given != self.num_classes:
            last = class_dim != -1 and scores.shape[-1] == self.num_classes
            how = f"; its classes are last, class_dim=-1, where {class_dim} was given" if last else ""
            raise ValueError(
                f"scores: are of {given} classes; accepted are {self.num_classes}, as head(features) gives them{how}"
            )

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Take a calibration and classes left out as the checkpoint has them, which it need not."""
        if type(self)._adapts:
            found = f"{prefix}temperature.temperature" in state_dict
            scaling = TemperatureScaling(device=sample_of(self.scorer).device) if found else None
            self.temperature = (self.temperature or scaling) if found else None
        absent = state_dict.get(f"{prefix}absent")
        self.register_buffer("absent", None if absent is None else torch.empty_like(absent))
        super()._load_from_state_dict(state_dict, prefix, *rest)

    _adapts = True
    """Whether there is a calibration only where one was fitted."""
