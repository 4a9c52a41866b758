"""Figures 3 to 7 of Allwein, Schapire and Singer (2000), and the growth with the number of classes, as pictures."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..plots import INK, MUTED, RIGHT, STYLE, WRONG, panels
from . import figure3, growth, published
from .cells import read
from .estimate import Estimates, facts_of, slope
from .sets import CODES, SETS, Set

COLOURS = (RIGHT, "#e09f3e")


@contextmanager
def grid(path: Path, rows: int, columns: int, size: tuple[float, float], title: str) -> Iterator[np.ndarray]:
    """A figure of as many panels, saved at the end."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(size[0] * columns, size[1] * rows + 0.5), layout="constrained")
        figure.suptitle(title, fontsize=11)
        yield figure.subplots(rows, columns, squeeze=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)


def rings(path: Path, folder: Path) -> None:
    """Figure 3: errors against the number of classes."""
    with grid(path, 1, 2, (3.8, 3.2), "Rings on a line, ten rounds of boosting a column") as axes:
        for code, axis in zip(("complete", "one-vs-all"), axes[0], strict=True):
            curves: dict[str, list[float]] = {"average binary error": [], "Hamming decoding": [], "exponential": []}
            for classes in figure3.CLASSES:
                facts = facts_of(folder, "figure3", f"k{classes}", code)
                rows = sum(fact["rows"] for fact in facts)
                curves["average binary error"].append(float(np.mean([fact["binary_error"] for fact in facts])))
                curves["Hamming decoding"].append(sum(fact["wrong"]["hamming"] for fact in facts) / rows)
                curves["exponential"].append(sum(fact["wrong"]["exponential"] for fact in facts) / rows)
            for (name, values), colour, marker in zip(curves.items(), (MUTED, WRONG, RIGHT), "sov", strict=True):
                axis.plot(list(figure3.CLASSES), values, color=colour, marker=marker, markersize=4, label=name)
            axis.set(xlabel="classes", ylabel="error", title=code, ylim=(-0.02, 0.85))
            axis.legend(frameon=False, labelcolor=INK)


def over_hamming(
    path: Path, found: Estimates, figures: dict[str, published.Figures], sets: list[Set], title: str
) -> None:
    """Figures 4 and 5: the error of loss-based decoding less that of Hamming decoding, the paper's as dots."""
    losses = [name for name in figures if name != "hamming"]
    width = 0.8 / len(losses)
    with grid(path, 1, len(CODES), (0.22 * len(sets) + 0.8, 3.4), title) as axes:
        for code, axis in zip(CODES, axes[0], strict=True):
            for number, loss in enumerate(losses):
                places = np.arange(len(sets)) + (number - (len(losses) - 1) / 2) * width
                ours = [difference(found, one.name, (code, loss), (code, "hamming")) for one in sets]
                theirs = [printed_difference(figures, one.paper, (code, loss), (code, "hamming")) for one in sets]
                axis.bar(places, ours, width, color=COLOURS[number], label=f"{loss} less Hamming")
                label = "the paper" if number == 0 else None
                axis.plot(places, theirs, "o", color=INK, markersize=2.5, label=label, clip_on=False)
            axis.set_xlim(-0.8, len(sets) - 0.2)
            named_axis(axis, sets)
            axis.set(title=code)
        axes[0, 0].set_ylabel("points")
        axes[0, 0].legend(facecolor="white", edgecolor="none", framealpha=0.85, fontsize=7, labelcolor=INK)


def named_axis(axis: Axes, sets: list[Set]) -> None:
    """The sets along it."""
    axis.axhline(0, color=INK, linewidth=0.6)
    axis.set_xticks(range(len(sets)), [one.paper for one in sets], rotation=90, fontsize=7)
    axis.tick_params(length=0)


def difference(found: Estimates, name: str, first: tuple[str, str], second: tuple[str, str]) -> float:
    """Of the errors of two cells; NaN where one is not there."""
    one, other = found.get((name, *first)), found.get((name, *second))
    return np.nan if one is None or other is None else one.percent - other.percent


def printed_difference(
    figures: dict[str, published.Figures], name: str, first: tuple[str, str], second: tuple[str, str]
) -> float:
    """The same of the paper's figures."""
    values = [published.published(figures, decoding, name, code) for code, decoding in (first, second)]
    return np.nan if None in values else values[0] - values[1]


def between_codes(
    path: Path, found: Estimates, figures: dict[str, published.Figures], sets: list[Set], loss: str, title: str
) -> None:
    """Figures 6 and 7: the error of the code of the row less that of the code of the column, the paper's as dots."""
    with grid(path, len(CODES), len(CODES), (2.2, 1.75), title) as axes:
        for (row, column), axis in zip(itertools.product(CODES, CODES), axes.ravel(), strict=True):
            if row == column:
                axis.text(0.5, 0.5, row, ha="center", va="center", transform=axis.transAxes, fontsize=11)
                axis.set_axis_off()
                continue
            ours = [difference(found, one.name, (row, loss), (column, loss)) for one in sets]
            theirs = [printed_difference(figures, one.paper, (row, loss), (column, loss)) for one in sets]
            axis.bar(range(len(sets)), ours, color=[WRONG if value > 0 else RIGHT for value in ours])
            axis.plot(range(len(sets)), theirs, "o", color=INK, markersize=2.5, clip_on=False)
            axis.set_xlim(-0.8, len(sets) - 0.2)
            named_axis(axis, sets if row == CODES[-1] else [])


def growing(path: Path, folder: Path) -> None:
    """Times against the number of classes, and those of a binary problem against its rows."""
    with panels(
        path, ["a binary problem", "training", "testing"], "Growth of the time (s, one core)", (3.8, 3.2)
    ) as axes:
        for learner, style in zip(growth.LEARNERS, ("-", "--"), strict=True):
            kept = read(folder / "growth" / f"{learner}.json")
            for code, colour in (("one-vs-all", WRONG), ("all-pairs", RIGHT), ("binary", MUTED)):
                counts = sorted(kept.get(code, {}), key=int)
                for kind in ("training", "testing"):
                    values = [kept[code][count][f"{kind}_seconds"] for count in counts]
                    place = kind if code != "binary" else "a binary problem"
                    if len(counts) < 2 or (code == "binary" and kind == "testing"):
                        continue
                    sizes = [float(count) for count in counts]
                    name = f"{learner}{'' if code == 'binary' else f', {code}'}: exponent {slope(sizes, values):.2f}"
                    axes[place].plot(sizes, values, style, color=colour, marker="o", markersize=3, label=name)
        for kind, axis in axes.items():
            axis.set(xscale="log", yscale="log", title=kind, xlabel="rows" if kind.startswith("a") else "classes")
            axis.legend(facecolor="white", edgecolor="none", framealpha=0.85, fontsize=7, labelcolor=INK)
            if not kind.startswith("a"):
                axis.set_xticks(growth.COUNTS, growth.COUNTS, minor=False)
                axis.minorticks_off()


def all_pictures(folder: Path, boosted: Estimates, machines: Estimates) -> list[str]:
    """Draw what there is, and name the files."""
    drawn = []
    if (folder / "figure3").is_dir():
        rings(folder / "figure3.png", folder)
        drawn.append("figure3.png")
    for found, figures, loss, sets, (first, second), what in (
        (boosted, published.BOOSTED, "exponential", list(SETS), ("figure4.png", "figure7.png"), "boosted stumps"),
        (machines, published.MACHINES, "hinge", [s for s in SETS if s.machines], ("figure5.png", "figure6.png"), "SVM"),
    ):
        sets = [one for one in sets if any(one.name == key[0] for key in found)]  # others would be the paper's alone
        if found:
            over_hamming(folder / first, found, figures, sets, f"Loss-based less Hamming decoding, {what}")
            between_codes(
                folder / second,
                found,
                figures,
                sets,
                loss,
                f"Code of the row less code of the column, {what}; dots: the paper",
            )
            drawn += [first, second]
    if (folder / "growth").is_dir():
        growing(folder / "growth.png", folder)
        drawn.append("growth.png")
    return drawn
