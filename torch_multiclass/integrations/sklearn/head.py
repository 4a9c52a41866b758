"""A classifier of scikit-learn over any head, trained by gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.heads import MulticlassHead, MultilabelHead
from torch_multiclass.heads.base import Head
from torch_multiclass.integrations.sklearn.base import TorchClassifier
from torch_multiclass.integrations.sklearn.training import Batch, EpochsReport, MakeOptimizer, is_likelihood, train
from torch_multiclass.losses import Loss

__all__ = ["EpochsReport", "HeadClassifier"]


class HeadClassifier(TorchClassifier):
    r"""Any head of this library, and a network before it if wanted, as a classifier of scikit-learn.

    Minimises the weighted mean of the head's loss over mini-batches, in the precision of ``X`` on the CPU (float32 is
    faster), in float32 elsewhere. Probabilities are there without calibration under the cross-entropy and the logistic
    loss; for other losses there are `calibrate` on held-out rows and `sklearn.calibration.CalibratedClassifierCV`.
    Scale the features first, as by `StandardScaler` in a pipeline.

    Args:
        head: the class of the head, or any function ``head(in_features, num_classes, **options)``: `MulticlassHead`,
            `OneVsAllHead`, `OneVsOneHead`, `ECOCHead`, `ContinuousCodeHead`, or `MultilabelHead` for sets of labels.
        loss: of the head, by name or as it is; by default the head's own.
        options: more keyword arguments of the head, such as ``{"code": "hadamard"}``.
        backbone: a network, which is copied, or a function of the number of features that makes one; its last
            dimension is what the head reads. With it ``X`` may have more dimensions.
        epochs: how often to go over the rows.
        lr, weight_decay: of Adam.
        batch_size: rows a step.
        optimizer: a function of the parameters that makes another optimizer.
        class_weight: a weight by label, or ``"balanced"``: ``n / (K n_k)``, rows counted with their ``sample_weight``.
        device: where to train; the CPU by default.
        random_state: a seed for the first weights and the order of rows.

    Attributes:
        classes_: the labels in order, ``(K)``.
        network_: ``network_.backbone`` and ``network_.head``, trained.
        report_: `EpochsReport`, with the loss of each epoch.
        n_features_in_, feature_names_in_, n_iter_: as everywhere in scikit-learn.

    Shape:
        X ``(N, D)``; y ``(N)`` of labels, with `MultilabelHead` ``(N, K)`` of 0 and 1, a set of labels each.

    Raises:
        TypeError: a head, backbone or optimizer that is none.
        ValueError: numbers out of range, what the head and `fit` refuse.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.2 and §9.3.

    Example:
        >>> import torch_multiclass as tm
        >>> from torch_multiclass.integrations.sklearn import HeadClassifier
        >>> X, y = [[0.0, 0.0], [0.2, 0.1], [3.0, 0.0], [3.1, 0.2], [0.0, 3.0], [0.1, 3.2]], list("aabbcc")
        >>> head = HeadClassifier(tm.MulticlassHead, loss="crammer_singer", lr=0.1, random_state=0).fit(X, y)
        >>> head.predict([[2.9, 0.1], [0.0, 2.8]]), hasattr(head, "predict_proba")
        (array(['b', 'c'], dtype='<U1'), False)
        >>> ecoc = HeadClassifier(tm.ECOCHead, options={"code": "complete"}, epochs=5, random_state=0)
        >>> ecoc.fit(X, y).predict_proba(X).shape
        (6, 3)
    """

    @check.told
    def __init__(
        self,
        head: Callable[..., Head] = MulticlassHead,
        *,
        loss: Loss | str | None = None,
        options: Mapping[str, Any] | None = None,
        backbone: nn.Module | Callable[[int], nn.Module] | None = None,
        epochs: int = 100,
        lr: float = 0.01,
        weight_decay: float = 0.0,
        batch_size: int = 64,
        optimizer: MakeOptimizer | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
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
        self.class_weight = class_weight
        self.device = device
        self.random_state = random_state

    def _train(self, features: Any, target: Tensor, weight: Tensor | None) -> None:
        if self._takes_sets() and not self._sets:
            raise ValueError("y: holds one class a row; accepted for MultilabelHead is (N, K) of 0 and 1, sets")
        if weight is not None:
            kept = (weight > 0).to(features.device)
            weight = weight.to(features)
            features, target, weight = features[kept], target[kept], weight[kept]
            weight = weight / weight.mean()
        target = 2 * target - 1 if self._sets else target

        def batch(rows: Tensor) -> Batch:
            rows = rows.to(features.device)
            return {"features": features[rows]}, target[rows], None if weight is None else weight[rows]

        self.network_, self.report_ = train(self, features[:2], len(self.classes_), len(features), batch)

    def _class_scores(self, features: Tensor) -> Tensor:
        return self.network_.head.class_scores(self.network_(features))

    def _labels(self, features: Tensor) -> Tensor:
        labels = self.network_.head.predict(self.network_(features))
        return labels > 0 if self._sets else labels

    def _probabilities(self, features: Tensor) -> Tensor:
        return self.network_.head.predict_proba(self.network_(features))

    def _has_probabilities(self) -> bool:
        """Whether the loss is a likelihood, or the scores were calibrated."""
        return getattr(self, "calibration_", None) is not None or is_likelihood(self)

    def _calibrate(self, parts: list[Tensor], target: Tensor) -> None:
        head = self.network_.head
        with torch.no_grad():
            scores = head(torch.cat([self.network_.embed(part) for part in parts]))
            head.calibrate(scores, 2 * target - 1 if self._sets else target)
        self.calibration_ = head.temperature

    def _takes_sets(self) -> bool:
        return isinstance(self.head, type) and issubclass(self.head, MultilabelHead)

    def _takes_more_classes(self) -> bool:
        return True

    def _dtypes(self) -> list[Any]:
        return [np.float64, np.float32] if self._device().type == "cpu" else [np.float32]

    def _rows_wanted(self) -> dict[str, Any]:
        return {**super()._rows_wanted(), "allow_nd": self.backbone is not None}
