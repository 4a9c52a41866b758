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
        self._native: dict[int, native.DenseBest] = {}  # of each criterion
        self._masses: dict[int, Floats] = {}  # of all rows, up to each code

    def best(self, channels: Floats, criterion: int, rows: NDArray[np.intp] | None = None) -> Cut | None:
        """The best cut; None where no question has a row on either side.

        Of equal ones the lowest feature, then the lowest threshold, then missing values as yes.

        Shape:
            channels ``(M, C)``, float64, or as the layout has them; rows ``(n)``, increasing.
        """
        best = self._best(channels, criterion, rows)
        if best is None:
            return None
        feature, low, high, yes, gain, sums = best
        if not self._any_missing(feature, rows):
            yes = self._heavier(feature, low, rows)
        return Cut(feature, self.codes.threshold(feature, low, high), yes, gain, low, sums)

    def _best(self, channels: Floats, criterion: int, rows: NDArray[np.intp] | None) -> native.Best | None:
        """The best cut, as codes have it."""
        library, layout = _native.library(), self.layout or Layout(channels.shape[1])
        if library is None:
            return self._by_torch(parts(layout.wide(channels), criterion), criterion, rows)
        if criterion not in self._native:
            self._native[criterion] = native.DenseBest(library, self.codes, layout, criterion)
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

    def _by_torch(self, channels: Floats, criterion: int, rows: NDArray[np.intp] | None) -> native.Best | None:
        """The best cut, by sums from both ends over the codes, of all that is to be summed."""
        cells, width = self._cells
        if rows is None:
            present, barred = self._all_rows
        else:
            kept = np.zeros((self.codes.rows, 1))
            kept[rows] = 1
            channels = channels * kept
            present, barred = self._possible((cells @ torch.from_numpy(kept)).view(-1, width))
        sums = (cells @ torch.from_numpy(channels)).view(self.codes.features, width, -1).movedim(2, 0).contiguous()
        known, missing = sums[..., :-1], sums[..., -1:] if self.codes.missing else None
        ends = known.cumsum(-1), known.flip(-1).cumsum(-1)  # from the first code on, and from the last one back
        yes, no = impurity(ends[0], criterion), _above(ends[1], None, criterion)
        if missing is None:
            gain = (yes[:, -1:] - yes - no).masked_fill_(barred[0], -torch.inf)[..., None]
        else:
            with_yes, with_no = impurity(ends[0] + missing, criterion), _above(ends[1], missing, criterion)
            parted = with_yes[:, -1:, None] - torch.stack([with_yes + no, yes + with_no], 2)
            gain = parted.masked_fill_(torch.stack(barred, 2), -torch.inf)
        found = _first_best(gain.numpy(), present, self.codes.counts)
        if found is None:
            return None
        feature, below = found.feature, found.below
        made = torch.zeros(2, len(sums), dtype=sums.dtype)
        made[0] = ends[0][:, feature, below]
        if below < width - 2:
            made[1] = ends[1][:, feature, width - 3 - below]
        if missing is not None:
            made[0 if found.side else 1] += missing[:, feature, 0]
        return found._replace(sums=made.numpy())

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
    """``G`` over what is summed ``(C, *)``."""
    if criterion == EDGE:
        return sums.abs().sum(0).mul_(-0.5)
    positive, negative = sums.chunk(2)
    return (positive * negative).sqrt_().sum(0).mul_(2)


def _above(back: Tensor, more: Tensor | None, criterion: int) -> Tensor:
    """``G`` of all that comes after each code, of sums ``(C, D, B)`` from the last code back, and ``more`` to each."""
    sides = impurity(back if more is None else back + more, criterion)
    made = torch.empty_like(sides)
    made[:, :-1] = sides[:, :-1].flip(1)
    made[:, -1] = 0 if more is None else impurity(more[..., 0], criterion)
    return made


def _first_best(gain: Floats, present: NDArray[np.bool_], counts: NDArray[np.int32]) -> native.Best | None:
    """The first of the best cuts ``gain (D, B, sides)``, and the next code above it that has rows; without the sums."""
    features, _, sides = gain.shape
    flat = gain.reshape(features, -1)
    best = flat.max(1, initial=-np.inf)
    most = best.max(initial=-np.inf)
    if most == -np.inf:
        return None
    feature = int((best >= most - TIE).argmax())
    below, side = divmod(int((flat[feature] >= best[feature] - TIE).argmax()), sides)
    later = np.flatnonzero(present[feature, below + 1 :])
    above = below + 1 + int(later[0]) if len(later) else int(counts[feature])
    return native.Best(feature, below, above, side == 0, float(best[feature]), flat)
