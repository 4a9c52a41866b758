"""What ``make demo`` shows: where each part is the right choice, a claim a line with its measured figure, and pictures.

::

    python -m recipes.demo                   # everything; some minutes
    python -m recipes.demo costs regions     # some of it
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch

from ..start import program
from . import asked, codes, costs, heads, machine, regions, sequences
from .show import claim, folder, headline, keep_in, kept

__all__ = ["PARTS", "main"]

PARTS: Mapping[str, Callable[[], None]] = MappingProxyType(
    {
        "costs": costs.main,
        "codes": codes.main,
        "machine": machine.main,
        "regions": regions.main,
        "sequences": sequences.main,
        "heads": heads.main,
    }
)


def main(args: list[str] | None = None) -> None:
    """Every part, or those that are named; then where the pictures are."""
    given = asked(args, tuple(PARTS))
    keep_in(given.output)
    torch.set_num_threads(1)  # networks this small gain little from a second, and lose much on a busy machine
    start = time.perf_counter()
    headline("Every error rate is of test rows; C, temperature and weights are from others.")
    headline("The set-ups were chosen to show each part.")
    for name in given.parts or PARTS:
        PARTS[name]()
    claim(f"{time.perf_counter() - start:.0f} s", kept())
    if "sequences" in (given.parts or PARTS):
        claim("to go on", f"{program('report')} {folder() / 'tagger'}")
