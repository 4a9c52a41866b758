r"""Hard margins: ``min ½ |w|^2`` with no loss at all, ``t_i(w) <= 0`` for every row, as the end of growing ``C``.

Whatever the ``C`` of a soft margin, its multipliers are feasible for the hard one, whose dual variables are a cone:
with ``c`` their cost and ``V`` their image, ``c^2 / (2 |V|^2)`` is the best dual value along them, so that no weight
separates the rows by a margin above ``|V| / c``. A weight whose rows all have the right sign is as feasible once it is
scaled. Where the two values meet, the machine is certified; where the bound on the margin falls to rounding, the rows
are not separable.

Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §5.2.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass.solvers.base import Fit
from torch_multiclass.solvers.certified import CertifiedSolver
from torch_multiclass.solvers.gap import GapMonitor
from torch_multiclass.solvers.problem import Problem
from torch_multiclass.solvers.report import Certificate, relative_gap
from torch_multiclass.solvers.space import Machine
from torch_multiclass.solvers.svm.duals import Hinge

_FIRST, _GROWTH, _LAST = 10.0, 10.0, 1e11  # C |Phi(x)|^2
_ABOVE = 1.5  # the largest multiplier to begin at
_MARGIN = 1e-5  # over the rows' length, below which they count as not separable
_ROUNDING = 1e-15
_ATTEMPTS = 4


class _Hard(NamedTuple):
    """What a soft margin says of the hard one."""

    weight: Tensor | None
    """Feasible; None where the rows are not separated."""
    primal: float
    dual: float
    stretch: float
    """Of the multipliers, at which the dual is the best."""


def hard_margin(
    solver: CertifiedSolver, problem: Problem, length: float, warm: Certificate | None = None
) -> Fit[Machine, Certificate]:
    """The fit of a solver of hinge losses whose ``C`` is infinite, to rows about ``length`` long.

    It begins where a fit that is ``warm`` has no multiplier at its bound, which from there on changes nothing.
    """
    with torch.no_grad():
        soft, passes = copy(solver), 0
        soft.C = _LAST / length**2
        space, strength = soft.space(problem, [_FIRST / length**2, soft.C]), _FIRST
        if warm is not None and warm.alpha.numel():
            strength = min(max(_FIRST, _ABOVE * float(warm.alpha.abs().max()) * length**2), _LAST / _GROWTH)
        while True:
            soft.C = strength / length**2
            monitor = soft.monitor(problem, space, warm)
            monitor.run(soft.steps(problem, monitor))
            monitor.settle()
            hard, passes = _hard(monitor), passes + monitor.passes
            gap = relative_gap(hard.primal, hard.dual)
            bound = 1 / math.sqrt(2 * hard.dual) if hard.dual > 0 else math.inf
            strength *= _GROWTH
            over = strength > _LAST or monitor.interrupted
            if hard.weight is None and (over or bound <= _MARGIN * length):
                if monitor.interrupted:
                    raise KeyboardInterrupt
                raise ValueError(
                    f"C: is inf, but no weight was found that separates the rows, and none does by a margin above "
                    f"{bound:.2g} (the rows are about {length:.2g} long); accepted are separable rows, or a finite C"
                )
            if hard.weight is not None and (over or gap <= solver.tol):
                break
            warm, space = soft.certificate(problem, monitor), monitor.space
        monitor.weight, monitor.primal, monitor.dual = hard.weight, hard.primal, hard.dual
        scorer, report = solver.scorer(problem, monitor), soft.certificate(problem, monitor)
    report = replace(report, alpha=hard.stretch * report.alpha, C=math.inf, iterations=passes)
    if not monitor.interrupted:
        solver.warn_of_gap(monitor, gap)
    solver.warn_if_interrupted(monitor)
    return Fit(scorer, report)


def _hard(monitor: GapMonitor) -> _Hard:
    """The best feasible weight and dual value along what the monitor has."""
    space, losses = monitor.space, monitor.exact
    assert isinstance(losses, Hinge)
    alpha = losses.alpha(monitor.feasible())
    weight, dtype = monitor.weight.double(), monitor.weight.dtype
    scores, squares, image_squares = space.exact(weight, alpha)
    cost, energy = float(losses.dual(monitor.feasible()).sum()), 2 * monitor.regulariser(image_squares, monitor.q)
    stretch = cost / energy if energy > 0 and cost > 0 else 1.0
    dual = cost**2 / (2 * energy) if energy > 0 and cost > 0 else 0.0
    for _ in range(_ATTEMPTS):
        factor = _factor(losses, scores)
        if not math.isfinite(factor):
            return _Hard(None, math.inf, dual, stretch)
        if factor <= 1 + _ROUNDING:
            return _Hard(weight.to(dtype), monitor.regulariser(squares, monitor.p), dual, stretch)
        weight = (factor * (1 + torch.finfo(dtype).eps) * weight).to(dtype).double()
        scores, squares, _ = space.exact(weight, alpha)
    return _Hard(None, math.inf, dual, stretch)


def _factor(losses: Hinge, scores: Tensor) -> float:
    """The least factor of the weight with which no row has a loss; infinite where there is none."""
    change = losses.differences(scores)
    cost = losses.margins(scores) - change
    short = change >= 0
    if bool((short & (cost + change > 0)).any()):
        return math.inf
    return float(torch.where(short, 0.0, cost / -change.clamp_max(-1e-300)).max())
