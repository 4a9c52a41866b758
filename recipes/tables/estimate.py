"""What the kept trainings of a cell say together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .cells import read
from .sets import SETS, Set, drawn


@dataclass(frozen=True)
class Estimate:
    """An error, in per cent.

    Cross-validation tests every row once. On an official split, ten draws of a random code are tested on the same
    rows: the error is their mean, and the binomial error is that of one.
    """

    percent: float
    rows: int
    missing: int
    """Trainings that are not done yet."""
    lowest: float
    """Of a draw, or a fold."""
    highest: float

    @property
    def binomial(self) -> float:
        """The standard error of a share of as many rows, in per cent."""
        return math.sqrt(self.percent * (100 - self.percent) / self.rows)


Estimates = dict[tuple[str, str, str], Estimate]
"""By set, code and decoding."""


def estimates(folder: Path, table: str, expected: Callable[[Set, str], int]) -> Estimates:
    """All cells of a table that have a training."""
    found = {}
    for one in SETS:
        for code, trainings in read(folder / table / f"{one.name}.json").items():
            facts = list(trainings.values())
            for decoding in facts[0]["wrong"]:
                shares = [100 * fact["wrong"][decoding] / fact["rows"] for fact in facts]
                rows = sum(fact["rows"] for fact in facts)
                wrong = sum(fact["wrong"][decoding] for fact in facts)
                found[one.name, code, decoding] = Estimate(
                    100 * wrong / rows,
                    facts[0]["rows"] if one.official else rows,
                    expected(one, code) - len(facts),
                    min(shares),
                    max(shares),
                )
    return found


def by_draw(found: Estimates) -> Estimates:
    """Those of several draws of a random code on one split."""
    official = [one.name for one in SETS if one.official]
    return {key: cell for key, cell in found.items() if key[0] in official and drawn(key[1])}


def slope(sizes: list[float], seconds: list[float]) -> float:
    """The exponent ``b`` of ``seconds ~ sizes^b``, by least squares on the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def facts_of(folder: Path, table: str, name: str, code: str) -> list[dict[str, Any]]:
    """What is kept of a cell."""
    return list(read(folder / table / f"{name}.json").get(code, {}).values())
