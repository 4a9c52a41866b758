"""What every solver gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from torch import Tensor, nn

R = TypeVar("R")


class Fit(tuple[nn.Module, R], Generic[R]):
    """What was trained, and how it went: ``scorer, report = solver.fit(features, target)``.

    A pair with names; not a `NamedTuple`, which can be generic from Python 3.11 on only.

    Example:
        >>> import torch
        >>> from torch_multiclass.solvers import BinaryLeastSquares
        >>> fit = BinaryLeastSquares().fit(torch.tensor([[1.0], [-1.0]]), torch.tensor([1, -1]))
        >>> fit.scorer, fit.report.converged
        (LinearScorer(in_features=1, num_classes=1, bias=False), True)
    """

    __slots__ = ()

    def __new__(cls, scorer: nn.Module, report: R) -> Fit[R]:
        """A scorer and a report."""
        return super().__new__(cls, (scorer, report))

    def __getnewargs__(self) -> tuple[nn.Module, R]:  # for pickle and deepcopy
        return self[0], self[1]

    def __repr__(self) -> str:
        return f"Fit(scorer={self.scorer!r}, report={self.report!r})"

    @property
    def scorer(self) -> nn.Module:
        """What was trained."""
        return self[0]

    @property
    def report(self) -> R:
        """How it went."""
        return self[1]


class Step(NamedTuple):
    """One measurement on the way."""

    iteration: int
    seconds: float
    primal: float
    dual: float


@dataclass(frozen=True)
class Report:
    """How a certified solver ended.

    ``primal`` is the objective at the scorer returned, with its weights as they are stored, ``dual`` a lower bound on
    every scorer's objective from a feasible dual point, both computed in float64; so the scorer is within ``gap`` of
    the optimum, whatever happened.

    Shape:
        support ``(S)``, alpha ``(S, K)``; weight ``(K, D)`` of a linear scorer, ``(N, K)`` of a kernel machine.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.3.1 and appendix B, for the dual
    problem and weak duality.
    """

    primal: float
    dual: float
    gap: float
    """``(primal - dual) / max(1, |primal|)``."""
    converged: bool
    """Whether the gap reached the tolerance."""
    interrupted: bool
    """Whether the fit was ended from the keyboard."""
    iterations: int
    """Passes over the rows, Newton steps included."""
    seconds: float
    """Wall-clock time."""
    history: list[Step] = field(repr=False)
    """The measurements on the way, in the working precision."""
    support: Tensor = field(repr=False)
    """``(S)``: the rows with a multiplier that is not zero, the support vectors."""
    alpha: Tensor = field(repr=False)
    """``(S, K)``: their multipliers, float64; ``sum_i alpha_i Phi(x_i)`` attains ``dual``. For a warm start."""
    weight: Tensor = field(repr=False)
    """``(K, D)``, the scorer's weights with its bias last, or ``(N, K)``, the coefficients of all rows. For a warm
    start."""
    C: float = field(repr=False)
    """What the multipliers belong to."""
    rows: int = field(repr=False)
    """How many rows there were."""

    @property
    def support_vectors(self) -> int:
        """How many rows are support vectors."""
        return len(self.support)


def relative_gap(primal: float, dual: float) -> float:
    """``(primal - dual) / max(1, |primal|)``."""
    return (primal - dual) / max(1.0, abs(primal))
