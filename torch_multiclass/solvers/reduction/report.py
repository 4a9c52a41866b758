"""How a reduction went, column by column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch_multiclass.decoders.base import Decoder
from torch_multiclass.scorers.base import Scorer
from torch_multiclass.solvers.report import Report

Column = tuple[Scorer, Any]
"""A binary scorer, and its learner's report."""


@dataclass(frozen=True, kw_only=True)
class ColumnsReport(Report):
    """How a reduction ended.

    Reference: Allwein, Schapire and Singer (2000), section 3.

    Example:
        >>> import torch, torch_multiclass as tm
        >>> reduction = tm.solvers.CodedReduction(tm.codes.one_vs_one(3), tm.solvers.BinaryLeastSquares())
        >>> report = reduction.fit(torch.eye(3), torch.arange(3)).report
        >>> len(report.columns), report.idle, report.failed
        (3, [], {})
    """

    decoder: Decoder
    """Reads the scores: the one that was asked for, or the loss-based one of the learner's loss."""
    columns: list[Any]
    """The learner's report of each column; None where it gives none, or the column was not fitted."""
    idle: list[int]
    """Columns whose rows have one sign, or none: their margin is 0."""
    failed: dict[int, str]
    """Columns whose learner failed, and why: their margin is 0."""
    unfinished: list[int]
    """Columns that an interrupt has left; their margin is 0."""
    fits: dict[int, Column] = field(repr=False)
    """The binary scorers that there are, by column (single call: by 0); for `fit(resume=)`."""
    origin: Mapping[str, str] = field(repr=False)
    """The rows, the code, the call and the learner that they are of, each option by its name."""
