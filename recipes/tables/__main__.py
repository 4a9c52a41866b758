"""The command line."""

from __future__ import annotations

from pathlib import Path

from .. import tables
from ..console import write_atomically
from ..results import put
from . import figure3, growth, table2, table3, write
from .cells import Cell, all_of
from .sets import CODES, SETS, Set

KEPT = Path(__file__).parent.parent / "results" / "tables"
SYNTHETIC = {"figure3": figure3, "growth": growth}
TABLES = (*SYNTHETIC, "table2", "table3", "gaussian", "table3_tuned")


def chosen(argument: str, given: list[str] | None, accepted: list[str]) -> list[str]:
    """Those named; all by default."""
    for name in given or []:
        if name not in accepted:
            raise SystemExit(f"error: {argument}: got {name}; accepted are {', '.join(accepted)}")
    return accepted if given is None else given


def trainings(table: str, sets: list[Set], rounds: int) -> list[Cell]:
    """Those of a table."""
    if table in SYNTHETIC:
        return list(SYNTHETIC[table].cells())
    return list(table2.cells(sets, rounds) if table == "table2" else table3.cells(table, sets))


def run(
    path: str = "uci",
    tables: list[str] | None = None,
    sets: list[str] | None = None,
    codes: list[str] | None = None,
    jobs: int = 1,
    rounds: int = table2.ROUNDS,
    output: str = str(KEPT),
) -> None:
    """Train what has not been yet; finished trainings are kept, so that this can be stopped and started again.

    Args:
        path: the folder of the sets, ``NAME.npz``.
        tables: which; default: all.
        sets: which; default: all.
        codes: which, of the sets; default: all.
        jobs: how many trainings at a time, each on one core.
        rounds: of boosting, in table 2.
        output: the folder for what is kept, a file a set.
    """
    names = chosen("sets", sets, [one.name for one in SETS])
    among = [one for one in SETS if one.name in names]
    wanted = [cell for table in chosen("tables", tables, list(TABLES)) for cell in trainings(table, among, rounds)]
    if codes is not None:
        allowed = chosen("codes", codes, list(CODES))
        wanted = [cell for cell in wanted if cell.code in allowed or cell.table in SYNTHETIC]
    if jobs < 1:
        raise SystemExit(f"error: jobs: got {jobs}; accepted is a whole number >= 1")
    for name in sorted({cell.set for cell in wanted if cell.table not in SYNTHETIC}):
        if not (file := Path(path) / f"{name}.npz").is_file():
            raise SystemExit(f"error: path: there is no file {file}; accepted is the folder of the sets")
    all_of(wanted, path, Path(output), jobs)


def report(output: str = str(KEPT), readme: str | None = None) -> None:
    """Write tables.md and its pictures, with whatever is done.

    Args:
        output: the folder that `run` wrote to.
        readme: a file that gets what agrees and the tables, between ``<!-- tables: begin -->`` and
            ``<!-- tables: end -->``.
    """
    folder = Path(output)
    text = write.report(folder)
    print("\n".join(text.split("\n## ")[1].splitlines()[2:]))
    if readme is not None:
        file = Path(readme)
        write_atomically(file, put(file.read_text(encoding="utf-8"), "tables", write.short(folder)))
    print(f"written: {Path(output) / 'tables.md'}")


def main(args: list[str] | None = None) -> object:
    """Run the command line."""
    from jsonargparse import auto_cli

    return auto_cli({"run": run, "report": report}, args=args, description=tables.__doc__.split("\n")[0])


if __name__ == "__main__":
    main()
