"""The rows, labels and weights that a solver works on, and what it checks about them and about its constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.kernels.gram import available_bytes
from torch_multiclass.ops.sparse_rows import as_csr, is_sparse, take_rows
from torch_multiclass.solvers.monitor import warn

_LEAST, _MOST = 1e-30, 1e30

RowWeights = Tensor | Sequence[float]
"""One number >= 0 a row; 0 leaves the row out, 2 counts it twice."""


def check_rows(features: Tensor, target: Tensor, *, sparse: bool = False) -> None:
    """Raise unless they are tensors of numbers and of class indices; of arrays say also what takes them."""
    try:
        check.floating("features", features, sparse=sparse)
        check.class_indices("target", target)
    except TypeError as error:
        given: tuple[object, ...] = (features, target)
        if not any(isinstance(one, (np.ndarray, list)) or hasattr(one, "to_numpy") for one in given):
            raise
        raise TypeError(f"{error}; torch_multiclass.integrations.sklearn.SolverClassifier takes arrays") from None


@dataclass(frozen=True)
class Problem:
    """The rows that count, checked: those labelled -100 or of weight 0 are left out.

    Shape:
        features ``(M, D)``, finite, float32 or float64; labels, weight and positions ``(M)``.
    """

    features: Tensor
    labels: Tensor
    """Class indices, or signs ±1 of a binary problem."""
    weight: Tensor
    """How much the loss of each row counts, > 0, float64."""
    classes: int
    """``K``; 2 of a binary problem."""
    positions: Tensor
    """Where each row stood among those given."""
    given: int
    """How many rows were given."""

    @classmethod
    def labelled(
        cls,
        features: Tensor,
        target: Tensor,
        weight: RowWeights | None = None,
        missing: bool = False,
        sparse: bool = False,
    ) -> Problem:
        """The rows with integers for labels, of whatever kind; there may be none left. NaN may be ``missing``.

        Where ``sparse`` ones are taken, they become CSR.
        """
        nested = getattr(features, "is_nested", False)  # such a tensor has no shape
        if sparse and not nested and is_sparse(features) and len(features.shape) == 2:
            features = as_csr(features)
        check_rows(features, target, sparse=sparse)
        if features.ndim != 2:
            raise ValueError(f"features: got shape {tuple(features.shape)}; accepted is (N, D), one row an example")
        if features.shape[1] == 0:
            raise ValueError(
                f"features: got shape {tuple(features.shape)}; accepted is (N, D), at least one feature a row"
            )
        check.shape("target", target, (features.shape[0],), "one label a row")
        check.same_device("target", target, "features", features)
        if features.device.type == "meta":
            raise ValueError("features: are on the meta device; accepted are features with values")
        features, target = features.detach(), target.detach().long()
        kept = target != check.IGNORE
        weights = check_row_weights(weight, kept)
        kept = kept & (weights > 0)
        if not bool(kept.all()):
            features = take_rows(features, kept.nonzero().squeeze(1)) if is_sparse(features) else features[kept]
            target, weights = target[kept], weights[kept]
        if is_sparse(features):
            if not bool(features.values().isfinite().all()):
                raise ValueError("features: have an entry that is not finite; accepted are finite features")
        elif features.numel() and not all(bool(bound.isfinite()) for bound in features.aminmax()):
            wrong = features.isinf() if missing else ~features.isfinite()
            if bool(wrong.any()):
                bad, also = kept.nonzero()[wrong.any(1)][0].item(), ", and NaN where one is missing" if missing else ""
                raise ValueError(
                    f"features: row {bad} has an entry that is not finite; accepted are finite features{also}"
                )
        features = features.to(torch.promote_types(features.dtype, torch.float32))
        return cls(features, target, weights, 0, kept.nonzero().squeeze(1), len(kept))

    @classmethod
    def multiclass(
        cls,
        features: Tensor,
        target: Tensor,
        weight: RowWeights | None = None,
        num_classes: int | None = None,
        missing: bool = False,
        sparse: bool = False,
    ) -> Problem:
        """Rows of at least two classes, labelled ``0..K-1``, ``K`` being one more than the largest label if not given.

        Warns where a class has no row.
        """
        problem = cls.labelled(features, target, weight, missing, sparse).some()
        labels = problem.labels
        if bool((labels == labels[0]).all()):
            raise one_label(int(labels[0]))
        most = max(int(labels.max()) + 1, 2)
        classes = most if num_classes is None else check.whole("num_classes", num_classes, least=2)
        check.label_range("target", labels, classes, validate_args=True)
        check_size(len(labels), classes, labels.device)
        present = labels.bincount(minlength=classes) > 0
        if not bool(present.all()):
            absent = (~present).nonzero().squeeze(1).tolist()
            shown = ", ".join(map(str, absent[:10])) + (f" and {len(absent) - 10} more" if len(absent) > 10 else "")
            warn(f"target: no row has the label {shown}")
        return replace(problem, classes=classes)

    @classmethod
    def binary(
        cls,
        features: Tensor,
        target: Tensor,
        weight: RowWeights | None = None,
        missing: bool = False,
        sparse: bool = False,
    ) -> Problem:
        """Rows of two classes, labelled ±1 or 0/1."""
        problem = cls.labelled(features, target, weight, missing, sparse).some()
        return replace(problem, labels=check_signs(problem.labels), classes=2)

    def some(self) -> Problem:
        """The same; raise where there are no rows."""
        if self.features.shape[0] == 0:
            raise ValueError(
                "features: there are no rows"
                + (" with a label and a weight above 0" if self.given else "")
                + "; accepted is at least one row of two classes"
            )
        return self

    def strengths(self, C: float, class_weight: Tensor | None = None) -> Tensor:
        """``(M, 1)``, float64: ``C`` times the weights of the row and of its class."""
        weight = self.weight
        if class_weight is not None:
            check.shape("weight", class_weight, (self.classes,), "one for each class")
            weight = weight * class_weight.to(weight)[self.labels.clamp_min(0)]  # the sign -1 is class 0
        strengths = C * weight
        check_constant("C times weight", float(strengths.max()))
        check_constant("C times weight", float(strengths.min()))
        return strengths[:, None]


def check_constant(name: str, given: object) -> float:
    """A weight of the losses whose square is still a number: between 1e-30 and 1e30."""
    if isinstance(given, Tensor) and not given.is_nested and given.layout == torch.strided and given.numel() == 1:
        check.with_values(name, given)
        given = given.item()
    check.positive(name, given)
    assert isinstance(given, Real)
    if not _LEAST <= float(given) <= _MOST:
        raise ValueError(f"{name}: got {given!r}; accepted is a number between {_LEAST:g} and {_MOST:g}")
    return float(given)


def check_exponent(given: object) -> None:
    """Of a group norm."""
    if not check.real(given) >= 1:
        raise ValueError(f"p: got {check.shown(given)}; accepted is a number >= 1, or infinity")


def check_class_weight(given: object) -> Tensor:
    """A weight for each class, ``(K)``, as a number > 0 whose square is one too."""
    weight = check.numbers("weight", given, "one number > 0 for each class, (K)").detach()
    return _in_range(weight, weight, "numbers")


def check_row_weights(given: object, kept: Tensor) -> Tensor:
    """A weight for each row, ``(N)``, float64, 1 by default; those of the rows ``kept`` are checked."""
    if given is None:
        return torch.ones(len(kept), dtype=torch.float64, device=kept.device)
    weight = check.numbers("weight", given, "one number >= 0 for each row, (N)").detach()
    check.shape("weight", weight, tuple(kept.shape), "one number for each row")
    if isinstance(given, Tensor):
        check.same_device("weight", weight, "features", kept)
    weight = weight.to(kept.device, torch.float64)
    return _in_range(weight, weight[kept & (weight != 0)], "0 and numbers")


def _in_range(weight: Tensor, entries: Tensor, accepted: str) -> Tensor:
    bad = entries[~((entries >= _LEAST) & (entries <= _MOST))]
    if len(bad):
        raise ValueError(
            f"weight: has the entry {float(bad[0]):g}; accepted are {accepted} between {_LEAST:g} and {_MOST:g}"
        )
    return weight


def check_size(rows: int, classes: int, device: torch.device) -> None:
    """Raise where a multiplier for each row and class would not fit."""
    needed, free = 8 * rows * classes, available_bytes(device)
    if needed > free:
        raise MemoryError(
            f"target: {rows} rows and {classes} classes (one more than the largest label) make multipliers of "
            f"{needed / 2**30:.3g} GiB, but {free / 2**30:.3g} GiB are free; accepted are labels 0..K-1"
        )


def no_sequence(count: int) -> ValueError:
    """That of so many sequences nothing is left."""
    return ValueError(
        f"features: there are no rows: none of the {count} sequences has a position that counts (mask, lengths), a "
        "label and a weight above 0; accepted is at least one such sequence"
    )


def forbidden_labels(sequence: int) -> ValueError:
    """That no scorer gives this sequence its labels."""
    return ValueError(f"target: sequence {sequence} has labels that the constraints forbid; accepted are allowed ones")


def check_memory_limit(given: int | None) -> int | None:
    """None or a number of bytes."""
    return None if given is None else check.whole("memory_limit", given)


def check_flag(name: str, given: object, none: bool = False) -> None:
    """Raise unless ``given`` is True or False (or None)."""
    if not isinstance(given, bool) and not (none and given is None):
        raise TypeError(f"{name}: got {given!r}; accepted is {'None, ' if none else ''}True or False")


def check_signs(target: Tensor) -> Tensor:
    """Binary labels as ±1: they are given as ±1, or as 0/1."""
    values = torch.unique(target).tolist()
    if set(values) <= {-1, 1}:
        signs = target
    elif set(values) <= {0, 1}:
        signs = 2 * target - 1
    else:
        raise ValueError(f"target: has the labels {values[:5]} with a binary learner; accepted are -1/1 and 0/1")
    if len(values) < 2:
        raise one_label(values[0])
    return signs


def one_label(label: int) -> ValueError:
    """The error where nothing is to be told apart."""
    return ValueError(f"target: every row has the label {label}; accepted are at least two classes")
