"""What boosting works on: features with missing values, and targets of three kinds as signs."""

from __future__ import annotations

import functools
import zlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.ops.splits.codes import Floats
from torch_multiclass.solvers.monitor import warn
from torch_multiclass.solvers.problem import Problem, RowWeights, check_rows, one_label


@dataclass(frozen=True)
class Sample(Problem):
    """The rows that count, with a sign for each column.

    Shape:
        signs ``(M, C)``, -1, 0 or +1.
    """

    signs: Floats
    single: bool
    """Whether a row has one label, which is what `labels` hold; else it has a set of them."""

    @property
    def check_sum(self) -> int:
        """Of the features, the signs and the weights."""
        parts = self.table, self.signs, self.weight.cpu().numpy()
        return functools.reduce(lambda so_far, part: zlib.crc32(np.ascontiguousarray(part).data, so_far), parts, 0)

    @property
    def table(self) -> np.ndarray[Any, Any]:
        """The features on the CPU, ``(M, D)``; NaN where one is missing."""
        return self.features.cpu().numpy()


def rows_of(features: Tensor, target: Tensor, weight: RowWeights | None) -> Problem:
    """The rows that count, NaN allowed; a target ``(N, K)`` of signs is known by its first column."""
    check_rows(features, target)
    if features.dim() != 2:
        raise ValueError(f"features: got shape {tuple(features.shape)}; accepted is (N, D), one row an example")
    sets = isinstance(target, Tensor) and target.dim() == 2
    return Problem.labelled(features, signs_checked(target)[:, 0] if sets else target, weight, missing=True).some()


def signs_checked(target: Tensor) -> Tensor:
    """``(N, K)`` of ±1, a row of -100 being one without labels."""
    check.class_indices("target", target)
    if target.device.type == "meta":
        raise ValueError("target: is on the meta device; accepted is a target with values")
    if target.shape[1] == 0:
        raise ValueError(f"target: got shape {tuple(target.shape)}; accepted is (N, K), a sign for each label")
    known = (target == 1) | (target == -1)
    bad = ~known & ~(target == check.IGNORE).all(1, keepdim=True)
    if bool(bad.any()):
        row = int(bad.any(1).nonzero()[0])
        entry = int(target[row][bad[row]][0])
        raise ValueError(
            f"target: row {row} has the entry {entry}; accepted are -1 and +1 for each label, or a row of -100"
        )
    return target


def class_or_set(
    features: Tensor, target: Tensor, weight: RowWeights | None = None, num_classes: int | None = None
) -> Sample:
    """A target of class indices ``(N)``, or of signs ``(N, K)``, as signs ``(M, K)``."""
    rows = rows_of(features, target, weight)
    if target.dim() == 2:
        classes = target.shape[1]
        known_classes(num_classes, classes, "the columns of the target")
        signs = target.detach()[rows.positions].double().cpu().numpy()
        return Sample(**{**vars(rows), "classes": classes}, signs=signs, single=False)
    rows = with_classes(rows, num_classes)
    signs = np.full((len(rows.labels), rows.classes), -1.0)
    signs[np.arange(len(signs)), rows.labels.cpu().numpy()] = 1.0
    return Sample(**vars(rows), signs=signs, single=True)


def known_classes(given: object, classes: int, why: str) -> None:
    """Raise unless the number of classes is not given, or is the one that follows from other arguments."""
    if given is not None and check.whole("num_classes", given) != classes:
        raise ValueError(f"num_classes: got {given!r}; accepted are None and {classes}, {why}")


def with_classes(rows: Problem, num_classes: int | None) -> Problem:
    """The number of classes, checked; a class without a row is named."""
    labels = rows.labels
    if bool((labels == labels[0]).all()):
        raise one_label(int(labels[0]))
    most = max(int(labels.max()) + 1, 2)
    classes = most if num_classes is None else check.whole("num_classes", num_classes, least=2)
    check.label_range("target", labels, classes, validate_args=True)
    absent = (labels.bincount(minlength=classes) == 0).nonzero().squeeze(1).tolist()
    if absent:
        shown = ", ".join(map(str, absent[:10])) + (f" and {len(absent) - 10} more" if len(absent) > 10 else "")
        warn(f"target: no row has the label {shown}")
    return replace(rows, classes=classes)
