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
    what = "its true class less the best of the others" if tally.kind == "classes" else "a label, times its sign"
    scores = "The margin of a row is the score of " if tally.kind == "classes" else "A margin is the score of "
    if tally.code is not None:
        what += "; a score is minus the distance to the row of the code, or minus its logarithm"
    blocks: list[Block] = [
        Text(
            f"{scores}{what}. It is in the units of the scores; from the best to the worst of a row they span "
            f"{number(unit)} in the mean. A margin of at most 0 is an error, and the larger it is the better."
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
    head = ["θ", "θ, in mean spans", "share with a margin ≤ θ", "empirical margin loss at θ"]
    blocks.append(Table(head, lines))
    blocks.append(
        Text("The empirical margin loss is the mean of 1 − margin/θ, cut to 0 to 1: what margin bounds begin with.")
    )
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


def _leaning(facts: dict[str, Any]) -> str:
    """Whether it believes in itself too much."""
    away = facts["confidence"] - facts["right"]
    if abs(away) < 5e-5:
        return "as it should be"
    return f"{'too' if away > 0 else 'not'} sure {'' if away > 0 else 'enough '}of itself, by {percent(abs(away))}"


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
            f"Probabilities are {source}. That of the most probable label is {percent(facts['confidence'])} in the "
            f"mean, and this label is right in {percent(facts['right'])} of the cases: {_leaning(facts)}. The expected "
            f"calibration error over {len(count)} bins, 0 at best, is {number(facts['calibration_error'])}; the log "
            f"loss of the true label, 0 at best, is {number(facts['log_loss'])} nats."
        ),
        Picture(
            "reliability",
            "How often labels are right against their probability.",
            lambda axes: plots.reliability(right, confidence, count, axes),
            (4.2, 4.0),
        ),
    ]
    return Section("calibration", "Calibration", facts, blocks)
