"""What a model says of rows: their labels by name, and the probability of each class."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

import torch_multiclass as tm

from .data.kept import Kept
from .files import replacing, write_atomically
from .names import listed

__all__ = [
    "AS_THEY_ARE",
    "UNCALIBRATED",
    "Predicted",
    "named",
    "note",
    "probabilities",
    "temperature",
    "tempered",
    "write",
]


UNCALIBRATED = 1.0
"""The temperature that is kept where the rows at hand do not say one."""
AS_THEY_ARE = "not calibrated, for no test row of the fit is wrong: they are the soft-max of the scores as they are"


class Predicted:
    """Probabilities as ``predict --probabilities`` writes them, for a report, and in words whence they are.

    Args:
        shares: makes them of the scores.
        told: what they are.
    """

    def __init__(self, shares: Callable[[Any], Tensor], told: str) -> None:
        self.shares, self.told = shares, told

    def __call__(self, scores: Any) -> Tensor:
        """``(n, classes)``."""
        return self.shares(scores)

    def __repr__(self) -> str:
        return f"predict --probabilities, {self.told}"


def named(classes: Sequence[str], labels: Tensor) -> list[str]:
    """Labels by name."""
    return [classes[label] for label in labels.tolist()]


def temperature(class_scores: Tensor, labels: Tensor) -> float | None:
    """Of the soft-max that turns scores into probabilities, from rows that no training saw; labels stay as they are.

    Where none of these is wrong, the smaller it is the more likely are their labels, down to 0 and 1 as probabilities:
    then it is `UNCALIBRATED`, and that is said.
    """
    if len(labels) and bool(class_scores.isfinite().all()) and bool((class_scores.argmax(1) == labels).all()):
        note(UNCALIBRATED)
        return UNCALIBRATED
    try:
        with warnings.catch_warnings():  # of scores that say nothing: probabilities are all equal, and may be
            warnings.filterwarnings("ignore", "temperature: ", UserWarning)
            return float(tm.TemperatureScaling().fit(class_scores, labels).temperature)
    except ValueError:  # infinite scores, or no such row
        return None


def note(found: float | None) -> None:
    """Say of probabilities that they are not calibrated, where they are not."""
    if found == UNCALIBRATED:
        print(f"probabilities are {AS_THEY_ARE}")


def probabilities(class_scores: Tensor, found: float | None) -> np.ndarray:
    """``(n, classes)``: the soft-max of scores over a temperature."""
    if found is None:
        raise ValueError(
            "probabilities: the model was kept without the temperature that makes them of its scores; accepted is one "
            "that this version fitted"
        )
    return tempered(class_scores, found).numpy()


def tempered(class_scores: Tensor, found: float) -> Tensor:
    """The soft-max of scores over a temperature."""
    return (class_scores / found).softmax(-1)


def write(
    output: str | None,
    labels: list[str],
    classes: Sequence[str],
    shares: np.ndarray | None = None,
    kept: Kept | None = None,
) -> None:
    """Labels, one a line; with probabilities or columns of the rows a CSV table: these, the label, each class."""
    more = "" if shares is None else f", each with the probabilities of {listed(classes)}"
    more = more if len(more) < 200 else ", each with its probabilities"
    if shares is None and kept is None:
        path, text = Path(output or "labels.txt"), "".join(f"{label}\n" for label in labels)
    else:
        path, stream = Path(output or "labels.csv"), io.StringIO()
        before = [] if kept is None else kept.names
        heading = [*before, *(free(name, before) for name in ["label", *(classes if shares is not None else [])])]
        lines: Any = csv.writer(stream, lineterminator="\n")
        lines.writerow(heading)
        columns = [] if kept is None else kept.columns
        written = [[]] * len(labels) if shares is None else [[f"{p:.6g}" for p in row] for row in shares.tolist()]
        lines.writerows([*row, label, *p] for *row, label, p in zip(*columns, labels, written, strict=True))
        text = stream.getvalue()
        more += f", after the column{'s' * (len(before) > 1)} {listed(before)}" if before else ""
    replacing(path, text)
    write_atomically(path, text)
    print(f"{len(labels)} labels written to {path}{more}")


def free(name: str, taken: Sequence[str]) -> str:
    """A heading that no column before has."""
    return name if name not in taken else free(f"predicted {name}", taken)
