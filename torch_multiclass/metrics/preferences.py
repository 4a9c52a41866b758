"""How many preferences scores do not keep."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.metrics.base import MeanMetric, read_weights
from torch_multiclass.options import Weight
from torch_multiclass.preferences import check_signs, checked_pairs

__all__ = ["ViolatedPreferences"]


class ViolatedPreferences(MeanMetric):
    r"""The share of preferences ``a ≻ b`` that scores violate, ``f_a \leq f_b``.

    Args:
        per_example: the mean over examples of each one's share, instead of the share of all preferences.
        ignore_index: the label that marks examples to leave out, and pairs that there are not.
        **kwargs: of `torchmetrics.Metric`.

    Shape:
        class scores ``(N, K)``; target ``(N, P, 2)``, pairs from `torch_multiclass.preferences`, ``(N)``, classes that
        are preferred to all others, or ``(N, K)``, ±1, where each +1 is preferred to each -1; weights ``(N)``. A
        scalar, 0 over nothing and NaN after a NaN score.

    Raises:
        ValueError: a class outside ``0..K-1``, shapes that disagree, preferences that go in a circle.
        TypeError: scores that are not of a floating dtype, a target that is not of integers.

    Reference: Har-Peled, Roth and Zimak (2002), *Constraint classification: a new approach to multiclass
    classification*, §2; per example and ±1 it is the ranking loss of Schapire and Singer (2000), *BoosTexter*, §4.

    Example:
        >>> import torch
        >>> from torch_multiclass import preferences
        >>> metric = ViolatedPreferences()
        >>> metric.update(torch.tensor([[3.0, 1.0, 2.0]]), preferences.ranking(torch.tensor([[0, 1, 2]])))
        >>> metric.compute()
        tensor(0.5000)
    """

    higher_is_better = False
    plot_upper_bound = 1.0

    def __init__(self, per_example: bool = False, ignore_index: int = check.IGNORE, **kwargs: Any) -> None:
        super().__init__(ignore_index=ignore_index, **kwargs)
        check.flag("per_example", per_example)
        self.per_example = per_example

    def update(self, class_scores: Tensor, target: Tensor, sample_weight: Weight = None) -> None:
        """Add a batch, where asked with a weight for each example."""
        check.floating("class_scores", class_scores)
        if class_scores.ndim != 2 or class_scores.shape[1] == 0:
            raise ValueError(
                f"class_scores: got shape {tuple(class_scores.shape)}; accepted is (N, K) with K >= 1 classes"
            )
        check.same_device("class_scores", class_scores, "the metric", self.total)
        check.integers("target", target, "class indices, signs or pairs")
        check.same_device("target", target, "class_scores", class_scores)
        scores, target = class_scores.detach(), target.detach().long()
        asked, violated, none = _counts(scores, torch.where(target == self.ignore_index, check.IGNORE, target))
        weight = read_weights(sample_weight, target, target.shape[:1])
        weight = torch.ones_like(asked, dtype=torch.float64) if weight is None else weight
        if self.per_example:
            weight = weight / asked.clamp(min=1)
        self.total += torch.where(weight == 0, 0.0, torch.where(none, torch.nan, violated * weight)).sum()
        self.count += (asked * weight).sum()


def _counts(scores: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Of each row how many preferences there are, how many are violated, and whether it compares NaN."""
    rows, k = scores.shape
    if target.ndim == 3:
        check.shape("target", target, (rows, target.shape[1], 2), f"pairs for each row of class_scores {(rows, k)}")
        check.label_range("target", target, k, target != check.IGNORE)
        target = checked_pairs("target", target)
        there = target[..., 0] != check.IGNORE
        left, right = (scores.gather(1, part.clamp_min(0)) for part in target.unbind(2))
        none = (left.isnan() | right.isnan()) & there
        return there.sum(1), ((left <= right) & there).sum(1), none.any(1)
    if target.ndim == 2:
        check.shape("target", target, (rows, k), f"a sign for each entry of class_scores {(rows, k)}")
        check_signs("target", target)
        above, below = target == 1, target == -1
    else:
        check.shape("target", target, (rows,), check.for_rows("class_scores", (rows, k), target))
        check.label_range("target", target, k, target != check.IGNORE)
        above = torch.arange(k, device=target.device) == target[:, None]
        below = ~above & (target != check.IGNORE)[:, None]
    there = above[:, :, None] & below[:, None, :]
    left, right = scores[:, :, None], scores[:, None, :]
    none = (left.isnan() | right.isnan()) & there
    return there.sum((1, 2)), ((left <= right) & there).sum((1, 2)), none.any((1, 2))
