"""Boosted stumps through output codes: table 2 of Allwein, Schapire and Singer (2000), and figures 4 and 7."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import torch_multiclass as tm

from ..data.uci import Questions, Split, Table
from .cells import Cell
from .sets import Set, by_name, code_of, drawn

ROUNDS = 500
DECODERS = {
    "hamming": tm.HammingDecoder(),
    "sigmoid": tm.LossBasedDecoder("sigmoid"),  # the loss of randomised predictions
    "exponential": tm.LossBasedDecoder("exponential"),
}


def wrong_by(decoders: dict[str, Any], scores: tm.CodedScores, labels: Tensor) -> dict[str, int]:
    """How many rows each decoding gets wrong."""
    return {name: int((decode(scores) != labels).sum()) for name, decode in decoders.items()}


def binary_error(scores: tm.CodedScores, labels: Tensor, idle: Sequence[int] = ()) -> float:
    """How often the sign of a margin is wrong, over rows and columns with ``M(y, s) != 0``; a margin of 0 is wrong.

    Columns that are ``idle``, having had rows of one sign only, are left out.
    """
    signs = scores.code[labels]
    signs[:, list(idle)] = 0
    return float((scores.margins.sign() != signs)[signs != 0].double().mean())


def one_cell(table: Table, code: str, split: Split, seed: int = 0, rounds: int = ROUNDS) -> dict[str, Any]:
    """Train on one part and test on the other: one ensemble for all columns, the column an attribute of the row."""
    train, test = split
    encode = Questions(table.features[train], table.nominal)
    x, held = encode(table.features[train]).float(), encode(table.features[test]).float()
    y, labels = torch.from_numpy(table.labels[train]), torch.from_numpy(table.labels[test])
    matrix = code_of(code, len(table.classes), seed)
    learner = tm.solvers.AdaBoost(rounds, real=True, progress=False)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(code|target): ")  # columns that are equal or of one sign
        scorer, report = tm.solvers.CodedReduction(matrix, learner, call="single", progress=False).fit(x, y)
    boosting = report.columns[0]
    trained = time.process_time()
    with torch.no_grad():
        seen, scores = scorer(x), scorer(held)
    return {
        "rows": len(labels),
        "wrong": wrong_by(DECODERS, scores, labels),
        "binary_error": binary_error(scores, labels, report.idle),
        "training_rows": len(y),
        "training_wrong": wrong_by(DECODERS, seen, y),
        "rounds": boosting.rounds,
        "ending": boosting.ending,
        "product": boosting.bound[-1],
        "columns": matrix.shape[1],
        "idle": len(report.idle),
        "distance": tm.codes.min_row_distance(matrix),
        "seconds": round(trained - start, 2),
    }


def work(path: str, name: str, code: str, number: int, rounds: int) -> dict[str, Any]:
    """A fold of cross-validation, or the official split, with the draw of that number of a random code."""
    table = Table.read(Path(path) / f"{name}.npz")
    folds = table.folds(by_name(name).official)
    facts = one_cell(table, code, folds[number % len(folds)], number if drawn(code) else 0, rounds)
    return facts | {"shown": ", ".join(f"{how} {n / facts['rows']:.1%}" for how, n in facts["wrong"].items())}


def cells(sets: list[Set], rounds: int = ROUNDS) -> Iterator[Cell]:
    """All trainings of the table."""
    for one in sets:
        for code in one.codes:
            for number in one.numbers(code):
                yield Cell("table2", one.name, code, number, work, {"rounds": rounds})
