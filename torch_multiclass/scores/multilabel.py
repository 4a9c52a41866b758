"""Several labels at once: each of K holds or not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.checks import Target
from torch_multiclass.ops.independent import Independent
from torch_multiclass.ops.precision import upcast
from torch_multiclass.scores._travel import registered
from torch_multiclass.scores.base import Decoded
from torch_multiclass.scores.recorded import Recorded

__all__ = ["MultilabelScores"]


@registered
@dataclass(eq=False)
class MultilabelScores(Recorded):
    r"""The score ``f_l`` of each of ``K`` labels, of which any number may hold.

    .. math::
        s(y) = \sum_l y_l f_l, \quad y \in \{-1, +1\}^K

    so that ``P(y_l = 1) = \sigma(2 f_l)``, and the best labelling is the sign of the scores, -1 at 0. Targets and
    labellings are ``(*, K)``, -1 or +1, with -100 where it is not known whether a label holds; targets of `CRFLoss`
    also mean signs, any numbers between, as mixup has them. Losses: `CRFLoss` is the logistic loss summed,
    ``\sum_l \log(1 + e^{-2 y_l f_l})``, `M3NLoss` ``\sum_l [1 - 2 y_l f_l]_+`` (the cost is the number of wrong
    labels), `AdaBoostLoss` ``\sum_l e^{-y_l f_l}``. A ``(2, 2)`` cost matrix prices a label that is
    predicted and does not hold, row 0, and one that holds and is missed, row 1. A score of ``-inf`` says that its label
    never holds, ``+inf`` that it always does: the other sign is forbidden, and the certain one counts as 0.

    Args:
        values: ``(*, K)``; half precision is computed in float32.
        reference, allowed, sharpness, costs, factor: set by verbs, see `Structured`.

    Shape:
        ``values`` ``(*, K)``; `marginals` ``(*, K, 2)``, the probabilities of -1 and +1; `probabilities` ``(*, K)``.

    Raises:
        TypeError: values that are not a dense floating-point tensor.
        ValueError: values without a label; a target that holds anything but -1, +1 and what marks the unknown.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.1 and (9.3).

    Example:
        >>> import torch
        >>> from torch_multiclass import CRFLoss, M3NLoss
        >>> scores = MultilabelScores(torch.tensor([[2.0, -1.0, 0.0]]))
        >>> scores.decode().labels, scores.probabilities()
        (tensor([[ 1, -1, -1]]), tensor([[0.9820, 0.1192, 0.5000]]))
        >>> target = torch.tensor([[1, 1, -1]])
        >>> CRFLoss()(scores, target), M3NLoss()(scores, target)
        (tensor(2.8382), tensor(4.))
    """

    values: Tensor
    leading: ClassVar[str] = "values"

    def __post_init__(self) -> None:
        """Check what was given."""
        check.floating("scores", self.values)
        if self.values.ndim == 0 or self.values.shape[-1] == 0:
            raise ValueError(f"scores: got shape {tuple(self.values.shape)}; accepted is (*, K) with K >= 1 labels")
        super().__post_init__()

    @property
    def num_classes(self) -> int:
        """2: a label does not hold, or it does."""
        return 2

    @property
    def sites(self) -> torch.Size:
        """``(*, K)``."""
        return self.values.shape

    @property
    def raw(self) -> Independent:
        """The record of the raw scores, -f and f of each label, in float32 at least."""
        values = upcast(self.values)
        values = values.reshape(math.prod(self.batch_shape), self.values.shape[-1])
        either = torch.stack([-values, values], -1)
        return Independent(torch.where(either == math.inf, 0.0, either), None)

    @property
    def tensor(self) -> Tensor:
        """The scores ``f`` as one tensor ``(*, K)``, in float32 at least."""
        return upcast(self.values) * self.factor

    def _own_dims(self) -> dict[str, int]:
        return super()._own_dims() | {"values": 1}

    # --------------------------------------------------------------------------------------------- -1 and +1 as 0 and 1

    def _read_target(self, target: Tensor, ignore_index: int, validate_args: bool | None) -> Target:
        meaning = "-1 or +1 for each label"
        check.integers("target", target, meaning)
        check.shape("target", target, tuple(self.sites), meaning)
        check.same_device("target", target, "scores", self.values)
        signs = target.long()
        kept = (signs != check.IGNORE) & (signs != ignore_index)
        wrong = kept & (signs.abs() != 1)
        readable = check.values_readable(signs, validate_args)
        if readable and bool(wrong.any()):
            raise ValueError(f"target: got the entry {int(signs[wrong][0])}; accepted are -1 and +1 for each label")
        return Target(torch.where(kept, (signs > 0).long(), 0), kept, readable and bool(kept.all()))

    def distribution(self, target: Tensor, validate_args: bool | None = None) -> Tensor:
        """The probabilities of -1 and +1, ``(*, K, 2)``, behind mean signs ``(*, K)`` from -1 to +1, as mixup has them.

        Raises:
            ValueError: an entry outside, another shape.
        """
        meaning = "the mean sign of each label"
        check.floating("target", target)
        check.shape("target", target, tuple(self.sites), meaning)
        check.same_device("target", target, "scores", self.values)
        if check.values_readable(target, validate_args) and not bool((target.abs() <= 1).all()):
            wrong = float(target[~(target.abs() <= 1)][0])
            raise ValueError(f"target: got the entry {wrong:g}; accepted are mean signs from -1 to +1")
        holds = (1 + upcast(target)) / 2
        return torch.stack([1 - holds, holds], -1)

    def example_weight(self, weight: Tensor, target: Tensor | Target) -> Tensor:
        """An error: what each mistake costs is said by a cost matrix."""
        raise ValueError(
            "weight: a class weight has no meaning where several labels hold; accepted is a cost matrix (2, 2), "
            "cost=matrix with matrix[holds, predicted], in M3NLoss, SVMStructLoss or CRFLoss"
        )

    def score(self, labels: Tensor) -> Tensor:
        """``s(labels)``, ``(*)``, or ``(*, n)`` for ``n`` labellings ``(*, n, K)``, of -1 and +1."""
        check.integers("labels", labels, "-1 or +1 for each label")
        labels = labels.long()
        if check.values_readable(labels) and bool(((labels.abs() != 1) & (labels != check.IGNORE)).any()):
            raise ValueError("labels: hold other numbers; accepted are -1 and +1 for each label")
        return super().score(torch.where(labels == check.IGNORE, labels, (labels > 0).long()))

    def decode(self) -> Decoded:
        """The sign of each score, -1 at 0: labels ``(*, K)``."""
        return _signed(super().decode())

    def _best_of_classes(self) -> Tensor:
        return super().decode().labels

    def top(self, k: int) -> Decoded:
        """The ``k`` best labellings, distinct and in order: labels ``(*, k, K)``, scores ``(*, k)``."""
        return _signed(super().top(k))

    def posterior_decode(self, *, legal: bool = True) -> Decoded:
        """The same as `decode`, with the expected number of labels right as its score."""
        return _signed(super().posterior_decode(legal=legal))

    def sample(self, n: int = 1, *, generator: torch.Generator | None = None) -> Tensor:  # type: ignore[override]
        """``n`` labellings drawn from ``p(y) ~ exp s(y)``, ``(*, n, K)``, of -1 and +1."""
        return _signs(super().sample(n, generator=generator))

    def probabilities(self) -> Tensor:
        """``P(y_l = 1)``, ``(*, K)``."""
        return self.marginals()[..., 1]


def _signs(labels: Tensor) -> Tensor:
    return torch.where(labels < 0, labels, 2 * labels - 1)


def _signed(decoded: Decoded) -> Decoded:
    return Decoded(_signs(decoded.labels), decoded.score)
