"""A tree of questions."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from torch_multiclass import checks as check
from torch_multiclass.plots.style import canvas, check_axes

if TYPE_CHECKING:
    from torch_multiclass.ops.splits.grow import Grown

__all__ = ["tree"]

LARGEST = 100.0
"""Inches of a picture at most."""
FONT = 8.3
"""Points."""
EDGE = 0.6
"""Between the outer boxes' middles and the edge, the leaves being 1 apart."""
INSIDE = 0.77
"""The share of a picture's width and height that axes have."""


class Drawn(Protocol):
    """A report of a tree."""

    @property
    def grown(self) -> Grown:
        """The nodes."""

    def says(self, node: int, names: Sequence[str] | None = None, labels: Sequence[str] | None = None) -> str:
        """A node in words."""


def tree(
    report: Drawn, axes: Any = None, *, names: Sequence[str] | None = None, labels: Sequence[str] | None = None
) -> Any:
    """Draw a tree: questions above the nodes where their answers lead, yes to the left.

    Args:
        report: of `torch_multiclass.solvers.DecisionTree`.
        axes: of matplotlib; by default new ones.
        names: of the features.
        labels: of the classes.

    Returns:
        The axes.

    Raises:
        ModuleNotFoundError: without matplotlib.

    Reference: the picture of a tree is that of Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*,
    figure 9.2.

    Example:
        >>> import torch
        >>> from torch_multiclass import plots, solvers
        >>> report = solvers.DecisionTree().fit(torch.tensor([[0.0], [1.0]]), torch.tensor([0, 1])).report
        >>> axes = plots.tree(report)  # doctest: +SKIP
    """
    check_axes("axes", axes)
    if not hasattr(report, "grown") or not hasattr(report, "says"):
        raise TypeError(f"report: got {check.shown(report)}; accepted is the report of a DecisionTree")
    own, axes = axes is None, canvas(axes)
    axes.set_axis_off()
    nodes = report.grown.tree
    across, depth = places(nodes.yes, nodes.no), nodes.depths
    said = [report.says(node, names, labels).replace(" (", "\n(", 1) for node in range(nodes.nodes)]
    if own:
        axes.figure.set_size_inches(*size(across, depth, said))
    scale, lines = fitted(axes, across, depth, said)
    font = scale * FONT
    for node in range(nodes.nodes):
        for child, answer in ((nodes.yes[node], "yes"), (nodes.no[node], "no")):
            if child >= 0:
                ends = [across[node], across[child]], [-depth[node], -depth[child]]
                axes.plot(*ends, color="0.6", zorder=1)
                axes.text(np.mean(ends[0]), np.mean(ends[1]), answer, fontsize=font, ha="center", va="center")
        color = "white" if nodes.feature[node] >= 0 else "0.9"
        box = {"boxstyle": "round", "facecolor": color, "edgecolor": "0.6", "linewidth": min(1.0, 2 * scale)}
        place = {"ha": "center", "va": "center", "fontsize": font, "zorder": 2, "in_layout": False}
        axes.text(across[node], -depth[node], lines[node], bbox=box, **place)
    axes.set(xlim=(-EDGE, across.max() + EDGE), ylim=(-depth.max() - 0.5, 0.5))
    return axes


def fitted(axes: Any, across: Any, depth: Any, said: Sequence[str]) -> tuple[float, Sequence[str]]:
    """How much smaller than `FONT` letters are, and the words in shorter lines, so that no box covers another."""
    figure = axes.figure
    given = axes.get_position().width * figure.get_figwidth(), axes.get_position().height * figure.get_figheight()
    best: tuple[float, Sequence[str]] = 0.0, said
    for most in (1000, 24, 18, 14, 10):
        words = ["\n".join(part for line in one.split("\n") for part in wrap(line, most)) for one in said]
        scale = min(1.0, *(have / need for have, need in zip(given, needed(across, depth, words), strict=True)))
        best = max(best, (scale, words), key=lambda pair: pair[0])
    return best


def size(across: Any, depth: Any, said: Sequence[str]) -> tuple[float, float]:
    """Width and height in inches where no box covers another, of trees that are not too large for that."""
    width, height = needed(across, depth, said)
    return min(max(6.4, width / INSIDE), LARGEST), min(max(4.8, height / INSIDE), LARGEST)


def needed(across: Any, depth: Any, said: Sequence[str]) -> tuple[float, float]:
    """Width and height of the axes in inches where no box covers another or is cut, letters being of `FONT`."""
    widths = np.array([0.3 + 0.07 * max(map(len, words.split("\n"))) for words in said])
    order = np.lexsort((across, depth))
    beside = order[:-1][np.diff(depth[order]) == 0], order[1:][np.diff(depth[order]) == 0]
    apart = (widths[beside[0]] + widths[beside[1]]) / 2 / (across[beside[1]] - across[beside[0]])
    to_edge = widths / 2 / (np.minimum(across, across.max() - across) + EDGE)
    lines = max(words.count("\n") + 1 for words in said)
    unit = max(apart.max(initial=0.0), to_edge.max())
    return unit * (across.max() + 2 * EDGE), (0.5 + 0.16 * lines) * (depth.max() + 1)


def places(yes: Any, no: Any) -> Any:
    """Where each node stands from left to right: leaves one after the other, others between their children."""
    across, leaves = np.zeros(len(yes)), 0
    todo = [(0, False)]
    while todo:
        node, done = todo.pop()
        if yes[node] < 0:
            across[node], leaves = leaves, leaves + 1
        elif done:
            across[node] = (across[yes[node]] + across[no[node]]) / 2
        else:
            todo += [(node, True), (int(no[node]), False), (int(yes[node]), False)]
    return across
