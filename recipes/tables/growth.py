"""How training and testing grow with the number of classes: table 9.1 of Mohri, Rostamizadeh and Talwalkar (2018).

Where a binary learner takes ``n^alpha`` for ``n`` rows, one-versus-all takes ``K m^alpha`` for ``m`` rows in all, and
one-versus-one ``K^(2 - alpha) m^alpha``; testing takes ``K`` and ``K^2``. Times are those of the process, on one core.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

import torch_multiclass as tm

from .cells import Cell
from .sets import code_of

FEATURES, ROWS, ROUNDS = 16, 16_000, 50
LEARNERS = ("stumps", "machine")
COUNTS = (4, 8, 16, 32)
SIZES = (1000, 2000, 4000, 8000, 16_000)
DISTANCE = 0.75  # of the centres from 0, a feature, in units of the spread around them


def sample(classes: int, rows: int, seed: int) -> tuple[Tensor, Tensor]:
    """Rows around as many centres as there are classes, equally many around each; the centres are the same always."""
    centres = torch.randn(max(*COUNTS, classes), FEATURES, generator=torch.Generator().manual_seed(0)) * DISTANCE
    labels = torch.arange(rows) % classes
    return centres[labels] + torch.randn(rows, FEATURES, generator=torch.Generator().manual_seed(seed)), labels


def learner_of(name: str) -> Any:
    """Boosted stumps, or a machine with a Gaussian kernel."""
    if name == "stumps":
        return tm.solvers.AdaBoost(ROUNDS, real=True, progress=False)
    return tm.solvers.DualSVM(1.0, tm.kernels.Gaussian(gamma=0.5 / FEATURES), tol=1e-2, binary=True, progress=False)


def work(path: str, name: str, code: str, number: int, rows: int) -> dict[str, Any]:
    """A learner ``name``: a reduction of ``number`` classes, or, with the code ``binary``, of ``rows`` rows of two."""
    classes = 2 if code == "binary" else number
    x, y = sample(classes, rows, 1)
    held, labels = sample(classes, rows, 2)
    matrix = torch.tensor([[-1], [1]]) if code == "binary" else code_of(code, classes)
    reduction = tm.solvers.CodedReduction(matrix, learner_of(name), progress=False)
    start = time.process_time()
    scorer, report = reduction.fit(x, y)
    training = time.process_time() - start
    testing = []
    with torch.no_grad():
        for _ in range(3):
            start = time.process_time()
            scores = scorer(held)
            testing.append(time.process_time() - start)
    return {
        "rows": rows,
        "classes": classes,
        "columns": matrix.shape[1],
        "training_seconds": training,
        "testing_seconds": min(testing),
        "error": float((report.decoder(scores) != labels).double().mean()),
        "shown": f"training {training:.2f} s, testing {min(testing):.3f} s",
    }


def cells() -> Iterator[Cell]:
    """All measurements."""
    for name in LEARNERS:
        for size in SIZES:
            yield Cell("growth", name, "binary", size, work, {"rows": size})
        for classes in COUNTS:
            for code in ("one-vs-all", "all-pairs"):
                yield Cell("growth", name, code, classes, work, {"rows": ROWS})
