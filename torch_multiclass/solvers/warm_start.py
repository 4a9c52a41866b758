"""Reports of earlier fits, at which another begins."""

from __future__ import annotations

from typing import TypeVar

from torch_multiclass import checks as check
from torch_multiclass.solvers.base import Fit
from torch_multiclass.solvers.problem import Problem
from torch_multiclass.solvers.report import Certificate

C = TypeVar("C", bound=Certificate)


def report_of(warm_start: object, kind: type[C]) -> C | None:
    """Of a fit, its report; raise unless that is of the kind."""
    report = warm_start.report if isinstance(warm_start, Fit) else warm_start
    if report is not None and not isinstance(report, kind):
        raise TypeError(f"warm_start: got {check.came(warm_start)}; accepted is a Fit or its Report")
    return report


def check_same_rows(warm: Certificate, outputs: int, problem: Problem, own: int) -> None:
    """Raise unless it is of as many rows, and its outputs are as many as our own."""
    if warm.rows != problem.given or outputs != own:
        raise ValueError(
            f"warm_start: is of {warm.rows} rows and {outputs} outputs, but this fit has {problem.given} and {own}; "
            "accepted is the report of a fit of the same rows"
        )
