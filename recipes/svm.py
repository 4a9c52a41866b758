"""Support vector machines with a certificate: fit one, choose its C and kernel width, time it against K.

::

    python -m recipes.svm fit  --config recipes/configs/svm_digits.yaml
    python -m recipes.svm tune --config recipes/configs/svm_letter_tune.yaml --path letter.npz
    python -m recipes.svm cost
    python -m recipes.svm predict --folder runs/svm --path new.csv --probabilities true

Tuning keeps every finished fold in its output folder, so it can be stopped and started again.
"""

from __future__ import annotations

if __name__ == "__main__":
    from recipes.start import command

    command("svm")

import shlex
import time
import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

import torch_multiclass as tm
from torch_multiclass.solvers import Certificate, DualSVM, Interrupted

from .answers import note, temperature, write
from .data.costs import costs
from .data.kept import kept
from .data.remarks import remark
from .data.table import asked, of_fit, read_or_digits
from .files import refitted
from .folds import Folds, check_compared, stratified, told_of_absent
from .functions import command_line, typed
from .machine import chances, keep, labelled, learned, load, measured, parts, scaled
from .progress import percent, quiet_line
from .start import main as in_one_line
from .start import program
from .timing import cost
from .weights import Weight, of_rows

__all__ = ["cost", "fit", "load", "main", "predict", "tune"]


Strength = float | Literal["inf"]
"""What a loss weighs."""
Bias = bool | Literal["free"]
"""Whether a class has a constant, and whether that is regularised."""


def rows(facts: dict[str, Any]) -> tuple[Tensor, Tensor, np.ndarray, np.ndarray]:
    """Of a machine that is kept: features, scaled, labels, and the row numbers for training and for testing."""
    held = of_fit(facts["path"], facts["label"], facts.get("data"), facts.get("ignore"))
    return scaled(held.features, facts["scaling"]), torch.tensor(held.labels), *parts(held)


def solver(
    C: float, gamma: float | None, tol: float, landmarks: int | None, bias: Bias = False, cost: Tensor | None = None
) -> DualSVM:
    """A linear machine without ``gamma``, else a Gaussian one."""
    kernel = tm.kernels.Linear() if gamma is None else tm.kernels.Gaussian(gamma)
    return DualSVM(C, kernel, tol, landmarks=landmarks, bias=bias, cost="zero_one" if cost is None else cost)


def error(scores: Tensor, labels: Tensor, cost: Tensor | None = None) -> float:
    """The fraction of wrong labels, or with costs their mean."""
    found = scores.argmax(1)
    return float((found != labels).double().mean() if cost is None else cost[labels, found].mean())


def matrix(cost: str | dict[str, dict[str, float]] | None, names: list[str]) -> Tensor | None:
    """What each mistake costs."""
    return None if cost is None else torch.tensor(costs(cost, names), dtype=torch.float64)


def fit(
    path: str | None = None,
    label: str | None = None,
    divide_by: float | None = None,
    C: Strength = 1.0,
    gamma: float | None = None,
    tol: float = 1e-3,
    landmarks: int | None = None,
    output: str = "runs/svm",
    bias: Bias = False,
    weight: Weight | None = None,
    cost: str | dict[str, dict[str, float]] | None = None,
    ignore: list[str] | str | None = None,
) -> dict[str, float]:
    """Train one machine, test it, and keep its weights and its certificate.

    Args:
        path: a .csv, .tsv, .parquet or .npz file, the last with X and y (and train_idx and test_idx, else a quarter is
            for testing); default: digits.
        label: the column of the labels in a table; by default the last.
        divide_by: what to divide the features by; by default each column is given mean 0 and variance 1 on the training
            rows, missing values become the mean, and nominal columns are spelled out.
        C: the weight of the losses; `inf` is a hard margin, of rows that can be separated.
        gamma: of a Gaussian kernel; without it the machine is linear.
        tol: the relative duality gap to reach.
        landmarks: of a Nyström approximation; without it the kernel is exact.
        output: the folder for scorer.pt, which holds all that predict needs, and for report.json and model.json.
        bias: a constant feature beside the others, regularised like them; or `free`, which costs nothing, as libsvm's.
        weight: of the losses of each class, as `{cat: 2, dog: 1}`, 1 where it is not named; or `balanced`, which has
            every class count the same in all, however few rows it has.
        cost: what each mistake costs: a file with a row for each true class, its names before the rows and above the
            columns, or `{cat: {dog: 5}}`, 1 where it is not named; by default every mistake costs 1.
        ignore: columns to leave out, in a list, by their names or, without a heading, their numbers.
    """
    C = float(C)
    held = read_or_digits(path, label, ignore)
    train, test = parts(held)
    remark(held, train, test, weighted=weight is None)
    scaling = learned(held, train, divide_by)
    x, y = scaled(held.features, scaling), torch.tensor(held.labels)
    prices = matrix(cost, held.classes)
    refitted(Path(output), "scorer.pt")
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Interrupted)  # said below, once
        scorer, report = solver(C, gamma, tol, landmarks, bias, prices).fit(
            x[train], y[train], weight=of_rows(weight, y[train], held.classes), num_classes=len(held.classes)
        )
    with torch.no_grad():
        tested = scorer(x[test])
    facts = {
        "path": path,
        "divide_by": divide_by,
        "C": C,
        "gamma": gamma,
        "landmarks": landmarks,
        "bias": bias,
        "weight": weight,
        "num_classes": len(held.classes),
        **summary(report),
        "cpu_seconds": time.process_time() - start,
        "test_error": error(tested, y[test]),
    }
    if prices is not None:
        facts |= {"cost": prices.tolist(), "test_cost": error(tested, y[test], prices)}
    model = {
        "recipe": "svm",
        "kernel": {"name": "linear"} if gamma is None else {"name": "gaussian", "gamma": gamma},
        "label": label,
        "ignore": [*asked(ignore)],
        "schema": held.schema(),
        "scaling": scaling,
        "split": {"train": train.tolist(), "test": test.tolist()},
        "certificate": measured(report),
        "temperature": temperature(tested, y[test]),
        "data": held.digest(),
    }
    keep(Path(output), scorer, facts, model)
    print(
        f"primal {report.primal:.4f}, dual {report.dual:.4f}, gap {report.gap:.1e} in {report.iterations} passes and "
        f"{report.seconds:.1f} s; {supporting(report, scorer, len(train))}; "
        f"test error {percent(facts['test_error'])}"
        + (f", mean cost {facts['test_cost']:.4g}" if prices is not None else "")
    )
    if report.interrupted:
        print("ended from the keyboard: this is the best so far")
    else:
        print(f"kept in {output}; to label rows: {program('svm')} predict --folder {shlex.quote(output)} --path FILE")
    return facts


def predict(
    folder: str = "runs/svm",
    path: str | None = None,
    output: str | None = None,
    probabilities: bool = False,
    keep: list[str] | str | None = None,
) -> list[str]:
    """Label rows by a machine that `fit` kept, in their order, one name a line, or a table where columns go along.

    Args:
        folder: the output folder of fit, or the scorer.pt in it.
        path: a file of rows like those of fit, with or without labels; by default the test rows of fit's own.
        output: the file to write; by default labels.txt, where it is a table labels.csv.
        probabilities: write a CSV table, of each row the label and the probability of each class: the soft-max of the
            scores over a temperature that `fit` fitted to the test rows, which no training saw.
        keep: columns of the rows that go into the file before the label, in a list, by their names or, without a
            heading, their numbers; by default those that `fit` left out, as an id. The file is then a CSV table.
    """
    scorer, facts = load(Path(folder), "svm", "folder")
    given: Any = path
    if path is None:
        tested = facts["split"]["test"]
        given = of_fit(facts["path"], facts["label"], facts.get("data"), facts.get("ignore")).features[tested]
        known = kept(facts["path"], facts["schema"], keep, tested)
    else:
        known = kept(path, facts["schema"], keep)
    labels = labelled(scorer, facts, given)
    note(facts.get("temperature") if probabilities else None)
    write(output, labels, facts["schema"]["classes"], chances(scorer, facts, given) if probabilities else None, known)
    return labels


def supporting(report: Certificate, scorer: tm.Scorer, rows: int) -> str:
    """How many rows are support vectors, and of a kernel machine have a coefficient, in words."""
    said = f"{report.support_vectors} of {rows} rows support it"
    kept = len(scorer.support) if isinstance(scorer, tm.KernelScorer) else report.support_vectors
    return said if kept == report.support_vectors else f"{said}, {kept} have a coefficient"


def summary(report: Certificate) -> dict[str, float]:
    """The numbers of a report."""
    names = ("primal", "dual", "gap", "converged", "interrupted", "iterations", "seconds", "support_vectors")
    return {name: getattr(report, name) for name in names}


def tune(
    path: str | None = None,
    label: str | None = None,
    divide_by: float | None = None,
    Cs: list[Strength] = [1.0, 4.0, 16.0],  # noqa: B006 - a default on the command line, never changed
    gammas: list[float] | None = None,
    folds: int = 3,
    rows_at_most: int = 6000,
    tol: float = 1e-2,
    landmarks: int | None = None,
    output: str = "runs/svm_tune",
    bias: Bias = False,
    weight: Weight | None = None,
    cost: str | dict[str, dict[str, float]] | None = None,
    ignore: list[str] | str | None = None,
) -> dict[str, float]:
    """Choose C and the kernel width by cross-validation on the training part; finished folds are not repeated.

    Args:
        path: as for fit.
        label: as for fit.
        divide_by: as for fit.
        Cs: the values of C to try, one path of warm starts.
        gammas: the values of gamma to try; without them the machines are linear.
        folds: how many.
        rows_at_most: use no more training rows than these.
        tol: the relative duality gap of each machine.
        landmarks: as for fit.
        output: the folder for folds.json.
        bias: as for fit.
        weight: as for fit, of the losses in training; errors count every row the same.
        cost: as for fit; what is chosen has the least mean cost.
        ignore: as for fit.
    """
    check_compared(folds, Cs=Cs)
    if rows_at_most < folds:
        raise SystemExit(f"error: rows_at_most: got {rows_at_most}; accepted is at least {folds}")
    held_all = read_or_digits(path, label, ignore)
    train, test = parts(held_all)
    remark(held_all, train, test, weighted=weight is None)
    x, y = scaled(held_all.features, learned(held_all, train, divide_by)), torch.tensor(held_all.labels)
    generator = torch.Generator().manual_seed(0)
    chosen = torch.tensor(train)[torch.randperm(len(train), generator=generator)[:rows_at_most]]
    part = torch.from_numpy(stratified(y[chosen].numpy(), folds, held_all.classes))
    prices = matrix(cost, held_all.classes)
    setting = (folds, tol, landmarks, bias, weight, *([] if prices is None else [prices.tolist()]))
    done = Folds(Path(output), setting, x[chosen], y[chosen], part)
    grid = sorted(map(float, Cs))
    wanted = [_key(gamma, C, fold) for gamma in gammas or [None] for fold in range(folds) for C in grid]
    before = done.tell(wanted)
    with quiet_line() as bar, told_of_absent():
        task = bar.add_task("cross-validation", total=len(wanted), completed=before)
        for gamma in gammas or [None]:
            for fold in range(folds):
                missing = [C for C in grid if _key(gamma, C, fold) not in done]
                if not missing:
                    continue
                seen, held = chosen[part != fold], chosen[part == fold]
                again = grid[
                    : grid.index(missing[-1]) + 1
                ]  # a start is the end of the C before it, as when not stopped
                machine = solver(again[0], gamma, tol, landmarks, bias, prices)
                machine.progress = False  # the bar is of all of them
                given = of_rows(weight, y[seen], held_all.classes)
                path_of_c = machine.path(x[seen], y[seen], again, weight=given, num_classes=len(held_all.classes))
                for scorer, report in path_of_c:
                    if report.interrupted:
                        raise SystemExit("stopped; the folds that are finished are kept")
                    if report.C not in missing:
                        continue
                    with torch.no_grad():
                        done[_key(gamma, report.C, fold)] = error(scorer(x[held]), y[held], prices)
                    bar.advance(task)
    means = {
        (gamma, C): float(np.mean([done[_key(gamma, C, fold)] for fold in range(folds)]))
        for gamma in gammas or [None]
        for C in grid
    }
    for (gamma, C), mean in means.items():
        shown = f"error {percent(mean)}" if prices is None else f"mean cost {mean:.4g}"
        print(f"gamma {gamma}, C {C:g}: {shown}")
    gamma, C = min(means, key=means.__getitem__)
    best = {"path": path, "label": label, "divide_by": divide_by, "C": C, "gamma": gamma, "landmarks": landmarks}
    best |= {"bias": bias} if bias else {}
    best |= {"weight": weight, "cost": cost, "ignore": [*asked(ignore)] or None}
    options = " ".join(f"--{name} {shlex.quote(typed(value))}" for name, value in best.items() if value is not None)
    print(f"best: gamma {gamma}, C {C:g}; train it by: {program('svm')} fit {options}")
    return {"C": C, "gamma": float("nan") if gamma is None else gamma, "error": means[gamma, C]}


def _key(gamma: float | None, C: float, fold: int) -> str:
    return f"{gamma} {C} {fold}"


def main(args: list[str] | None = None) -> object:
    """Run the command line."""
    commands = {"fit": fit, "tune": tune, "cost": cost, "predict": predict}
    return in_one_line(lambda: command_line("svm", commands, args, __doc__.split("\n")[0]))
