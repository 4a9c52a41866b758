"""What the metrics share: a sum and a count, added over batches and processes, and the words of their arguments.

The mean over nothing is 0, as for the losses: before the first example, where every label is ignored, and for a column
that was asked nothing. A NaN among the scores makes the result NaN.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric

from torch_multiclass import checks as check
from torch_multiclass.options import Weight
from torch_multiclass.plots.style import check_axes


class Plotted(Metric):
    """A metric whose value can be drawn: by itself, or as a curve over the steps of a training."""

    plot_lower_bound = 0.0

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw the value.

        Args:
            val: a value of `compute` or `forward`, or several, one a step; by default the value so far.
            ax: of matplotlib; by default new axes.

        Returns:
            The figure, None where axes were given, and the axes.

        Raises:
            ModuleNotFoundError: without matplotlib.
            TypeError: an ``ax`` that is none.
        """
        check_axes("ax", ax)
        return self._plot(val, ax)


class MeanMetric(Plotted):
    """``total / count``, both summed over batches and processes; the mean over nothing is 0.

    Args:
        size: the shape of what is averaged, ``()`` for one number.
        ignore_index: the label of examples to leave out.
        **kwargs: of `torchmetrics.Metric`.
    """

    is_differentiable = False
    full_state_update = False
    total: Tensor
    count: Tensor

    def __init__(self, size: tuple[int, ...] = (), ignore_index: int = check.IGNORE, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ignore_index = check.integer("ignore_index", ignore_index)
        self.add_state("total", torch.zeros(size, dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("count", torch.zeros(size, dtype=torch.float64), dist_reduce_fx="sum")  # of weights, where given

    def compute(self) -> Tensor:
        """The mean so far, in float32."""
        return mean(self.total, self.count).float()


def mean(total: Tensor, count: Tensor) -> Tensor:
    """``total / count``, and 0 over nothing."""
    return total / torch.where(count > 0, count, 1)


def has_label(target: Tensor, ignore_index: int) -> Tensor:
    """Where a label is known: neither ``ignore_index`` nor -100, as for the losses."""
    target = target.long()
    kept = target != check.IGNORE
    return kept if ignore_index == check.IGNORE else kept & (target != ignore_index)


def weights_of(sample_weight: Weight, target: Tensor, ignore_index: int) -> Tensor | None:
    """The weights of the rows that have a label, in float64, None for 1 each; else raise."""
    weight = read_weights(sample_weight, target, target.shape)
    return None if weight is None else weight[has_label(target, ignore_index)]


def row_weights(sample_weight: Weight, target: Tensor) -> Tensor:
    """The weight of each row of ``target`` ``(*, T)``, in float64, 1 by default; else raise."""
    shape = target.shape[:-1]
    weight = read_weights(sample_weight, target, shape)
    return torch.ones(shape, dtype=torch.float64, device=target.device) if weight is None else weight


def entry_weights(sample_weight: Weight, target: Tensor) -> Tensor:
    """The weight of each entry of ``target``, given so or one for a whole row; in float64, 1 by default; else raise."""
    weight = read_weights(sample_weight, target, target.shape, target.shape[:-1])
    if weight is None:
        return torch.ones(target.shape, dtype=torch.float64, device=target.device)
    return weight if weight.ndim == target.ndim else weight.unsqueeze(-1).expand(target.shape)


def read_weights(sample_weight: Weight, target: Tensor, *shapes: tuple[int, ...]) -> Tensor | None:
    """Weights of one of these shapes, which differ in their number of dimensions, in float64, or None; else raise."""
    if sample_weight is None:
        return None
    weight = check.numbers("sample_weight", sample_weight, "one weight for each example").detach()
    shape = next((shape for shape in shapes if len(shape) == weight.ndim), shapes[0])
    check.shape("sample_weight", weight, tuple(shape), "one weight for each example")
    check.same_device("sample_weight", weight, "target", target)
    if check.values_readable(weight) and not bool((weight.isfinite() & (weight >= 0)).all()):
        raise ValueError("sample_weight: has an entry that is negative or not finite; accepted are weights >= 0")
    return weight.double()


def labelled_rows(
    name: str, values: Tensor, target: Tensor, ignore_index: int, state: Tensor, class_dim: int = -1
) -> tuple[Tensor, Tensor]:
    """The rows ``(n, K)`` of ``values`` that have a label, without gradient, and their labels; else raise.

    Args:
        name: what ``values`` are called.
        values: ``(*, K)``.
        target: ``(*)`` class indices, or ``ignore_index``.
        ignore_index: the label of rows to leave out.
        state: what the metric has added up; batches come on its device.
        class_dim: the dimension of ``values`` that holds the classes.
    """
    check.floating(name, values)
    given = values
    if class_dim != -1:
        if not -values.ndim <= class_dim < values.ndim:
            raise ValueError(
                f"class_dim: got {class_dim} for {name} with {values.ndim} dimensions; accepted is one of theirs"
            )
        values = values.movedim(class_dim, -1)
    if values.ndim == 0 or values.shape[-1] == 0:
        raise ValueError(f"{name}: got shape {tuple(values.shape)}; accepted is (*, K) with K >= 1 classes")
    check.same_device(name, values, "the metric", state)
    check.class_indices("target", target)
    check.rows_behind(name, given, target, class_dim)
    rows = tuple(values.shape[:-1])
    check.shape("target", target, rows, check.for_rows(name, tuple(values.shape), target))
    check.same_device("target", target, name, values)
    target = target.long()
    kept = has_label(target, ignore_index)
    check.label_range("target", target, values.shape[-1], kept)
    return values.detach()[kept], target[kept]
