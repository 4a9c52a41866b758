"""What ``make demo`` shows: where each part is the right choice, a claim a line with its measured figure, and pictures.

::

    python -m recipes.demo                   # everything; some minutes
    python -m recipes.demo costs regions     # some of it
"""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch

from . import codes, costs, heads, machine, regions, sequences
from .show import claim, headline, keep_in, kept

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
    parser = ArgumentParser(prog="python -m recipes.demo", description="Where each part is the right choice.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; by default all")
    parser.add_argument("--output", default="demo", help="the folder for the pictures; default: demo")
    asked = parser.parse_args(args)
    unknown = [name for name in asked.parts if name not in PARTS]
    if unknown:
        raise SystemExit(f"error: there is no part {unknown[0]}; accepted are {', '.join(PARTS)}")
    keep_in(asked.output)
    torch.set_num_threads(1)  # networks this small gain little from a second, and lose much on a busy machine
    start = time.perf_counter()
    headline("Every figure is of test rows; C, temperature and weights come from other rows.")
    headline("The set-ups were chosen to show each part.")
    for name in asked.parts or PARTS:
        PARTS[name]()
    claim(f"{time.perf_counter() - start:.0f} s", kept())
