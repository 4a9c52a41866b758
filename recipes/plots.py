"""Pictures of what heads learned, several to a file, drawn by `torch_multiclass.plots`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from torch_multiclass import plots
from torch_multiclass.plots.style import INK, MUTED, RIGHT, STYLE, WRONG

__all__ = ["INK", "MUTED", "RIGHT", "STYLE", "WRONG", "code", "confusion", "margins", "panels", "transitions"]


@contextmanager
def panels(path: Path, names: Sequence[str], title: str, size: tuple[float, float]) -> Iterator[dict[str, Axes]]:
    """A figure with one panel a name, saved at the end."""
    columns = min(4, len(names)) if len(names) % 2 or len(names) > 4 else max(1, len(names) // 2)
    rows = math.ceil(len(names) / columns)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(size[0] * columns, size[1] * rows + 0.5), layout="constrained")
        figure.suptitle(title, fontsize=11)
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for unused in axes[len(names) :]:
            unused.set_axis_off()
        yield dict(zip(names, axes, strict=False))
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)


def confusion(
    path: Path, labels: Mapping[str, tuple[np.ndarray, np.ndarray]], classes: Sequence[str], title: str
) -> None:
    """Confusion matrices: how often each true class (row) was given each label (column), on one scale.

    Args:
        path: the picture.
        labels: true and predicted positions in ``classes`` for each head.
        classes: the class names.
        title: above all.
    """
    tables = {head: np.zeros((len(classes), len(classes)), int) for head in labels}
    for head, pairs in labels.items():
        np.add.at(tables[head], pairs, 1)
    most = max((counts * (1 - np.eye(len(classes), dtype=int))).max() for counts in tables.values())
    with panels(path, list(labels), title, (3.6, 4.0)) as axes:
        for head, counts in tables.items():
            plots.confusion(counts, axes[head], labels=classes, limit=max(2.0, most))
            axes[head].set_title(f"{head}\n{axes[head].get_title()}")


def margins(path: Path, margin: Mapping[str, np.ndarray | None], title: str) -> None:
    """How far the true class is ahead of its best rival: a histogram a head, wrong rows in red, on one scale.

    Args:
        path: the picture.
        margin: score of the true class less the best other score, a row each, for each head, over the mean spread of
            the scores of a row; None where votes are counted, whose differences are no margins.
        title: above all.
    """
    held = {head: values for head, values in margin.items() if values is not None}
    every = np.concatenate(list(held.values()))
    limits = float(np.quantile(every, 0.001)), float(np.quantile(every, 0.999))
    with panels(path, list(held), title, (3.6, 2.4)) as axes:
        for head, values in held.items():
            axis = plots.margins(values, axes[head], limits=limits)
            axis.set_title(f"{head}\n{axis.get_title()}")
            axis.set(xlabel="margin, in mean spreads of a row's scores", ylabel="test rows")
        top = max(axis.get_ylim()[1] for axis in axes.values())
        for axis in axes.values():
            axis.set_ylim(0.7, top)


def transitions(
    path: Path, weights: np.ndarray, start: np.ndarray, end: np.ndarray, tags: Sequence[str], title: str
) -> None:
    """What a chain learned of neighbouring tags.

    Args:
        path: the picture.
        weights: the score of each tag (row) before each tag (column).
        start: the score of each tag as the first.
        end: the score of each tag as the last.
        tags: the names.
        title: above all.
    """
    side = 0.32 * len(tags) + 1.5
    with panels(path, [title], title, (side + 1.2, side - 0.2)) as axes:
        plots.transitions(weights, axes[title], start=start, end=end, labels=tags)
        axes[title].set(xlabel="next tag", ylabel="tag")


def code(path: Path, matrix: np.ndarray, error: np.ndarray, classes: Sequence[str], title: str) -> None:
    """A coding matrix, a row a class, over the share of wrong answers of each column.

    Args:
        path: the picture.
        matrix: ``(classes, columns)`` of -1, 0 and +1; +1 is dark, -1 light, 0 white.
        error: ``(columns,)``.
        classes: the class names.
        title: above all.
    """
    count, columns = matrix.shape
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(max(4.0, 0.22 * columns + 1), 0.22 * count + 2.2), layout="constrained")
        figure.suptitle(title, fontsize=11)
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[0.22 * count, 1.4])
        plots.code(matrix, above, labels=classes).set(xlabel="")
        plots.errors(error, below, of="column")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
