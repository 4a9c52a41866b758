"""Whether probabilities can be believed."""

from __future__ import annotations

from typing import Any

import numpy as np

from torch_multiclass.plots.style import INK, MUTED, RIGHT, WRONG, Numbers, canvas, numbers


def reliability(right: Numbers, confidence: Numbers, count: Numbers, axes: Any = None) -> Any:
    """How often a label is right against the probability that it was given, a bar a bin.

    The gap between them is hatched: in red where more is stated than is right, in white within the bar where less is.

    Args:
        right: ``(B,)``, how many rows of each of ``B`` bins of equal width of ``(0, 1]`` are right.
        confidence: ``(B,)``, the sum of the probabilities of their labels.
        count: ``(B,)``, how many rows there are in each; as the states of `torch_multiclass.metrics.CalibrationError`.
        axes: of matplotlib; by default new ones.

    Returns:
        The axes.

    Raises:
        ValueError: shapes that disagree.
        ModuleNotFoundError: without matplotlib.

    Reference: Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks, figure 1.

    Example:
        >>> from torch_multiclass import plots
        >>> axes = plots.reliability([1, 8], [0.9, 7.2], [2, 9])  # doctest: +SKIP
    """
    hits, sums, rows = (
        numbers(name, each, least=0.0)
        for name, each in (("right", right), ("confidence", confidence), ("count", count))
    )
    if not hits.shape == sums.shape == rows.shape:
        raise ValueError(f"count: got shape {rows.shape}; accepted is that of right and of confidence, {hits.shape}")
    axes, bins, held = canvas(axes), len(rows), rows > 0
    accuracy, stated = hits[held] / rows[held], sums[held] / rows[held]
    middle, width = (np.arange(bins)[held] + 0.5) / bins, 1 / bins
    axes.bar(middle, accuracy, width, color=RIGHT, edgecolor="white", linewidth=0.5, label="right")
    more, less = stated > accuracy, stated < accuracy
    kinds = (more, "none", WRONG, "stated, not right"), (less, RIGHT, "white", "right, not stated")
    for which, fill, edge, label in kinds:
        if which.any():
            gap = (stated - accuracy)[which]
            axes.bar(
                middle[which], gap, width, accuracy[which], color=fill, edgecolor=edge, hatch="///", linewidth=0.5,
                label=label,
            )  # fmt: skip
    axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8)
    total = max(rows.sum(), 1.0)
    axes.plot(middle, rows[held] / total, "o", color=MUTED, markersize=3, label="share of rows")
    error = float(np.abs(hits - sums).sum() / total)
    axes.set(xlabel="probability of the label", ylabel="right", xlim=(0, 1), ylim=(0, 1.02))
    axes.set_title(f"calibration error {error:.3f}, {rows.sum():g} labels")
    axes.legend(  # below, where it covers no bar
        frameon=False, labelcolor=INK, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, columnspacing=1.2
    )
    return axes
