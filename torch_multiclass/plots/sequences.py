"""What a chain learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torch_multiclass.plots.style import RIGHT, WRONG, Numbers, canvas, frameless, named, numbers


def transitions(
    weights: Numbers,
    axes: Any = None,
    *,
    start: Numbers | None = None,
    end: Numbers | None = None,
    labels: Sequence[str] | None = None,
) -> Any:
    """Scores of neighbouring labels: blue where one likes to follow another, red where it does not; forbidden is black.

    Args:
        weights: ``(K, K)``, the score of each label (row) before each label (column).
        axes: of matplotlib; by default new ones.
        start, end: ``(K,)``, the score of each label as the first and as the last.
        labels: ``K`` names.

    Returns:
        The axes.

    Raises:
        ValueError: shapes that disagree.
        ModuleNotFoundError: without matplotlib.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.5.

    Example:
        >>> import torch
        >>> from torch_multiclass import ChainScorer, plots
        >>> chain = ChainScorer(8, 3).chain
        >>> axes = plots.transitions(chain.transitions)  # doctest: +SKIP
    """
    inner = numbers("weights", weights, 2)
    size = len(inner)
    if inner.shape != (size, size):
        raise ValueError(f"weights: got shape {inner.shape}; accepted is (K, K)")
    names = named("labels", labels, size)
    whole, across, down = inner, list(names), list(names)
    for name, part in (("start", start), ("end", end)):
        if part is None:
            continue
        values = numbers(name, part)
        if values.shape != (size,):
            raise ValueError(f"{name}: got shape {values.shape}; accepted is ({size},)")
        if name == "start":
            whole, down = np.vstack([values, whole]), ["start", *down]
        else:
            column = np.concatenate([np.full(len(whole) - size, np.nan), values])
            whole, across = np.column_stack([whole, column]), [*across, "end"]
    axes = canvas(axes)
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("shades", [WRONG, "white", RIGHT]).with_extremes(under="black")
    limit = np.abs(whole[np.isfinite(whole)]).max(initial=0.0) or 1.0
    shown = np.where(np.isneginf(whole), -2 * limit, whole)
    image = axes.imshow(shown, shades, vmin=-limit, vmax=limit, interpolation="none")
    axes.set_xticks(range(len(across)), across, rotation=90)
    axes.set_yticks(range(len(down)), down)
    frameless(axes)
    axes.set(xlabel="next", ylabel="label")
    axes.figure.colorbar(image, ax=axes, label="score", shrink=0.7)
    return axes
