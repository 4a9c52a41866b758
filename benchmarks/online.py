"""The online learners beside scikit-learn's, a pass over the same rows in one run.

    python -m benchmarks.online [--letter letter.npz]

``--letter`` takes an .npz file with X, y and train_idx (UCI letter recognition, features 0 to 15); without it rows of
the same shape are drawn.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.timing import Row, describe, table, take_turns
from torch_multiclass.solvers import ConstraintClassifier, PassiveAggressive, Pegasos, Perceptron

USES_LIBRARY = True
PASSES = 10


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--letter")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    shown = []
    for row in rows(options.repeats, options.letter):
        theirs = getattr(row.theirs, "median", None)
        ours = row.ours.median if hasattr(row.ours, "median") else row.ours
        ratio = f"{theirs / ours:.2f}×" if theirs else ""
        shown.append([row.name, f"{ours * 1e3:.2f}", row.peer, f"{theirs * 1e3:.2f}" if theirs else "", ratio])
    print(table(["a pass", "ours, ms", "peer", "theirs, ms", "faster"], shown, describe("cpu")))


def rows(repeats: int, letter: str | None = None) -> Iterator[Row]:
    """A pass of each learner, its part of the fit's own beginning and end included."""
    x, y = letters(letter)
    sk = _peers()
    name, kind = "letter rows 16,000 × 16, 26 classes", "scikit-learn"
    pairs: list[tuple[str, Any, str, Callable[[], object] | None, float | None]] = [
        ("Perceptron", Perceptron, "Perceptron", sk("Perceptron", x, y), 1.0),
        ("averaged Perceptron", partial(Perceptron, averaged=True), "SGD(average)", sk("average", x, y), None),
        ("PassiveAggressive", PassiveAggressive, "SGD(pa1)", sk("pa1", x, y), None),
        ("ConstraintClassifier(all)", partial(ConstraintClassifier, "all"), "", None, None),
    ]  # fmt: skip
    for ours, learner, peer, theirs, asked in pairs:
        contestants: dict[str, Callable[[], object]] = {"ours": _fit(learner, x, y)}
        if theirs is not None:
            contestants["theirs"] = theirs
        times = _a_pass(contestants, repeats)
        yield Row(f"{ours}, {name}", times["ours"], f"{kind} {peer}" if peer else "", times.get("theirs"), asked)
    times = _a_pass(
        {"ours": lambda: Pegasos(epochs=PASSES, batch_size=1).fit(x, y), "theirs": sk("hinge", x, y)}, repeats
    )
    yield Row(f"Pegasos, a row a step, {name}", times["ours"], f"{kind} SGD(hinge)", times["theirs"])
    sparse, labels = words()
    times = _a_pass({"ours": _fit(Perceptron, sparse, labels), "theirs": sk("Perceptron", sparse, labels)}, repeats)
    size = "10,000 × 50,000, 100 entries a row, 20 classes"
    yield Row(f"Perceptron, compressed rows {size}", times["ours"], f"{kind} Perceptron", times["theirs"])
    sequences, tags = handwriting()
    times = _a_pass({"ours": _fit(Perceptron, sequences, tags)}, repeats)
    yield Row("structured Perceptron, 600 sequences of 8 × 128, 26 labels", times["ours"])


def _a_pass(contestants: dict[str, Callable[[], object]], repeats: int) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        times = take_turns(contestants, repeats, warmup=1)
    for timing in times.values():
        timing.seconds = [seconds / PASSES for seconds in timing.seconds]
        timing.wall = [seconds / PASSES for seconds in timing.wall]
    return times


def _fit(learner: Any, features: Any, target: Tensor) -> Callable[[], object]:
    return lambda: learner(max_passes=PASSES).fit(features, target)


def _peers() -> Callable[[str, Any, Tensor], Callable[[], object]]:
    from sklearn import linear_model as sk

    plain = {"max_iter": PASSES, "tol": None, "shuffle": False}
    step = {"penalty": None, "eta0": 1, **plain}
    made = {
        "Perceptron": lambda: sk.Perceptron(**plain),
        "average": lambda: sk.SGDClassifier(loss="perceptron", average=True, learning_rate="constant", **step),
        "pa1": lambda: sk.SGDClassifier(loss="hinge", learning_rate="pa1", **step),
        "hinge": lambda: sk.SGDClassifier(loss="hinge", **plain),
    }  # fmt: skip

    def peer(which: str, x: Any, y: Tensor) -> Callable[[], object]:
        features = x.double().numpy() if isinstance(x, Tensor) else x
        return lambda: made[which]().fit(features, y.numpy())

    return peer


def letters(path: str | None) -> tuple[Tensor, Tensor]:
    """The training rows of the letters, or rows that look like them."""
    if path is not None:
        with np.load(path) as data:
            chosen = data["train_idx"]
            return torch.from_numpy(data["X"][chosen]).double(), torch.from_numpy(data["y"][chosen])
    g = torch.Generator().manual_seed(0)
    y = torch.randint(26, (16_000,), generator=g)
    means = 4 + 6 * torch.rand(26, 16, generator=g)
    return (means[y] + 2 * torch.randn(16_000, 16, generator=g)).round().clamp(0, 15).double(), y


def words() -> tuple[Any, Tensor]:
    """Rows of a hundred entries each, as of words in documents."""
    import scipy.sparse

    r = np.random.default_rng(0)
    y = r.integers(20, size=10_000)
    columns = (r.zipf(1.3, size=(10_000, 100)) * 37 + 997 * y[:, None]) % 50_000
    table = scipy.sparse.csr_matrix((np.ones(columns.size), (np.repeat(np.arange(10_000), 100), columns.ravel())))
    table.resize(10_000, 50_000)
    return table, torch.from_numpy(y)


def handwriting() -> tuple[Tensor, Tensor]:
    """Words of eight letters, a picture of 128 dots each."""
    g = torch.Generator().manual_seed(0)
    y = torch.randint(26, (600, 8), generator=g)
    pictures = torch.rand(26, 128, generator=g)
    return (pictures[y] > torch.rand(600, 8, 128, generator=g)).float(), y


if __name__ == "__main__":
    main()
