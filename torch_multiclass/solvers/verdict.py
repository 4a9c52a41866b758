"""Whether primal and dual prove what was asked for, and what is said where they do not."""

from __future__ import annotations

from typing import Protocol

from torch_multiclass.solvers.monitor import warn

_ROUNDING = 1e-6  # of the primal: by more no lower bound exceeds it


class Proving(Protocol):
    """A solver with a certificate."""

    C: float
    tol: float
    wider: str
    """What would help where the gap stays large."""
    proof: str
    """What the proof takes for granted."""


def proves(gap: float, tol: float) -> bool:
    """Whether a relative gap is within the tolerance, and not below 0 by more than rounding: that proves nothing."""
    return -_ROUNDING <= gap <= tol


def warn_of_gap(solver: Proving, passes: int, gap: float, zero: bool) -> None:
    """Say that the gap is larger than asked for or below 0, or else that the scorer is ``zero``."""
    name = type(solver).__name__
    if gap < -_ROUNDING:
        warn(
            f"{name}: the dual exceeds the primal (a gap of {gap:.2e}), as no lower bound does, and proves nothing; "
            f"accepted is {solver.proof}"
        )
    elif not gap <= solver.tol:
        warn(
            f"{name}: the gap is {gap:.2e} after {passes} passes, above tol={solver.tol:g}; "
            f"a larger max_passes, scaled features or {solver.wider} would help"
        )
    elif zero:
        warn(
            f"{name}: the scorer is zero, which at C={solver.C:g} is within tol={solver.tol:g} of the optimum; "
            "a larger C or a smaller tol would help"
        )
