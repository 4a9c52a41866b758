"""How a fit went: plain records that come with every scorer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor


class Step(NamedTuple):
    """One measurement on the way."""

    iteration: int
    seconds: float
    primal: float
    dual: float


@dataclass(frozen=True, kw_only=True)
class Report:
    """How any solver ended."""

    iterations: int
    """Passes over the rows, Newton steps included; of `Pegasos` its steps."""
    seconds: float
    """Wall-clock time."""
    interrupted: bool
    """Whether the fit was ended from the keyboard."""


@dataclass(frozen=True, kw_only=True)
class Certificate(Report):
    """How a certified solver ended.

    ``primal`` is the objective at the scorer returned, with its weights as they are stored, ``dual`` a lower bound on
    every scorer's objective from a feasible dual point, both computed in float64; so the scorer is within ``gap`` of
    the optimum, whatever happened. It is never worse than the scorer that is zero.

    Shape:
        support ``(S)``, alpha ``(S, K)``; weight ``(K, D)`` of a linear scorer, ``(M, K)`` of a kernel machine of ``M``
        rows that count.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.3.1 and appendix B, for the dual
    problem and weak duality.
    """

    primal: float
    dual: float
    gap: float
    """``(primal - dual) / max(1, |primal|)``."""
    converged: bool
    """Whether the gap reached the tolerance."""
    history: list[Step] = field(repr=False)
    """The measurements on the way, in the working precision."""
    support: Tensor = field(repr=False)
    """``(S)``: which of the rows given have a multiplier that is not zero, the support vectors."""
    alpha: Tensor = field(repr=False)
    """``(S, K)``: their multipliers, float64; ``sum_i alpha_i Phi(x_i)`` attains ``dual``. For a warm start."""
    weight: Tensor = field(repr=False)
    """``(K, D)``, the scorer's weights with its bias last, or ``(M, K)``, the coefficients of all rows that count. For
    a warm start."""
    C: float = field(repr=False)
    """What the multipliers belong to."""
    rows: int = field(repr=False)
    """How many rows were given."""

    @property
    def support_vectors(self) -> int:
        """How many rows are support vectors."""
        return len(self.support)


def relative_gap(primal: float, dual: float) -> float:
    """``(primal - dual) / max(1, |primal|)``."""
    return (primal - dual) / max(1.0, abs(primal))
