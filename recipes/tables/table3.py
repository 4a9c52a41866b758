"""Support vector machines through output codes: table 3 of Allwein, Schapire and Singer (2000), figures 5 and 6.

Their kernel has degree 4; here its C is 1, or chosen on held-out halves of the training rows. Beside it is a Gaussian
kernel whose width is chosen too, since the gap between one-versus-all and the other codes may be one of tuning only.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import torch_multiclass as tm

from ..data.uci import Questions, Table
from .cells import Cell
from .sets import Set, by_name, code_of, codes_of, drawn
from .table2 import binary_error, wrong_by

DECODERS = {"hamming": tm.HammingDecoder(), "hinge": tm.LossBasedDecoder("hinge")}
TOLERANCE, ROUGHLY = 1e-2, 5e-2  # relative gaps: of the machines tested, and of those that choose their settings
GRIDS: dict[str, dict[str, list[float]]] = {
    "table3": {"C": [1.0]},
    "table3_tuned": {"C": [1e-4, 1e-3, 1e-2, 1e-1, 1.0]},
    "gaussian": {"C": [1.0, 10.0, 100.0], "width": [4.0, 16.0, 64.0, 256.0]},
}
"""``width`` is gamma times the number of features, which all lie in [0, 1]."""
LARGEST = 1e4
"""The C beyond which none is tried."""
Settings = dict[str, float]


def kernel_of(settings: Settings, features: int) -> tm.kernels.Kernel:
    """``(x · x' + 1)^4``, or ``exp(-gamma |x - x'|^2)`` where there is a width."""
    if "width" in settings:
        return tm.kernels.Gaussian(gamma=settings["width"] / features)
    return tm.kernels.Polynomial(4, 1.0, 1.0)


def trained(settings: Settings, code: Tensor, x: Tensor, y: Tensor, tol: float, columns: Path | None = None) -> Any:
    """A machine for each column, kept in a folder, and read from there, if one is given."""
    kernel = kernel_of(settings, x.shape[1])
    learner = tm.solvers.DualSVM(settings["C"], kernel, tol=tol, binary=True, progress=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(code|target): ")  # of one sign in a column, which the paper's rule allows
        return tm.solvers.CodedReduction(code, learner, progress=False).fit(x, y, resume=columns)


def choose(grid: dict[str, list[float]], code: Tensor, x: Tensor, y: Tensor) -> tuple[Settings, dict[str, int]]:
    """The settings with the fewest errors on held-out halves, by loss-based decoding; the first among equals.

    While the largest C is the best one, ten times that is tried as well.
    """
    candidates = product(grid)
    if len(candidates) == 1:
        return candidates[0], {}
    half = torch.randperm(len(y), generator=torch.Generator().manual_seed(0)) % 2
    wrong: list[int] = []
    while True:
        for settings in candidates[len(wrong) :]:
            errors = 0
            for part in range(2):
                scorer = trained(settings, code, x[half != part], y[half != part], ROUGHLY).scorer
                with torch.no_grad():
                    errors += wrong_by(DECODERS, scorer(x[half == part]), y[half == part])["hinge"]
            wrong.append(errors)
        best, largest = candidates[wrong.index(min(wrong))], max(one["C"] for one in candidates)
        if best["C"] < largest or largest >= LARGEST:
            words = (" ".join(f"{name}={value:g}" for name, value in one.items()) for one in candidates)
            return best, dict(zip(words, wrong, strict=True))
        candidates += product({**grid, "C": [10 * largest]})


def product(grid: dict[str, list[float]]) -> list[Settings]:
    """Every setting with every other."""
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def work(
    path: str, name: str, code: str, number: int, grid: dict[str, list[float]], columns: Path | None = None
) -> dict[str, Any]:
    """A fold of cross-validation, or the official split; the features in [0, 1] by the training rows."""
    table = Table.read(Path(path) / f"{name}.npz")
    folds = table.folds(by_name(name).official)
    train, test = folds[number]
    encode = Questions(table.features[train], table.nominal, unit=True)
    x, held = encode(table.features[train]).float(), encode(table.features[test]).float()
    y, labels = torch.from_numpy(table.labels[train]), torch.from_numpy(table.labels[test])
    matrix = code_of(code, len(table.classes), number if drawn(code) else 0)
    before = 0 if columns is None else len(list(columns.glob("*.pt")))
    start = time.process_time()
    settings, validation = choose(grid, matrix, x, y)
    middle = time.process_time()
    scorer, report = trained(settings, matrix, x, y, TOLERANCE, columns)
    end = time.process_time()
    with torch.no_grad():
        scores = scorer(held)
    fits = [one for one in report.columns if one is not None]
    wrong = wrong_by(DECODERS, scores, labels)
    return {
        "rows": len(labels),
        "wrong": wrong,
        "binary_error": binary_error(scores, labels, report.idle),
        "training_rows": len(y),
        "settings": settings,
        "validation": validation,
        "gap": max(one.gap for one in fits),
        "primal": sum(one.primal for one in fits),
        "dual": sum(one.dual for one in fits),
        "converged": all(one.converged for one in fits),
        "columns": matrix.shape[1],
        "idle": len(report.idle),
        "choosing_seconds": round(middle - start, 2),
        "seconds": round(end - middle, 2),
        "columns_before": before,
        "shown": ", ".join(f"{how} {n / len(labels):.1%}" for how, n in wrong.items()),
    }


def cells(table: str, sets: list[Set]) -> Iterator[Cell]:
    """All trainings of one of the three; of a random code on an official split, the first draw only."""
    for one in sets:
        for code in codes_of(table, one):
            for number in range(1) if one.official else one.numbers(code):
                yield Cell(table, one.name, code, number, work, {"grid": GRIDS[table]}, by_column=True)
