"""Pictures with a panel for each of several things, drawn by `torch_multiclass.plots`; matplotlib is imported then."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from torch_multiclass.plots.style import INK, MUTED, RIGHT, STYLE, WRONG

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["INK", "MUTED", "RIGHT", "STYLE", "WRONG", "panels"]


@contextmanager
def panels(path: Path, names: Sequence[str], title: str, size: tuple[float, float]) -> Iterator[dict[str, Axes]]:
    """A figure with one panel a name, saved at the end."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

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
