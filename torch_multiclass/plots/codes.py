"""Coding matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torch_multiclass.plots.style import MUTED, RIGHT, Numbers, canvas, frameless, named, numbers


def code(matrix: Numbers, axes: Any = None, *, labels: Sequence[str] | None = None) -> Any:
    """A coding matrix, a row a class: +1 is dark, -1 light, 0 white.

    Args:
        matrix: ``(K, L)`` of -1, 0 and +1.
        axes: of matplotlib; by default new ones.
        labels: ``K`` names.

    Returns:
        The axes.

    Raises:
        ValueError: other entries, another number of names.
        ModuleNotFoundError: without matplotlib.

    Reference: Allwein, Schapire and Singer (2000), figure 2; Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine
    Learning*, figure 9.5.

    Example:
        >>> from torch_multiclass import codes, plots
        >>> axes = plots.code(codes.one_vs_one(4))  # doctest: +SKIP
    """
    entries = numbers("matrix", matrix, 2)
    if not entries.size:
        raise ValueError(f"matrix: got shape {entries.shape}; accepted is (K, L) with K, L >= 1")
    if not np.isin(entries, (-1, 0, 1)).all():
        raise ValueError(f"matrix: holds {entries[~np.isin(entries, (-1, 0, 1))][0]:g}; accepted are -1, 0 and +1")
    names = named("labels", labels, len(entries))
    axes = canvas(axes)
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Patch

    colors = {1: to_rgba(RIGHT), -1: to_rgba(RIGHT, 0.15), 0: (1.0, 1.0, 1.0, 1.0)}
    shade = np.zeros((*entries.shape, 4))
    for entry, color in colors.items():
        shade[entries == entry] = color
    axes.imshow(shade, aspect="auto", interpolation="none")
    words = {1: "+1", -1: "−1", 0: "0 (not asked)"}
    held = [entry for entry in words if (entries == entry).any()]
    key = [Patch(facecolor=colors[entry], edgecolor=MUTED, linewidth=0.5) for entry in held]
    axes.legend(
        key, [words[entry] for entry in held], ncols=3, frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0)
    )
    if len(names) <= 60:
        axes.set_yticks(range(len(names)), names)
    frameless(axes)
    axes.set(xlabel="column", ylabel="class")
    return axes
