"""Which label a classifier gives where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.plots.style import CLASSES, INK, WRONG, Numbers, canvas, frameless, named, numbers


def regions(
    label_of: Callable[[Tensor], Tensor],
    points: Numbers,
    target: Numbers,
    axes: Any = None,
    *,
    labels: Sequence[str] | None = None,
    steps: int = 200,
) -> Any:
    r"""Decision regions in two dimensions, ``\{x : \arg\max_y f_y(x) = k\}``, a colour a class, with labelled points.

    Points that lie in the region of another class are circled in red.

    Args:
        label_of: gives rows ``(M, 2)``, float32, their labels ``(M)``.
        points: ``(N, 2)``.
        target: ``(N,)``, their labels ``0..K-1``.
        axes: of matplotlib; by default new ones.
        labels: ``K`` names, by default numbers; written into the middle of the points of each class.
        steps: of the grid, along each side.

    Shape:
        points ``(N, 2)``, target ``(N,)``.

    Returns:
        The axes.

    Raises:
        ValueError: shapes that disagree, labels that are none.
        ModuleNotFoundError: without matplotlib.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.1, ``h(x) = argmax_y f_y(x)``.

    Example:
        >>> import torch
        >>> from torch_multiclass import LinearScorer, plots
        >>> scorer, points = LinearScorer(2, 3), torch.eye(3, 2)
        >>> axes = plots.regions(lambda x: scorer(x).argmax(1), points, [0, 1, 2])  # doctest: +SKIP
    """
    if not callable(label_of):
        raise TypeError(f"label_of: got {check.shown(label_of)}; accepted is a function that gives rows their labels")
    steps = check.whole("steps", steps)
    at, true = numbers("points", points, 2, least=-np.inf), numbers("target", target)
    if at.shape != (len(true), 2) or not len(at):
        raise ValueError(f"points: got shape {at.shape}; accepted is (N, 2) with a row for each of {len(true)} targets")
    if not (np.isfinite(true) & (true >= 0) & (true == true.round())).all():
        raise ValueError("target: holds what is no label; accepted are 0, 1, 2, ...")
    axes = canvas(axes)
    from matplotlib.colors import to_rgb
    from matplotlib.patheffects import withStroke

    low, high = at.min(0), at.max(0)
    edge = 0.05 * np.where(high > low, high - low, 1.0)
    (left, bottom), (right, top) = low - edge, high + edge
    x, y = (torch.linspace(a, b, steps, dtype=torch.float32) for a, b in ((left, right), (bottom, top)))
    grid = torch.stack([x.repeat(steps), y.repeat_interleave(steps)], -1)
    with torch.no_grad():
        given = _labels(label_of, grid).reshape(steps, steps)
        found = _labels(label_of, torch.tensor(at, dtype=torch.float32))
    count = int(max(given.max(), true.max())) + 1
    if labels is not None:
        count = max(count, len(check.label_names("labels", labels)))
    names = named("labels", labels, count)
    palette = np.array([to_rgb(CLASSES[k % len(CLASSES)]) for k in range(len(names))])
    axes.imshow(
        1 - 0.35 * (1 - palette[given]), origin="lower", extent=(left, right, bottom, top), aspect="auto",
        interpolation="nearest",
    )  # fmt: skip
    classes, wrong = true.astype(int), found != true
    axes.scatter(*at[~wrong].T, s=7, c=palette[classes[~wrong]], linewidths=0)
    axes.scatter(*at[wrong].T, s=14, c=palette[classes[wrong]], linewidths=0.7, edgecolors=WRONG)
    for k in sorted(set(classes.tolist())):
        spot = np.median(at[classes == k], 0)
        text = axes.text(*spot, names[k], ha="center", va="center", fontsize=12, fontweight="bold", color=INK)
        text.set_path_effects([withStroke(linewidth=2.5, foreground="white")])
    frameless(axes)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set(xlim=(left, right), ylim=(bottom, top), title=f"{int(wrong.sum())} of {len(true)} wrong")
    return axes


def _labels(label_of: Callable[[Tensor], Tensor], rows: Tensor) -> NDArray[np.int64]:
    """The label of each row; raise for anything else."""
    found = label_of(rows)
    if not isinstance(found, Tensor) or found.shape != (len(rows),) or found.dtype not in check.INTEGERS:
        given = f"{tuple(found.shape)} of {found.dtype}" if isinstance(found, Tensor) else check.shown(found)
        raise ValueError(f"label_of: gave {given}; accepted is ({len(rows)},) of integers, a label for each row")
    check.with_values("label_of", found)
    return found.cpu().numpy().astype(np.int64)
