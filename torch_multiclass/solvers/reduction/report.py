"""How a reduction went, column by column, and where finished columns are kept."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from torch_multiclass.decoders.base import Decoder
from torch_multiclass.scorers.base import Scorer
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
    digest: str = field(repr=False)
    """Of the rows, the code and the call that they are of."""


def digest_of(parts: Iterable[Tensor | str]) -> str:
    """A fingerprint."""
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            found.update(part.encode())
        else:
            found.update(f"{part.dtype}{tuple(part.shape)}".encode())
            found.update(part.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()


class Folder:
    """A file for each finished column."""

    def __init__(self, path: str | os.PathLike[str], digest: str) -> None:
        self.path, self.digest = Path(path), digest
        self.path.mkdir(parents=True, exist_ok=True)

    def load(self) -> dict[int, Column]:
        """The columns that are there."""
        found = {}
        for file in sorted(self.path.glob("column_*.pt")):
            digest, column, fit = torch.load(file, weights_only=False)
            check_digest(digest, self.digest, str(self.path))
            found[column] = fit
        return found

    def keep(self, column: int, fit: Column) -> None:
        """Write one: whole, or not at all."""
        file = self.path / f"column_{column:06d}.pt"
        new = file.with_suffix(f".{os.getpid()}")
        torch.save((self.digest, column, fit), new)
        os.replace(new, file)


def check_digest(given: str, own: str, where: str) -> None:
    """Raise where finished columns are of something else."""
    if given != own:
        raise ValueError(
            f"resume: {where} has columns of other rows, another code or another kind of learner; accepted are those "
            "of the same fit"
        )
