"""How the solver says that the fit went."""

from __future__ import annotations

import dataclasses
from typing import Any

from torch_multiclass import plots
from torch_multiclass.reports.blocks import Block, Gap, Picture, Table, Text, number
from torch_multiclass.reports.result import Section
from torch_multiclass.reports.tally import Tally
from torch_multiclass.scorers.kernel import KernelScorer
from torch_multiclass.solvers.boosting.report import Rounds
from torch_multiclass.solvers.reduction.report import ColumnsReport
from torch_multiclass.solvers.report import Certificate
from torch_multiclass.solvers.trees.report import TreeReport

__all__ = ["fitted"]


def fitted(report: Any, tally: Tally, scorer: Any = None) -> Section:
    """Its numbers, and curves where there are."""
    facts: dict[str, Any] = {"kind": type(report).__name__}
    for part in dataclasses.fields(report):
        value = getattr(report, part.name)
        if isinstance(value, (bool, int, float, str)) and part.repr:
            facts[part.name] = value
    for name in ("support_vectors", "rounds"):
        if hasattr(report, name):
            facts[name] = getattr(report, name)
    kept = len(scorer.support) if isinstance(report, Certificate) and isinstance(scorer, KernelScorer) else None
    if kept is not None:
        facts["rows_with_a_coefficient"] = kept
    lines = [[name.replace("_", " "), number(v) if type(v) in (int, float) else str(v)] for name, v in facts.items()]
    blocks: list[Block] = [Table(["of the fit", ""], lines)]
    if kept is not None and kept != facts["support_vectors"]:
        blocks.append(
            Text(
                f"The scorer has coefficients for {kept} rows, and {facts['support_vectors']} are support vectors: "
                "those with a multiplier in the dual, whose point meets the scorer's only at the optimum."
            )
        )
    if isinstance(report, Certificate) and report.history:
        steps = report.history
        blocks.append(
            Picture("gap", "The duality gap on the way.", lambda axes: plots.gap(steps, axes, against="iteration"))
        )
    if isinstance(report, Rounds) and report.bound:
        shown = report.bound
        blocks.append(
            Picture(
                "rounds",
                "The product of the normalisers after each round.",
                lambda axes: plots.rounds(shown, axes, label="Π Z"),
            )
        )
    if isinstance(report, TreeReport) and report.grown.tree.leaves <= 24:
        names, leaves = tally.label_names(), report.grown.tree.leaves
        blocks.append(
            Picture(
                "tree",
                "The tree; yes to the left.",
                lambda axes: plots.tree(report, axes, labels=names),
                (max(5.0, 1.9 * leaves), max(3.5, 1.0 + 1.1 * (int(report.grown.tree.depths.max()) + 1))),
            )
        )
    if isinstance(report, ColumnsReport):
        facts |= {"idle": report.idle, "failed": report.failed, "unfinished": report.unfinished}
        for columns, why in (
            (report.idle, "their rows have one sign, or none"),
            (sorted(report.failed), "their learner failed"),
            (report.unfinished, "the fit was ended before"),
        ):
            if columns:
                listed = ", ".join(map(str, columns[:20])) + (" ..." if len(columns) > 20 else "")
                blocks.append(Gap(f"columns {listed}", f"{why}; their margin is 0."))
    return Section("fit", "The fit", facts, blocks)
