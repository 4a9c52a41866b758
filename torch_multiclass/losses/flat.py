"""Losses of one label among K."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from typing_extensions import Unpack

from torch_multiclass import checks as check
from torch_multiclass import functional as F
from torch_multiclass.functional.adaboost import check_variant
from torch_multiclass.functional.flat import check_hinge
from torch_multiclass.functional.structured import CostLike
from torch_multiclass.losses.base import Loss, optional_cost
from torch_multiclass.options import LossOptions, Weight
from torch_multiclass.scores import FlatScores, MultilabelScores

__all__ = ["AdaBoostLoss", "CrammerSingerLoss", "MarginRampLoss", "WestonWatkinsLoss"]


class _HingeLoss(Loss):
    reads = (FlatScores,)

    def __init__(
        self, margin: float = 1.0, *, cost: CostLike | None = None, power: float = 1, **options: Unpack[LossOptions]
    ) -> None:
        super().__init__(**self._known(options))
        self.margin, self.power = check_hinge(margin, cost, power)
        self.cost = optional_cost(cost)

    def _own_arguments(self) -> dict[str, Any]:
        return {"margin": self.margin, "power": self.power}


class CrammerSingerLoss(_HingeLoss):
    r"""Hinge of the margin between the label and its best rival.

    .. math::
        \ell(f, y) = [margin - \rho(f, y)]_+^{power}, \qquad \rho(f, y) = f_y - \max_{y' \ne y} f_{y'}

    with a cost, ``\max_{y'} [L(y, y') + f_{y'} - f_y]_+^{power}``. A single class has no rival and loses nothing.

    Args:
        margin: the margin below which an example costs something, ``>= 0``, in units of the scores.
        cost: a name, a ``(K, K)`` matrix, ``(*, K, K)`` matrices or a `torch_multiclass.costs.Cost`; it takes the place
            of the margin.
        power: exponent of the hinge, ``>= 1``; the class weight multiplies the power.
        weight, ignore_index, reduction, class_dim, validate_args: see `Loss`.

    Shape:
        scores ``(*, K)``, target ``(*)`` class indices; the result is a scalar, or ``(*)`` with ``reduction="none"``.
        ``sample_weight`` ``(*)``, a weight for each example: ``"mean"`` divides by their sum.

    Raises:
        ValueError: a label outside ``0..K-1``, shapes that disagree, an unknown reduction or cost.
        TypeError: a target that is not of an integer dtype.

    Reference: Crammer and Singer (2001), *On the algorithmic implementation of multiclass kernel-based vector
    machines*; Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.3.1.

    Example:
        >>> import torch
        >>> loss = CrammerSingerLoss()
        >>> loss(torch.tensor([[2.0, 1.5, 0.0, 1.0], [9.0, 9.0, 9.0, 9.0]]), torch.tensor([0, -100]))
        tensor(0.5000)
    """

    def forward(  # type: ignore[override]
        self, scores: Tensor | FlatScores, target: Tensor, sample_weight: Weight = None
    ) -> Tensor:
        """The reduced loss."""
        return self._scaled(
            F.crammer_singer_loss(
                scores,
                target,
                margin=self.margin,
                cost=self.cost,
                power=self.power,
                sample_weight=sample_weight,
                **self.shared,
            )
        )


class WestonWatkinsLoss(_HingeLoss):
    r"""Sum of the hinges of all rivals.

    .. math::
        \ell(f, y) = \sum_{y' \ne y} [margin - f_y + f_{y'}]_+^{power}

    `torch.nn.MultiMarginLoss` is this divided by K. With a cost, ``L(y, y')`` takes the place of the margin.

    Args:
        margin: the margin each rival must keep, ``>= 0``, in units of the scores.
        cost: a name, a ``(K, K)`` matrix, ``(*, K, K)`` matrices or a `torch_multiclass.costs.Cost`.
        power: exponent of each hinge, ``>= 1``.
        weight, ignore_index, reduction, class_dim, validate_args: see `Loss`.

    Shape:
        scores ``(*, K)``, target ``(*)`` class indices; the result is a scalar, or ``(*)`` with ``reduction="none"``.
        ``sample_weight`` ``(*)``, a weight for each example: ``"mean"`` divides by their sum.

    Raises:
        ValueError: a label outside ``0..K-1``, shapes that disagree, an unknown reduction or cost.
        TypeError: a target that is not of an integer dtype.

    Reference: Weston and Watkins (1999), *Support vector machines for multi-class pattern recognition*; Mohri,
    Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.6 (chapter notes).

    Example:
        >>> import torch
        >>> WestonWatkinsLoss()(torch.tensor([[2.0, 1.5, 1.8, 1.0]]), torch.tensor([0]))
        tensor(1.3000)
    """

    def forward(  # type: ignore[override]
        self, scores: Tensor | FlatScores, target: Tensor, sample_weight: Weight = None
    ) -> Tensor:
        """The reduced loss."""
        return self._scaled(
            F.weston_watkins_loss(
                scores,
                target,
                margin=self.margin,
                cost=self.cost,
                power=self.power,
                sample_weight=sample_weight,
                **self.shared,
            )
        )


class MarginRampLoss(Loss):
    r"""Ramp of the margin: 1 for a misclassified example, 0 from margin ``rho`` on, linear between.

    .. math::
        \ell(f, y) = \Phi_\rho(\rho(f, y)), \qquad \Phi_\rho(z) = \min(1, [1 - z / \rho]_+)

    Its mean is the empirical margin loss, at most the fraction of examples with margin at most ``rho`` (9.6).

    Args:
        rho: the width of the ramp, ``> 0``, in units of the scores.
        weight, ignore_index, reduction, class_dim, validate_args: see `Loss`.

    Shape:
        scores ``(*, K)``, target ``(*)`` class indices; the result is a scalar, or ``(*)`` with ``reduction="none"``.
        ``sample_weight`` ``(*)``, a weight for each example: ``"mean"`` divides by their sum.

    Raises:
        ValueError: ``rho`` not above 0, a label outside ``0..K-1``, shapes that disagree, an unknown reduction.
        TypeError: a target that is not of an integer dtype.

    Reference: Koltchinskii and Panchenko (2002), *Empirical margin distributions and bounding the generalization error
    of combined classifiers*; Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, (9.5).

    Example:
        >>> import torch
        >>> MarginRampLoss(rho=2.0)(torch.tensor([[2.0, 1.5], [0.0, 3.0]]), torch.tensor([0, 0]))
        tensor(0.8750)
    """

    reads = (FlatScores,)
    convex = False

    def __init__(self, rho: float, **options: Unpack[LossOptions]) -> None:
        super().__init__(**self._known(options))
        self.rho = check.positive("rho", rho)

    def forward(  # type: ignore[override]
        self, scores: Tensor | FlatScores, target: Tensor, sample_weight: Weight = None
    ) -> Tensor:
        """The reduced loss."""
        return self._scaled(
            F.margin_ramp_loss(scores, target, rho=self.rho, sample_weight=sample_weight, **self.shared)
        )

    def _own_arguments(self) -> dict[str, Any]:
        return {"rho": self.rho}


class AdaBoostLoss(Loss):
    r"""Exponential losses of multi-class boosting.

    .. math::
        \text{mh: } \sum_l e^{-y_l f_l} \qquad
        \text{mr: } \sum_{a: y_a = 1} \sum_{b: y_b = -1} e^{-(f_a - f_b)} \qquad
        \text{averaged: } e^{-\frac{1}{K} \sum_l y_l f_l}

    A class index ``y`` counts as ``+1`` for that class and ``-1`` for all others. ``mh`` bounds the Hamming error and
    ``mr`` the 0/1 error of the arg max; ``averaged`` bounds only ``1[\sum_l y_l f_l \le 0]``.

    Args:
        variant: ``"mh"``, ``"mr"`` or ``"averaged"``.
        normalize: for ``"mr"``, divide by the number of pairs. An example without pairs loses nothing.
        weight: ``(K,)`` class weights, for class-index targets only.
        ignore_index, reduction, class_dim, validate_args: see `Loss`; ``ignore_index`` within a ±1 target leaves
            that one label out.

    Shape:
        scores ``(*, K)``, target ``(*)`` class indices or ``(*, K)`` of ±1; the result is a scalar, or ``(*)`` with
        ``reduction="none"``. ``sample_weight`` ``(*)``, a weight for each example: ``"mean"`` divides by their sum.

    Raises:
        ValueError: an entry other than ±1, a label outside ``0..K-1``, shapes that disagree, an unknown variant.

    Reference: Schapire and Singer (1999), *Improved boosting algorithms using confidence-rated predictions*, for MH and
    MR; Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, (9.13), (9.26), and for the averaged form,
    which is the textbook's own, (9.25).

    Example:
        >>> import torch
        >>> AdaBoostLoss("averaged")(torch.tensor([[1.0, -1.0]]), torch.tensor([[1, -1]]))  # exp(-1)
        tensor(0.3679)
    """

    reads = (FlatScores, MultilabelScores)

    def __init__(self, variant: str = "mh", *, normalize: bool = False, **options: Unpack[LossOptions]) -> None:
        super().__init__(**self._known(options))
        check_variant(variant, normalize)
        self.variant, self.normalize = variant, normalize

    def forward(  # type: ignore[override]
        self, scores: Tensor | FlatScores, target: Tensor, sample_weight: Weight = None
    ) -> Tensor:
        """The reduced loss."""
        return self._scaled(
            F.adaboost_loss(
                scores,
                target,
                variant=self.variant,
                normalize=self.normalize,
                sample_weight=sample_weight,
                **self.shared,
            )
        )

    def _own_arguments(self) -> dict[str, Any]:
        return {"variant": self.variant, **({"normalize": True} if self.normalize else {})}
