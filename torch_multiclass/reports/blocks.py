"""What the sections of a report are made of."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

__all__ = ["Block", "Gap", "Picture", "Table", "Text", "number", "percent", "plain"]

_FIGURE = re.compile(r"[−∞–\d][\d.,e+−∞%\s to–]*$|$")


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Gap:
    """What is missing, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class Table:
    """Rows of cells in words, the first of each naming the row."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""

    def numeric(self) -> list[bool]:
        """Which columns hold numbers; the first never does, and lists of labels, ``"0, 1"``, are none."""
        figures = [
            [_FIGURE.match(row[i]) is not None and ", " not in row[i] for row in self.rows]
            for i in range(len(self.header))
        ]
        return [i > 0 and all(column) for i, column in enumerate(figures)]


@dataclass(frozen=True)
class Picture:
    """What draws into axes of some size in inches."""

    name: str
    caption: str
    draw: Callable[[Any], Any]
    size: tuple[float, float] = (4.6, 3.4)
    sides: tuple[float, float] | None = None
    """Inches to the left and right of the axes, where pictures one above the other are to share their columns."""


Block = Text | Gap | Table | Picture


def plain(given: Any) -> Any:
    """With nothing but what JSON has; numbers that are not finite become None."""
    if isinstance(given, Mapping):
        return {str(name): plain(value) for name, value in given.items()}
    if isinstance(given, (Tensor, np.ndarray)):
        return plain(given.tolist())
    if isinstance(given, (list, tuple)):
        return [plain(value) for value in given]
    if given is None or isinstance(given, (str, bool)):
        return given
    if isinstance(given, (int, np.integer)):
        return int(given)
    value = float(given)
    return value if math.isfinite(value) else None


def number(value: Any) -> str:
    """Four figures."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    return f"{value:.4g}".replace("-", "−").replace("inf", "∞")


def percent(share: float | None) -> str:
    """A share, in percent."""
    return "–" if share is None or math.isnan(share) else f"{100 * share:.2f} %"
