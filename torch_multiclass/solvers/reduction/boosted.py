"""A single call of AdaBoost: AdaBoost.MO."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from torch_multiclass.scorers.base import Scorer
from torch_multiclass.solvers.boosting.machines import AdaBoost
from torch_multiclass.solvers.boosting.output_codes import AdaBoostMO
from torch_multiclass.solvers.boosting.report import Rounds
from torch_multiclass.solvers.boosting.samples import Sample
from torch_multiclass.solvers.problem import Problem


def boost_columns(
    learner: AdaBoost, code: Tensor, rows: Problem, signs: Tensor, idle: Sequence[int]
) -> tuple[Scorer, Rounds]:
    """The ensemble of AdaBoost.MO on these signs, which leaves columns of one sign out."""
    options = {name: getattr(learner, name) for name in (*learner.shown, "progress", "on_step")}
    solver = AdaBoostMO(code, **options)
    signs = signs.double().cpu()
    signs[:, list(idle)] = 0
    base = {name: getattr(rows, name) for name in Problem.__dataclass_fields__}
    sample = Sample(**base, signs=signs.numpy(), single=True)
    monitor = solver.monitor(sample)
    _, report = solver.solve(sample, monitor)
    margins = solver.ensemble(sample, monitor)
    margins.values[:, list(idle)] = 0
    return margins, report
