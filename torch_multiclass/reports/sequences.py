"""Errors of sequences: at which neighbours, and of which length."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import torch

from torch_multiclass import plots
from torch_multiclass.reports.blocks import Block, Gap, Picture, Table, number, percent
from torch_multiclass.reports.labels import interval
from torch_multiclass.reports.model import Model
from torch_multiclass.reports.result import Section
from torch_multiclass.reports.tally import Tally

__all__ = ["sequences"]

SHOWN, PARTS = 20, 6


def sequences(tally: Tally, model: Model, delta: float) -> Section:
    """Most confused transitions, and the error against the length."""
    assert tally.sequences is not None
    names = tally.label_names()
    facts: dict[str, Any] = {}
    blocks: list[Block] = []
    _transitions(tally, names, facts, blocks)
    _lengths(tally, delta, facts, blocks)
    chain = getattr(model.scorer, "chain", None)
    weights = getattr(chain, "transitions", None)
    if isinstance(weights, torch.Tensor) and weights.ndim == 2 and len(weights) <= 40:
        ends = [getattr(chain, f"{end}_transitions").detach().cpu() for end in ("start", "end")]
        learned = weights.detach().cpu()
        side = 0.3 * len(learned) + 1.8
        blocks.append(
            Picture(
                "transitions",
                "What was learned of neighbouring labels.",
                lambda axes: plots.transitions(learned, axes, start=ends[0], end=ends[1], labels=names[: len(learned)]),
                (side + 1.2, side),
            )
        )
    return Section("sequences", "Sequences", facts, blocks)


def _transitions(tally: Tally, names: list[str], facts: dict[str, Any], blocks: list[Block]) -> None:
    assert tally.sequences is not None
    moves = tally.sequences.moves
    if not moves:
        facts["transitions"] = facts["confused"] = []
        blocks.append(Gap("transitions", "no two neighbours have labels."))
        return
    count: Counter[tuple[int, int]] = Counter()
    wrong: Counter[tuple[int, int]] = Counter()
    for (a, b, c, d), times in moves.items():
        count[a, b] += times
        wrong[a, b] += times if (a, b) != (c, d) else 0
    said = [*names, "none"]  # label -1 or -100: no labelling is possible

    def words(first: int, second: int) -> str:
        return " → ".join(said[label] if 0 <= label < len(names) else "none" for label in (first, second))

    ranked = sorted(count, key=lambda pair: (-wrong[pair], pair))
    facts["transitions"] = [
        {"true": words(*pair), "count": count[pair], "wrong": wrong[pair], "error": wrong[pair] / count[pair]}
        for pair in ranked
    ]
    worst = sorted((quad for quad in moves if quad[:2] != quad[2:]), key=lambda quad: (-moves[quad], quad))[:SHOWN]
    facts["confused"] = [{"true": words(*quad[:2]), "given": words(*quad[2:]), "count": moves[quad]} for quad in worst]
    lines = [[one["true"], number(one["wrong"]), number(one["count"]), percent(one["error"])]
             for one in facts["transitions"][:SHOWN] if one["wrong"]]  # fmt: skip
    blocks.append(
        Table(["true neighbours", "one of them wrong", "of", "share"], lines, "Transitions that are wrong most often.")
    )
    lines = [[one["true"], one["given"], number(one["count"])] for one in facts["confused"]]
    blocks.append(Table(["true neighbours", "given", "times"], lines, "Most confused transitions."))


def _lengths(tally: Tally, delta: float, facts: dict[str, Any], blocks: list[Block]) -> None:
    assert tally.sequences is not None
    each, wrong = (torch.cat(part).numpy() for part in (tally.sequences.lengths, tally.sequences.wrong))
    edges = np.unique(np.quantile(each, np.linspace(0, 1, PARTS + 1)[1:], method="inverted_cdf")).astype(int)
    found, low = [], int(each.min())
    for high in edges.tolist():
        part = (each >= low) & (each <= high)
        if part.any():
            ends = interval(int((wrong[part] > 0).sum()), int(part.sum()), delta)
            found.append(
                {
                    "from": low,
                    "to": high,
                    "sequences": int(part.sum()),
                    "label_error": float(wrong[part].sum() / each[part].sum()),
                    "sequence_error": float((wrong[part] > 0).mean()),
                    "interval": list(ends),
                }
            )
        low = high + 1
    facts["lengths"] = found
    spans = [f"{one['from']}–{one['to']}" if one["from"] < one["to"] else str(one["to"]) for one in found]
    lines = [[span, number(one["sequences"]), percent(one["label_error"]), percent(one["sequence_error"])]
             for span, one in zip(spans, found, strict=True)]  # fmt: skip
    blocks.append(Table(["length", "sequences", "wrong labels", "sequences with one"], lines))
    for name, key, what in (
        ("lengths", "label_error", "Wrong labels by the length of the sequence."),
        ("lengths_exact", "sequence_error", "Sequences with a wrong label, by length (binomial intervals)."),
    ):
        blocks.append(_by_length(name, what, found, spans, key))


def _by_length(name: str, what: str, found: list[dict[str, Any]], spans: list[str], key: str) -> Picture:
    ends = [one["interval"] for one in found] if key == "sequence_error" else None
    return Picture(
        name,
        what,
        lambda axes: plots.errors([one[key] for one in found], axes, names=spans, intervals=ends, of="length"),
        (4.4, 3.0),
    )
