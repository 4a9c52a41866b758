"""Pictures of how the time grows: chains in steps, labels and sequences, machines in rows; ours beside the peers.

    python -m benchmarks.scaling [--repeats 5] [--folder benchmarks/results]

On double logarithmic axes a power law is a line; its exponent, fitted to the upper half of the sizes, stands in the
legend. The native library is used where it is; ``torch alone`` is measured in a second process without it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch

import torch_multiclass as tm
from benchmarks import chains
from benchmarks.timing import take_turns

Run = Callable[[], object]
Points = dict[str, list[float]]
"""Seconds at each size, by contestant."""

STEPS = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
LABELS = [4, 8, 16, 32, 64, 128, 256, 512]
SEQUENCES = [1, 2, 4, 8, 16, 32, 64, 128]
ROWS = [500, 1000, 2000, 4000, 8000, 16000]
KERNEL_ROWS = [250, 500, 1000, 2000, 4000]


def chain_steps(size: tuple[int, int, int]) -> dict[str, Run]:
    """A training step of a CRF, ours and that of pytorch-crf."""
    given = chains.problem(size, 0.1, "cpu")
    return {"ours": chains.ours(given)[0], "pytorch-crf": chains.pytorch_crf(given)[0]}


def machines(rows: int) -> dict[str, Run]:
    """Linear Crammer-Singer machines to the gap 1e-2, beside liblinear at its tolerance 1e-1, which stops there too."""
    from benchmarks import svm

    x, y = svm.mixture(20, rows)
    return {
        "ours": lambda: tm.solvers.DualSVM(1.0, tol=1e-2).fit(x, y),
        "liblinear": lambda: svm.liblinear(x, y, 1e-1, 1.0),
    }


def kernel_machines(rows: int) -> dict[str, Run]:
    """Gaussian Crammer-Singer machines to the gap 1e-3 relative to C n, beside their Gram matrix alone, and libsvm."""
    from sklearn.svm import SVC

    from benchmarks import svm

    x, y = svm.mixture(7, rows, 19, spread=1.0)
    gaussian, wide, labels = tm.kernels.Gaussian(1.0), x.double().numpy(), y.numpy()
    return {
        "ours": lambda: tm.solvers.DualSVM(10.0, gaussian, 1e-3).fit(x, y),
        "libsvm": lambda: SVC(C=10.0, gamma=1.0).fit(wide, labels),
        "Gram matrix alone": lambda: gaussian(x, x),
    }


PANELS: dict[str, tuple[str, Sequence[int], Callable[[int], dict[str, Run]]]] = {
    "T": ("steps T (8 sequences, 17 labels)", STEPS, lambda n: chain_steps((8, n, 17))),
    "K": ("labels K (8 sequences, 64 steps)", LABELS, lambda n: chain_steps((8, 64, n))),
    "B": ("sequences B (64 steps, 17 labels)", SEQUENCES, lambda n: chain_steps((n, 64, 17))),
    "n": ("rows n (128 features, 20 classes)", ROWS, machines),
    "m": ("rows m (19 features, 7 classes)", KERNEL_ROWS, kernel_machines),
}
TITLES = {"n": "a certified linear machine", "m": "a certified Gaussian machine"}


def measure(repeats: int) -> Iterator[tuple[str, Points]]:
    """The seconds of every panel, in this process."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for name, (_, sizes, contestants) in PANELS.items():
        points: Points = {}
        for size in sizes:
            few = repeats if name not in TITLES else 1
            for who, timing in take_turns(contestants(size), few, warmup=1).items():
                points.setdefault(who, []).append(timing.median)
        yield name, points


def without_library(repeats: int) -> dict[str, Points]:
    """The same in a process of its own, by torch alone."""
    command = [sys.executable, "-m", "benchmarks.scaling", "--measure", "--repeats", str(repeats)]
    environment = {**os.environ, "TORCH_MULTICLASS_NATIVE": "0"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The slope of the upper half in double logarithms, by least squares."""
    half = len(sizes) // 2
    x, y = ([math.log(value) for value in values[half:]] for values in (sizes, seconds))
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    products = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return products / sum((a - mean_x) ** 2 for a in x)


def draw(found: dict[str, Points], path: Path) -> None:
    """A panel for each quantity that grows."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot, ticker

    figure, axes = pyplot.subplots(2, 3, figsize=(15, 8), layout="constrained")
    for axis in axes.flat[len(found) :]:
        axis.remove()
    for axis, (name, points) in zip(axes.flat, found.items(), strict=False):
        label, sizes, _ = PANELS[name]
        for (who, seconds), style in zip(points.items(), ("o-", "s-", "^-", "v--"), strict=False):
            law = f"{who}, ∝ {name}^{exponent(sizes, seconds):.2f}"
            axis.loglog(sizes, [value * 1e3 for value in seconds], style, label=law)
        axis.set(xlabel=label, ylabel="CPU time, ms")
        axis.set_title(TITLES.get(name, "a CRF's training step"))
        axis.xaxis.set_minor_formatter(ticker.NullFormatter())
        axis.grid(visible=True, which="both", alpha=0.25)
        axis.legend()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main() -> None:
    """Measure and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    found = dict(measure(options.repeats))
    if options.measure:
        print(json.dumps(found))
        return
    if tm.backends()["native"].startswith("in use"):
        for name, points in without_library(options.repeats).items():
            found[name]["torch alone"] = points["ours"]
    options.folder.mkdir(exist_ok=True)
    draw(found, options.folder / "scaling.png")
    print(options.folder / "scaling.png")


if __name__ == "__main__":
    main()
