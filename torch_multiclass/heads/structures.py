"""The heads of the structures beyond the chain: a scorer, any structured loss, and a decoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from typing_extensions import Unpack

from torch_multiclass import checks as check
from torch_multiclass.decoders import Decoder, SignDecoder
from torch_multiclass.heads._hints import refuse_nan
from torch_multiclass.heads.base import Options
from torch_multiclass.heads.sequence import SequenceHead
from torch_multiclass.losses import Loss
from torch_multiclass.options import HeadOptions
from torch_multiclass.scorers import LabelTreeScorer, MultilabelScorer, Scorer, SecondOrderScorer, SegmentScorer
from torch_multiclass.scores import MultilabelScores
from torch_multiclass.tags import Constraints

__all__ = ["LabelTreeHead", "MultilabelHead", "SecondOrderHead", "SegmentHead"]


class MultilabelHead(SequenceHead):
    r"""One linear score for each label, any number of which may hold; any loss over them, and the sign.

    ``head(features)`` gives `MultilabelScores`; targets and predictions are -1 and +1 for each label.

    Args:
        in_features: ``D``, the width of the features; or any scorer of one score for each label.
        num_labels: ``K``; with a scorer, not given.
        loss: `CRFLoss` by default, the logistic loss of each label, summed; `M3NLoss`, `SVMStructLoss`, `AdaBoostLoss`.
        decoder: by default `SignDecoder`.
        bias: whether the scores have a bias.
        label_smoothing: for `CRFLoss` by name.
        device, dtype: of the parameters.

    Shape:
        features ``(*, D)``; target and labels ``(*, K)``, -1 or +1, with -100 in a target where it is not known, or
        under `CRFLoss` mean signs, any numbers between; probabilities ``(*, K)``.

    Raises:
        ValueError: sizes that are not whole numbers >= 1, features of another width, a target of other numbers.
        TypeError: a loss or decoder that is not one of this library.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.1 and (9.3).

    Example:
        >>> import torch
        >>> from torch_multiclass import AdaBoostLoss
        >>> head = MultilabelHead(16, 4, loss=AdaBoostLoss())
        >>> scores = head(torch.randn(32, 16))
        >>> head.loss(scores, 2 * torch.randint(2, (32, 4)) - 1).backward()
        >>> head.predict(scores).unique().tolist(), head.predict_proba(scores).shape
        ([-1, 1], torch.Size([32, 4]))
    """

    def __init__(
        self,
        in_features: int | Scorer,
        num_labels: int | None = None,
        loss: Loss | str | None = None,
        decoder: Decoder | None = None,
        **options: Unpack[HeadOptions],
    ) -> None:
        own = Options.of(type(self), options)
        super().__init__(MultilabelScorer(in_features, num_labels, **own.scorer), loss, decoder, **own.head)

    def _decoder(self) -> Decoder:
        return SignDecoder()

    def leave_out_absent(self, target: Tensor) -> None:
        """An error: a label that never holds in the training data is predicted not to hold."""
        raise ValueError(
            "leave_out_absent: has no meaning with MultilabelHead, which learns of every label that it does not hold; "
            "accepted are heads of one label"
        )

    @torch.no_grad()
    def predict_proba(self, scores: MultilabelScores) -> Tensor:
        r"""``P(y_l = 1) = \sigma(2 f_l / T)``, ``(*, K)``: the model's own under `CRFLoss`, for other losses of no
        meaning before `calibrate`. NaN is refused as by `predict`.
        """
        self._check(scores)
        refuse_nan(scores, wanted="probability")
        scaled = scores if self.temperature is None else scores.scale(1 / self.temperature.temperature)
        return scaled.probabilities()

    def _check(self, scores: Any, class_dim: int = -1) -> None:
        if isinstance(scores, MultilabelScores) and scores.sites[-1] != self.num_classes:
            raise ValueError(
                f"scores: are of {scores.sites[-1]} labels; accepted are {self.num_classes}, as head(features) gives"
            )
        if not isinstance(scores, MultilabelScores):
            raise TypeError(f"scores: got {check.came(scores)}; accepted are MultilabelScores, as head(features) gives")


class SecondOrderHead(SequenceHead):
    r"""Linear emissions, learned scores of two and three neighbouring labels, any structured loss, and Viterbi.

    Args:
        in_features: ``D``, the width of the features at each position.
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
            `SecondOrderScorer` and the loss raise for features and labels.
        TypeError: a loss or decoder that is not one of this library.

    Reference: Collins (2002), Discriminative training methods for hidden Markov models, section 2 (trigram taggers).

    Example:
        >>> import torch
        >>> from torch_multiclass import M3NLoss
        >>> head = SecondOrderHead(16, 5, loss=M3NLoss())
        >>> scores = head(torch.randn(2, 7, 16), lengths=torch.tensor([7, 4]))
        >>> head.loss(scores, torch.randint(5, (2, 7))).backward()
        >>> head.predict(scores).shape, head.predict_proba(scores).shape
        (torch.Size([2, 7]), torch.Size([2, 7, 5]))
    """

    def __init__(
        self,
        in_features: int,
        num_tags: int,
        loss: Loss | str | None = None,
        decoder: Decoder | None = None,
        *,
        constraints: Constraints | None = None,
        **options: Unpack[HeadOptions],
    ) -> None:
        own = Options.of(type(self), options)
        super().__init__(SecondOrderScorer(in_features, num_tags, constraints, **own.scorer), loss, decoder, **own.head)
        self.num_tags = self.num_classes


class SegmentHead(SequenceHead):
    r"""Linear scores of tags, learned scores of lengths and kinds, any structured loss, and the best segmentation.

    ``head(features, mask=mask)`` gives `SegmentScores`; labels are the tags of `torch_multiclass.segment_tags`.

    Args:
        in_features: ``D``, the width of the features at each position.
        num_kinds: ``K``.
        max_length: ``S``, the length of the longest segments.
        loss: `CRFLoss` by default, the negative log-likelihood; `M3NLoss`, `SVMStructLoss`, `StructuredPerceptronLoss`.
        decoder: by default `ViterbiDecoder`.
        longest: how long a segment of each kind may be, in ``1..S``; None for ``S``.
        bias: whether the scores of tags have a bias.
        label_smoothing: for `CRFLoss` by name.
        device, dtype: of the parameters.

    Shape:
        features ``(*, T, D)``, mask ``(*, T)`` or lengths ``(*)``; target and labels ``(*, T)``, -100 where masked or
        not observed.

    Raises:
        ValueError: sizes that are not whole numbers >= 1; what `SegmentScorer` and the loss raise for features and
            labels.
        TypeError: a loss or decoder that is not one of this library.

    Reference: Sarawagi and Cohen (2004), Semi-Markov conditional random fields for information extraction, section 2.

    Example:
        >>> import torch
        >>> head = SegmentHead(16, 3, max_length=4)
        >>> scores = head(torch.randn(2, 7, 16), lengths=torch.tensor([7, 4]))
        >>> head.loss(scores, torch.tensor([[0, 3, 3, 1, 2, 5, 0], [1, 4, 4, 0, -100, -100, -100]])).backward()
        >>> head.predict(scores).shape, head.predict_proba(scores).shape
        (torch.Size([2, 7]), torch.Size([2, 7, 6]))
    """

    def __init__(
        self,
        in_features: int,
        num_kinds: int,
        max_length: int,
        loss: Loss | str | None = None,
        decoder: Decoder | None = None,
        *,
        longest: Sequence[int] | None = None,
        **options: Unpack[HeadOptions],
    ) -> None:
        own = Options.of(type(self), options)
        scorer = SegmentScorer(in_features, num_kinds, max_length, longest=longest, **own.scorer)
        super().__init__(scorer, loss, decoder, **own.head)
        self.num_kinds = num_kinds


class LabelTreeHead(SequenceHead):
    r"""Linear emissions on the nodes of a tree, learned transitions from parents, any structured loss, and Viterbi.

    Args:
        in_features: ``D``, the width of the features of a node.
        num_tags: ``K``.
        loss: `CRFLoss` by default, the negative log-likelihood; `M3NLoss`, `SVMStructLoss(exact=False)`,
            `StructuredPerceptronLoss`.
        decoder: by default `ViterbiDecoder`.
        bias: whether the emissions have a bias.
        label_smoothing: for `CRFLoss` by name.
        device, dtype: of the parameters.

    Shape:
        features ``(*, T, D)``, parents ``(*, T)`` or ``(T,)``, mask ``(*, T)`` or lengths ``(*)``; target and labels
        ``(*, T)``, -100 where masked or not observed.

    Raises:
        ValueError: sizes that are not whole numbers >= 1; what `LabelTreeScorer` and the loss raise for features,
            parents and labels.
        TypeError: a loss or decoder that is not one of this library.

    Reference: Pearl (1988), Probabilistic reasoning in intelligent systems, chapter 4.

    Example:
        >>> import torch
        >>> head = LabelTreeHead(16, 5)
        >>> scores = head(torch.randn(2, 4, 16), parents=torch.tensor([-1, 0, 0, 2]))
        >>> head.loss(scores, torch.randint(5, (2, 4))).backward()
        >>> head.predict(scores).shape, head.predict_proba(scores).shape
        (torch.Size([2, 4]), torch.Size([2, 4, 5]))
    """

    def __init__(
        self,
        in_features: int,
        num_tags: int,
        loss: Loss | str | None = None,
        decoder: Decoder | None = None,
        **options: Unpack[HeadOptions],
    ) -> None:
        own = Options.of(type(self), options)
        super().__init__(LabelTreeScorer(in_features, num_tags, **own.scorer), loss, decoder, **own.head)
        self.num_tags = self.num_classes
