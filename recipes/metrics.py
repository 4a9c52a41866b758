"""What the recipes count while they train."""

from __future__ import annotations

from torch import Tensor
from torchmetrics.classification import MulticlassAccuracy

from recipes.data.rows import IGNORED


class ErrorRate(MulticlassAccuracy):
    """The fraction of labelled rows whose predicted label is wrong."""

    higher_is_better = False

    def __init__(self, num_classes: int) -> None:
        super().__init__(num_classes, average="micro", ignore_index=IGNORED)

    def compute(self) -> Tensor:
        """One less the accuracy over everything seen."""
        return 1 - super().compute()
