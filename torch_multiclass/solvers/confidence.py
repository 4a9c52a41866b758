"""Boosting the confidence: many runs of a solver that succeeds now and then, and the one that is best elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.bounds import confidence_runs
from torch_multiclass.ops.precision import undisturbed
from torch_multiclass.scorers.base import Scorer
from torch_multiclass.solvers.base import Fit, Solver
from torch_multiclass.solvers.report import Report

__all__ = ["ConfidenceReport", "boost_confidence"]


@dataclass(frozen=True, kw_only=True)
class ConfidenceReport(Report):
    """How the runs went.

    Reference: boosting the confidence, Kearns and Vazirani (1994), section 4.2.

    Example:
        >>> import torch
        >>> from torch_multiclass.solvers import DecisionTree, boost_confidence
        >>> x = torch.arange(40.0)[:, None]
        >>> report = boost_confidence(DecisionTree(), x, (x[:, 0] > 19).long(), delta=0.1, success=0.5).report
        >>> len(report.errors), report.chosen < len(report.errors)
        (6, True)
    """

    errors: list[float]
    """Of each run, on the rows held out."""
    chosen: int
    """The first run of the smallest error."""
    report: Report = field(repr=False)
    """Of that run."""


@undisturbed
def boost_confidence(
    solver: Solver[Any, Any, Any],
    features: Tensor,
    target: Tensor,
    *,
    delta: float,
    success: float,
    held_out: float = 0.25,
    decide: Callable[[Any], Tensor] | None = None,
    generator: torch.Generator | None = None,
) -> Fit[Scorer, ConfidenceReport]:
    r"""Train on ``ceil(ln(2/delta)/delta_0)`` samples and keep the scorer that is best on rows held out.

    A solver that finds a good scorer with probability ``delta_0`` only fails in all of the runs with probability
    ``(1 - delta_0)^runs <= delta/2``; the other half of ``delta`` is for the choice. Each sample is drawn with
    replacement from the rows that are not held out, as many as there are. Ctrl-C ends the runs, and the best of those
    that are done is kept.

    Args:
        solver: any.
        features: the rows.
        target: their classes, or ±1; rows labelled -100 are left out.
        delta: accepted probability of failure.
        success: ``delta_0``, the probability with which one run succeeds.
        held_out: the share of the rows by which the choice is made.
        decide: from scores to labels; by default the argmax, and the sign of a single score.
        generator: draws the samples; by default one seeded with 0.

    Shape:
        features ``(N, D)``; target ``(N)``.

    Raises:
        ValueError: a number outside (0, 1); fewer than two rows with a label; what the solver says.

    Reference: boosting the confidence, Kearns and Vazirani (1994), section 4.2.

    Example:
        >>> import torch
        >>> from torch_multiclass.solvers import Perceptron
        >>> x = torch.randn(80, 2, generator=torch.Generator().manual_seed(0))
        >>> scorer, report = boost_confidence(Perceptron(), x, (x[:, 0] > 0).long(), delta=0.05, success=0.3)
        >>> len(report.errors), report.errors[report.chosen] == min(report.errors)
        (13, True)
    """
    if not isinstance(solver, Solver):
        raise TypeError(f"solver: got {check.came(solver)}; accepted is a solver")
    runs = confidence_runs(delta, success)
    if isinstance(held_out, bool) or not isinstance(held_out, (int, Real)) or not 0 < held_out < 1:
        raise ValueError(f"held_out: got {check.shown(held_out)}; accepted is a number in (0, 1)")
    if decide is not None and not callable(decide):
        raise TypeError(f"decide: got {check.shown(decide)}; accepted is None or a function of scores")
    check.generator(generator)
    check.floating("features", features)
    if features.dim() == 0:
        raise ValueError("features: got shape (); accepted is (N, D), one row an example")
    check.class_indices("target", target)
    target = check.signed(target)
    check.shape("target", target, (len(features),), "one label a row")
    known = (target != check.IGNORE).nonzero().squeeze(1)
    if len(known) < 2:
        raise ValueError(f"target: got {len(known)} rows with a label; accepted are two or more")
    draws = torch.Generator().manual_seed(0) if generator is None else generator
    order = known[torch.randperm(len(known), generator=draws).to(known.device)]
    count = min(max(round(held_out * len(order)), 1), len(order) - 1)
    held, rest = order[:count], order[count:]
    found: list[Fit[Any, Any]] = []
    errors: list[float] = []
    for _ in range(runs):
        sample = rest[torch.randint(len(rest), (len(rest),), generator=draws).to(rest.device)]
        found.append(solver.fit(features[sample], target[sample]))
        with torch.no_grad():
            scores = found[-1].scorer(features[held])
        labels = guess(scores, target) if decide is None else decide(scores)
        errors.append(float((labels != target[held]).double().mean()))
        if found[-1].report.interrupted:
            break
    chosen = errors.index(min(errors))
    reports = [one.report for one in found]
    report = ConfidenceReport(
        iterations=sum(one.iterations for one in reports),
        seconds=sum(one.seconds for one in reports),
        interrupted=reports[-1].interrupted,
        errors=errors,
        chosen=chosen,
        report=reports[chosen],
    )
    return Fit(found[chosen].scorer, report)


def guess(scores: Tensor, target: Tensor) -> Tensor:
    """The class of the highest score; of a single score its sign, as 0/1 or, like the target, as ±1."""
    if not isinstance(scores, Tensor):
        raise TypeError(f"decide: got None, but the scores are {type(scores).__name__}; accepted is a function of them")
    if scores.shape[-1] > 1:
        return scores.argmax(-1)
    low = -1 if bool((target == -1).any()) else 0
    return torch.where(scores[..., 0] > 0, 1, low)
