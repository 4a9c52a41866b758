"""A tagger of sequences with the conventions of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from typing_extensions import Self

from torch_multiclass import checks as check
from torch_multiclass.heads import ChainHead
from torch_multiclass.heads.base import Head
from torch_multiclass.integrations.sklearn.base import Array, as_array, device_of
from torch_multiclass.integrations.sklearn.training import Batch, MakeOptimizer, Network, is_likelihood, train
from torch_multiclass.losses import Loss
from torch_multiclass.ops.precision import undisturbed
from torch_multiclass.solvers.report import Report

_ESTIMATOR: Any = BaseEstimator


class SequenceTagger(_ESTIMATOR):  # type: ignore[misc]
    r"""A head of label sequences: lists of ``(T, D)`` arrays in, lists of labels out, in searches and cross-validation.

    Args:
        head: the class of the head, or any function ``head(in_features, num_tags, **options)``: `ChainHead`,
            `SecondOrderHead`.
        loss: of the head, by name or as it is: ``"crf"`` by default, ``"m3n"``, ``"svmstruct"``, ...
        options: more keyword arguments of the head, such as ``constraints``.
        backbone: a network from ``(B, T, D)`` to ``(B, T, H)``, which is copied, or a function of ``D`` that makes one.
        epochs, lr, weight_decay, batch_size, optimizer, device, random_state: as in `HeadClassifier`; a batch is of
            sequences.

    Attributes:
        classes_: the labels in order, ``(K)``.
        network_: ``network_.backbone`` and ``network_.head``, trained.
        report_: `EpochsReport`.

    Shape:
        X: a list of ``N`` arrays ``(T_i, D)``; y: a list of ``N`` sequences of ``T_i`` labels.

    Raises:
        TypeError: a head, backbone or optimizer that is none.
        ValueError: sequences of other widths or lengths, no sequence, one label.

    Reference: Lafferty, McCallum and Pereira (2001), Conditional random fields.

    Example:
        >>> import numpy as np
        >>> from torch_multiclass.integrations.sklearn import SequenceTagger
        >>> X = [np.eye(2)[[0, 1, 1]], np.eye(2)[[1, 0]]]
        >>> tagger = SequenceTagger(loss="m3n", lr=0.1, random_state=0).fit(X, [["b", "i", "i"], ["i", "b"]])
        >>> [list(map(str, tags)) for tags in tagger.predict([np.eye(2)[[1, 1, 0]]])]
        [['i', 'i', 'b']]
    """

    classes_: Array
    network_: Network
    report_: Report
    n_features_in_: int

    @check.told
    def __init__(
        self,
        head: Callable[..., Head] = ChainHead,
        *,
        loss: Loss | str | None = None,
        options: Mapping[str, Any] | None = None,
        backbone: nn.Module | Callable[[int], nn.Module] | None = None,
        epochs: int = 50,
        lr: float = 0.01,
        weight_decay: float = 0.0,
        batch_size: int = 32,
        optimizer: MakeOptimizer | None = None,
        device: torch.device | str | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.head = head
        self.loss = loss
        self.options = options
        self.backbone = backbone
        self.epochs = epochs
        self.lr = lr
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.device = device
        self.random_state = random_state

    @undisturbed
    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> Self:
        """Train."""
        sequences = self._sequences(X, None)
        tags = _labels(sequences, y)
        self.classes_, numbers = np.unique(np.concatenate(tags), return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y: holds {len(self.classes_)} label; accepted are at least two")
        target = torch.from_numpy(numbers).split([len(labels) for labels in tags])  # type: ignore[no-untyped-call]
        self.n_features_in_ = sequences[0].shape[1]

        def batch(rows: Tensor) -> Batch:
            chosen = rows.tolist()
            padded = pad_sequence([target[row] for row in chosen], batch_first=True, padding_value=check.IGNORE)
            return _padded([sequences[row] for row in chosen]), padded.to(sequences[0].device), None

        sample = sequences[0][None]
        self.network_, self.report_ = train(self, sample, len(self.classes_), len(sequences), batch)
        return self

    def predict(self, X: Sequence[Any]) -> list[Array]:
        """The labels of each sequence."""
        return [self.classes_[labels] for labels in self._of_sequences(X, lambda head, scores: head.predict(scores))]

    @available_if(is_likelihood)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Sequence[Any]) -> list[Array]:
        """The probability of each label at each place, ``(T_i, K)``: there where the loss is a likelihood."""
        return self._of_sequences(X, lambda head, scores: head.predict_proba(scores))

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """The share of labels that are right."""
        found = self.predict(X)
        return float(np.mean(np.concatenate(found) == np.concatenate(_labels(found, y))))

    @undisturbed
    def _of_sequences(self, X: Sequence[Any], wanted: Callable[[Head, Any], Tensor]) -> list[Array]:
        check_is_fitted(self)
        sequences, found = self._sequences(X, self.n_features_in_), []
        with torch.no_grad():
            for start in range(0, len(sequences), self.batch_size):
                part = sequences[start : start + self.batch_size]
                labels = wanted(self.network_.head, self.network_(**_padded(part))).cpu().numpy()
                found += [row[: len(rows)] for row, rows in zip(labels, part, strict=True)]
        return found

    def _sequences(self, X: Sequence[Any], width: int | None) -> list[Tensor]:
        """The sequences as tensors, all of one width."""
        X, device = as_array("X", X), device_of(self)
        if isinstance(X, (str, bytes, type)) or not hasattr(X, "__len__") or getattr(X, "ndim", 1) == 0:
            raise TypeError(f"X: got {check.shown(X)}; accepted is a list of sequences (T, D)")
        if len(X) == 0:
            raise ValueError("X: holds no sequence; accepted is at least one")
        dtype = [np.float64, np.float32] if device.type == "cpu" else [np.float32]
        arrays = [
            check_array(as_array("X", rows), dtype=dtype, input_name=f"X[{number}]") for number, rows in enumerate(X)
        ]
        width, common = width or arrays[0].shape[1], getattr(torch, np.result_type(*arrays).name)
        for number, rows in enumerate(arrays):
            if rows.shape[1] != width:
                raise ValueError(f"X: sequence {number} has {rows.shape[1]} features; accepted are {width} everywhere")
        return [torch.tensor(rows, dtype=common, device=device) for rows in arrays]


def _labels(sequences: Sequence[Any], y: Any) -> list[Array]:
    """The labels of each sequence, as many as it has places."""
    y = as_array("y", y)
    if y is None:
        raise ValueError("y: got None; accepted are the labels of each sequence")
    check_consistent_length(sequences, y)
    tags = [np.asarray(as_array("y", labels)) for labels in y]
    for number, (rows, labels) in enumerate(zip(sequences, tags, strict=True)):
        if labels.shape != (len(rows),):
            raise ValueError(f"y: sequence {number} has shape {labels.shape}; accepted is ({len(rows)},), as in X")
    return tags


def _padded(sequences: list[Tensor]) -> dict[str, Tensor]:
    """One batch of sequences, and their lengths."""
    lengths = torch.tensor([len(rows) for rows in sequences], device=sequences[0].device)
    return {"features": pad_sequence(sequences, batch_first=True), "lengths": lengths}
