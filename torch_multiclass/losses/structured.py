"""Losses over any scored structure: one label or a sequence."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from typing_extensions import Unpack

from torch_multiclass import checks as check
from torch_multiclass import functional as F
from torch_multiclass.functional._soft import check_smoothing
from torch_multiclass.functional.structured import CostLike, check_temperature
from torch_multiclass.losses.base import Loss, optional_cost
from torch_multiclass.options import LossOptions, Weight
from torch_multiclass.scores import Scores

__all__ = ["CRFLoss", "M3NLoss", "SVMStructLoss", "StructuredPerceptronLoss"]


class M3NLoss(Loss):
    r"""Max-margin loss whose margin grows with the cost, additively (margin rescaling).

    .. math::
        \ell(s, y^*) = \max_y \left[ L(y^*, y) + s(y) - s(y^*) \right]

    On one label with zero-one cost it is `CrammerSingerLoss`.

    Args:
        cost: a name, a ``(K, K)`` matrix, ``(*, K, K)`` matrices or a `torch_multiclass.costs.Cost`; by default
            zero-one for one label and Hamming for sequences. The margin asked for grows with it: of large costs take
            ``cost / cost.max()``, or more steps.
        weight, ignore_index, reduction, class_dim, validate_args: see `Loss`.

    Shape:
        scores ``(*, K)`` with target ``(*)``, or sequence scores with target ``(*, T)``; the result is a scalar, or
        ``(*)`` with ``reduction="none"``. Cost and loss are in units of the scores. A target may be the set of allowed
        labels at each position, ``(*, T, K)`` bool, of which the best labelling counts as the gold one, at the lowest
        cost. ``sample_weight`` ``(*)``, a weight for each example: ``"mean"`` divides by their sum.

    Raises:
        ValueError: a bad cost, a label out of range, shapes that disagree, class weights on sequences.
        TypeError: a target that is not of an integer dtype.

    Reference: Taskar, Guestrin and Koller (2003), *Max-margin Markov networks*; Mohri, Rostamizadeh and Talwalkar,
    *Foundations of Machine Learning*, (9.22).

    Example:
        >>> import torch
        >>> M3NLoss(cost=[[0, 3], [1, 0]])(torch.tensor([[2.0, 0.0]]), torch.tensor([0]))
        tensor(1.)
    """

    reads = (Scores,)

    def __init__(self, cost: CostLike | None = None, **options: Unpack[LossOptions]) -> None:
        super().__init__(**self._known(options))
        self.cost = optional_cost(cost)

    def forward(self, scores: Tensor | Scores, target: Tensor, sample_weight: Weight = None) -> Tensor:
        """The reduced loss."""
        return self._scaled(F.m3n_loss(scores, target, cost=self.cost, sample_weight=sample_weight, **self.shared))


class SVMStructLoss(Loss):
    r"""Max-margin loss whose slack grows with the cost, multiplicatively (slack rescaling).

    .. math::
        \ell(s, y^*) = \max_y L(y^*, y) \, [1 + s(y) - s(y^*)]_+

    On one label with zero-one cost it is `CrammerSingerLoss`.

    Args:
        cost: a name, a ``(K, K)`` matrix, ``(*, K, K)`` matrices or a `torch_multiclass.costs.Cost`; by default
            zero-one for one label and Hamming for sequences. The slope grows with it: where a step suits
            cross-entropy, divide the cost, or the step, by the largest entry of the cost.
        exact: on sequences, the exact maximum, by a dynamic program over the cost so far, for costs that are whole
            multiples of one unit; False takes the lower of the two values of
            `torch_multiclass.functional.svmstruct_bounds`, for any cost; it can be 0 where the maximum is not.
        weight, ignore_index, reduction, class_dim, validate_args: see `Loss`.

    Shape:
        scores ``(*, K)`` with target ``(*)``, or sequence scores with target ``(*, T)``; the result is a scalar, or
        ``(*)`` with ``reduction="none"``. Sets of allowed labels and ``sample_weight`` as in `M3NLoss`.

    Raises:
        ValueError: a bad cost, one that is not whole up to a factor for an exact maximum, a label out of range, shapes
            that disagree, class weights on sequences.
        TypeError: a target that is not of an integer dtype.

    Reference: Tsochantaridis, Joachims, Hofmann and Altun (2005), *Large margin methods for structured and
    interdependent output variables*, for rescaled slacks; Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine
    Learning*, (9.23).

    Example:
        >>> import torch
        >>> SVMStructLoss(cost=[[0, 3], [1, 0]])(torch.tensor([[0.5, 0.0]]), torch.tensor([0]))
        tensor(1.5000)
    """

    reads = (Scores,)

    def __init__(self, cost: CostLike | None = None, exact: bool = True, **options: Unpack[LossOptions]) -> None:
        super().__init__(**self._known(options))
        check.flag("exact", exact)
        self.cost, self.exact = optional_cost(cost), exact

    def forward(self, scores: Tensor | Scores, target: Tensor, sample_weight: Weight = None) -> Tensor:
        """The reduced loss."""
        return self._scaled(
            F.svmstruct_loss(
                scores, target, cost=self.cost, exact=self.exact, sample_weight=sample_weight, **self.shared
            )
        )

    def _own_arguments(self) -> dict[str, Any]:
        return {} if self.exact else {"exact": False}


class CRFLoss(Loss):
    r"""Soft-max loss; without a cost and at temperature 1 the negative log-likelihood.

    .. math::
        \ell(s, y^*) = \tau \log \sum_y \exp\left( \frac{L(y^*, y) + s(y) - s(y^*)}{\tau} \right)

    On one label without a cost it is the cross-entropy, in nats. It is at least `M3NLoss` with the same cost, and
    tends to it as the temperature tends to 0.

    Args:
        cost: None (no cost), a name, a ``(K, K)`` matrix, ``(*, K, K)`` matrices or a `torch_multiclass.costs.Cost`.
        temperature: ``\tau``, from 1e-20 to 1e20, in units of the scores.
        label_smoothing: the share ``\epsilon`` that each label gives to all: the target is the distribution with
            ``1 - \epsilon`` for the label and ``\epsilon / K`` for each; of forbidden labels and moves, which have
            no score to average, the others take the share.
        weight, ignore_index, reduction, class_dim, validate_args: see `Loss`.

    Shape:
        scores ``(*, K)`` with target ``(*)``, or sequence scores with target ``(*, T)``; the result is a scalar, or
        ``(*)`` with ``reduction="none"``. ``sample_weight`` ``(*)``, a weight for each example: ``"mean"`` divides by
        their sum, as class weights do.

        Instead of labels, ``(*, K)`` or ``(*, T, K)``: bool, the set of allowed labels at each position, whose
        labellings are summed (-100 allows all); or floating-point, a distribution over labels at each position,
        independent of the others, and the loss is the cross-entropy

        .. math::
            \log Z - \sum_{t,k} q_{tk} e_{tk} - \sum_{t,j,k} q_{t-1,j} q_{tk} trans_{jk} - \dots

        The other arguments beside these: with sets, ``cost`` is the lowest of the labels allowed at a position, and 0
        where all are; with a distribution there is no gold label that it could be measured from, so it has to be None.
        ``label_smoothing`` makes ``(1 - \epsilon) q + \epsilon / K`` of a distribution, and has to be 0 with sets. Of
        sequences class weights mean nothing with any of these, where an example has no one class. ``sample_weight``
        acts as on labels.

    Raises:
        ValueError: a bad cost or temperature, a label out of range, shapes that disagree, class weights on sequences.
        TypeError: a target that is not of an integer dtype.

    Reference: Lafferty, McCallum and Pereira (2001), *Conditional random fields*; Mohri, Rostamizadeh and
    Talwalkar, *Foundations of Machine Learning*, (9.24).

    Example:
        >>> import torch
        >>> from torch_multiclass import ChainScores
        >>> CRFLoss()(torch.zeros(1, 4), torch.tensor([2]))  # log 4
        tensor(1.3863)
        >>> tagged = torch.tensor([[[0.9, 0.1], [0.5, 0.5]]])  # how sure an annotator is
        >>> CRFLoss()(ChainScores(torch.zeros(1, 2, 2), torch.zeros(2, 2)), tagged)  # log 4
        tensor(1.3863)
    """

    reads = (Scores,)

    def __init__(
        self,
        cost: CostLike | None = None,
        temperature: float = 1.0,
        label_smoothing: float = 0.0,
        **options: Unpack[LossOptions],
    ) -> None:
        super().__init__(**self._known(options))
        self.temperature, self.label_smoothing = check_temperature(temperature), check_smoothing(label_smoothing)
        self.cost = optional_cost(cost)

    def forward(self, scores: Tensor | Scores, target: Tensor, sample_weight: Weight = None) -> Tensor:
        """The reduced loss."""
        return self._scaled(
            F.crf_loss(
                scores,
                target,
                cost=self.cost,
                temperature=self.temperature,
                label_smoothing=self.label_smoothing,
                sample_weight=sample_weight,
                **self.shared,
            )
        )

    def _own_arguments(self) -> dict[str, Any]:
        own = {"temperature": (self.temperature, 1), "label_smoothing": (self.label_smoothing, 0)}
        return {name: value for name, (value, default) in own.items() if value != default}


class StructuredPerceptronLoss(Loss):
    r"""How far the best labelling outscores the gold one, ``\max_y s(y) - s(y^*)``.

    Args:
        weight, ignore_index, reduction, class_dim, validate_args: see `Loss`.

    Shape:
        scores ``(*, K)`` with target ``(*)``, or sequence scores with target ``(*, T)``; the result is a scalar, or
        ``(*)`` with ``reduction="none"``. Sets of allowed labels and ``sample_weight`` as in `M3NLoss`.

    Raises:
        ValueError: a label out of range, shapes that disagree, class weights on sequences.
        TypeError: a target that is not of an integer dtype.

    Reference: Collins (2002), *Discriminative training methods for hidden Markov models*; Roth, *CIS 519:
    Multi-class and structured prediction*, the structured perceptron.

    Example:
        >>> import torch
        >>> StructuredPerceptronLoss()(torch.tensor([[2.0, 1.5]]), torch.tensor([1]))
        tensor(0.5000)
    """

    reads = (Scores,)

    def __init__(self, **options: Unpack[LossOptions]) -> None:
        super().__init__(**self._known(options))

    def forward(self, scores: Tensor | Scores, target: Tensor, sample_weight: Weight = None) -> Tensor:
        """The reduced loss."""
        return self._scaled(F.structured_perceptron_loss(scores, target, sample_weight=sample_weight, **self.shared))
