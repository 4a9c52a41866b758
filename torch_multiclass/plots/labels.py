"""Which labels are taken for which, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torch_multiclass import checks as check
from torch_multiclass.plots.style import (
    INK,
    MUTED,
    RIGHT,
    WRONG,
    Numbers,
    canvas,
    frameless,
    mixed,
    named,
    numbers,
    text,
)

NAMED, WRITTEN = 40, 12
"""How many classes can be named at the sides, and how many have their counts written in."""


def confusion(
    counts: Numbers,
    axes: Any = None,
    *,
    labels: Sequence[str] | None = None,
    cost: Numbers | None = None,
    limit: float | None = None,
) -> Any:
    """How often each true class (row) was given each label (column); the redder, the more it costs.

    Args:
        counts: ``(R, K)``; rows beyond the columns are true labels that are never given.
        axes: of matplotlib; by default new ones.
        labels: ``R`` names.
        cost: ``(R, K)``, what each mistake costs; by default 1. Shades are counts times costs.
        limit: what is darkest, so that several pictures share a scale; by default the largest.

    Returns:
        The axes.

    Raises:
        ValueError: shapes that disagree, more columns than rows.
        ModuleNotFoundError: without matplotlib.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.5, for costs ``L(y, y')``.

    Example:
        >>> from torch_multiclass import plots
        >>> axes = plots.confusion([[8, 2], [0, 9]], labels=["cat", "dog"])  # doctest: +SKIP
    """
    table = numbers("counts", counts, 2, least=0.0)
    rows, columns = table.shape
    if not 0 < columns <= rows:
        raise ValueError(f"counts: got shape {table.shape}; accepted is (R, K) with R >= K >= 1")
    names = named("labels", labels, rows)
    wrong = 1.0 - np.eye(rows, columns)
    price = wrong if cost is None else numbers("cost", cost, 2, least=0.0)
    if price.shape != table.shape:
        raise ValueError(f"cost: got shape {price.shape}; accepted is {table.shape}")
    axes = canvas(axes)
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize, to_rgba
    from matplotlib.ticker import MaxNLocator

    paid = table * price * wrong
    most = float(paid.max(initial=0.0)) if limit is None else check.positive("limit", limit)
    least = float(paid[paid > 0].min(initial=most))
    scale = Normalize(min(1.0, least), max(most, 2.0 if cost is None else 1e-9))
    reds = LinearSegmentedColormap.from_list("reds", [mixed(WRONG, 0.35), mixed(WRONG, 1.0)])
    shade = np.zeros((rows, columns, 4))
    shade[(table > 0) & (wrong == 0)] = to_rgba(RIGHT, 0.15)
    shade[(table > 0) & (wrong > 0)] = to_rgba(MUTED, 0.25)  # wrong, and free of charge
    shade[paid > 0] = reds(scale(paid[paid > 0]))
    axes.imshow(shade, interpolation="none")
    if rows <= WRITTEN:
        for i, j in np.argwhere(table):
            color = "white" if paid[i, j] > 0 and scale(paid[i, j]) > 0.4 else INK
            axes.text(j, i, f"{table[i, j]:g}", ha="center", va="center", fontsize=7, color=color)
    if rows <= NAMED:
        axes.set_xticks(range(columns), names[:columns], rotation=90 if max(map(len, names)) > 2 else 0)
        axes.set_yticks(range(rows), names)
    frameless(axes)
    mistakes = int((table * wrong).sum())
    spent = "" if cost is None else f", cost {paid.sum():.4g}"
    axes.set(xlabel="predicted", ylabel="true", title=f"{mistakes} of {table.sum():g} wrong{spent}")
    if most > 0 and limit is None:
        key = axes.figure.colorbar(ScalarMappable(scale, reds), ax=axes, shrink=0.7, aspect=25)
        key.set_label("wrong labels" if cost is None else "their cost")
        if cost is None:
            key.locator = MaxNLocator(integer=True, nbins=5)
            key.update_ticks()
        key.outline.set_visible(False)
    return axes


def errors(
    shares: Numbers,
    axes: Any = None,
    *,
    names: Sequence[str] | None = None,
    intervals: Numbers | None = None,
    of: str = "",
) -> Any:
    """Shares of wrong answers as bars: of classes, of columns, of sequences by length.

    Args:
        shares: ``(n,)``, in 0..1; NaN where nothing was asked.
        axes: of matplotlib; by default new ones.
        names: ``n`` names; by default numbers.
        intervals: ``(n, 2)``, the ends of each one's confidence interval.
        of: what the names are of.

    Returns:
        The axes.

    Raises:
        ValueError: shapes that disagree.
        ModuleNotFoundError: without matplotlib.

    Reference: Clopper and Pearson (1934), for the intervals of a report.

    Example:
        >>> from torch_multiclass import plots
        >>> axes = plots.errors([0.1, 0.3], names=["cat", "dog"], of="class")  # doctest: +SKIP
    """
    text("of", of)
    share = 100 * numbers("shares", shares)
    words = named("names", names, len(share))
    axes, at = canvas(axes), np.arange(len(share))
    held = np.isfinite(share)
    axes.bar(at[held], share[held], color=WRONG, width=0.8)
    top = float(share[held].max(initial=0.0))
    if intervals is not None:
        ends = 100 * numbers("intervals", intervals, 2)
        if ends.shape != (len(share), 2):
            raise ValueError(f"intervals: got shape {ends.shape}; accepted is {(len(share), 2)}")
        held = held & np.isfinite(ends).all(1)
        arms = np.abs(ends[held].T - share[held])
        axes.errorbar(at[held], share[held], arms, fmt="none", ecolor=INK, elinewidth=0.8, capsize=2)
        top = max(top, float(ends[held].max(initial=0.0)))
    if names is None and len(share) > WRITTEN:
        axes.xaxis.get_major_locator().set_params(integer=True)
    elif len(share) <= NAMED:
        crowded = max(map(len, words), default=0) * len(share) > 50
        axes.set_xticks(at, words, rotation=90 if crowded else 0)
    axes.set(xlabel=of, ylabel="wrong, %", ylim=(0, max(1.0, min(1.1 * top, 105))))
    return axes
