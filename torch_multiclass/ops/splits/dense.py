r"""The best cut of rows that carry a sum for each channel: what boosting asks for at every round.

Each row has numbers ``V_ic = D(i, c) y_ic`` in ``C`` channels. A question sends it to one of two sides, and is as good
as it lowers ``sum_sides G(side)``:

- `EDGE`: ``G = -½ sum_c |S_c|``, ``S`` the sums over the rows of the side. With on each side the better vote for each
  label, what is lowered is the error, and the edge ``1 - 2 error`` is ``sum |S_c|``.
- `NORMALISER`: ``G = 2 sum_c √(P_c N_c)``, ``P`` the sums of the positive numbers, ``N`` the sizes of those of the
  negative ones. What is lowered is the ``Z`` of confidence-rated votes.
"""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torch_multiclass.ops import _native
from torch_multiclass.ops.splits import native
from torch_multiclass.ops.splits.codes import Codes, Floats
from torch_multiclass.ops.splits.layout import EDGE, NORMALISER, Layout, parts

__all__ = ["EDGE", "NORMALISER", "TIE", "Cut", "DenseSearch"]

TIE = 1e-12
"""Values less far apart are equal."""


class Cut(NamedTuple):
    """A question ``x_feature <= threshold`` and how much it lowers the sum over the sides."""

    feature: int
    threshold: float
    missing: bool
    """Whether a missing value counts as yes."""
    gain: float
    below: int
    """The last code that counts as yes."""
    sums: Floats
    """``(2, C)``: the sums over the rows on the side of yes, and of no; with the normaliser ``P``, then ``N``."""


class DenseSearch:
    """Finds the best cut of all rows, or of some, for any channels; what depends on the features only is made once.

    Args:
        codes: of the features.
        weight: ``(M)``, of the rows, 1 by default: where none of them misses the feature, a missing value goes with the
            heavier side, or to yes.
        layout: of the channels; None for all columns of every row.
    """

    def __init__(self, codes: Codes, weight: Floats | None = None, layout: Layout | None = None) -> None:
        self.codes, self.weight, self.layout = codes, weight, layout
        self._native: dict[int, native.DenseCuts] = {}  # of each criterion
        self._masses: dict[int, Floats] = {}  # of all rows, up to each code

    def best(self, channels: Floats, criterion: int, rows: NDArray[np.intp] | None = None) -> Cut | None:
        """The best cut; None where no question has a row on either side.

        Of equal ones the lowest feature, then the lowest threshold, then missing values as yes.

        Shape:
            channels ``(M, C)``, float64, or as the layout has them; rows ``(n)``, increasing.
        """
        gain, below, above, side, sums = self._cuts(channels, criterion, rows)
        best = gain.max(initial=-np.inf)
        if best == -np.inf:
            return None
        feature = int(np.argmax(gain >= best - TIE))
        low, high, yes = int(below[feature]), int(above[feature]), bool(side[feature])
        if not self._any_missing(feature, rows):
            yes = self._heavier(feature, low, rows)
        threshold = self.codes.threshold(feature, low, high)
        return Cut(feature, threshold, yes, float(gain[feature]), low, np.array(sums[feature]).reshape(2, -1))

    def _cuts(self, channels: Floats, criterion: int, rows: NDArray[np.intp] | None) -> native.Cuts:
        """The best cut of each feature."""
        library, layout = _native.library(), self.layout or Layout(channels.shape[1])
        if library is None:
            return self._by_torch(parts(layout.wide(channels), criterion), criterion, rows)
        if criterion not in self._native:
            self._native[criterion] = native.DenseCuts(library, self.codes, layout, criterion)
        return self._native[criterion](channels, rows)

    def yes(self, cut: Cut, rows: NDArray[np.intp] | None = None) -> NDArray[np.bool_]:
        """Which rows a cut sends to its first side."""
        codes = self.codes.codes[cut.feature] if rows is None else self.codes.codes[cut.feature, rows]
        if not self.codes.missing:
            answer: NDArray[np.bool_] = codes <= cut.below
            return answer
        return np.where(codes == self.codes.counts[cut.feature], cut.missing, codes <= cut.below)

    def _heavier(self, feature: int, below: int, rows: NDArray[np.intp] | None) -> bool:
        """Whether the first side weighs as much as the other or more."""
        if rows is None:
            if feature not in self._masses:
                self._masses[feature] = self._mass(feature).cumsum()
            mass = self._masses[feature]
        else:
            mass = self._mass(feature, rows).cumsum()
        return bool(2 * mass[below] >= mass[-1] * (1 - TIE))

    def _mass(self, feature: int, rows: NDArray[np.intp] | None = None) -> Floats:
        """How much the rows of each code weigh."""
        codes, weight = self.codes.codes[feature], self.weight
        if rows is not None:
            codes, weight = codes[rows], None if weight is None else weight[rows]
        return np.bincount(codes, weight).astype(np.float64)

    def _any_missing(self, feature: int, rows: NDArray[np.intp] | None) -> bool:
        if not self.codes.missing:
            return False
        codes = self.codes.codes[feature] if rows is None else self.codes.codes[feature, rows]
        return bool((codes == self.codes.counts[feature]).any())

    @cached_property
    def _cells(self) -> tuple[Tensor, int]:
        """``A (D (B + 1), M)``, sparse: ``A V`` sums over the rows of each code of each feature, the missing last."""
        codes = self.codes
        width = int(codes.counts.max(initial=1)) + 1
        place = np.where(codes.codes == codes.counts[:, None], width - 1, codes.codes)
        sizes = np.stack([np.bincount(line, minlength=width) for line in place])
        starts = np.concatenate([[0], sizes.ravel().cumsum()]).astype(np.int32)
        columns, ones = codes.order.ravel(), np.ones(place.size)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse ")
            made = torch.sparse_csr_tensor(
                torch.from_numpy(starts),
                torch.from_numpy(columns),
                torch.from_numpy(ones),
                size=(sizes.size, codes.rows),
                check_invariants=False,
            )
        return made, width

    def _by_torch(self, channels: Floats, criterion: int, rows: NDArray[np.intp] | None) -> native.Cuts:
        """The best cut of each feature, by sums from both ends over the codes, of all that is to be summed."""
        cells, width = self._cells
        if rows is None:
            present, barred = self._all_rows
        else:
            kept = np.zeros((self.codes.rows, 1))
            kept[rows] = 1
            channels = channels * kept
            present, barred = self._possible((cells @ torch.from_numpy(kept)).view(-1, width))
        sums = (cells @ torch.from_numpy(channels)).view(self.codes.features, width, -1).movedim(2, 0).contiguous()
        missing = sums[..., -1:]
        prefix, suffix = sums[..., :-1].cumsum(-1), later(sums[..., :-1])
        whole = impurity(prefix[..., -1:] + missing, criterion)
        options = []
        for left, bar in zip((True, False), barred, strict=False):
            yes, no = (prefix + missing, suffix) if left else (prefix, suffix + missing)
            gain = whole - impurity(yes, criterion) - impurity(no, criterion)
            options.append(gain.masked_fill_(bar, -torch.inf))
        found = _first_best(torch.stack(options, 2).numpy(), present, self.codes.counts)
        each, first = np.arange(self.codes.features), torch.from_numpy(found.side)
        yes = prefix[:, each, found.below] + missing[..., 0] * first
        no = suffix[:, each, found.below] + missing[..., 0] * ~first
        return found._replace(sums=torch.stack([yes, no]).movedim(2, 0).contiguous().numpy())

    @cached_property
    def _all_rows(self) -> tuple[NDArray[np.bool_], list[Tensor]]:
        """What is possible with all rows."""
        cells, width = self._cells
        return self._possible(cells.crow_indices().diff().double().view(-1, width))

    def _possible(self, sizes: Tensor) -> tuple[NDArray[np.bool_], list[Tensor]]:
        """Which codes have rows, of ``sizes (D, B + 1)`` rows a code, and which cuts ``(D, B)`` leave a side without.

        The latter with missing values as yes; where there are any, also with them as no.
        """
        present, absent = sizes[:, :-1] > 0, sizes[:, -1:]
        before, after = sizes[:, :-1].cumsum(1), later(sizes[:, :-1])
        barred = [~present | (before + absent == 0) | (after == 0), ~present | (before == 0) | (after + absent == 0)]
        return present.numpy(), barred if self.codes.missing else barred[:1]


def later(sums: Tensor) -> Tensor:
    """The sums over all later codes, added from the last one on, so that a sum over nothing is exactly zero."""
    after = torch.zeros_like(sums)
    after[..., :-1] = sums[..., 1:].flip(-1).cumsum(-1).flip(-1)
    return after


def impurity(sums: Tensor, criterion: int) -> Tensor:
    """``G(S)`` over the channels ``(C, *)``."""
    if criterion == EDGE:
        return -0.5 * sums.abs().sum(0)
    positive, negative = sums.chunk(2)
    return 2 * (positive * negative).sqrt_().sum(0)


def _first_best(gain: Floats, present: NDArray[np.bool_], counts: NDArray[np.int32]) -> native.Cuts:
    """For each feature the first of its best cuts ``gain (D, B, 2)``, and the next code above that has rows."""
    features, width, sides = gain.shape
    flat = gain.reshape(features, -1)
    best = flat.max(1, initial=-np.inf)
    first = np.argmax(flat >= best[:, None] - TIE, 1)
    below = first // sides
    later = present & (np.arange(width) > below[:, None])
    above = np.where(later.any(1), later.argmax(1), counts)
    return native.Cuts(best, below.astype(np.int32), above.astype(np.int32), first % sides == 0, gain)
