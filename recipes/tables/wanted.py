"""Which tables, sets and codes are asked for; looked at before anything slow is imported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..names import one_of
from ..signatures import loaded
from .sets import CODES, SETS, codes_of

__all__ = ["SYNTHETIC", "TABLES", "check", "chosen", "look"]

SYNTHETIC = ("figure3", "growth")
FIGURES = {"figure4": "table2", "figure5": "table3", "figure6": "table3", "figure7": "table2"}
"""Figures of the paper and the trainings that they are drawn from."""
SOURCE = (
    "accepted is a folder of NAME.npz, made of the files of archive.ics.uci.edu as recipes/README.md says under "
    "'Data of your own'; --sets '[NAME]' takes some of them, --tables '[figure3,growth]' needs none"
)
TABLES = (*SYNTHETIC, "table2", "table3", "gaussian", "table3_tuned")


def chosen(argument: str, given: list[str] | None, accepted: list[str]) -> list[str]:
    """Those named; all by default."""
    return accepted if given is None else [one_of(argument, name, accepted) for name in given]


def check(
    path: str = "uci",
    tables: list[str] | None = None,
    sets: list[str] | None = None,
    codes: list[str] | None = None,
    jobs: int = 1,
) -> tuple[list[str], list[str], list[str] | None]:
    """The tables, the sets that have a file and the codes, all by their names."""
    names = chosen("sets", sets, [one.name for one in SETS])
    named = None if tables is None else [FIGURES.get(str(name), name) for name in tables]
    wanted = list(dict.fromkeys(chosen("tables", named, list(TABLES))))
    allowed = None if codes is None else chosen("codes", codes, list(CODES))
    if jobs < 1:
        raise SystemExit(f"error: jobs: got {jobs}; accepted is a whole number >= 1")
    for one in SETS:
        tried = {code for table in wanted if table not in SYNTHETIC for code in codes_of(table, one)}
        file, needed = Path(path) / f"{one.name}.npz", tried & {*(CODES if allowed is None else allowed)}
        if one.name in names and needed and not file.is_file():
            raise SystemExit(f"error: path: there is no file {file}; {SOURCE}")
    return wanted, names, allowed


def look(given: dict[str, Any]) -> None:
    """The options of `run`, as they were typed."""
    names = ("path", "tables", "sets", "codes", "jobs")
    check(**{name: value if name == "path" else loaded(value) for name, value in given.items() if name in names})
