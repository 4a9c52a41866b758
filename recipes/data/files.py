"""The data module of a table in a file of any kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..start import heard
from . import table
from .new import new_features
from .rows import RowsDataModule


class Table(RowsDataModule):
    """Rows of a CSV, TSV, Parquet or ``.npz`` file, labels and nominal columns as words.

    Args:
        path: the file.
        label: the column of the labels; by default the last.
        predict: another file whose rows `predict` shall label; by default the test rows.
        batch_size: rows in a training batch.
        validation: the fraction of the training data kept for choosing the model.
        split_seed: the seed of the splits.
        ignore: columns to leave out, in a list, by their names or, without a heading, their numbers.
    """

    def __init__(
        self,
        path: str,
        label: str | None = None,
        predict: str | None = None,
        batch_size: int = 64,
        validation: float = 0.15,
        split_seed: int = 0,
        ignore: list[str] | str | None = None,
    ) -> None:
        held = table.Table.read(path, label, ignore)
        assert held.labels is not None
        super().__init__(
            held.features,
            held.labels,
            held.classes,
            split=held.split,
            nominal=held.nominal,
            new=None if predict is None else rows_of(predict, held.schema()),
            batch_size=batch_size,
            validation=validation,
            split_seed=split_seed,
            schema=held.schema(),
            table=held,
            files=(path, predict),
        )


def rows_of(path: str, schema: dict[str, Any]) -> np.ndarray:
    """Rows to be labelled; what is worth a line of them no fit has said."""
    with heard(True):
        return new_features(path, schema, "predict")
