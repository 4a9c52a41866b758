"""The module that trains any head on any backbone."""

from __future__ import annotations

import math
from collections.abc import Callable

import lightning as L
import torch
from torch import Tensor, nn

from torch_multiclass import Head

from ..data.rows import IGNORED
from ..metrics import ErrorRate, MeanLoss

Batch = tuple[Tensor, Tensor]


class Classifier(L.LightningModule):
    """A backbone turns rows into features, a head turns features into scores, trains on them and labels them.

    Args:
        classes: the names of the classes; the command line takes them from the data.
        input_shape: the shape of a row; the command line takes it from the data.
        backbone: makes a module with ``num_features`` from the shape of a row.
        head: makes a head from the number of features and the number of classes.
        learning_rate: the peak of a one-cycle schedule.
        weight_decay: AdamW's.
    """

    def __init__(
        self,
        classes: list[str],
        input_shape: tuple[int, ...],
        backbone: Callable[[tuple[int, ...]], nn.Module],
        head: Callable[[int, int], Head],
        learning_rate: float = 3e-3,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__()
        self.save_hyperparameters(logger=False)
        for name in ("backbone", "head"):  # the command line saves their configuration; a function is no data
            if callable(self.hparams[name]):
                del self.hparams[name]
        num_classes = len(classes)
        self.backbone = backbone(tuple(input_shape))
        self.head = head(self.backbone.num_features, num_classes)
        self.val_error, self.test_error = ErrorRate(num_classes), ErrorRate(num_classes)
        self.val_loss, self.test_loss = MeanLoss(), MeanLoss()

    def forward(self, rows: Tensor):
        """Rows ``(batch, *input_shape)`` to scores, whatever the head makes of them."""
        return self.head(self.backbone(rows))

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """The loss of one batch."""
        rows, target = batch
        loss = self.head.loss(self(rows), target)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Count one batch of the validation part."""
        self._count(batch, "val")

    def test_step(self, batch: Batch, batch_idx: int) -> None:
        """Count one batch of the test part."""
        self._count(batch, "test")

    def _count(self, batch: Batch, part: str) -> None:
        rows, target = batch
        scores = self(rows)
        loss, error = getattr(self, f"{part}_loss"), getattr(self, f"{part}_error")
        loss.update(self.head.loss(scores, target), (target != IGNORED).sum())
        error.update(self.head.predict(scores), target)
        self.log_dict({f"{part}_loss": loss, f"{part}_error": error}, prog_bar=True)

    def predict_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Labels ``(batch,)``, positions in the class names."""
        return self.head.predict(self(batch[0]))

    def on_load_checkpoint(self, checkpoint: dict) -> None:
        """Refuse weights that were trained for other classes or other rows."""
        for name in ("classes", "input_shape"):
            theirs, ours = (list(given[name]) for given in (checkpoint["hyper_parameters"], self.hparams))
            if theirs != ours:
                raise ValueError(f"ckpt_path: the weights were trained with {name} {theirs}; the data has {ours}")

    def configure_optimizers(self) -> dict:
        """AdamW, its learning rate rising to the peak and falling to nothing over the whole run."""
        optimizer = torch.optim.AdamW(
            self.parameters(), self.hparams.learning_rate, weight_decay=self.hparams.weight_decay
        )
        steps = self.trainer.estimated_stepping_batches
        # LambdaLR keeps no length in the checkpoint, so that a resumed run may be made longer.
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: one_cycle(step / steps))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def one_cycle(progress: float, rise: float = 0.25) -> float:
    """The factor of the learning rate: up from 0.05 to 1 in the first part of a run, then a cosine to 0."""
    if progress < rise:
        return 0.05 + 0.95 * progress / rise
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (progress - rise) / (1 - rise))))
