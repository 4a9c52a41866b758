"""The rows of a reduction: what the code says of each in each column, and the instances of a single call."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.kernels.gram import available_bytes
from torch_multiclass.ops.sparse_rows import is_sparse, take_rows
from torch_multiclass.scorers.columns import with_attribute
from torch_multiclass.solvers.problem import Problem, RowWeights, check_rows, one_label

_MUCH = 1 << 28  # bytes of instances that are said on a terminal without being asked for

Instances = tuple[Tensor, Tensor, "Tensor | None"]
"""Features, signs and weights."""


@dataclass(frozen=True)
class ColumnRows(Problem):
    """The rows that count, with what the code says of each in each column.

    Shape:
        signs ``(M, L)``, int8.
    """

    signs: Tensor
    weighted: bool
    """Whether row weights were given."""
    origin: Mapping[str, str]
    """What the columns are fitted from and by, as `origin_of` describes it."""

    @property
    def idle(self) -> list[int]:
        """The columns whose rows have one sign, or none."""
        both = (self.signs > 0).any(0) & (self.signs < 0).any(0)
        return (~both).nonzero().flatten().tolist()

    def of_column(self, column: int, gram: bool = False) -> Instances:
        """The rows that a column asks; of a Gram matrix all that were given, those not asked with the weight 0."""
        signs = self.signs[:, column]
        asked, features = signs != 0, self.features
        if gram:
            return self.all_given(features), self.all_given(signs.long()), self.all_given(self.weight * asked)
        rows = take_rows(features, asked.nonzero().squeeze(1)) if is_sparse(features) else features[asked]
        return rows, signs[asked].long(), self.weight[asked] if self.weighted else None

    def all_given(self, values: Tensor) -> Tensor:
        """With 0 for the rows that do not count."""
        if len(values) == self.given:
            return values
        return values.new_zeros(self.given, *values.shape[1:]).index_copy_(0, self.positions, values)

    def with_columns(self, interaction: bool, limit: int | None, progress: bool | None) -> Instances:
        """The pairs of a row and a column that asks it, the column being an attribute; their size is said before."""
        signs, columns = self.signs.clone(), self.signs.shape[1]
        signs[:, self.idle] = 0
        width = self.features.shape[1]
        width = width * columns if interaction else width + columns
        pairs = int((signs != 0).sum())
        needed = pairs * width * self.features.element_size()
        size = f"{pairs} rows of {width} features, {needed} bytes ({needed / 2**30:.3g} GiB)"
        free = available_bytes(self.features.device) if limit is None else limit
        if needed > free:
            raise MemoryError(
                f"call: 'single' makes {size}, and {free} bytes are free; accepted is what fits, or call='multi'"
            )
        terminal = bool(getattr(sys.stderr, "isatty", bool)())
        if progress or (progress is None and terminal and needed >= _MUCH):
            print(f"CodedReduction: a single call makes {size}", file=sys.stderr)
        row, column = signs.nonzero(as_tuple=True)
        instances = with_attribute(self.features[row], column, columns, interaction)
        return instances, signs[row, column].long(), self.weight[row] if self.weighted else None


def labelled_rows(
    features: Tensor, target: Tensor, weight: RowWeights | None, classes: int, *, missing: bool, sparse: bool
) -> Problem:
    """The rows that count, with classes ``0..K-1``, two of them at least; NaN where values may be ``missing``."""
    check_rows(features, target, sparse=sparse)
    if target.dim() != 1:
        raise ValueError(f"target: got shape {tuple(target.shape)}; accepted is (N,), a class for each row")
    rows = Problem.labelled(features, target, weight, missing, sparse).some()
    check.label_range("target", rows.labels, classes, validate_args=True)
    if bool((rows.labels == rows.labels[0]).all()):
        raise one_label(int(rows.labels[0]))
    return rows


def signs_of(code: Tensor, labels: Tensor) -> Tensor:
    """``M(y_i, s)``, ``(M, L)``."""
    return code.to(labels.device)[labels]


def present(labels: Tensor, classes: int) -> Tensor:
    """Which classes have a row, ``(K,)``."""
    return torch.bincount(labels, minlength=classes) > 0
