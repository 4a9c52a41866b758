"""What the metrics share: a sum and a count, added over batches and processes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric

from torch_multiclass import checks as check


class MeanMetric(Metric):
    """``total / count``, both summed over batches and processes; NaN before the first example.

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
        check.integer("ignore_index", ignore_index)
        self.ignore_index = ignore_index
        self.add_state("total", torch.zeros(size, dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("count", torch.zeros(size, dtype=torch.long), dist_reduce_fx="sum")

    def compute(self) -> Tensor:
        """The mean so far, in float32."""
        return (self.total / self.count).float()
