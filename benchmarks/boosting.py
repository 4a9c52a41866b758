"""Boosted stumps beside scikit-learn's AdaBoostClassifier, on satimage in its official split, in one run.

    python -m benchmarks.boosting [--repeats 9]

Each is CPU time on one thread, from features to a scorer. ``TORCH_MULTICLASS_DATA`` is a folder with
``uci/satimage.npz``; without it nothing is measured, and that is said.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks.timing import Row, describe, table, take_turns
from torch_multiclass.solvers import AdaBoostMH

DATA = "TORCH_MULTICLASS_DATA"
USES_LIBRARY = True
PEER = "scikit-learn AdaBoostClassifier, stumps"
ERRORS = (
    ("discrete stumps, 100 rounds", AdaBoostMH(100), 0.15),
    ("real-valued stumps, 100 rounds", AdaBoostMH(100, real=True), 0.14),
    ("real-valued stumps, 500 rounds", AdaBoostMH(500, real=True), 0.122),
    ("real-valued trees of 8 leaves, 200 rounds", AdaBoostMH(200, real=True, leaves=8), 0.102),
)


def satimage() -> tuple[Tensor, Tensor, Tensor, Tensor] | None:
    """Training features and labels, and those for testing."""
    folder = os.environ.get(DATA)
    path = Path(folder or ".") / "uci" / "satimage.npz"
    if folder is None or not path.exists():
        print(f"satimage: left out, {path if folder else f'no folder ({DATA})'} is not there", file=sys.stderr)
        return None
    with np.load(path) as file:
        x, y = torch.tensor(file["X"], dtype=torch.float32), torch.tensor(file["y"])
        train, test = torch.tensor(file["train_idx"]), torch.tensor(file["test_idx"])
    return x[train], y[train], x[test], y[test]


def rows(repeats: int) -> Iterator[Row]:
    """The lines of the table of everything."""
    from sklearn.ensemble import AdaBoostClassifier

    import torch_multiclass as tm

    data = satimage()
    if data is None:
        return
    x, y = data[:2]
    wide, labels = x.numpy(), y.numpy()
    found = take_turns(
        {
            "discrete": lambda: AdaBoostMH(100).fit(x, y),
            "real-valued": lambda: AdaBoostMH(100, real=True).fit(x, y),
            PEER: lambda: AdaBoostClassifier(n_estimators=100, random_state=0).fit(wide, labels),
        },
        repeats,
        warmup=1,
    )
    native = tm.backends()["native"].startswith("in use")
    for kind, asked in (("discrete", 20 if native else 7), ("real-valued", 10 if native else 3.5)):
        yield Row(f"AdaBoost.MH, 100 {kind} stumps, satimage", found[kind], PEER, found[PEER], asked)


def errors() -> str | None:
    """The table of test errors."""
    from sklearn.ensemble import AdaBoostClassifier

    data = satimage()
    if data is None:
        return None
    x, y, unseen, truth = data
    lines = []
    for name, solver, asked in ERRORS:
        with torch.no_grad():
            error = float((solver.fit(x, y).scorer(unseen).argmax(1) != truth).double().mean())
        lines.append([name, f"{error:.2%}", f"<= {asked:.1%}"])
    peer = AdaBoostClassifier(n_estimators=100, random_state=0).fit(x.numpy(), y.numpy())
    lines.append([f"{PEER}, 100 rounds", f"{1 - peer.score(unseen.numpy(), truth.numpy()):.2%}", ""])
    return table(
        ["ensemble", "test error", "asked"], lines, f"Satimage, 4,435 to train, 2,000 to test ({describe('cpu')})"
    )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = []
    for row in rows(options.repeats):
        ours, theirs = row.ours.median, row.theirs.median
        lines.append([row.name, f"{ours * 1e3:.1f}", f"{theirs * 1e3:.0f}", f"{theirs / ours:.1f}x", f"{row.asked:g}x"])
    if lines:
        print(table(["", "ours, ms", "peer, ms", "faster", "asked"], lines), end="\n\n")
        print(errors())


if __name__ == "__main__":
    main()
