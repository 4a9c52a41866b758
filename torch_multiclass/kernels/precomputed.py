"""Kernels whose values are given in place of features."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.kernels.kernel import NAMES, Kernel

_ROWS = 1024  # compared at a time
_SYMMETRIC = 1e-5


class Precomputed(Kernel):
    r"""``K(x, x_i)`` read from the features: row ``x`` holds its kernel values against all ``N`` training rows.

    A solver with ``kernel="precomputed"`` is fitted on the Gram matrix ``(N, N)`` of its rows, and its scorer predicts
    from the rows ``(*, N)`` of a Gram matrix against them; columns of no support vector are not read.

    Args:
        columns: which training rows the points on the right are, ``(B)``; by default all, in order.

    Shape:
        left ``(A, N)`` and right ``(B, N)``, one row for each of the columns, to ``(A, B)``.

    Raises:
        ValueError: points on the right that are not as many as the columns.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, chapter 6.

    Example:
        >>> import torch
        >>> from torch_multiclass.solvers import DualSVM
        >>> x, y = torch.tensor([[0.0, 1.0], [1.0, 0.0], [-1.0, -1.0], [0.2, 1.1]]), torch.tensor([0, 1, 2, 0])
        >>> scorer, report = DualSVM(C=10.0, kernel="precomputed").fit(x @ x.mT, y)
        >>> new = torch.tensor([[0.1, 2.0]])
        >>> scorer(new @ x.mT).argmax(1), report.converged
        (tensor([0]), True)
    """

    any_dtype = True
    columns: Tensor | None

    def __init__(self, columns: Tensor | None = None) -> None:
        super().__init__()
        if columns is not None:
            check.class_indices("columns", columns)
            if columns.ndim != 1:
                raise ValueError(f"columns: got shape {tuple(columns.shape)}; accepted is (B,), training rows")
            columns = columns.long()
        self.register_buffer("columns", columns)

    def at(self, rows: Tensor) -> Precomputed:
        """The values against these of the points only."""
        return Precomputed(rows if self.columns is None else self.columns.to(rows.device)[rows])

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """The columns of ``left`` that the points are."""
        for name, points in (("left", left), ("right", right)):
            self._check(name, points)
        width = left.shape[-1] if self.columns is None else len(self.columns)
        check.shape("right", right, (width, *left.shape[1:]), "a row for each of the columns")
        return left if self.columns is None else left.index_select(1, self.columns)

    def diagonal(self, features: Tensor) -> Tensor:
        """``K(x_i, x_i)`` of the first training rows, in order."""
        self._check("features", features)
        columns = torch.arange(len(features), device=features.device) if self.columns is None else self.columns
        if len(columns) < len(features) or len(features) > features.shape[1]:
            raise ValueError(
                f"features: got {len(features)} rows of {features.shape[1]} values; accepted are no more rows than "
                "columns, as in a Gram matrix"
            )
        return features.gather(1, columns[: len(features), None]).squeeze(1)

    def _check(self, name: str, points: Tensor) -> None:
        """Raise unless these are rows of a Gram matrix that has the columns."""
        check.floating(name, points)
        if points.ndim != 2:
            raise ValueError(f"{name}: got shape {tuple(points.shape)}; accepted is (A, N), rows of a Gram matrix")
        columns = self.columns
        if columns is not None and columns.numel() and check.values_readable(columns):
            low, high = int(columns.min()), int(columns.max())
            if low < 0 or high >= points.shape[1]:
                raise ValueError(
                    f"{name}: got {points.shape[1]} values a row; accepted are more than {high}, for the columns "
                    f"{low} to {high}"
                )

    @staticmethod
    def check_square(features: Tensor, rows: Tensor, given: int) -> None:
        """Raise unless these are the ``rows`` of a symmetric matrix ``(given, given)``."""
        if features.shape[1] != given:
            raise ValueError(
                f"features: got {given} rows of {features.shape[1]} values, with kernel='precomputed'; accepted is "
                f"their Gram matrix, ({given}, {given})"
            )
        own = features if len(rows) == given else features.index_select(1, rows)
        for start in range(0, len(own), _ROWS):
            block, mirrored = own[start : start + _ROWS], own[:, start : start + _ROWS].mT
            if not bool((block - mirrored).abs().amax() <= _SYMMETRIC * own.abs().amax()):
                raise ValueError(
                    "features: are no symmetric matrix; accepted with kernel='precomputed' is a symmetric Gram matrix"
                )

    def extra_repr(self) -> str:
        """Shown by ``repr``."""
        return "" if self.columns is None else f"columns={len(self.columns)}"


NAMES["precomputed"] = Precomputed
