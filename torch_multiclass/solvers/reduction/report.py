"""How a reduction went, column by column, and where finished columns are kept."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from pickle import PicklingError
from typing import Any

import torch

from torch_multiclass.decoders.base import Decoder
from torch_multiclass.scorers.base import Scorer
from torch_multiclass.solvers.reduction.origin import check_origin
from torch_multiclass.solvers.report import Report

Column = tuple[Scorer, Any]
"""A binary scorer, and its learner's report."""


@dataclass(frozen=True, kw_only=True)
class ColumnsReport(Report):
    """How a reduction ended.

    Reference: Allwein, Schapire and Singer (2000), section 3.
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


class Folder:
    """A file for each finished column."""

    def __init__(self, path: str | os.PathLike[str], origin: Mapping[str, str]) -> None:
        self.path, self.origin = Path(path), origin
        self.path.mkdir(parents=True, exist_ok=True)

    def load(self) -> dict[int, Column]:
        """The columns that are there."""
        found = {}
        for file in sorted(self.path.glob("column_*.pt")):
            origin, column, fit = torch.load(file, weights_only=False)
            check_origin(origin, self.origin, str(self.path))
            found[column] = fit
        return found

    def keep(self, column: int, fit: Column) -> None:
        """Write one: whole, or not at all."""
        file = self.path / f"column_{column:06d}.pt"
        new = file.with_suffix(f".{os.getpid()}")
        try:
            torch.save((self.origin, column, fit), new)
        except (AttributeError, TypeError, PicklingError) as problem:
            new.unlink(missing_ok=True)
            raise ValueError(
                f"resume: column {column} cannot be written: {problem}; accepted are learners whose scorers and "
                "reports can be pickled, or no folder"
            ) from problem
        os.replace(new, file)
