"""The handwritten digits that come with scikit-learn: 1,797 images of 8 by 8 pixels."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from .rows import RowsDataModule


class Digits(RowsDataModule):
    """Digits as images ``(1, 8, 8)``; a quarter is for testing (stratified, seed 0).

    Args:
        batch_size: rows in a training batch.
        validation: the fraction of the training data kept for choosing the model.
        split_seed: the seed of both splits.
    """

    def __init__(self, batch_size: int = 32, validation: float = 0.15, split_seed: int = 0) -> None:
        digits = load_digits()
        super().__init__(
            digits.images[:, None],
            digits.target.astype(np.int64),
            [str(name) for name in digits.target_names],
            batch_size=batch_size,
            validation=validation,
            split_seed=split_seed,
        )
