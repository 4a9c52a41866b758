"""The numbers that options accept, for whoever looks first: the command line or what is made of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .signatures import is_number

__all__ = ["within"]

WHOLE = (lambda value: value >= 1, "a whole number >= 1")
RANGES: dict[str, tuple[Callable[[float], bool], str]] = {
    "batch_size": WHOLE,
    "batch_tokens": WHOLE,
    "k_best": WHOLE,
    "learning_rate": (lambda value: 0 < value < math.inf, "a finite number > 0"),
    "validation": (lambda value: 0 < value < 1, "a fraction between 0 and 1"),
}


def within(name: str, value: Any) -> None:
    """Raise ``ValueError`` for a number that an option does not accept; what is none is for others to refuse."""
    fits, words = RANGES.get(name, (None, ""))
    if fits is not None and is_number(value) and not fits(float(value)):
        raise ValueError(f"{name}: got {value}; accepted is {words}")
