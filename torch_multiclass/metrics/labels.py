"""Metrics of labels: what mistakes cost, and how many entries are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass import costs
from torch_multiclass.metrics.base import MeanMetric, entry_weights, has_label, row_weights
from torch_multiclass.options import Weight
from torch_multiclass.preferences import check_signs

__all__ = ["HammingError", "HierarchicalError", "MeanCost"]


class MeanCost(MeanMetric):
    r"""The cost-sensitive error, ``(1/m) \sum_i L(y_i, \hat y_i)``.

    Args:
        cost: ``L``: a name, a ``(K, K)`` matrix (row: true class) or an object of `torch_multiclass.costs`.
        num_classes: ``K``.
        ignore_index: the label of examples, or positions, to leave out.
        **kwargs: of `torchmetrics.Metric`.

    Shape:
        predictions and target ``(*)`` class indices, sequences among them; weights ``(*)``, or one for each sequence;
        a scalar, 0 over nothing.

    Raises:
        ValueError: labels outside ``0..K-1``, shapes that disagree, a cost of another number of classes or with a
            negative entry.
        TypeError: labels that are not integers.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.5 and footnote 15.

    Example:
        >>> import torch
        >>> metric = MeanCost([[0, 1, 5], [1, 0, 1], [5, 1, 0]], num_classes=3)
        >>> metric.update(torch.tensor([2, 1, 0]), torch.tensor([0, 1, -100]))
        >>> metric.compute()
        tensor(2.5000)
    """

    higher_is_better = False

    @check.told
    def __init__(
        self,
        cost: str | Tensor | Sequence[Sequence[float]] | costs.Cost,
        num_classes: int,
        ignore_index: int = check.IGNORE,
        **kwargs: Any,
    ) -> None:
        super().__init__(ignore_index=ignore_index, **kwargs)
        self.cost, self.num_classes = costs.as_cost(cost), check.whole("num_classes", num_classes)
        self.cost(torch.zeros(1, dtype=torch.long), self.num_classes)  # of that many classes, or it says so

    def update(self, preds: Tensor, target: Tensor, sample_weight: Weight = None) -> None:
        """Add a batch, where asked with a weight for each label, or for each sequence of them."""
        kept = _kept(preds, target, self.ignore_index)
        weight = entry_weights(sample_weight, target)[kept]
        for name, labels in (("preds", preds), ("target", target)):
            check.label_range(name, labels, self.num_classes, kept)
        given, true = preds.long()[kept], target.long()[kept]
        if len(true):
            paid = self.cost.to(true.device)(true, self.num_classes, self.total.dtype)
            self.total += (paid.gather(-1, given.unsqueeze(-1)).squeeze(-1) * weight).sum()
        self.count += weight.sum()


class HierarchicalError(MeanCost):
    """The tree-induced error: how many edges lie between the predicted and the true class, in the mean.

    Args:
        parents: ``parents[i]`` is the parent of node ``i``, and ``-1`` marks the root; the classes are the nodes that
            are nobody's parent, in order of their numbers.
        ignore_index: the label of examples, or positions, to leave out.
        **kwargs: of `torchmetrics.Metric`.

    Shape:
        predictions and target ``(*)`` class indices; weights ``(*)``, or one for each sequence; a scalar, 0 over
        nothing.

    Raises:
        ValueError: parents that make no tree, labels outside ``0..K-1``, shapes that disagree.
        TypeError: labels that are not integers.

    Reference: Dekel, Keshet and Singer (2004), Large margin hierarchical classification, section 2.

    Example:
        Two families, {0, 1} and {2}:

        >>> import torch
        >>> metric = HierarchicalError([3, 3, 4, 4, -1])
        >>> metric.update(torch.tensor([1, 2]), torch.tensor([0, 0]))
        >>> metric.compute()
        tensor(2.5000)
    """

    @check.told
    def __init__(self, parents: Sequence[int], ignore_index: int = check.IGNORE, **kwargs: Any) -> None:
        cost = costs.hierarchy(parents)
        super().__init__(cost, len(cost.matrix), ignore_index, **kwargs)


class HammingError(MeanMetric):
    r"""The Hamming error: the share of wrong entries, or how many of a row's are wrong in the mean.

    One label an example: the share of wrong labels. Sets of labels, ±1 each: ``(1/(mK)) \sum_i \sum_l 1[\hat y_{il}
    \neq y_{il}]``. Sequences: the share of wrong positions.

    Args:
        normalize: over the entries; False gives wrong entries a row, of those with a labelled entry.
        multilabel: whether entries are -1 and +1 rather than class indices.
        ignore_index: the entry of a target that is left out.
        **kwargs: of `torchmetrics.Metric`.

    Shape:
        predictions and target ``(*)``, with a row's entries last where ``normalize=False``; weights one for each row,
        or where ``normalize=True`` for each entry; a scalar, 0 over nothing.

    Raises:
        ValueError: shapes that disagree, entries other than ±1 with ``multilabel``.
        TypeError: entries that are not integers.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, eq. (9.1)-(9.4).

    Example:
        >>> import torch
        >>> given, true = torch.tensor([[1, -1, 1], [1, 1, 1]]), torch.tensor([[1, 1, -1], [1, 1, -100]])
        >>> for normalize in (True, False):
        ...     metric = HammingError(normalize, multilabel=True)
        ...     metric.update(given, true)
        ...     print(metric.compute())
        tensor(0.4000)
        tensor(1.)
    """

    higher_is_better = False

    def __init__(
        self, normalize: bool = True, multilabel: bool = False, ignore_index: int = check.IGNORE, **kwargs: Any
    ) -> None:
        super().__init__(ignore_index=ignore_index, **kwargs)
        check.flag("normalize", normalize)
        check.flag("multilabel", multilabel)
        self.normalize, self.multilabel = normalize, multilabel

    def update(self, preds: Tensor, target: Tensor, sample_weight: Weight = None) -> None:
        """Add a batch, where asked with a weight for each row, or for each entry."""
        kept = _kept(preds, target, self.ignore_index)
        if self.multilabel:
            for name, entries in (("preds", preds), ("target", target)):
                check_signs(name, entries.long().where(kept, check.IGNORE).reshape(1, -1))
        wrong = (preds.long() != target.long()) & kept
        if self.normalize or kept.ndim == 0:
            weight = entry_weights(sample_weight, target)
            rows = kept
        else:
            weight = row_weights(sample_weight, target)
            wrong, rows = wrong.sum(-1), kept.any(-1)
        self.total += (wrong * weight).sum()
        self.count += (rows * weight).sum()


def _kept(preds: Tensor, target: Tensor, ignore_index: int) -> Tensor:
    """Which entries count, after the checks."""
    check.class_indices("preds", preds)
    check.class_indices("target", target)
    check.shape("preds", preds, tuple(target.shape), "that of target")
    check.same_device("preds", preds, "target", target)
    return has_label(target, ignore_index)
