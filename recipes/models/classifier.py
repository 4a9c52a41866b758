"""The module that trains any head on any backbone."""

from __future__ import annotations

from collections.abc import Callable

import lightning as L
import torch
from torch import Tensor, nn

from torch_multiclass import Head
from torch_multiclass.heads.sequence import SequenceHead

from ..data.rows import IGNORED, RowsDataModule
from ..metrics import ErrorRate, MeanLoss
from .backbone import Backbone
from .fitting import fitting
from .optimisation import MakeOptimizer, MakeSchedule, Schedule, adamw, optimised

Batch = tuple[Tensor, Tensor]


class Classifier(L.LightningModule):
    """A backbone turns rows into features, a head turns features into scores, trains on them and labels them.

    Args:
        classes: the names of the classes; the command line takes them from the data.
        input_shape: the shape of a row; the command line takes it from the data.
        backbone: makes a module with ``num_features`` from the shape of a row; on the command line the default is
            ConvNet, for rows of numbers MLP.
        head: makes a head from the number of features and the number of classes. Where its ``weight`` is
            ``"balanced"``, the training labels are counted when a fit begins, and the checkpoint keeps the counts.
        learning_rate: the peak; by default 3e-3, or that of ``optimizer``.
        weight_decay: of AdamW.
        optimizer: another optimiser than AdamW, by the name or the dotted path of its class.
        schedule: of the learning rate: over the steps of the run ``one_cycle``, ``linear``, ``cosine`` or ``constant``,
            or a class of `torch.optim.lr_scheduler`, which steps once an epoch.
    """

    def __init__(
        self,
        classes: list[str],
        input_shape: tuple[int, ...],
        backbone: Callable[[tuple[int, ...]], Backbone] | Callable[[tuple[int, ...]], nn.Module],
        head: Callable[[int, int], Head],
        learning_rate: float | None = None,
        weight_decay: float = 1e-2,
        optimizer: MakeOptimizer | None = None,
        schedule: Schedule | MakeSchedule = "one_cycle",
    ) -> None:
        super().__init__()
        self.save_hyperparameters(logger=False)
        for name in (
            "backbone",
            "head",
            "optimizer",
            "schedule",
        ):  # the command line saves their configuration; a function is no data
            if callable(self.hparams[name]):
                del self.hparams[name]
        self.learning_rate, self.weight_decay, self.optimizer, self.schedule = (
            learning_rate, weight_decay, optimizer, schedule
        )  # fmt: skip
        num_classes = len(classes)
        self.backbone = fitting("backbone", backbone, tuple(input_shape))
        self.head = head(self.backbone.num_features, num_classes)
        if isinstance(self.head, SequenceHead):  # which would read a batch as one sequence
            raise TypeError(f"head: got {type(self.head).__name__}; accepted is a head of one label a row")
        self.balanced = getattr(self.head, "_uncounted", False)
        self.counts: list[int] | None = None
        self.val_error, self.test_error = ErrorRate(num_classes), ErrorRate(num_classes)
        self.val_loss, self.test_loss = MeanLoss(), MeanLoss()

    @property
    def weighted(self) -> bool:
        """Whether classes weigh what was given, or what their counts say."""
        return self.balanced or getattr(getattr(self.head, "criterion", None), "weight", None) is not None

    def setup(self, stage: str) -> None:
        """Count the training labels where they say what a class weighs."""
        if stage == "fit" and self.balanced and self.counts is None:
            data = getattr(self.trainer, "datamodule", None)
            if not isinstance(data, RowsDataModule):
                got = type(data).__name__
                raise ValueError(f"weight: got balanced with the data of {got}; accepted is a number for each class")
            labels = data.parts["train"].labels
            self.count(torch.bincount(labels, minlength=self.head.num_classes).tolist())

    def count(self, counts: list[int]) -> None:
        """Weigh classes by how many training rows each has."""
        self.counts = counts
        self.head.balance(torch.arange(len(counts)).repeat_interleave(torch.tensor(counts)))

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

    probabilities = False
    """Whether `predict_step` gives those of the classes as well."""

    def predict_step(self, batch: Batch, batch_idx: int) -> list[tuple[float, ...]]:
        """Of each row its label, a position in the class names, and on request the probability of each class."""
        scores = self(batch[0])
        labels = self.head.predict(scores).tolist()
        shares = self.head.predict_proba(scores).tolist() if self.probabilities else [[]] * len(labels)
        return [(label, *share) for label, share in zip(labels, shares, strict=True)]

    def on_save_checkpoint(self, checkpoint: dict) -> None:
        """Keep what classes weigh by, which is no part of the head's weights."""
        if self.counts is not None:
            checkpoint["class_counts"] = self.counts

    def on_load_checkpoint(self, checkpoint: dict) -> None:
        """Refuse weights that were trained for other classes or other rows."""
        for name in ("classes", "input_shape"):
            theirs, ours = (list(given[name]) for given in (checkpoint["hyper_parameters"], self.hparams))
            if theirs != ours:
                raise ValueError(f"ckpt_path: the weights were trained with {name} {theirs}; the data has {ours}")
        if self.balanced and "class_counts" in checkpoint:
            self.count(checkpoint["class_counts"])

    def configure_optimizers(self) -> dict:
        """The optimiser and its schedule."""
        default = adamw(self.weight_decay, 3e-3)
        return optimised(
            self, self.parameters(), default, self.optimizer, self.learning_rate, self.schedule, "val_loss"
        )
