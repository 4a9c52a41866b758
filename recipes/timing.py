"""The time of one-versus-all and of one-versus-one machines against the number of classes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import torch_multiclass as tm
from torch_multiclass.solvers import DualSVM

from .files import write_atomically
from .plots import INK, MUTED, RIGHT, WRONG, panels
from .progress import whole

__all__ = ["cost"]


def cost(
    classes: list[int] = [4, 8, 16, 32],  # noqa: B006 - a default on the command line, never changed
    rows_total: int = 2048,
    gamma: float = 0.5,
    output: str = "runs/svm_cost",
) -> dict[str, float]:
    """Training and prediction time of one-versus-all and one-versus-one against the number of classes.

    A Gaussian mixture with a fixed number of rows in all; binary kernel machines to the same gap. The table in the text
    says ``K m^a`` against ``K^{2-a} m^a`` for training and ``K`` against ``K^2`` for prediction; the exponents of K are
    fitted to the measured CPU times.

    Args:
        classes: the numbers of classes.
        rows_total: training rows, shared out among the classes.
        gamma: of the Gaussian kernel.
        output: the folder for times.json and times.png.
    """
    plans: dict[str, Callable[[int], Tensor]] = {
        "one-versus-all": tm.codes.one_vs_all,
        "one-versus-one": tm.codes.one_vs_one,
    }
    times: dict[str, dict[str, list[float]]] = {name: {"train": [], "predict": []} for name in plans}
    for k in classes:
        x, y = mixture(k, rows_total + 500)
        seen, held, labels = x[:rows_total], x[rows_total:], y[:rows_total]
        for name, code in plans.items():
            matrix = code(k)
            start = time.process_time()
            machines = []
            for column in matrix.mT:
                signs = column[labels].long()
                used = signs != 0
                machines.append(
                    whole(DualSVM(1.0, tm.kernels.Gaussian(gamma), 1e-2, binary=True), seen[used], signs[used])
                )
            middle = time.process_time()
            with torch.no_grad():
                margins = torch.cat([machine.scorer(held) for machine in machines], 1)
                tm.LossBasedDecoder("hinge")(tm.CodedScores(margins, matrix))
            times[name]["train"].append(middle - start)
            times[name]["predict"].append(time.process_time() - middle)
            print(f"K = {k:3d}, {name}: train {middle - start:.2f} s, predict {times[name]['predict'][-1]:.3f} s")
    exponents = {
        f"{name} {phase}": float(np.polyfit(np.log(classes), np.log(values), 1)[0])
        for name, phases in times.items()
        for phase, values in phases.items()
    }
    folder = Path(output)
    write_atomically(folder / "times.json", json.dumps({"classes": classes, "times": times, "exponents": exponents}))
    with panels(
        folder / "times.png", ["train", "predict"], "CPU time against the number of classes", (4.2, 3.4)
    ) as axes:
        for phase, axis in axes.items():
            for (name, phases), colour in zip(times.items(), (RIGHT, WRONG), strict=True):
                label = f"{name}: K^{exponents[f'{name} {phase}']:.2f}"
                axis.loglog(classes, phases[phase], "o-", color=colour, label=label)
            axis.set(xlabel="classes", ylabel="seconds", title=phase)
            axis.set_xticks(classes, [str(k) for k in classes])
            axis.set_xticks([], minor=True)
            axis.legend(frameon=False, labelcolor=INK)
            axis.grid(color=MUTED, alpha=0.2)
    for name, value in exponents.items():
        print(f"{name}: time grows as K^{value:.2f}")
    return exponents


def mixture(k: int, count: int, dimensions: int = 16) -> tuple[Tensor, Tensor]:
    """Equal Gaussian classes with means ``N(0, 1)`` and noise ``N(0, 1)``, over the root of the dimension."""
    generator = torch.Generator().manual_seed(0)
    means = torch.randn(k, dimensions, generator=generator)
    labels = torch.arange(count) % k
    return (means[labels] + torch.randn(count, dimensions, generator=generator)) / dimensions**0.5, labels
