"""Decision trees and forests beside scikit-learn's, on the same rows in one run.

    python -m benchmarks.trees [--data FOLDER]

``FOLDER``, or ``TORCH_MULTICLASS_DATA``, has letter.npz, satimage.npz and pendigits.npz in ``uci``, each with X, y,
train_idx and test_idx; without it sets of the same sizes are drawn, with as many values and about as deep trees.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from benchmarks.timing import Row, Timing, describe, table, take_turns
from torch_multiclass.ops import _native
from torch_multiclass.solvers import DecisionTree, RandomForest

USES_LIBRARY = True
FOLDER = os.environ.get("TORCH_MULTICLASS_DATA")
SIZES = {
    "letter": (20_000, 16_000, 16, 26, 16),
    "satimage": (6435, 4435, 36, 6, 100),
    "pendigits": (10_992, 7494, 16, 10, 101),
}
"""Rows, those for training, features, classes, values."""


class Set(NamedTuple):
    """Rows for training, and those for testing."""

    x: np.ndarray
    y: np.ndarray
    test: np.ndarray
    truth: np.ndarray


def mixture(rows: int, width: int, classes: int, spread: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
    """Equal Gaussian classes."""
    draw = np.random.default_rng(0)
    y = np.arange(rows) % classes
    return (draw.standard_normal((classes, width))[y] * spread + draw.standard_normal((rows, width))).astype("f"), y


def load(name: str, folder: str | None = FOLDER) -> Set:
    """A set of that name, or one like it."""
    if folder:
        with np.load(Path(folder) / "uci" / f"{name}.npz") as file:
            x, y, train, test = file["X"], file["y"], file["train_idx"], file["test_idx"]
        return Set(x[train], y[train], x[test], y[test])
    rows, train, width, classes, values = SIZES[name]
    x, y = mixture(rows, width, classes)
    x = np.clip(np.round((x / 6 + 0.5) * values), 0, values - 1)
    return Set(x[:train], y[:train], x[train:], y[train:])


def continuous() -> Set:
    """As many rows and classes as letter, no two values alike."""
    x, y = mixture(20_000, 16, 26, 1.0)
    return Set(x[:16_000], y[:16_000], x[16_000:], y[16_000:])


def asked(without: float, natively: float) -> float:
    """How many times faster: the library has more to reach than NumPy."""
    return 1 / (natively if _native.library() is not None else without)


def wrong(guess: object, truth: np.ndarray) -> float:
    return 100 * float((np.asarray(guess) != truth).mean())


def rows(repeats: int, folder: str | None = FOLDER) -> Iterator[Row]:
    """One tree, a forest of 100, and its predictions."""
    from sklearn.tree import DecisionTreeClassifier

    for name, bins in (("letter", None), ("satimage", None), ("pendigits", None), ("continuous, K = 26", 256)):
        data = continuous() if bins else load(name, folder)
        x, y, peer = torch.tensor(data.x), torch.tensor(data.y), DecisionTreeClassifier(random_state=0)
        timed = take_turns(
            {
                "ours": lambda x=x, y=y, b=bins: DecisionTree(bins=b).fit(x, y),
                "peer": lambda d=data, p=peer: p.fit(d.x, d.y),
            },
            repeats,
        )
        size = f"{len(x)} x {x.shape[1]}" + (f", {bins} bins" if bins else "")
        yield Row(f"tree {name} ({size})", timed["ours"], "scikit-learn", timed["peer"], asked(6 if bins else 5, 1))
    yield from forest(repeats, load("letter", folder))


def forest(repeats: int, data: Set) -> Iterator[Row]:
    """A forest of 100 on letter, and its probabilities for 20,000 rows."""
    from sklearn.ensemble import RandomForestClassifier

    x, y, peer = torch.tensor(data.x), torch.tensor(data.y), RandomForestClassifier(100, random_state=0)
    solver = RandomForest(100, jobs=1)
    grown: Timing | dict[str, Timing] = take_turns(
        {"ours": lambda: solver.fit(x, y), "peer": lambda: peer.fit(data.x, data.y)}, max(1, repeats // 3), 1
    )
    yield Row("forest of 100, letter", grown["ours"], "scikit-learn", grown["peer"], asked(6, 1))
    every = np.concatenate([data.x, data.test])
    scorer, features = solver.fit(x, y).scorer, torch.tensor(every)
    timed = take_turns({"ours": lambda: scorer(features), "peer": lambda: peer.predict_proba(every)}, repeats)
    yield Row("forest of 100, predicting 20,000", timed["ours"], "scikit-learn", timed["peer"], asked(3, 1.1))


def errors(folder: str | None) -> str:
    """Test errors of trees and forests."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    made = []
    for name in SIZES:
        data = load(name, folder)
        x, y, test = torch.tensor(data.x), torch.tensor(data.y), torch.tensor(data.test)
        for kind, ours, peer in (
            ("tree", DecisionTree(), DecisionTreeClassifier(random_state=0)),
            ("forest", RandomForest(100), RandomForestClassifier(100, random_state=0)),
        ):
            theirs = wrong(peer.fit(data.x, data.y).predict(data.test), data.truth)
            fit = ours.fit(x, y)
            made.append([f"{name}, {kind}", f"{wrong(fit.scorer(test).argmax(1), data.truth):.2f}", f"{theirs:.2f}"])
    return table(["test error, %", "ours", "scikit-learn"], made)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=FOLDER)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = []
    for row in rows(options.repeats, options.data):
        ours, theirs = (part.median if isinstance(part, Timing) else part for part in (row.ours, row.theirs))
        lines.append(
            [row.name, f"{1e3 * ours:.1f}", f"{1e3 * theirs:.1f}", f"{ours / theirs:.2f}", f"{1 / row.asked:.1f}"]
        )
    header = ["", "ours, ms", "scikit-learn, ms", "ratio", "at most"]
    print(table(header, lines, f"Trees ({describe('cpu')}; {_native.backends()['native']})"), end="\n\n")
    print(errors(options.data))


if __name__ == "__main__":
    main()
