"""The certified SVM beside liblinear and libsvm, on the same rows in one run, and what it proves.

    python -m benchmarks.svm [--only digits satimage large noisy kernel mixture] [--data FOLDER] [--repeats 3]
                             [--classes 100 1000] [--letter]

Each is CPU time on one thread. liblinear is run at several tolerances, and the one that counts is the loosest at which
its primal is no worse than ours; both are in the table. ``--data``, or ``TORCH_MULTICLASS_DATA``, is a folder with
``uci/satimage.npz``, ``uci/segmentation.npz`` and ``uci/letter.npz``, each with X and y, and train_idx and test_idx
where there is a split; what is missing is left out, and said.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.timing import Row, Timing, describe, table
from torch_multiclass import kernels
from torch_multiclass.solvers import DualSVM, Pegasos

USES_LIBRARY = True
C = 1.0
LETTER_C, LETTER_GAMMA = 4.0, 8.0  # by cross-validation: recipes/configs/svm_letter_tune.yaml
TOLERANCES = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
WEAK = (0.1, 1e-2, 1e-3)
DATA = "TORCH_MULTICLASS_DATA"


class Result(NamedTuple):
    """Ours and a peer on one problem."""

    name: str
    ours: Timing
    primal: float
    gap: float
    peer: str
    theirs: Timing
    reached: str
    """The peer's primal, or the test errors of both."""
    asked: float
    """How many times the peer's time ours may take at most."""

    @property
    def ratio(self) -> float:
        """Our time over the peer's."""
        return self.ours.median / self.theirs.median


# ---------------------------------------------------------------------- data
def mixture(classes: int, rows: int, dimensions: int = 128, spread: float = 0.35) -> tuple[Tensor, Tensor]:
    """Equal Gaussian classes: means ``N(0, spread^2)``, noise ``N(0, 1)``, all over the root of the dimension."""
    generator = torch.Generator().manual_seed(0)
    means = torch.randn(classes, dimensions, generator=generator) * spread
    target = torch.arange(rows) % classes
    return (means[target] + torch.randn(rows, dimensions, generator=generator)) / dimensions**0.5, target


def prototypes(rows: int, noise: float, faint: bool, dimensions: int = 784) -> tuple[Tensor, Tensor]:
    """Ten classes of three prototypes each, drawn from [0, 1] on a quarter of the columns, and noise on top.

    ``faint``: 0.35 of the prototypes, cut at 0 and divided by 5; else cut to [0, 1], as pixels are.
    """
    generator = torch.Generator().manual_seed(0)
    kept = torch.rand(30, dimensions, generator=generator) < 0.25
    means = torch.rand(30, dimensions, generator=generator) * kept
    target = torch.arange(rows) % 10
    chosen = target + 10 * torch.randint(3, (rows,), generator=generator)
    rest = noise * torch.randn(rows, dimensions, generator=generator)
    return ((0.35 * means[chosen] + rest).clamp_min(0) / 5 if faint else (means[chosen] + rest).clamp(0, 1)), target


def digits() -> tuple[Tensor, Tensor]:
    """All of scikit-learn's digits, over 16."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)


def unit(x: Tensor) -> Tensor:
    """Every feature to [0, 1]."""
    low, high = x.aminmax(dim=0)
    return (x - low) / (high - low).clamp_min(1e-9)


def table_of(folder: Path | None, name: str) -> tuple[Tensor, Tensor, Tensor, Tensor] | None:
    """Features to [0, 1], labels, and which rows train and test (three quarters and one, where there is no split)."""
    path = None if folder is None else folder / "uci" / f"{name}.npz"
    if path is None or not path.exists():
        print(f"{name}: left out, {path or f'no folder (--data or {DATA})'} is not there", file=sys.stderr)
        return None
    with np.load(path) as file:
        x, y = torch.tensor(file["X"], dtype=torch.float32), torch.tensor(file["y"])
        if "train_idx" in file and name != "segmentation":  # its split has 210 rows to train
            return unit(x), y, torch.tensor(file["train_idx"]), torch.tensor(file["test_idx"])
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    return unit(x), y, order[: len(x) * 3 // 4], order[len(x) * 3 // 4 :]


# ---------------------------------------------------------------------- measures
def objective(weight: np.ndarray, x: Tensor, y: Tensor, strength: float) -> float:
    """The Crammer-Singer primal, in float64."""
    w, total = torch.as_tensor(weight, dtype=torch.float64), 0.0
    for rows, labels in zip(torch.split(x, 4096), torch.split(y, 4096), strict=True):
        scores, label = rows.double() @ w.mT, labels[:, None]
        total += float((scores - scores.gather(1, label) + 1).scatter_(1, label, 0.0).amax(1).sum())
    return float(0.5 * w.square().sum()) + strength * total


def timed(run: Callable[[], object]):
    """CPU seconds and the result."""
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


def wrong(scorer: nn.Module, x: Tensor, y: Tensor) -> float:
    """The share of rows with another label."""
    with torch.no_grad():
        scores = scorer(x)
    guess = (scores[:, 0] > 0).long() if scores.shape[1] == 1 else scores.argmax(1)
    return float((guess != y).double().mean())


def liblinear(x: np.ndarray, y: np.ndarray, tol: float, strength: float) -> np.ndarray:
    """The weights of its Crammer-Singer machine."""
    from sklearn.svm import LinearSVC

    peer = LinearSVC(
        multi_class="crammer_singer", fit_intercept=False, C=strength, tol=tol, max_iter=100_000, random_state=0
    )
    return peer.fit(x, y).coef_


def linear(
    name: str, x: Tensor, y: Tensor, strength: float, asked: float, repeats: int, peer_tol: float | None = None
) -> Result:
    """A linear machine to 1e-3, and liblinear at an equal primal, or at a tolerance that is given."""
    wide, labels = x.double().numpy(), y.numpy()
    ours, theirs = Timing(), Timing()
    report = DualSVM(strength, tol=1e-3).fit(x, y).report
    tol, primal = peer_tol, float("nan")
    if tol is None:
        for tol in TOLERANCES:
            primal = objective(liblinear(wide, labels, tol, strength), x, y, strength)
            if primal <= report.primal * (1 + 1e-5):
                break
    for _ in range(repeats):
        ours.seconds.append(timed(lambda: DualSVM(strength, tol=1e-3).fit(x, y))[0])
        seconds, weight = timed(lambda: liblinear(wide, labels, tol, strength))
        theirs.seconds.append(seconds)
        primal = objective(weight, x, y, strength)
    return Result(name, ours, report.primal, report.gap, f"liblinear, tol {tol:g}", theirs, f"{primal:.4f}", asked)


def kernel(name: str, data: tuple[Tensor, ...], strength: float, asked: float, repeats: int, binary: bool) -> Result:
    """A Gaussian machine to 1e-3, and libsvm as it is, with the test errors of both."""
    from sklearn.svm import SVC

    x, y, train, test = data
    y = (y == 2).long() if binary else y
    rows, labels, unseen, truth = x[train], y[train], x[test], y[test]
    wide, wide_unseen = rows.double().numpy(), unseen.double().numpy()
    ours, theirs = Timing(), Timing()
    solver = DualSVM(strength, kernels.Gaussian(1.0), 1e-3, binary=binary)
    fit, peer = solver.fit(rows, labels), SVC(C=strength, gamma=1.0).fit(wide, labels.numpy())
    for _ in range(repeats):
        ours.seconds.append(timed(lambda: solver.fit(rows, labels))[0])
        theirs.seconds.append(timed(lambda: SVC(C=strength, gamma=1.0).fit(wide, labels.numpy()))[0])
    errors = (wrong(fit.scorer, unseen, truth), 1 - peer.score(wide_unseen, truth.numpy()))
    reached = "test errors {:.1%} and {:.1%}".format(*errors)
    return Result(name, ours, fit.report.primal, fit.report.gap, "libsvm", theirs, reached, asked)


def results(only: set[str], folder: Path | None, repeats: int) -> Iterator[Result]:
    """All that is compared."""
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=FutureWarning)
    warnings.filterwarnings("ignore", message="Liblinear failed to converge")
    if "digits" in only:
        for strength, asked in ((1.0, 1.3), *((weak, 4.0) for weak in WEAK)):
            yield linear(f"digits, 1,797 x 64, C = {strength:g}", *digits(), strength, asked, repeats)
    if "satimage" in only and (data := table_of(folder, "satimage")) is not None:
        x, y, train, _ = data
        for strength in WEAK:
            yield linear(f"satimage, 4,435 x 36, C = {strength:g}", x[train], y[train], strength, 4.0, repeats)
    if "large" in only:
        x, y = prototypes(60_000, 0.35, faint=False)
        yield linear("prototypes, 60,000 x 784, C = 1", x, y, 1.0, 2.5 / 4.2, 1, peer_tol=1e-2)
    if "kernel" in only and (data := table_of(folder, "segmentation")) is not None:
        yield kernel("segmentation, Gaussian, 1,732 x 19, 7 classes, C = 10", data, 10.0, 8.0, repeats, False)
        yield kernel("segmentation, Gaussian, 1,732 x 19, binary, C = 10", data, 10.0, 3.0, repeats, True)
    if "noisy" in only:
        x, y = prototypes(60_000, 1.0, faint=True)
        yield linear("noisy prototypes, 60,000 x 784, C = 1", x, y, 1.0, 1.0, 1, peer_tol=1e-2)


def rows(repeats: int) -> Iterator[Row]:
    """The lines of the table of everything."""
    folder = os.environ.get(DATA)
    for one in results({"digits", "satimage", "large", "kernel"}, folder and Path(folder), min(repeats, 5)):
        yield Row(f"DualSVM, {one.name}", one.ours, one.peer, one.theirs, 1 / one.asked)


def compared(found: Iterator[Result]) -> str:
    """The table of them."""
    header = ["problem", "CPU s", "spread, ms", "primal", "gap", "peer", "its CPU s", "its primal", "ratio", "asked"]
    lines = [
        [
            *(one.name, f"{one.ours.median:.3f}", one.ours.spread, f"{one.primal:.4f}", f"{one.gap:.1e}", one.peer),
            *(f"{one.theirs.median:.3f}", one.reached, f"{one.ratio:.2f}", f"{one.asked:.2f}"),
        ]
        for one in found
    ]
    return table(header, lines, f"DualSVM to a gap of 1e-3 ({describe('cpu')})")


# ---------------------------------------------------------------------- longer tables
def mixtures(classes: int, device: str) -> str:
    """A Gaussian mixture of 16,000 rows and 128 features, and 4,000 more for testing."""
    x, y = mixture(classes, 20_000)
    train, label, test, truth = x[:16_000], y[:16_000], x[16_000:], y[16_000:]
    wide = train.double().numpy()
    rows = []
    for tol in (1e-2, 1e-3) if classes <= 100 else (1e-2,):
        seconds, fit = timed(lambda t=tol: DualSVM(C, tol=t).fit(train.to(device), label.to(device)))
        report, scorer = fit.report, fit.scorer.cpu()
        rows.append([f"ours, gap {tol:g}", f"{seconds:.2f}", f"{report.primal:.2f}", f"{report.dual:.2f}"])
        rows[-1] += [f"{report.gap:.1e}", f"{100 * wrong(scorer, test, truth):.2f}"]
    for tol in (1e-1, 1e-2, 1e-3) if classes <= 100 else (1e-1,):
        seconds, weight = timed(lambda t=tol: liblinear(wide, label.numpy(), t, C))
        error = float(((test @ torch.tensor(weight, dtype=torch.float32).mT).argmax(1) != truth).double().mean())
        rows.append([f"liblinear, tol {tol:g}", f"{seconds:.2f}", f"{objective(weight, train, label, C):.2f}"])
        rows[-1] += ["", "", f"{100 * error:.2f}"]
    if classes <= 100:
        seconds, fit = timed(lambda: Pegasos(C, epochs=20).fit(train, label))
        rows.append(
            ["Pegasos, 20 epochs", f"{seconds:.2f}", f"{objective(fit.scorer.weight.detach(), train, label, C):.2f}"]
        )
        rows[-1] += ["", "", f"{100 * wrong(fit.scorer, test, truth):.2f}"]
    header = ["solver", "CPU s", "primal", "dual", "gap", "test error, %"]
    return table(header, rows, f"Gaussian mixture, {classes} classes, 16,000 x 128, C = 1 ({describe(device)})")


def letter(folder: Path | None, device: str) -> str | None:
    """A Gaussian machine on letter, exact and with 2,000 landmarks."""
    data = table_of(folder, "letter")
    if data is None:
        return None
    x, y, train, test = data
    rows = []
    for landmarks, tol in ((None, 1e-3), (2000, 1e-3), (2000, 1e-2)):
        solver = DualSVM(LETTER_C, kernels.Gaussian(LETTER_GAMMA), tol, landmarks=landmarks)
        seconds, fit = timed(lambda s=solver: s.fit(x[train].to(device), y[train].to(device)))
        report = fit.report
        rows.append(["exact" if landmarks is None else f"{landmarks} landmarks", f"{seconds:.1f}"])
        rows[-1] += [f"{report.seconds:.0f}", f"{report.primal:.2f}", f"{report.dual:.2f}", f"{report.gap:.1e}"]
        rows[-1] += [f"{report.support_vectors}", f"{100 * wrong(fit.scorer.cpu(), x[test], y[test]):.2f}"]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    header = ["kernel", "CPU s", "wall s", "primal", "dual", "gap", "support vectors", "test error, %"]
    title = (
        f"Letter, Gaussian, C = {LETTER_C:g}, gamma = {LETTER_GAMMA:g} ({describe(device)}; {memory:.1f} GiB at most)"
    )
    return table(header, rows, title)


def main() -> None:
    """Print the tables."""
    everything = ["digits", "satimage", "large", "kernel", "noisy", "mixture"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=everything, default=everything)
    parser.add_argument("--data", default=os.environ.get(DATA))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--classes", type=int, nargs="*", default=[100])
    parser.add_argument("--letter", action="store_true")
    options = parser.parse_args()
    folder = Path(options.data) if options.data else None
    print(compared(results(set(options.only), folder, options.repeats)), end="\n\n")
    for classes in options.classes if "mixture" in options.only else []:
        print(mixtures(classes, options.device), end="\n\n")
    if options.letter and (found := letter(folder, options.device)) is not None:
        print(found)


if __name__ == "__main__":
    main()
