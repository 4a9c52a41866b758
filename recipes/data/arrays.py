"""The arrays of an ``.npz`` file, and what they must be like."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from ..names import apart, listed
from ..start import note
from .packed import Bomb, check_entries

COLOURS = (1, 3, 4)
"""How many channels pictures have."""


def digest(*data: Any) -> str:
    """A short name of the contents of some arrays: other numbers, another name."""
    found = hashlib.sha256()
    for one in data:
        array = np.ascontiguousarray(one)
        found.update(f"{array.dtype} {array.shape}".encode())
        found.update(array.tobytes())
    return found.hexdigest()[:16]


class Unread(ValueError):
    """A file that holds what is not read."""


def read(
    path: str, argument: str, needs: tuple[str, ...], accepted: str = "accepted is an .npz file"
) -> dict[str, np.ndarray]:
    """The arrays of an ``.npz`` file, which must be there and hold those it ``needs``."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"{argument}: there is no file {path}; {accepted}")
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            check_sizes(path, argument, file.zip)
            arrays = {name: file[name] for name in file.files}
    except (Bomb, Unread):
        raise
    except (BadZipFile, ValueError, AttributeError, TypeError, EOFError):
        raise ValueError(f"{argument}: cannot read {path}; accepted is an .npz file without pickled objects") from None
    for name in needs:
        if name not in arrays:
            held = ", ".join(sorted(arrays)) or "nothing"
            raise ValueError(
                f"{argument}: {path} has no array {name} (it holds {held}); accepted is {' and '.join(needs)}"
            )
    return arrays


def check_sizes(path: str, argument: str, held: ZipFile) -> None:
    """Refuse arrays that are packed beyond reason, or that claim more than the file holds, before any is read."""
    check_entries(path, argument, held)
    for entry in held.infolist():
        shape, dtype = header(held, entry.filename)
        if dtype.hasobject:  # which only pickle reads
            name = entry.filename.removesuffix(".npy")
            raise Unread(
                f"{argument}: {name} in {path} has dtype object; accepted are numbers and strings: "
                f"np.asarray({name}.tolist()) makes them of objects that are"
            )
        claimed = math.prod(shape) * dtype.itemsize
        if claimed > entry.file_size:
            raise Bomb(f"{argument}: {entry.filename} in {path} claims {claimed} bytes; it holds {entry.file_size}")


def header(held: ZipFile, name: str) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type of an array, which is not read."""
    with held.open(name) as stream:
        version = np.lib.format.read_magic(stream)
        first = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = first(stream)
    return shape, dtype


def dimensions(path: str) -> int | None:
    """How many the array ``X`` of an ``.npz`` file has; None of a file that will be refused."""
    with suppress(OSError, ValueError, LookupError, EOFError, BadZipFile), ZipFile(path) as held:
        return len(header(held, "X.npy")[0])
    return None


def checked_features(path: str, argument: str, features: np.ndarray) -> np.ndarray:
    """The features in float64, which must be numbers in a table or a stack of images."""
    if features.ndim not in (2, 4) or 0 in features.shape:
        raise ValueError(
            f"{argument}: X in {path} has shape {features.shape}; accepted is (rows, columns) "
            "or (rows, channels, height, width)"
        )
    if features.dtype.kind not in "fiub":
        raise TypeError(f"{argument}: X in {path} has dtype {features.dtype}; accepted are real numbers")
    if np.isinf(features).any():
        raise ValueError(f"{argument}: X in {path} has infinite values; accepted are finite ones and NaN")
    remark(path, features)
    features = features.astype(np.float64)
    check_squares(path, argument, features)
    return features


def check_squares(path: str, argument: str, features: np.ndarray, names: Sequence[str] | None = None) -> None:
    """Refuse a column whose squares overflow, of which no variance is known."""
    with np.errstate(over="ignore"):
        sums = np.nansum(np.square(features), axis=tuple(axis for axis in range(features.ndim) if axis != 1))
    if np.isinf(sums).any():
        at = int(np.isinf(sums).argmax())
        what = f"column {str(at + 1) if names is None else apart(names[at])}" if features.ndim == 2 else f"channel {at}"
        largest = np.nanmax(np.abs(features[:, at]))
        raise ValueError(
            f"{argument}: {what} of {path} has numbers up to {largest:.3g}; accepted are numbers with a finite sum of "
            "squares"
        )


def remark(path: str, features: np.ndarray) -> None:
    """Say how images were read, and how much of a file is missing."""
    if features.ndim == 4:
        count, channels, height, width = features.shape
        last = width in COLOURS and channels not in COLOURS
        note(
            f"{path}: read as {count} images of {channels} channel{'s' * (channels > 1)} of {height} x {width}"
            + ("; were the channels last, X.transpose(0, 3, 1, 2) has them first" if last else "")
        )
    if features.dtype.kind == "f" and (said := counted(np.isnan(features))):
        note(f"{path}: {said}")


def counted(missing: np.ndarray) -> str:
    """How much is missing, in words; nothing where nothing is."""
    if not missing.any():
        return ""
    rows = missing.reshape(len(missing), -1).any(1).sum()
    return f"{missing.sum()} of {missing.size} values are missing, in {rows} of {len(missing)} rows"


def named_labels(path: str, labels: np.ndarray, rows: int, names: np.ndarray | None) -> tuple[np.ndarray, list[str]]:
    """Labels as positions among the class names: those of the file, else the distinct labels themselves."""
    if labels.shape != (rows,):
        raise ValueError(f"path: y in {path} has shape {labels.shape}; accepted is ({rows},), one for each row of X")
    if labels.dtype.kind not in "iuU":
        raise TypeError(f"path: y in {path} has dtype {labels.dtype}; accepted are integers and strings")
    if names is None:
        names, labels = np.unique(labels, return_inverse=True)
    distinct, counts = np.unique(names, return_counts=True)
    if len(distinct) < len(names):
        raise ValueError(f"path: classes in {path} has {distinct[counts.argmax()]} twice; accepted are distinct names")
    if labels.dtype.kind == "U":
        number = {str(name): i for i, name in enumerate(names)}
        strange = sorted({*labels.tolist()} - {*number})
        if strange:
            raise ValueError(f"path: y in {path} has {strange[0]!r}; accepted are {listed(number)}")
        labels = np.array([number[label] for label in labels.tolist()], dtype=np.int64)
    outside = labels[(labels < 0) | (labels >= len(names))]
    if len(outside):
        raise ValueError(
            f"path: label {outside[0]} of y in {path} is outside 0..{len(names) - 1} ({len(names)} classes)"
        )
    if len(names) < 2:
        raise ValueError(f"path: y in {path} has one class; accepted are two or more")
    return labels.astype(np.int64), [str(name) for name in names]


def checked_split(path: str, arrays: dict[str, np.ndarray], count: int) -> list[np.ndarray] | None:
    """The rows for training and those for testing, which share none; None where the file does not say."""
    names = ("train_idx", "test_idx")
    given = [name for name in names if name in arrays]
    if not given:
        return None
    if len(given) == 1:
        raise ValueError(f"path: {path} has {given[0]} alone; accepted are {' and '.join(names)}, or neither")
    train, test = (checked_rows(path, arrays, name, count) for name in names)
    shared = np.intersect1d(train, test)
    if len(shared):
        raise ValueError(
            f"path: row {shared[0]} is in both train_idx and test_idx of {path} ({len(shared)} such rows); "
            "accepted are splits without a common row"
        )
    return [train, test]


def checked_rows(path: str, arrays: dict[str, np.ndarray], name: str, count: int) -> np.ndarray:
    """The row numbers of a split, which must be of rows there are."""
    rows = arrays[name]
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or len(rows) == 0:
        raise ValueError(f"path: {name} in {path} has dtype {rows.dtype}, shape {rows.shape}; accepted are row numbers")
    if rows.min() < 0 or rows.max() >= count:
        raise ValueError(f"path: {name} in {path} spans {rows.min()}..{rows.max()}; accepted is 0..{count - 1}")
    return rows


def checked_nominal(path: str, nominal: np.ndarray | None, features: np.ndarray) -> np.ndarray | None:
    """Which columns are nominal: a boolean a column, and none for images."""
    if nominal is None:
        return None
    if nominal.dtype != bool or nominal.shape != features.shape[1:2] or (features.ndim == 4 and nominal.any()):
        raise ValueError(
            f"path: nominal in {path} has dtype {nominal.dtype}, shape {nominal.shape}; "
            f"accepted is bool, {features.shape[1:2]}, with X a table"
        )
    return nominal
