"""Pictures of what a head learned."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
import matplotlib.cm
import matplotlib.patches
import matplotlib.ticker
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK, MUTED, RIGHT, WRONG = "#222222", "#777777", "#2a6f97", "#c1121f"
STYLE = {
    "font.size": 9,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
}


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
    """Confusion matrices: how often each true class (row) was given each label (column).

    Args:
        path: the picture.
        labels: true and predicted positions in ``classes`` for each head.
        classes: the class names.
        title: above all.
    """
    off_diagonal = 1 - np.eye(len(classes), dtype=int)
    tables = {head: np.zeros((len(classes), len(classes)), int) for head in labels}
    for head, pairs in labels.items():
        np.add.at(tables[head], pairs, 1)
    most = max((counts * off_diagonal).max() for counts in tables.values())
    scale = mpl.colors.Normalize(1, max(2, most))
    reds = mpl.colors.LinearSegmentedColormap.from_list("reds", [_mixed(WRONG, 0.5), WRONG])
    with panels(path, list(labels), title, (3.6, 3.6)) as axes:
        for head, counts in tables.items():
            wrong = counts * off_diagonal
            shade = np.zeros((*counts.shape, 4))
            shade[counts > wrong] = mpl.colors.to_rgba(RIGHT, 0.12)
            shade[wrong > 0] = reds(scale(wrong[wrong > 0]))
            axis = axes[head]
            axis.imshow(shade)
            if len(classes) <= 12:
                for i, j in np.argwhere(counts):
                    axis.text(
                        j, i, counts[i, j], ha="center", va="center", fontsize=7, color=MUTED if i == j else "white"
                    )
            axis.set_title(f"{head}\n{wrong.sum()} of {counts.sum()} wrong")
            axis.set_xticks(range(len(classes)), classes, rotation=90 if max(map(len, classes)) > 2 else 0)
            axis.set_yticks(range(len(classes)), classes)
            axis.tick_params(length=0)
            axis.spines[:].set_visible(False)
            axis.set(xlabel="predicted", ylabel="true")
        if most:
            figure = axes[next(iter(labels))].figure
            key = figure.colorbar(mpl.cm.ScalarMappable(scale, reds), ax=list(axes.values()), shrink=0.6, aspect=30)
            key.set_label("rows given a wrong label")
            key.locator = mpl.ticker.MaxNLocator(integer=True, nbins=5)
            key.update_ticks()
            key.outline.set_visible(False)


def _mixed(color: str, strength: float) -> tuple[float, ...]:
    """A colour thinned with white."""
    return tuple(1 - strength * (1 - part) for part in mpl.colors.to_rgb(color))


def margins(path: Path, margin: Mapping[str, np.ndarray], title: str) -> None:
    """How far the true class is ahead of its best rival: a histogram a head, wrong rows in red.

    Args:
        path: the picture.
        margin: score of the true class less the best other score, a row each, for each head.
        title: above all.
    """
    with panels(path, list(margin), title, (3.6, 2.4)) as axes:
        for head, values in margin.items():
            step = max(np.ptp(values) / 40, 1e-6)
            first, last = math.floor(values.min() / step), math.ceil(values.max() / step) + 1
            edges = step * np.arange(min(first, -1), last)  # zero is an edge: no bar is half right
            axis = axes[head]
            axis.hist(values[values > 0], edges, color=RIGHT)
            axis.hist(values[values <= 0], edges, color=WRONG)
            axis.axvline(0, color=INK, linewidth=0.8)
            axis.set_yscale("log")
            axis.set_ylim(0.7, None)
            axis.yaxis.set_major_formatter("{x:g}")
            figures = f"median {np.median(values):.1f}, lowest {values.min():.1f}".replace("-", "−")
            axis.set_title(f"{head}\n{figures}")
            axis.set(xlabel="margin", ylabel="test rows")


def transitions(
    path: Path, weights: np.ndarray, start: np.ndarray, end: np.ndarray, tags: Sequence[str], title: str
) -> None:
    """What a chain learned of neighbouring tags: blue where one tag likes to follow another, red where it does not.

    Args:
        path: the picture.
        weights: the score of each tag (row) before each tag (column).
        start: the score of each tag as the first.
        end: the score of each tag as the last.
        tags: the names.
        title: above all.
    """
    whole = np.full((len(tags) + 1, len(tags) + 1), np.nan)
    whole[0, :-1], whole[1:, :-1], whole[1:, -1] = start, weights, end
    finite = np.abs(whole[np.isfinite(whole)])
    shades = mpl.colors.LinearSegmentedColormap.from_list("shades", [WRONG, "white", RIGHT])
    side = 0.32 * len(tags) + 1.5
    with panels(path, [title], title, (side + 1.2, side - 0.2)) as axes:
        axis = axes[title]
        limit = finite.max(initial=1e-6)
        image = axis.imshow(np.where(np.isneginf(whole), -limit, whole), shades, vmin=-limit, vmax=limit)
        axis.set_xticks(range(len(tags) + 1), [*tags, "end"], rotation=90)
        axis.set_yticks(range(len(tags) + 1), ["start", *tags])
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
        axis.set(xlabel="next tag", ylabel="tag")
        axis.figure.colorbar(image, label="score", shrink=0.7)


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
        colors = {1: mpl.colors.to_rgba(RIGHT), -1: mpl.colors.to_rgba(RIGHT, 0.15), 0: (1.0, 1.0, 1.0, 1.0)}
        shade = np.zeros((count, columns, 4))
        for entry, color in colors.items():
            shade[matrix == entry] = color
        above.imshow(shade, aspect="auto", interpolation="none")
        words = {1: "+1", -1: "−1", 0: "0 (not asked)"}
        held = [entry for entry in words if (matrix == entry).any()]
        key = [mpl.patches.Patch(facecolor=colors[entry], edgecolor=MUTED, linewidth=0.5) for entry in held]
        above.legend(
            key, [words[entry] for entry in held], ncols=3, frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0)
        )
        above.set_yticks(range(count), classes)
        above.tick_params(length=0)
        above.spines[:].set_visible(False)
        above.set(ylabel="class")
        below.bar(range(columns), 100 * error, color=WRONG)
        below.set(xlabel="column", ylabel="wrong, %")
        below.set_ylim(0, max(1.0, 110 * float(np.nanmax(error))))
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
