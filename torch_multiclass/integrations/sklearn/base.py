"""What the classifiers share: rows, labels and weights on the way in, labels and scores on the way out."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from torch import Tensor
from typing_extensions import Self

from torch_multiclass import checks as check
from torch_multiclass.calibration import TemperatureScaling
from torch_multiclass.ops.precision import undisturbed
from torch_multiclass.options import factory
from torch_multiclass.solvers.report import Report

Array = NDArray[Any]

DENSE_LIMIT = 1 << 30
"""Bytes up to which a sparse matrix is copied into a dense one where there is no other way to train."""

_PART = 1 << 22  # numbers of a sparse matrix that are made dense at a time to predict, and of a dense one
_MIXINS: tuple[Any, ...] = (ClassifierMixin, BaseEstimator)


def as_array(name: str, given: Any) -> Any:
    """A tensor as an array; all else is for scikit-learn to judge."""
    if not isinstance(given, Tensor):
        return given
    check.dense(name, given)
    check.with_values(name, given)
    if given.dtype not in (*check.FLOATING, *check.INTEGERS, torch.bool):
        raise TypeError(f"{name}: got dtype {given.dtype}; accepted are real numbers of at least 8 bits")
    given = given.detach().cpu()
    return (given.float() if given.dtype == torch.bfloat16 else given).numpy()


def as_tensor(array: Array) -> Tensor:
    """The numbers of an array; in a copy where they may not be written, as those of pandas, or torch warns."""
    array = np.ascontiguousarray(array)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def device_of(asked: Any) -> torch.device:
    """Where to train: the CPU where nothing is asked for."""
    factory(asked.device, None)
    device = torch.device("cpu" if asked.device is None else asked.device)
    if device.type == "meta":
        raise ValueError("device: got meta, which has no values; accepted is a device that computes")
    return device


def _gives_probabilities(asked: Any) -> bool:
    """Whether there are probabilities; where not, the reason, which scikit-learn hands on."""
    if asked._has_probabilities():
        return True
    raise AttributeError(
        "predict_proba: the scores of this loss are no probabilities; accepted are a likelihood (soft-max, logistic), "
        "and any loss after calibrate(X, y) on rows that were held out"
    )


class TorchClassifier(*_MIXINS, metaclass=ABCMeta):  # type: ignore[misc]
    """Rows and labels of scikit-learn's kinds, for what works on tensors.

    A subclass writes `_train`, `_class_scores` and `_labels`, and where it has them `_probabilities`.
    """

    class_weight: Mapping[Any, float] | str | None
    device: torch.device | str | None
    classes_: Array
    report_: Report
    n_features_in_: int
    calibration_: TemperatureScaling | None
    _sets: bool
    """Whether it was fitted to sets of labels."""

    @undisturbed
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train.

        Args:
            X: ``(N, D)``, numbers: an array, a data frame, or a sparse matrix, of which a dense copy of at most 1 GiB
                is made where training cannot do without.
            y: ``(N)``, labels of any kind; ``(N, K)`` of 0 and 1 where sets of labels are learned.
            sample_weight: ``(N)``, how much each row counts.

        Raises:
            ValueError: rows, labels or weights that are none of these, and what training refuses.
            MemoryError: a sparse matrix too large to be copied.
        """
        X, y, sample_weight = as_array("X", X), as_array("y", y), as_array("sample_weight", sample_weight)
        sets = y is not None and self._takes_sets() and type_of_target(y) == "multilabel-indicator"
        X, y = validate_data(self, X, y, multi_output=sets, **self._rows_wanted())
        self._sets = sets
        if y.dtype == object and any(label is None for label in y.ravel()):
            raise ValueError("y: holds None; accepted is a label for each row")
        if sets:
            labels = y.toarray() if hasattr(y, "toarray") else y
            self.classes_ = np.arange(labels.shape[1])
        else:
            check_classification_targets(y)
            self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y: holds {len(self.classes_)} class; accepted are at least two classes")
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
        if weight is not None and not (weight.min() >= 0 and weight.max() > 0):
            raise ValueError(
                f"sample_weight: is from {weight.min():g} to {weight.max():g}; accepted is >= 0, with at least one "
                "non-zero"
            )
        weight = self._with_class_weight(labels, y, weight)
        target = as_tensor(labels).long().to(self._device())
        self.calibration_ = None
        self._train(self._training_rows(X), target, None if weight is None else as_tensor(weight))
        self.n_iter_ = max(1, self.report_.iterations)
        return self

    def predict(self, X: Any) -> Array:
        """The label of each row, ``(N)``; of sets of labels ``(N, K)`` of 0 and 1."""
        labels = self._of_rows(X, self._labels)
        return labels.astype(int) if self._sets else self.classes_[labels]

    def decision_function(self, X: Any) -> Array:
        """The score of each class, ``(N, K)``; of two classes ``(N)``, above 0 where it is the second."""
        scores = self._of_rows(X, self._class_scores)
        if self._sets or scores.shape[1] > 2:
            return scores
        margin: Array = scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]
        return margin

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """The probability of each class, ``(N, K)``: there where the loss gives them, or after `calibrate`."""
        return self._of_rows(X, self._probabilities)

    def calibrate(self, X: Any, y: Any) -> Self:
        """Fit `predict_proba` to rows that were held out, by `TemperatureScaling`.

        Predictions stay as they are, but those of an `ExpectedCostDecoder`, which are read off the probabilities.

        Raises:
            ValueError: a label that was not there in training.
        """
        features = self._rows(X)
        try:
            labels = np.asarray(as_array("y", y))
        except ValueError as error:  # sequences of several lengths
            raise ValueError(f"y: {error}; accepted is a label for each row of X") from error
        if labels.shape[:1] != features.shape[:1] or labels.ndim != 1 + self._sets:
            raise ValueError(
                f"y: got shape {labels.shape}; accepted is {'a row' if self._sets else 'a label'} for each of the "
                f"{features.shape[0]} rows of X"
            )
        if not self._sets:
            try:
                strange = np.setdiff1d(labels, self.classes_)
            except TypeError:  # of a kind that has nothing in common with them
                strange = labels.ravel()
            if len(strange):
                raise ValueError(
                    f"y: holds {strange[:1].tolist()[0]!r}; accepted are the classes of training, {self.classes_}"
                )
            labels = np.searchsorted(self.classes_, labels)
        parts = [*self._parts(features)]
        self._calibrate(parts, as_tensor(labels).long().to(self._device()))
        return self

    # ---------------------------------------------------------------------------------- what kinds differ in

    @abstractmethod
    def _train(self, features: Any, target: Tensor, weight: Tensor | None) -> None:
        """Fit, and set ``report_``."""

    @abstractmethod
    def _class_scores(self, features: Tensor) -> Tensor:
        """``(N, K)``, or a margin ``(N, 1)``."""

    @abstractmethod
    def _labels(self, features: Tensor) -> Tensor:
        """Numbers of classes ``(N)``, or sets ``(N, K)``."""

    @abstractmethod
    def _probabilities(self, features: Tensor) -> Tensor:
        """``(N, K)``."""

    @abstractmethod
    def _has_probabilities(self) -> bool:
        """Whether there are any."""

    @abstractmethod
    def _calibrate(self, parts: list[Tensor], target: Tensor) -> None:
        """Fit probabilities to held-out rows."""

    def _takes_sets(self) -> bool:
        """Whether sets of labels can be learned."""
        return False

    def _takes_sparse(self) -> bool:
        """Whether training takes CSR matrices."""
        return False

    def _takes_missing(self) -> bool:
        """Whether features may be NaN."""
        return False

    def _takes_gram(self) -> bool:
        """Whether features are a Gram matrix, of which columns are left out with rows."""
        return False

    def _takes_more_classes(self) -> bool:
        """Whether there may be more than two classes."""
        return True

    def _dtypes(self) -> list[Any]:
        """The precisions of features that are taken as they are, the first by default."""
        return [np.float64, np.float32]

    # ---------------------------------------------------------------------------------- rows

    def _rows_wanted(self) -> dict[str, Any]:
        return {
            "accept_sparse": "csr",
            "dtype": self._dtypes(),
            "ensure_all_finite": "allow-nan" if self._takes_missing() else True,
        }

    def _rows(self, X: Any) -> Any:
        """Rows to predict."""
        check_is_fitted(self)
        return validate_data(self, as_array("X", X), reset=False, **self._rows_wanted())

    def _training_rows(self, X: Any) -> Any:
        """A tensor, or the CSR matrix where training takes one."""
        if not hasattr(X, "toarray"):
            return self._tensor(X)
        if self._takes_sparse():
            return X
        needed = X.shape[0] * X.shape[1] * X.dtype.itemsize
        if needed > DENSE_LIMIT:
            raise MemoryError(
                f"X: is sparse, and a dense copy takes {needed} bytes; accepted are {DENSE_LIMIT}, or a solver that "
                "takes CSR matrices, such as Pegasos or Perceptron"
            )
        return self._tensor(X)

    def _parts(self, X: Any) -> Iterator[Tensor]:
        """The rows as dense tensors, not too many at a time."""
        size = max(1, _PART // max(1, int(np.prod(X.shape[1:]))))
        for start in range(0, X.shape[0], size):
            yield self._tensor(X[start : start + size])

    @undisturbed
    def _of_rows(self, X: Any, wanted: Callable[[Tensor], Tensor]) -> Array:
        with torch.no_grad():
            found = [wanted(part).cpu().numpy() for part in self._parts(self._rows(X))]
        return np.concatenate(found)

    def _tensor(self, X: Any) -> Tensor:
        return as_tensor(X.toarray() if hasattr(X, "toarray") else X).to(self._device())

    def _device(self) -> torch.device:
        return device_of(self)

    # ---------------------------------------------------------------------------------- weights

    def _with_class_weight(self, labels: Array, y: Array, weight: Array | None) -> Array | None:
        """The weight of each row times that of its class; ``"balanced"`` is ``n / (K n_k)`` over weighted rows."""
        given = self.class_weight
        if given is None:
            return weight
        if self._sets:
            raise ValueError(f"class_weight: got {check.shown(given)} for sets of labels; accepted is None")
        weight = np.ones(len(labels)) if weight is None else weight
        if isinstance(given, str):
            check.choice("class_weight", given, ("balanced",), hint=" and a dict from labels to weights")
            counts = np.bincount(labels, weight, len(self.classes_))
            of_class = counts.sum() / (np.count_nonzero(counts) * np.where(counts > 0, counts, 1.0))
        else:
            of_class = compute_class_weight(given, classes=self.classes_, y=y)
            if not of_class.min() >= 0:
                raise ValueError(f"class_weight: holds {of_class.min():g}; accepted are weights >= 0")
        product: Array = weight * of_class[labels]
        return product

    # ---------------------------------------------------------------------------------- what scikit-learn asks

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_missing()
        tags.input_tags.pairwise = self._takes_gram()
        tags.classifier_tags.multi_class = self._takes_more_classes()
        tags.classifier_tags.multi_label = self._takes_sets()
        return tags
