"""What the recipes count while they train."""

from __future__ import annotations

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.classification import MulticlassAccuracy

from .data.rows import IGNORED


class ErrorRate(MulticlassAccuracy):
    """The fraction of labelled rows whose predicted label is wrong."""

    higher_is_better = False

    def __init__(self, num_classes: int) -> None:
        super().__init__(num_classes, average="micro", ignore_index=IGNORED)

    def compute(self) -> Tensor:
        """One less the accuracy over everything seen."""
        return 1 - super().compute()


class MeanLoss(Metric):
    """The mean loss a labelled row, NaN included; `torchmetrics.MeanMetric` drops NaN, or else the weights."""

    full_state_update = False

    def __init__(self) -> None:
        super().__init__()
        for name in ("total", "rows"):
            self.add_state(name, torch.zeros(()), dist_reduce_fx="sum")

    def update(self, mean: Tensor, rows: Tensor) -> None:
        """Add a batch of so many labelled rows."""
        self.total += mean * rows
        self.rows += rows

    def compute(self) -> Tensor:
        """The mean over everything seen."""
        return self.total / self.rows
