"""Features as whole numbers in their order: what the search for splits works on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

FEW = 4
"""Whole numbers are counted, not sorted, where their range is at most so many times the number of rows."""


@dataclass(frozen=True)
class Codes:
    """The code of each row by each feature: values in one code are not told apart, higher values have higher codes.

    Exact, every value has a code of its own; in bins, a code is a range of values with about equal weight. A value that
    is missing has the code after the last.
    """

    codes: Ints
    """``(D, M)``."""
    counts: Ints
    """``(D)``: how many codes a feature has."""
    lower: tuple[Floats, ...]
    """The smallest value in each code."""
    upper: tuple[Floats, ...]
    """The largest value in each code."""
    missing: bool
    """Whether any value is missing."""
    dtype: np.dtype[np.floating]
    """Of the features, in which thresholds are compared."""

    @property
    def features(self) -> int:
        """``D``."""
        return len(self.codes)

    @property
    def rows(self) -> int:
        """``M``."""
        return int(self.codes.shape[1])

    @cached_property
    def order(self) -> Ints:
        """``(D, M)``: the rows in the order of their codes, sorted once."""
        return np.stack([ordered(codes, int(count) + 1) for codes, count in zip(self.codes, self.counts, strict=True)])

    @cached_property
    def starts(self) -> Ints:
        """``(D, B + 2)``: where each code begins in the order, that of the missing rows last, and where it ends."""
        size = int(self.counts.max(initial=0)) + 1
        sizes = np.stack([np.bincount(codes, minlength=size) for codes in self.codes])
        return np.concatenate([np.zeros((self.features, 1)), sizes.cumsum(1)], 1).astype(np.int32)

    @cached_property
    def ends(self) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """The smallest and the largest values of all codes, one feature after the other, and where each begins."""
        first = np.concatenate([[0], np.cumsum(self.counts.astype(np.int64) + 1)])
        none = np.full(1, np.inf)
        lower, upper = (
            np.concatenate([part for end in ends for part in (end, none)]) for ends in (self.lower, self.upper)
        )
        return lower, upper, first

    def thresholds(self, features: Ints, below: Ints, above: Ints) -> Floats:
        """Between the codes of each feature, the midpoint, as `midpoint` has it; infinite where no code is above."""
        lower, upper, first = self.ends
        low, high = upper[first[features] + below], lower[first[features] + above]
        middle = (low / 2 + high / 2).astype(self.dtype).astype(np.float64)
        return np.asarray(np.where((middle < high) & (middle >= low) | np.isinf(high), middle, low))

    def take(self, features: NDArray[np.intp]) -> Codes:
        """Of some features."""
        lower, upper = ([end[i] for i in features] for end in (self.lower, self.upper))
        counts, codes = self.counts[features], self.codes[features]
        return Codes(codes, counts, tuple(lower), tuple(upper), bool((codes == counts[:, None]).any()), self.dtype)

    def threshold(self, feature: int, below: int, above: int) -> float:
        """Between two codes, the midpoint; infinite where no code is above."""
        if above >= self.counts[feature]:
            return float("inf")
        return midpoint(self.upper[feature][below], self.lower[feature][above], self.dtype)


def ordered(codes: Ints, size: int) -> Ints:
    """The rows in the order of their codes, which are below ``size``; those of one code as they come."""
    narrow = codes.astype(np.uint8 if size <= 1 << 8 else np.uint16) if size <= 1 << 16 else codes
    # sorted by its digits, in linear time
    return np.argsort(narrow, kind="stable").astype(np.int32)


def midpoint(low: float, high: float, dtype: np.dtype[np.floating]) -> float:
    """Halfway between two values, in the features' dtype: the lower of them where that rounds up to the higher."""
    middle = float(dtype.type(float(low) / 2 + float(high) / 2))
    return middle if low <= middle < high else float(low)


def encode(features: NDArray[np.floating], bins: int | None = None, weight: Floats | None = None) -> Codes:
    """The codes of features ``(M, D)``: of every value its own, or at most so many ``bins`` of about equal weight."""
    rows, width = features.shape
    codes = np.empty((width, rows), np.int32)
    counts = np.empty(width, np.int32)
    lower, upper = [], []
    missing = False
    for number, column in enumerate(np.ascontiguousarray(features.T)):
        known = ~np.isnan(column)
        if known.all():
            values, inverse = distinct(column)
        else:
            missing = True
            values, inverse = np.empty(0, column.dtype), np.empty(rows, np.int32)
            if known.any():
                values, inverse[known] = distinct(column[known])
            inverse[~known] = len(values)
        ends = values, values
        if bins is not None and len(values) > bins:
            bin_of, first = in_bins(inverse, len(values), bins, weight)
            inverse = bin_of[inverse]
            ends = values[first], values[np.append(first[1:], len(values)) - 1]
        codes[number], counts[number] = inverse, len(ends[0])
        lower.append(ends[0].astype(np.float64))
        upper.append(ends[1].astype(np.float64))
    return Codes(codes, counts, tuple(lower), tuple(upper), missing, features.dtype)


def distinct(column: NDArray[np.floating]) -> tuple[NDArray[np.floating], Ints]:
    """The values of a column in order, and where each row's stands among them."""
    low, high = float(column.min()), float(column.max())  # whose difference may overflow in the column's precision
    if high - low <= FEW * len(column) and abs(low) < 1 << 31 and abs(high) < 1 << 31:
        whole = column.astype(np.int64)
        if (whole.astype(column.dtype) == column).all():
            whole -= int(low)
            present = np.bincount(whole) > 0
            rank = np.cumsum(present, dtype=np.int32) - 1
            return (np.flatnonzero(present) + int(low)).astype(column.dtype), rank.take(whole)
    order = np.argsort(column)
    values = column[order]
    new = np.empty(len(values), bool)
    new[0] = True
    np.not_equal(values[1:], values[:-1], out=new[1:])
    inverse = np.empty(len(values), np.int32)
    inverse[order] = np.cumsum(new, dtype=np.int32) - 1
    return values[new], inverse


def in_bins(ranks: Ints, values: int, bins: int, weight: Floats | None) -> tuple[Ints, NDArray[np.intp]]:
    """The bin of each value (and of a missing one the code after the last), and the first value of each bin."""
    mass = np.bincount(ranks, weight, minlength=values)[:values]
    middle = mass.cumsum() - mass / 2
    of_value = np.minimum(middle * (bins / mass.sum()), bins - 1).astype(np.int32)
    first = np.flatnonzero(np.diff(of_value, prepend=-1))
    bin_of = np.cumsum(np.diff(of_value, prepend=-1) > 0, dtype=np.int32) - 1
    return np.append(bin_of, np.int32(len(first))).astype(np.int32), first
