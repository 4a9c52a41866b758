"""A code, and how often each of its questions is answered wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from torch_multiclass import codes as coding
from torch_multiclass import plots
from torch_multiclass.decoders import Decoder, LossBasedDecoder
from torch_multiclass.reports.blocks import Block, Gap, Picture, Table, Text, number, percent
from torch_multiclass.reports.model import VOTES
from torch_multiclass.reports.result import Section
from torch_multiclass.reports.tally import Tally

__all__ = ["columns"]

SHOWN, NAMED, LARGE = 20, 6, 10_000_000


def columns(tally: Tally, decoder: Decoder) -> Section:
    """Distances of the code and errors of its columns."""
    assert tally.code is not None
    assert tally.binary is not None
    scores, names = tally.code, tally.label_names()
    k, length = scores.num_classes, scores.num_columns
    share, asked = tally.binary.compute().cpu().double().numpy(), tally.binary.count.cpu().numpy()
    facts: dict[str, Any] = {"name": scores.name, "classes": k, "columns": length}
    blocks: list[Block] = []
    if k * length > LARGE:
        blocks.append(Gap("distances of the code", f"{k} x {length} entries are too many to compare."))
    else:
        blocks += _distances(scores.code, names, facts)
    pairs = int(asked.sum())
    counted = float((share * asked).sum())
    facts |= {
        "asked": asked,
        "column_errors": [float(e) if n else None for e, n in zip(share, asked, strict=True)],
        "bit_error": counted / pairs if pairs else None,
    }
    said = f"Of {number(pairs)} answers {percent(facts['bit_error'])} are wrong; a margin of 0 counts as wrong."
    if isinstance(decoder, LossBasedDecoder) and not isinstance(decoder, VOTES):
        known = sum(int((part < k).sum()) for part in tally.true)
        facts["average_binary_loss"] = tally.binary_loss / known if known else None
        said += (
            f" The average binary loss ({decoder.loss.name}) is {number(facts['average_binary_loss'])}; a margin of 0 "
            f"would cost {number(decoder.loss.at_zero)}."
        )
    blocks.append(Text(said))
    order = np.argsort(-np.where(asked > 0, share, -1), kind="stable")
    erring = [s for s in order.tolist() if asked[s] and share[s] > 0]
    signs = scores.code.cpu()
    lines = [[str(s), percent(share[s]), number(int(asked[s])), *_sides(signs[:, s], names)] for s in erring[:SHOWN]]
    rest, unasked = length - len(erring), int((asked == 0).sum())
    caption = f"The {SHOWN} columns of largest error, of {len(erring)} that err." if len(erring) > SHOWN else ""
    if erring:
        head = ["column", "wrong", "rows asked", "asks whether it is one of", "or one of"]
        blocks.append(Table(head, lines, caption))
    if rest:
        never = f", {unasked} of which no row here is asked" if unasked else ""
        blocks.append(Text(f"{number(rest)} of {number(length)} columns do not err{never}."))
    sides = (0.7 + 0.08 * max(map(len, names[:k])), 0.15)
    width = min(12.0, max(4.0, 0.2 * length + 0.5 + sum(sides)))
    if k <= 60 and length <= 200:
        matrix = scores.code.cpu()
        blocks.append(
            Picture(
                "code",
                "The code: a row a class, a column a question.",
                lambda axes: plots.code(matrix, axes, labels=names[:k]),
                (width, min(9.0, 0.22 * k + 1.6)),
                sides,
            )
        )
    if length <= 400:
        shown = np.where(asked > 0, share, np.nan)
        blocks.append(
            Picture(
                "columns",
                "The share of wrong answers of each column.",
                lambda axes: plots.errors(shown, axes, of="column").set(xlim=(-0.5, length - 0.5)),
                (width, 2.6),
                sides,
            )
        )
    return Section("code", "Code", facts, blocks)


def _sides(column: torch.Tensor, names: list[str]) -> list[str]:
    """The classes of either sign, a few of them by name."""
    sides = [(column * sign > 0).nonzero().flatten().tolist() for sign in (1, -1)]
    return [", ".join(names[k] for k in side[:NAMED]) + (" ..." if len(side) > NAMED else "") for side in sides]


def _distances(code: torch.Tensor, names: list[str], facts: dict[str, Any]) -> list[Block]:
    distances = coding.row_distances(code).cpu().double().numpy()
    upper = np.triu_indices(len(distances), 1)
    apart = distances[upper]
    least = float(apart.min())
    closest = [[names[i], names[j]] for i, j, d in zip(*upper, apart, strict=True) if d == least]
    full = bool((code != 0).all())
    facts |= {
        "min_distance": least,
        "mean_distance": float(apart.mean()),
        "max_distance": float(apart.max()),
        "closest": closest[:SHOWN],
        "correctable": int((least - 1) // 2) if full else None,
    }
    far = f"{number(least)} to {number(float(apart.max()))} apart, {number(float(apart.mean()))} in the mean"
    text = f"{len(distances)} classes, {code.shape[1]} columns. Rows are "
    text += f"{number(least)} apart, each from each" if least == float(apart.max()) else far
    if full:
        text += f"; Hamming decoding corrects any {max(0, facts['correctable'])} wrong columns"
    if least == float(apart.max()):
        return [Text(f"{text}.")]
    few = ", ".join(f"{a} and {b}" for a, b in closest[:5])
    more = f" and {len(closest) - 5} more pairs" if len(closest) > 5 else ""
    return [Text(f"{text}. Closest: {few}{more}.")]
