"""A machine that proves how good its answer is, beside a descent that cannot; and the digits that it misreads."""

from __future__ import annotations

import time
from typing import NamedTuple

import torch
from torch import Tensor

import torch_multiclass as tm
from torch_multiclass import plots
from torch_multiclass.solvers import Certificate, DualSVM, FrankWolfe

from ..data.rows import stratified_split
from ..progress import whole
from .digits import NAMES, parts
from .show import claim, percent, picture, seconds, working

STEPS = 1000


class Step(NamedTuple):
    """An objective on the way, and what is proved of the least."""

    iteration: int
    seconds: float
    primal: float
    dual: float


def descent(x: Tensor, y: Tensor, dual: float, rate: float = 0.03) -> list[Step]:
    """Adam on the same ``½ |W|² + sum_i max_l [1_{l ≠ y} + f_l - f_y]``, all rows a step, its rate falling to 0."""
    scorer = tm.LinearScorer(x.shape[1], 10, bias=False)
    torch.nn.init.zeros_(scorer.weight)
    loss, optimizer = tm.CrammerSingerLoss(reduction="sum"), torch.optim.Adam(scorer.parameters(), rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    start, steps = time.perf_counter(), []
    for n in range(STEPS):
        objective = 0.5 * scorer.weight.square().sum() + loss(scorer(x), y)
        optimizer.zero_grad()
        objective.backward()
        optimizer.step()
        schedule.step()
        steps.append(Step(n, time.perf_counter() - start, float(objective.detach()), dual))
    return steps


def proved(report: Certificate) -> list[Step]:
    """The steps of a fit, the last of them as it is reported: at the weights as they are stored."""
    return [*report.history[:-1], Step(report.iterations, report.seconds, report.primal, report.dual)]


def certificate(x: Tensor, y: Tensor) -> None:
    """How far each is from the optimum, in time."""
    with working("machine", 3) as step:
        report = whole(DualSVM(tol=1e-6, progress=False), x, y).report
        step()
        tol = 1e-6 if tm.backends()["native"].startswith("in use") else 0.1  # without it, a hundred times as long
        planes = whole(FrankWolfe(cost="zero_one", tol=tol, progress=False), x, y).report
        step()
        adam = descent(x, y, report.dual)
        step()
    above = min(s.primal for s in adam) / report.dual - 1
    claim(
        "machine",
        f"A Crammer–Singer machine ends after {seconds(report.seconds)}, its objective proved within {report.gap:.0e} "
        f"of the least, as a share of it. {STEPS} steps of Adam end {percent(above)} above it after "
        f"{seconds(adam[-1].seconds)}; how far they are from the least, the proof says, and nothing of their own.",
    )
    with picture("gap", 6, 4, "Crammer–Singer machine on digits: how far from the optimum") as figure:
        axes = figure.subplots()
        plots.gap(proved(report), axes, label="DualSVM, proved")
        plots.gap(proved(planes), axes, label="FrankWolfe, proved")
        plots.gap(adam, axes, label="Adam, by DualSVM's bound")
        axes.set_ylim(0.3 * max(min(report.gap, planes.gap), 1e-12), None)


def misread(x: Tensor, y: Tensor, rows: Tensor, labels: Tensor) -> None:
    """The digits that a machine gets wrong, with probabilities from rows that were held out."""
    first, held = (torch.tensor(part) for part in stratified_split(y.numpy(), 0.25, 1))
    machine = whole(DualSVM(progress=False), x[first], y[first]).scorer
    with torch.no_grad():
        calibrated = tm.TemperatureScaling().fit(machine(x[held]), y[held])
        probabilities = calibrated(machine(rows))
    top = probabilities.topk(2).indices
    wrong = top[:, 0] != labels
    second = int((top[wrong, 1] == labels[wrong]).sum())
    claim(
        "", f"It misreads {int(wrong.sum())} of {len(rows)} digits; of {second} the second best class is the true one."
    )
    title = "Digits over their two best classes and what each is believed: blue is the true class, red another"
    with picture("misread", 8.5, 3.0, title) as figure:
        plots.misread(rows.unflatten(1, (8, 8)), labels, probabilities, figure.subplots(), labels=NAMES, columns=9)


def main() -> None:
    """The claims and their pictures."""
    x, y, rows, labels = parts()
    certificate(x, y)
    misread(x, y, rows, labels)
