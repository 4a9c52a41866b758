"""How far the true class is ahead."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torch_multiclass import checks as check
from torch_multiclass.plots.style import INK, RIGHT, WRONG, Numbers, canvas, counting, minus, numbers

_ROUNDING = 1e-6  # of a share


def margins(margin: Numbers, axes: Any = None, *, limits: tuple[float, float] | None = None, bins: int = 40) -> Any:
    r"""A histogram of margins ``\rho(f, y) = f_y - \max_{y' \neq y} f_{y'}``; wrong rows, ``\rho \leq 0``, in red.

    Margins of several heads can be compared on one scale alone: divide each head's by the spread of its own scores, and
    give all the same ``limits``.

    Args:
        margin: ``(N,)``; those that are not finite are left out.
        axes: of matplotlib; by default new ones.
        limits: the ends of the axis; rows beyond them are counted in the last bar of their side, which is hatched, and
            how many there are is written over it. By default all are within.
        bins: about how many bars; zero is an edge of one, so that no bar is half right.

    Returns:
        The axes.

    Raises:
        ValueError: margins of another shape.
        ModuleNotFoundError: without matplotlib.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.2, for the margin.

    Example:
        >>> from torch_multiclass import plots
        >>> axes = plots.margins([0.5, 1.5, -0.25])  # doctest: +SKIP
    """
    values = numbers("margin", margin)
    bins = check.whole("bins", bins)
    if limits is not None:
        ends = numbers("limits", limits, least=-np.inf)
        if ends.shape != (2,) or not ends[0] < ends[1]:
            raise ValueError(f"limits: got {check.shown(limits)}; accepted are two numbers, the lower one first")
        limits = float(ends[0]), float(ends[1])
    axes, values = canvas(axes), values[np.isfinite(values)]
    axes.set(xlabel="margin", ylabel="rows")
    if not len(values):
        axes.set_title("no finite margin")
        return axes
    low, high = limits or (min(values.min(), 0.0), max(values.max(), 0.0))
    step = max((high - low) / bins, 1e-9)
    edges = step * np.arange(min(math.floor(low / step), -1), max(math.ceil(high / step), 1) + 1)
    middle = 0.5 * (edges[1:] + edges[:-1])
    shown = np.clip(values, middle[0], middle[-1])
    right = axes.hist(shown[values > 0], edges, color=RIGHT)[2]
    wrong = axes.hist(np.minimum(shown, 0)[values <= 0] - 1e-3 * step, edges, color=WRONG)[2]  # 0 is wrong
    further = []
    for bar, beyond, side in ((wrong[0], values < edges[0], "left"), (right[-1], values > edges[-1], "right")):
        if count := int(beyond.sum()):
            bar.set(hatch="////", edgecolor="white", linewidth=0)
            further.append(f"{count} further {side}")
    if further:
        axes.set_xlabel(f"margin; hatched: {', '.join(further)}")
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yscale("log")
    axes.set_ylim(0.7, None)
    counting(axes.yaxis, log=True)
    axes.set_title(minus(f"median {np.median(values):.3g}, lowest {values.min():.3g}"))
    return axes


def margin_distribution(thresholds: Numbers, shares: Numbers, axes: Any = None) -> Any:
    r"""The share of rows whose margin is at most ``\theta``, against ``\theta``; red where it is 0 or below.

    Args:
        thresholds: ``(T,)``, rising.
        shares: ``(T,)``, from 0 to 1 and rising, as `torch_multiclass.metrics.MarginDistribution` has them.
        axes: of matplotlib; by default new ones.

    Returns:
        The axes.

    Raises:
        ValueError: shapes that disagree; thresholds that do not rise, shares that are none of a distribution.
        ModuleNotFoundError: without matplotlib.

    Reference: Schapire, Freund, Bartlett and Lee (1998), Boosting the margin, figure 1.

    Example:
        >>> from torch_multiclass import plots
        >>> axes = plots.margin_distribution([-1, 0, 1], [0.0, 0.1, 0.9])  # doctest: +SKIP
    """
    theta, share = numbers("thresholds", thresholds), numbers("shares", shares)
    if theta.shape != share.shape:
        raise ValueError(f"shares: got shape {share.shape}; accepted is {theta.shape}, one for each threshold")
    if (theta[1:] < theta[:-1]).any():
        raise ValueError("thresholds: do not rise; accepted are rising ones, and then the share at each")
    if ((share < 0) | (share > 1 + _ROUNDING)).any() or (share[1:] < share[:-1] - _ROUNDING).any():
        raise ValueError(
            f"shares: go from {share[0]:g} to {share[-1]:g}; accepted are shares of rows, from 0 to 1 and rising, "
            "after the thresholds"
        )
    axes = canvas(axes)
    axes.plot(theta, share, color=RIGHT)
    axes.plot(theta[theta <= 0], share[theta <= 0], color=WRONG)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set(xlabel="θ", ylabel="share of rows with a margin ≤ θ", ylim=(0, 1.02))
    return axes
