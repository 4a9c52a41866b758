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
    """How any solver ended.

    Reference: the record that each solver returns, whose own sources are with it.

    Example:
        >>> import torch
        >>> from torch_multiclass.solvers import Perceptron
        >>> report = Perceptron().fit(torch.eye(3), torch.arange(3)).report
        >>> isinstance(report, Report), report.iterations, report.interrupted
        (True, 2, False)
    """

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

    The two sides have points of their own: ``alpha`` is feasible (of the Crammer-Singer machine
    ``sum_l alpha_{il} = 0`` and ``alpha_{il} <= C [l = y_i]``, ``C`` times the row's weight) and has the value
    ``dual``; ``weight`` is the scorer's and has the value ``primal``. They meet only at the optimum, so that a machine
    may have more rows with a coefficient than there are support vectors. With ``binary=True`` ``alpha`` is signed and
    ``(S, 1)``: ``0 <= alpha_i y_i <= C``, and ``dual = sum_i alpha_i y_i - ½ |sum_i alpha_i x_i|^2``.

    Shape:
        support ``(S)``, alpha ``(S, K)``; weight ``(K, D)`` of a linear scorer, ``(K, D + 1)`` with its bias last,
        ``(M, K)`` of a kernel machine of ``M`` rows that count.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.3.1 and appendix B, for the dual
    problem and weak duality.

    Example:
        Both sides by hand, of the Crammer-Singer machine with a linear kernel and the zero-one cost:

        >>> import torch
        >>> from torch_multiclass.solvers import DualSVM
        >>> x, y = torch.randn(30, 4, generator=torch.Generator().manual_seed(0)).double(), torch.arange(30) % 3
        >>> scorer, report = DualSVM(C=0.5).fit(x, y)
        >>> f, w = scorer(x), scorer.weight
        >>> xi = (1 - torch.nn.functional.one_hot(y, 3) + f - f.gather(1, y[:, None])).amax(1)
        >>> primal = 0.5 * (w * w).sum() + 0.5 * xi.sum()
        >>> alpha, rows = report.alpha, report.support
        >>> v = alpha.T @ x[rows]
        >>> dual = -alpha.sum() + alpha.gather(1, y[rows, None]).sum() - 0.5 * (v * v).sum()
        >>> bool((primal - report.primal).abs() < 1e-9), bool((dual - report.dual).abs() < 1e-9)
        (True, True)

    Example:
        >>> import torch
        >>> from torch_multiclass.solvers import DualSVM
        >>> report = DualSVM(tol=1e-4).fit(torch.eye(3), torch.arange(3)).report
        >>> report.dual <= report.primal, report.gap <= 1e-4, report.converged
        (True, True, True)
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
