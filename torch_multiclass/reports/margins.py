"""How far the true class is ahead, and whether probabilities can be believed."""

from __future__ import annotations

from typing import Any

import numpy as np

from torch_multiclass import plots
from torch_multiclass.reports.blocks import Block, Gap, Picture, Table, Text, number, percent
from torch_multiclass.reports.result import Section
from torch_multiclass.reports.tally import Tally

__all__ = ["calibration", "margins", "ramp"]

QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 1.0)
SCALES = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0)


def ramp(margin: np.ndarray[Any, Any], rho: float) -> float:
    """The empirical margin loss, the mean of ``min(1, [1 - margin/rho]_+)``."""
    return float(np.clip(1 - margin / rho, 0.0, 1.0).mean())


def margins(tally: Tally) -> Section:
    """The distribution of the margins."""
    found = tally.margin()
    if found is None:
        why = (
            "labels of sequences have scores of whole sequences, and no margin of their own"
            if tally.kind == "sequences"
            else "the decoder counts votes, whose differences are whole numbers and no margins"
        )
        return Section("margins", "Margins", {"margins": None}, [Gap("margins", f"{why}.")])
    finite = found[np.isfinite(found)]
    unit = tally.spread / max(tally.spreads, 1)
    facts: dict[str, Any] = {"unit": unit, "count": len(found), "infinite": len(found) - len(finite)}
    name = "f_y - max f" if tally.kind == "classes" else "y f"
    blocks: list[Block] = [
        Text(
            f"The margin is {name}, in the units of the scores; a row's scores are {number(unit)} apart in the mean, "
            "from best to worst. A margin of at most 0 is an error."
        )
    ]
    if len(finite) == 0 or unit == 0:
        return Section("margins", "Margins", facts, [*blocks, Gap("the distribution", "no scores differ.")])
    at = dict(zip(map(str, QUANTILES), np.quantile(finite, QUANTILES).tolist(), strict=True))
    facts["quantiles"] = at
    blocks.append(Table(["quantile", *[f"{100 * float(q):g} %" for q in at]], [["margin", *map(number, at.values())]]))
    lines, shares = [], []
    for scale in SCALES:
        theta = scale * unit
        share, loss = float((found <= theta).mean()), ramp(found, theta) if theta else float((found <= 0).mean())
        shares.append({"threshold": theta, "in_spreads": scale, "share": share, "loss": loss})
        lines.append([number(theta), number(scale), percent(share), percent(loss)])
    facts["distribution"] = shares
    head = ["θ", "in mean spreads", "share with a margin ≤ θ", "empirical margin loss at θ"]
    blocks.append(Table(head, lines))
    blocks.append(
        Picture("margins", "Margins; wrong rows in red.", lambda axes: plots.margins(finite, axes), (5.2, 3.2))
    )
    thetas = np.linspace(float(finite.min()), float(finite.max()), 200)
    cumulated = np.searchsorted(np.sort(found), thetas, side="right") / len(found)
    blocks.append(
        Picture(
            "margin_distribution",
            "The margin distribution: how many rows have a margin of at most θ.",
            lambda axes: plots.margin_distribution(thetas, cumulated, axes),
            (5.2, 3.2),
        )
    )
    return Section("margins", "Margins", facts, blocks)


def calibration(tally: Tally, source: str) -> Section:
    """How often the most probable label is right, against its probability."""
    metric = tally.calibration
    right, confidence, count = (part.cpu().numpy() for part in (metric.right, metric.confidence, metric.count))
    total = max(float(count.sum()), 1.0)
    facts: dict[str, Any] = {
        "probabilities": source,
        "calibration_error": float(metric.compute()),
        "confidence": float(confidence.sum()) / total,
        "right": float(right.sum()) / total,
        "log_loss": tally.log_loss / total,
        "bins": [
            {"from": i / len(count), "to": (i + 1) / len(count), "labels": int(n), "right": r / n, "confidence": c / n}
            for i, (r, c, n) in enumerate(zip(right.tolist(), confidence.tolist(), count.tolist(), strict=True))
            if n
        ],
    }
    blocks: list[Block] = [
        Text(
            f"Probabilities are {source}. The most probable label has {percent(facts['confidence'])} in the mean and "
            f"is right in {percent(facts['right'])} of the cases; the expected calibration error over {len(count)} "
            f"bins is {number(facts['calibration_error'])}, the log loss {number(facts['log_loss'])}."
        ),
        Picture(
            "reliability",
            "How often labels are right against their probability.",
            lambda axes: plots.reliability(right, confidence, count, axes),
            (4.2, 4.0),
        ),
    ]
    return Section("calibration", "Calibration", facts, blocks)
