"""What the online learners work on: rows of features, dense or compressed, and what each of them asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.ops.online import Asked, Rows, Rule, State, visit
from torch_multiclass.scorers.chain import ChainScorer
from torch_multiclass.scorers.linear import LinearScorer
from torch_multiclass.solvers.problem import Problem
from torch_multiclass.solvers.space import linear_scorer

Features = Any
"""A dense tensor ``(N, D)``, a torch tensor of layout ``sparse_csr`` or a CSR matrix of SciPy."""

_BLOCK = 1 << 22  # products of compressed entries with weights at a time


@dataclass(frozen=True)
class Examples(Problem):
    """The rows that count, of a problem whose features may be compressed.

    Compressed rows stay whole, and ``features`` of the problem is then empty, of their dtype and on their device.
    """

    rows: Rows
    """On the CPU, contiguous."""
    asked: Asked
    visits: Tensor
    """Which of the rows count, on the CPU."""
    steps: Tensor
    """The weight of each of the rows, on the CPU."""

    @classmethod
    def of(cls, problem: Problem, compressed: Rows | None, asked: Callable[[Tensor | None], Asked]) -> Examples:
        """A problem with its rows, those that are compressed checked here.

        ``asked`` says what all the rows given ask for, or those of some numbers.
        """
        given = vars(problem)
        if compressed is None:
            rows = Rows(problem.features.cpu().contiguous(), problem.features.shape[1])
            return cls(
                **given,
                rows=rows,
                asked=asked(problem.positions),
                visits=torch.arange(len(rows.values)),
                steps=problem.weight.cpu(),
            )
        visits = problem.positions.cpu()
        check_finite(compressed, visits)
        steps = torch.zeros(problem.given, dtype=torch.float64)
        steps[visits] = problem.weight.cpu()
        return cls(**given, rows=compressed, asked=asked(None), visits=visits, steps=steps)

    sequential: ClassVar[bool] = False
    """Whether an example is a sequence."""

    def height(self, bias: bool) -> int:
        """How many weights a class has."""
        return self.rows.width + bias

    def visit(self, state: State, steps: Tensor, rule: Rule, bias: bool, order: Tensor) -> None:
        """Visit the rows of these numbers in turn."""
        visit(state, self.rows, self.asked, steps, rule, bias, order)

    def scores(self, weight: Tensor, bias: bool) -> Tensor:
        """``(n, K)``, float64: of the rows that count, under weights ``(K, height)`` on the CPU."""
        weight, constant = weight[:, : self.rows.width], weight[:, self.rows.width :].sum(1) if bias else 0.0
        values, _, offsets, columns = self.rows
        if offsets is None or columns is None:
            return values[self.visits].double() @ weight.mT + constant
        found = torch.zeros(len(offsets) - 1, len(weight), dtype=torch.float64)
        of_row = torch.repeat_interleave(torch.arange(len(found)), offsets.diff())
        size = max(1, _BLOCK // len(weight))
        for begin in range(0, len(values), size):
            part = slice(begin, begin + size)
            found.index_add_(0, of_row[part], values[part, None].double() * weight.mT[columns[part]])
        return found[self.visits] + constant

    def scorer(self, weight: Tensor, bias: bool) -> LinearScorer | ChainScorer:
        """The scorer of weights ``(K, height)``."""
        return linear_scorer(weight.to(self.features), bias)


def labels_asked(target: Tensor) -> Callable[[Tensor | None], Asked]:
    """That the class of each row be above all others."""

    def asked(rows: Tensor | None) -> Asked:
        labels = target.detach() if rows is None else target.detach()[rows]
        return Asked("labels", labels.cpu().long().contiguous())

    return asked


def opened(features: Features) -> tuple[Tensor, Rows | None]:
    """Dense features as they are; of compressed ones a stand-in ``(N, 1)`` for the number of rows, and the rows."""
    if isinstance(features, Tensor) and features.layout == torch.sparse_csr:
        check.floating("features", features, sparse=True)
        if features.ndim != 2:
            raise ValueError(f"features: got shape {tuple(features.shape)}; accepted is (N, D), one row an example")
        parts = (features.crow_indices(), features.col_indices(), features.detach().values())
        offsets, columns, values = (part.cpu() for part in parts)
        shape, device = features.shape, features.device
    elif not isinstance(features, Tensor) and getattr(features, "format", None) == "csr":
        values, offsets, columns = (
            torch.from_numpy(np.ascontiguousarray(part)) for part in (features.data, features.indptr, features.indices)
        )
        check.floating("features", values)
        shape, device = torch.Size(features.shape), values.device
    else:
        return features, None
    if shape[1] == 0:
        raise ValueError(f"features: got shape {tuple(shape)}; accepted is (N, D), at least one feature a row")
    values = values.to(torch.promote_types(values.dtype, torch.float32))
    rows = _ascending(Rows(values.contiguous(), shape[1], offsets.long().contiguous(), columns.long().contiguous()))
    return torch.zeros(shape[0], 1, dtype=values.dtype, device=device), rows


def _ascending(rows: Rows) -> Rows:
    """Columns in ascending order, those that stand twice in a row added up."""
    assert rows.offsets is not None
    assert rows.columns is not None
    ends = rows.offsets[:1].tolist() + rows.offsets[-1:].tolist()
    if ends != [0, len(rows.columns)] or bool((rows.offsets.diff() < 0).any()) or len(rows.columns) != len(rows.values):
        raise ValueError(
            f"features: have offsets of rows that do not ascend from 0 to {len(rows.values)}; accepted are those of a "
            "CSR matrix"
        )
    if len(rows.columns) and not 0 <= int(rows.columns.min()) <= int(rows.columns.max()) < rows.width:
        raise ValueError(f"features: have a column outside 0..{rows.width - 1}; accepted are {rows.width} columns")
    count = len(rows.offsets) - 1
    of_row = torch.repeat_interleave(torch.arange(count), rows.offsets.diff())
    places = of_row * rows.width + rows.columns
    if bool((places.diff() > 0).all()):
        return rows
    unique: Any = torch.unique
    places, back = unique(places, return_inverse=True)
    values = rows.values.new_zeros(len(places)).index_add_(0, back, rows.values)
    per_row = (places // rows.width).bincount(minlength=count)
    offsets = torch.cat([per_row.new_zeros(1), per_row.cumsum(0)])
    return Rows(values, rows.width, offsets, places % rows.width)


def check_finite(rows: Rows, visits: Tensor) -> None:
    """Raise where an entry of a compressed row that counts is not finite."""
    assert rows.offsets is not None
    bad = (~rows.values.isfinite()).nonzero().squeeze(1)
    where = torch.searchsorted(rows.offsets, bad, right=True) - 1
    where = where[torch.isin(where, visits)]
    if len(where):
        raise ValueError(f"features: row {int(where[0])} has an entry that is not finite; accepted are finite features")
