"""Classes that are rings around 0 on a line: figure 3 of Allwein, Schapire and Singer (2000).

Rows are normal deviates, and the classes cut ``|x|`` at thresholds so that each has 100 rows for training. A column is
boosted for ten rounds, by questions whether ``|x| < t``, ``t`` from 0 to infinity, answered +1 or -1 and never the
other way round: with both ways there is nothing to see.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

import torch_multiclass as tm

from .cells import Cell
from .sets import code_of
from .table2 import binary_error, wrong_by

CLASSES = range(3, 9)
ROUNDS, ROWS, SAMPLES = 10, 100, 10
DECODERS = {"hamming": tm.HammingDecoder(), "exponential": tm.LossBasedDecoder("exponential")}


def sample(classes: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """``|x|`` and classes for training, 100 rows of each, and as many rows for testing by the same thresholds."""
    x = torch.randn(ROWS * classes, generator=generator, dtype=torch.float64).abs().sort().values
    y = torch.arange(ROWS * classes) // ROWS
    held = torch.randn(ROWS * classes, generator=generator, dtype=torch.float64).abs()
    thresholds = (x[ROWS - 1 : -1 : ROWS] + x[ROWS::ROWS]) / 2
    return x, y, held, torch.bucketize(held, thresholds)


def boosted(x: Tensor, signs: Tensor, held: Tensor, rounds: int = ROUNDS) -> tuple[Tensor, Tensor]:
    """AdaBoost over ``h(x) = +1`` where ``x < t``, else -1, with weights ``alpha >= 0``: the scores of both samples.

    Shape:
        x ``(M)``, increasing; signs ``(M)`` of ±1; held ``(N)``; the results ``(M)`` and ``(N)``.
    """
    between = (x[1:] + x[:-1]) / 2
    thresholds = torch.cat([x.new_zeros(1), between, x.new_full((1,), math.inf)])  # of the first j rows +1, j = 0..M
    weight = torch.full_like(x, 1 / len(x))
    scores, others = torch.zeros_like(x), torch.zeros_like(held)
    for _ in range(rounds):
        edge = weight * signs
        gains = 2 * torch.cat([edge.new_zeros(1), edge.cumsum(0)]) - edge.sum()  # 1 - 2 eps of each threshold
        place = int(gains.argmax())
        error = float((1 - gains[place]) / 2)
        if error >= 0.5 - 1e-9:
            break
        smooth = 1 / len(x) if error < 1e-12 else 0.0
        alpha = 0.5 * math.log((1 - error + smooth) / (error + smooth))
        vote = torch.where(torch.arange(len(x)) < place, 1.0, -1.0).double()
        scores, others = scores + alpha * vote, others + alpha * torch.where(held < thresholds[place], 1.0, -1.0)
        if smooth:
            break
        weight = weight * torch.exp(-alpha * signs * vote)
        weight = weight / weight.sum()
    return scores, others


def work(path: str, name: str, code: str, number: int, rounds: int) -> dict[str, Any]:
    """One sample of ``k`` classes, ``name`` being k; a classifier for each column."""
    classes = int(name.removeprefix("k"))
    matrix = code_of(code, classes)
    x, y, held, labels = sample(classes, torch.Generator().manual_seed(1000 * classes + number))
    start = time.process_time()
    columns = [boosted(x, matrix[y, s].double(), held, rounds)[1] for s in range(matrix.shape[1])]
    scores = tm.CodedScores(torch.stack(columns, 1), matrix)
    wrong = wrong_by(DECODERS, scores, labels)
    return {
        "rows": len(labels),
        "wrong": wrong,
        "binary_error": binary_error(scores, labels),
        "columns": matrix.shape[1],
        "seconds": round(time.process_time() - start, 2),
        "shown": ", ".join(f"{how} {n / len(labels):.1%}" for how, n in wrong.items()),
    }


def cells() -> Iterator[Cell]:
    """All trainings."""
    for classes in CLASSES:
        for code in ("complete", "one-vs-all"):
            for number in range(SAMPLES):
                yield Cell("figure3", f"k{classes}", code, number, work, {"rounds": ROUNDS})
