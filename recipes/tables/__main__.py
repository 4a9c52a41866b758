"""The command line."""

from __future__ import annotations

from pathlib import Path

from recipes.tables import table2
from recipes.tables.cells import Cell, all_of
from recipes.tables.sets import SETS, Set

KEPT = Path(__file__).parent.parent / "results" / "tables"
TABLES = ("table2",)


def chosen(sets: list[str] | None) -> list[Set]:
    """Those named; all by default."""
    names = [one.name for one in SETS]
    for name in sets or []:
        if name not in names:
            raise SystemExit(f"error: sets: got {name}; accepted are {', '.join(names)}")
    return [one for one in SETS if sets is None or one.name in sets]


def run(
    path: str = "uci",
    tables: list[str] | None = None,
    sets: list[str] | None = None,
    jobs: int = 1,
    rounds: int = table2.ROUNDS,
    output: str = str(KEPT),
) -> None:
    """Train what has not been yet; finished trainings are kept, so that this can be stopped and started again.

    Args:
        path: the folder of the sets, ``NAME.npz``.
        tables: which; default: all.
        sets: which; default: all.
        jobs: how many trainings at a time, each on one core.
        rounds: of boosting, in table 2.
        output: the folder for what is kept, a file a set.
    """
    wanted = list(TABLES) if tables is None else tables
    cells: list[Cell] = []
    if "table2" in wanted:
        cells += table2.cells(chosen(sets), rounds)
    all_of(cells, path, Path(output), jobs)


def main(args: list[str] | None = None) -> object:
    """Run the command line."""
    from jsonargparse import auto_cli

    return auto_cli({"run": run}, args=args, description="Tables.")


if __name__ == "__main__":
    main()
