"""The certified SVM beside liblinear, on the same rows in one run, and what it proves.

    python -m benchmarks.svm [--classes 1000] [--letter letter.npz] [--device cuda]

liblinear is timed at several tolerances; the figure to read is its CPU time at a primal no better than ours.
``--letter`` takes an .npz file with X, y, train_idx and test_idx (UCI letter recognition, features 0 to 15).
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.timing import describe, table
from torch_multiclass import kernels
from torch_multiclass.solvers import DualSVM, Pegasos

C = 1.0
LETTER_C, LETTER_GAMMA = 4.0, 8.0  # by cross-validation: recipes/configs/svm_letter_tune.yaml


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--classes", type=int, nargs="*", default=[100])
    parser.add_argument("--letter")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=FutureWarning)
    print(digits(), end="\n\n")
    for classes in options.classes:
        print(mixtures(classes, options.device), end="\n\n")
    if options.letter:
        print(letter(options.letter, options.device))


def mixture(classes: int, rows: int, dimensions: int = 128, spread: float = 0.35) -> tuple[Tensor, Tensor]:
    """Equal Gaussian classes: means ``N(0, spread^2)``, noise ``N(0, 1)``, all over the root of the dimension."""
    generator = torch.Generator().manual_seed(0)
    means = torch.randn(classes, dimensions, generator=generator) * spread
    target = torch.arange(rows) % classes
    return (means[target] + torch.randn(rows, dimensions, generator=generator)) / dimensions**0.5, target


def objective(weight: np.ndarray, x: Tensor, y: Tensor) -> float:
    """The Crammer-Singer primal, in float64."""
    w = torch.as_tensor(weight, dtype=torch.float64)
    scores = x.double() @ w.mT
    label = y[:, None]
    short = (scores - scores.gather(1, label) + 1).scatter_(1, label, 0.0)
    return float(0.5 * w.square().sum() + C * short.amax(1).sum())


def timed(run):
    """CPU seconds and the result."""
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


def wrong(scorer: nn.Module, x: Tensor, y: Tensor) -> float:
    with torch.no_grad():
        return float((scorer(x).argmax(1) != y).double().mean())


def liblinear(x: Tensor, y: Tensor, tol: float):
    from sklearn.svm import LinearSVC

    peer = LinearSVC(multi_class="crammer_singer", fit_intercept=False, C=C, tol=tol, max_iter=100_000, random_state=0)
    return peer.fit(x.double().numpy(), y.numpy()).coef_


def digits() -> str:
    """The optimum of digits over 16, with and without a test split."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    x, y = load_digits(return_X_y=True)
    train, _, labels, _ = train_test_split(x / 16, y, test_size=0.25, stratify=y, random_state=0)
    rows = []
    for name, data, target in (("three quarters", train, labels), ("all", x / 16, y)):
        features, label = torch.tensor(data), torch.tensor(target)
        seconds, fit = timed(lambda f=features, t=label: DualSVM(C, tol=1e-5).fit(f, t))
        theirs, weight = timed(lambda f=features, t=label: liblinear(f, t, 1e-6))
        report = fit.report
        rows.append([name, f"{report.primal:.4f}", f"{report.dual:.4f}", f"{seconds:.2f}"])
        rows[-1] += [f"{objective(weight, features, label):.4f}", f"{theirs:.2f}"]
    header = ["digits", "primal", "dual", "CPU s", "liblinear's primal, tol 1e-6", "CPU s"]
    return table(header, rows, f"Digits over 16, C = 1, gap 1e-5 ({describe('cpu')})")


def mixtures(classes: int, device: str) -> str:
    """A Gaussian mixture of 16,000 rows and 128 features, and 4,000 more for testing."""
    x, y = mixture(classes, 20_000)
    train, label, test, truth = x[:16_000], y[:16_000], x[16_000:], y[16_000:]
    rows = []
    for tol in (1e-2, 1e-3) if classes <= 100 else (1e-2,):
        seconds, fit = timed(lambda t=tol: DualSVM(C, tol=t).fit(train.to(device), label.to(device)))
        report, scorer = fit.report, fit.scorer.cpu()
        rows.append([f"ours, gap {tol:g}", f"{seconds:.2f}", f"{report.primal:.2f}", f"{report.dual:.2f}"])
        rows[-1] += [f"{report.gap:.1e}", f"{100 * wrong(scorer, test, truth):.2f}"]
    for tol in (1e-1, 1e-2, 1e-3) if classes <= 100 else (1e-1,):
        seconds, weight = timed(lambda t=tol: liblinear(train, label, t))
        error = float(((test @ torch.tensor(weight, dtype=torch.float32).mT).argmax(1) != truth).double().mean())
        rows.append([f"liblinear, tol {tol:g}", f"{seconds:.2f}", f"{objective(weight, train, label):.2f}"])
        rows[-1] += ["", "", f"{100 * error:.2f}"]
    if classes <= 100:
        seconds, fit = timed(lambda: Pegasos(C, epochs=20).fit(train, label))
        rows.append(
            ["Pegasos, 20 epochs", f"{seconds:.2f}", f"{objective(fit.scorer.weight.detach(), train, label):.2f}"]
        )
        rows[-1] += ["", "", f"{100 * wrong(fit.scorer, test, truth):.2f}"]
    header = ["solver", "CPU s", "primal", "dual", "gap", "test error, %"]
    return table(header, rows, f"Gaussian mixture, {classes} classes, 16,000 x 128, C = 1 ({describe(device)})")


def letter(path: str, device: str) -> str:
    """A Gaussian machine on letter, exact and with 2,000 landmarks."""
    with np.load(path) as file:
        x, y = torch.tensor(file["X"] / 15, dtype=torch.float32), torch.tensor(file["y"])
        train, test = torch.tensor(file["train_idx"]), torch.tensor(file["test_idx"])
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


if __name__ == "__main__":
    main()
