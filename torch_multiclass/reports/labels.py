"""How many labels are wrong, of which classes, and what that costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from torch_multiclass import bounds, plots
from torch_multiclass.costs import Cost
from torch_multiclass.reports.blocks import Block, Gap, Picture, Table, Text, number, percent
from torch_multiclass.reports.result import Section
from torch_multiclass.reports.tally import Tally

__all__ = ["classes", "confusion", "error", "interval"]

SHOWN = 20
"""Rows of a table."""
Array = npt.NDArray[Any]


def interval(wrong: int, count: int, delta: float) -> tuple[float, float]:
    """Clopper and Pearson's, of two sides, at the level ``1 - delta``; all of [0, 1] where nothing was counted."""
    if count == 0:
        return 0.0, 1.0
    low = 1 - bounds.held_out_error(count - wrong, count, delta=delta / 2).value
    return low, bounds.held_out_error(wrong, count, delta=delta / 2).value


def shown(wrong: int, count: int, delta: float) -> dict[str, Any]:
    """An error with its interval."""
    low, high = interval(wrong, count, delta)
    return {"wrong": wrong, "of": count, "error": wrong / count if count else None, "interval": [low, high]}


def error(tally: Tally, delta: float) -> Section:
    """The error, and of what."""
    true, given = tally.labels()
    level = f"two-sided {100 * (1 - delta):g} %"
    blocks: list[Block] = []
    facts: dict[str, Any] = {"level": 1 - delta}
    if tally.kind == "sets":
        kept = true != -100
        wrong = (given != true) & kept
        facts |= {"rows": shown(int(wrong.any(-1).sum()), len(true), delta)}
        facts |= {"labels": _clustered(wrong.sum(-1), kept.sum(-1), delta)}
        words = {"rows": "rows with a wrong label (binomial)", "labels": "labels (Hamming error; by row)"}
    elif tally.kind == "sequences":
        assert tally.sequences is not None
        each, wrong = (torch.cat(part).numpy() for part in (tally.sequences.lengths, tally.sequences.wrong))
        facts |= {"sequences": shown(int((wrong > 0).sum()), len(each), delta)}
        facts |= {"labels": _clustered(wrong, each, delta)}
        words = {"sequences": "sequences with a wrong label (binomial)", "labels": "labels (by sequence)"}
    else:
        facts |= {"rows": shown(int((given != true).sum()), len(true), delta)}
        words = {"rows": "rows (binomial)"}
    table = [
        [words[name], number(one["wrong"]), number(one["of"]), percent(one["error"]), _ends(one["interval"])]
        for name, one in facts.items()
        if isinstance(one, dict)
    ]
    blocks.append(Table(["of", "wrong", "among", "error", f"{level} interval"], table))
    if tally.kind != "classes":
        blocks.append(Text("Labels of one row or sequence are not independent: their interval counts whole ones."))
    facts["ignored"] = tally.ignored
    if tally.ignored:
        blocks.append(Text(f"{tally.ignored:,} without a label are left out."))
    if tally.kind != "sets":
        blocks += _unseen(tally, true, given, facts)
    return Section("error", "Error", facts, blocks)


def _clustered(wrong: Array, count: Array, delta: float) -> dict[str, Any]:
    """A share of all, and the interval of a ratio over independent rows, by the normal approximation."""
    total, share = int(count.sum()), float(wrong.sum() / count.sum())
    rows = len(count)
    spread = np.sqrt(np.square(wrong - share * count).sum() * rows / max(rows - 1, 1)) / total
    quantile = float(torch.special.ndtri(torch.tensor(1 - delta / 2, dtype=torch.float64)))
    ends = [max(0.0, share - quantile * float(spread)), min(1.0, share + quantile * float(spread))]
    return {"wrong": int(wrong.sum()), "of": total, "error": share, "interval": ends}


def _ends(ends: list[float]) -> str:
    return f"{100 * ends[0]:.2f} to {100 * ends[1]:.2f} %"


def _unseen(tally: Tally, true: Array, given: Array, facts: dict[str, Any]) -> list[Block]:
    """Labels that cannot be right."""
    blocks: list[Block] = []
    names = tally.label_names()
    unseen = true >= tally.num_classes
    facts["unseen"] = {names[label]: int((true == label).sum()) for label in np.unique(true[unseen])}
    if unseen.any():
        listed = ", ".join(f"{name} ({count:,})" for name, count in facts["unseen"].items())
        blocks.append(Gap("labels that the head does not know", f"{listed}: counted as wrong, and in no margin."))
    absent = () if tally.code is None or tally.code.absent is None else tally.code.absent.nonzero().flatten().tolist()
    facts["absent"] = {names[label]: int((true == label).sum()) for label in absent}
    if facts["absent"]:
        listed = ", ".join(f"{name} ({count:,})" for name, count in facts["absent"].items())
        blocks.append(
            Gap("classes without a training example", f"{listed}: never predicted, so that all their rows are wrong.")
        )
    facts["undecided"] = int((given < 0).sum())
    if facts["undecided"]:
        blocks.append(
            Gap(
                "labels where none is possible", f"{facts['undecided']:,}: every labelling is forbidden; all are wrong."
            )
        )
    return blocks


def counts_of(tally: Tally) -> Array:
    """``(R, K)``: how often each true label was given each class."""
    true, given = tally.labels()
    table = np.zeros((len(tally.label_names()), tally.num_classes), np.int64)
    decided = given >= 0
    np.add.at(table, (true[decided], given[decided]), 1)
    return table


def confusion(tally: Tally, cost: Cost) -> Section:
    """Which labels are taken for which, by what that costs."""
    names, k = tally.label_names(), tally.num_classes
    table = counts_of(tally)
    known = cost(torch.arange(k), k, torch.float64).numpy()
    price = np.full(table.shape, known.max(initial=0.0))
    price[:k] = known
    paid = table * price
    order = np.argsort(-paid, axis=None, kind="stable")[:SHOWN]
    pairs = [np.unravel_index(i, table.shape) for i in order if paid.flat[i] > 0]
    worst: list[dict[str, Any]] = [
        {"true": names[y], "given": names[p], "count": int(table[y, p]), "cost": float(price[y, p])} for y, p in pairs
    ]
    mean = float(paid.sum() / max(table.sum(), 1))
    free = bool((price == 1 - np.eye(len(price), k)).all())
    facts: dict[str, Any] = {
        "cost": repr(cost),
        "mean_cost": mean,
        "labels": names,
        "counts": table if table.size <= 10_000 else None,
        "worst": worst,
    }
    each = "every mistake costs 1, so that this is the error" if free else f"by the costs of {cost!r}"
    blocks: list[Block] = [Text(f"Mean cost {number(mean)} a label; {each}.")]
    if len(names) > k:
        blocks.append(Text("A label that the head does not know costs as much as the costliest mistake."))
    if worst:
        lines = [[one["true"], one["given"], number(one["count"]), number(one["cost"]),
                  number(one["count"] * one["cost"])] for one in worst]  # fmt: skip
        blocks.append(Table(["true", "given", "times", "cost each", "cost in all"], lines, "The costliest confusions."))
    side = min(10.0, 2.5 + 0.3 * len(names))
    shown_cost = None if free else price
    blocks.append(
        Picture(
            "confusion",
            "How often each true label was given which; the redder, the costlier.",
            lambda axes: plots.confusion(table, axes, labels=names, cost=shown_cost),
            (side + 0.8, side),
        )
    )
    return Section("confusion", "Confusion by cost", facts, blocks)


def classes(tally: Tally, delta: float) -> Section:
    """The error of each label."""
    true, given = tally.labels()
    names = tally.label_names()
    found = []
    for label, name in enumerate(names):
        if tally.kind == "sets":
            rows = true[:, label] != -100
            wrong, held, named = (true != given)[rows, label], int(rows.sum()), int((given[rows, label] == 1).sum())
            right = int(((given == 1) & (true == 1))[rows, label].sum())
        else:
            rows = true == label
            wrong, held, named = given[rows] != label, int(rows.sum()), int((given == label).sum())
            right = held - int(wrong.sum())
        one = {"label": name, **shown(int(wrong.sum()), held, delta), "given": named}
        found.append(one | {"precision": right / named if named else None})
    found_with = [one for one in found if one["of"]]
    blocks: list[Block] = []
    without = [one["label"] for one in found if not one["of"]]
    if without:
        listed = ", ".join(without[:SHOWN]) + (f" and {len(without) - SHOWN} more" if len(without) > SHOWN else "")
        blocks.append(Gap("errors of labels without an example", f"{listed}."))
    ranked = sorted(found_with, key=lambda one: -one["error"]) if len(found_with) > 2 * SHOWN else found_with
    lines = [[one["label"], number(one["wrong"]), number(one["of"]), percent(one["error"]), _ends(one["interval"]),
              number(one["given"]), percent(one["precision"])] for one in ranked[: 2 * SHOWN]]  # fmt: skip
    head = ["label", "wrong", "of", "error", "two-sided interval", "times given", "precision"]
    if tally.kind == "sequences":
        blocks.append(Text("Intervals are binomial, as if the labels of a sequence were independent."))
    blocks.append(Table(head, lines, "" if len(ranked) <= 2 * SHOWN else f"The {2 * SHOWN} of largest error."))
    picked = ranked[: 2 * SHOWN]
    blocks.append(
        Picture(
            "classes",
            "The error of each label, with its binomial interval.",
            lambda axes: plots.errors(
                [one["error"] for one in picked],
                axes,
                names=[one["label"] for one in picked],
                intervals=[one["interval"] for one in picked],
                of="label",
            ),
            (min(12.0, 3.0 + 0.28 * len(picked)), 3.4),
        )
    )
    return Section("classes", "Errors by label", {"labels": found}, blocks)
