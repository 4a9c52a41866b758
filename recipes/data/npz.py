"""Any table or set of images in one ``.npz`` file."""

from __future__ import annotations

from ..start import heard
from . import table
from .arrays import checked_features, read
from .rows import RowsDataModule


class Npz(RowsDataModule):
    """Rows of an ``.npz`` file with arrays ``X`` and ``y``.

    - ``X``: ``(n, columns)``, NaN where missing, or images ``(n, channels, height, width)``.
    - ``y``: ``(n,)`` integers, positions in ``classes`` where the file has that array of names.
    - ``nominal`` (optional): ``(columns,)`` booleans, true where a column holds category numbers.
    - ``train_idx``, ``test_idx`` (optional, both or neither): row numbers, none in both; else a quarter of each class
      is for testing.

    Args:
        path: the file.
        predict: another file with an array ``X`` whose rows `predict` shall label; default: the test rows.
        batch_size: rows in a training batch.
        validation: the fraction of the training data kept for choosing the model.
        split_seed: the seed of the splits.
    """

    def __init__(
        self,
        path: str,
        predict: str | None = None,
        batch_size: int = 64,
        validation: float = 0.15,
        split_seed: int = 0,
    ) -> None:
        held = table.of_npz(path)
        assert held.labels is not None
        features, new = held.features, None
        if predict is not None:
            with heard(True):
                new = checked_features(predict, "predict", read(predict, "predict", needs=("X",))["X"])
            if new.shape[1:] != features.shape[1:]:
                raise ValueError(
                    f"predict: rows of X in {predict} have shape {new.shape[1:]}; "
                    f"accepted is {features.shape[1:]}, as in {path}"
                )
        super().__init__(
            features,
            held.labels,
            held.classes,
            split=held.split,
            nominal=held.nominal,
            new=new,
            batch_size=batch_size,
            validation=validation,
            split_seed=split_seed,
            table=held,
            files=(path, predict),
        )
