"""What every solver checks about its rows, its labels and its constants."""

from __future__ import annotations

from numbers import Real

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.kernels.gram import available_bytes

_LEAST, _MOST = 1e-30, 1e30


def check_constant(name: str, given: object) -> float:
    """A weight of the losses whose square is still a number: between 1e-30 and 1e30."""
    if isinstance(given, Tensor) and given.numel() == 1:
        given = given.item()
    check.positive(name, given)
    assert isinstance(given, Real)
    if not _LEAST <= float(given) <= _MOST:
        raise ValueError(f"{name}: got {given!r}; accepted is a number between {_LEAST:g} and {_MOST:g}")
    return float(given)


def check_exponent(given: object) -> None:
    """Of a group norm."""
    if isinstance(given, bool) or not isinstance(given, Real) or not float(given) >= 1:
        raise ValueError(f"p: got {given!r}; accepted is a number >= 1, or infinity")


def check_weight(given: object) -> Tensor:
    """A weight for each class, ``(K)``, as a number > 0 whose square is one too."""
    weight = check.numbers("weight", given, "one number > 0 for each class, (K)").detach()
    bad = weight[~((weight >= _LEAST) & (weight <= _MOST))]
    if len(bad):
        raise ValueError(
            f"weight: has the entry {float(bad[0]):g}; accepted are numbers between {_LEAST:g} and {_MOST:g}"
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


def check_memory_limit(given: int | None) -> int | None:
    """None or a number of bytes."""
    if given is not None:
        check.whole("memory_limit", given)
    return given


def check_rows(features: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The rows to train on: finite features, half precision as float32, and targets that are not -100."""
    features, target = labelled_rows(features, target)
    if len(features) == 0:
        raise ValueError("features: there are no rows; accepted is at least one row of two classes")
    return features, target


def labelled_rows(features: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """`check_rows`, where there may be none left."""
    check.floating("features", features)
    check.class_indices("target", target)
    if features.ndim != 2:
        raise ValueError(f"features: got shape {tuple(features.shape)}; accepted is (N, D), one row an example")
    if features.shape[1] == 0:
        raise ValueError(f"features: got shape {tuple(features.shape)}; accepted is (N, D), at least one feature a row")
    check.shape("target", target, (len(features),), "one label a row")
    check.same_device("target", target, "features", features)
    features, target = features.detach(), target.detach().long()
    kept = target != check.IGNORE
    if not bool(kept.all()):
        features, target = features[kept], target[kept]
    if not bool(features.isfinite().all()):
        bad = (~features.isfinite()).any(1).nonzero()[0].item()
        raise ValueError(f"features: row {bad} has an entry that is not finite; accepted are finite features")
    return features.to(torch.promote_types(features.dtype, torch.float32)), target


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
