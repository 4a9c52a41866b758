"""Labelled rows in memory, split and standardised: what every data set of single labels is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lightning as L
import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from ..ranges import within
from .encoding import Encoder, stratified_split
from .kept import Kept, kept
from .remarks import remark
from .table import Ignored, Table

IGNORED = -100
"""The label of a row that counts in no loss and no metric."""


class Rows(Dataset):
    """Pairs of features and label, fetched a batch at a time."""

    def __init__(self, features: Tensor, labels: Tensor) -> None:
        self.features, self.labels = features, labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        return self.features[row], self.labels[row]

    def __getitems__(self, rows: list[int]) -> tuple[Tensor, Tensor]:
        """One indexing operation a batch, where the default would stack single rows."""
        return self.features[rows], self.labels[rows]


def as_fetched(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Leave a batch as `Rows` made it."""
    return batch


class RowsDataModule(L.LightningDataModule):
    """Serves rows of features and label for training, choosing the model, testing and predicting.

    Args:
        features: ``(n, columns)`` or ``(n, channels, height, width)``, NaN where missing.
        labels: ``(n,)`` positions in ``classes``.
        classes: the original class names.
        split: row numbers for training and for testing; default: a stratified quarter is for testing.
        nominal: ``(columns,)`` booleans, true where a column holds category numbers.
        new: further rows to predict; default: the test rows.
        batch_size: rows in a training batch.
        validation: the fraction of the training data kept for choosing the model.
        split_seed: the seed of both splits.
        schema: what rows to be labelled later must be like (`recipes.data.table`); by default as these.
        table: the file that they are of, of which `remark` speaks.
        files: that file's path, and that of the further rows.
    """

    def __init__(
        self,
        features: np.ndarray,
        labels: np.ndarray,
        classes: list[str],
        *,
        split: Sequence[np.ndarray] | None = None,
        nominal: np.ndarray | None = None,
        new: np.ndarray | None = None,
        batch_size: int,
        validation: float,
        split_seed: int,
        schema: dict[str, Any] | None = None,
        table: Table | None = None,
        files: tuple[str | None, str | None] = (None, None),
    ) -> None:
        super().__init__()
        within("batch_size", batch_size)
        within("validation", validation)
        self.batch_size, self.classes = batch_size, classes
        name = "y" if table is None else f"label {table.label}"
        seen, test = split or stratified_split(labels, 0.25, split_seed, name)
        self.table, self.split, self.files = table, (seen, test), files
        train, chosen_by = (seen[part] for part in stratified_split(labels[seen], validation, split_seed, name))
        plain = {"shape": list(features.shape[1:]), "columns": None, "categories": {}, "classes": classes}
        self.schema = schema or plain
        self.encode = encode = Encoder(
            features[train], np.zeros(features.shape[1], bool) if nominal is None else nominal
        )
        self.parts = {
            name: Rows(encode(features[rows]), torch.from_numpy(labels[rows]))
            for name, rows in (("train", train), ("validation", chosen_by), ("test", test))
        }
        unknown = torch.full((0 if new is None else len(new),), IGNORED)
        self.parts["predict"] = self.parts["test"] if new is None else Rows(encode(new), unknown)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps of the data: how rows were scaled, and what they look like."""
        return {"encoder": self.encode.state(), "schema": self.schema}

    def remark(self, weighted: bool) -> None:
        """Say what is worth a line about the file before anything is learned from it."""
        if self.table is not None:
            remark(self.table, *self.split, prefix="data.", weighted=weighted)

    def kept(self, keep: Ignored) -> Kept | None:
        """The columns that go with the labels of `predict`, as `recipes.data.kept` has them."""
        path, new = self.files
        if new is not None:
            return kept(new, self.schema, keep, argument="predict")
        return kept(path, self.schema, keep, self.split[1].tolist())

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return len(self.classes)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one row's features."""
        return tuple(self.parts["train"].features.shape[1:])

    def _evaluated(self, part: str) -> DataLoader:
        """Rows in order, shared out among the processes.

        Where Lightning would repeat rows to make the shares equal, and count them twice, blank rows labelled
        `IGNORED` fill up.
        """
        rows = self.parts[part]
        blank = -len(rows) % self.trainer.world_size
        features = torch.cat([rows.features, torch.zeros_like(rows.features[:blank])])
        return self._in_order(Rows(features, pad(rows.labels, (0, blank), value=IGNORED)))

    def _in_order(self, rows: Rows) -> DataLoader:
        return DataLoader(rows, batch_size=1024, collate_fn=as_fetched)

    def train_dataloader(self) -> DataLoader:
        """Training rows, in an order that the seed and the epoch give, whatever ran before and on how many processes.

        The loader draws from a generator of its own, so that a resumed run finds the random numbers where they were.
        """
        rows = self.parts["train"]
        order = DistributedSampler(
            rows, self.trainer.world_size, self.trainer.global_rank, seed=torch.initial_seed() % 2**32
        )
        return DataLoader(rows, self.batch_size, sampler=order, collate_fn=as_fetched, generator=torch.Generator())

    def val_dataloader(self) -> DataLoader:
        """The part of the training data by which the model is chosen."""
        return self._evaluated("validation")

    def test_dataloader(self) -> DataLoader:
        """Test rows, each counted once."""
        return self._evaluated("test")

    def predict_dataloader(self) -> DataLoader:
        """Rows to label."""
        return self._in_order(self.parts["predict"])
