"""Cross-validation: folds with the same share of every class, and what is kept of those that are done."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .data.arrays import digest
from .files import write_atomically

__all__ = ["Folds", "check_compared", "stratified", "told_of_absent"]


def check_compared(folds: int, **settings: list[Any]) -> None:
    """Raise unless there are folds to hold out in turn, and some of each setting to compare."""
    if folds < 2:
        raise SystemExit(f"error: folds: got {folds}; accepted is a whole number >= 2")
    for name, given in settings.items():
        if not given:
            raise SystemExit(f"error: {name}: got none; accepted is a list of some")


class Folds:
    """What was measured on each fold, in ``folds.json``: kept as long as setting and data stay the same.

    Args:
        folder: where the file is.
        setting: whatever the results depend on beside their own keys and the data.
        data: arrays; of other contents, under whatever file name, nothing is kept.
    """

    def __init__(self, folder: Path, setting: Iterable[Any], *data: Any) -> None:
        self.path = folder / "folds.json"
        self.setting = " ".join([*map(str, setting), digest(*data)])
        self.found: dict[str, Any] = {}
        try:
            stored = json.loads(self.path.read_text(encoding="utf-8"))
            if stored["setting"] == self.setting:
                self.found = dict(stored["errors"])
        except (OSError, ValueError, LookupError, TypeError):
            return

    def __contains__(self, key: str) -> bool:
        return key in self.found

    def __getitem__(self, key: str) -> Any:
        return self.found[key]

    def __setitem__(self, key: str, value: Any) -> None:
        """Keep one more."""
        self.found[key] = value
        write_atomically(self.path, json.dumps({"setting": self.setting, "errors": self.found}, indent=1))

    def tell(self, wanted: Iterable[str]) -> int:
        """Say how many of those that are wanted are there already; how many."""
        names = {*wanted}
        before = len(names & self.found.keys())
        if before:
            print(f"{before} of {len(names)} trainings kept from before ({self.path}); another --output trains anew")
        return before


def stratified(labels: np.ndarray, folds: int, names: list[str]) -> np.ndarray:
    """The fold of each row, ``(n,)``: every class is spread over the folds as evenly as can be.

    A class of a single row, which one fold has to be trained without, is named.
    """
    by_class = np.argsort(labels, kind="stable")
    part = np.empty(len(labels), np.int64)
    part[by_class] = np.arange(len(labels)) % folds
    counts = np.bincount(labels, minlength=len(names))
    for count, row in zip(counts, names, strict=True):
        if count < 2:
            told = "no row" if count == 0 else "a single row"
            without = "every fold is" if count == 0 else "one fold is"
            print(f"warning: {row} has {told} among those for training: {without} trained without it")
    return part


@contextmanager
def told_of_absent() -> Iterator[None]:
    """Within it solvers do not say again, by number, which class has no row."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "target: no row has the label")
        yield
