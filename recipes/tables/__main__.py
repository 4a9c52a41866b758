"""The command line."""

from __future__ import annotations

if __name__ == "__main__":
    from recipes.start import command

    command("tables")

from pathlib import Path

from .. import tables
from ..files import write_atomically
from ..functions import command_line
from ..results import put
from ..start import main as in_one_line
from . import figure3, growth, table2, table3, write
from .cells import KEPT, Cell, all_of
from .sets import SETS, Set
from .wanted import SYNTHETIC, check


def trainings(table: str, sets: list[Set], rounds: int) -> list[Cell]:
    """Those of a table."""
    if table in SYNTHETIC:
        return list({"figure3": figure3, "growth": growth}[table].cells())
    return list(table2.cells(sets, rounds) if table == "table2" else table3.cells(table, sets))


def run(
    path: str = "uci",
    tables: list[str] | None = None,
    sets: list[str] | None = None,
    codes: list[str] | None = None,
    jobs: int = 1,
    rounds: int = table2.ROUNDS,
    output: str = KEPT,
) -> None:
    """Train what has not been yet; finished trainings are kept, so that this can be stopped and started again.

    Args:
        path: the folder of the sets, ``NAME.npz``.
        tables: which; default: all. Figures 4 and 7 are drawn from table2, figures 5 and 6 from table3, and may be
            named in their place.
        sets: which; default: all.
        codes: which, of the sets; default: all.
        jobs: how many trainings at a time, each on one core.
        rounds: of boosting, in table 2.
        output: the folder for what is kept, a file a set.
    """
    asked, names, allowed = check(path, tables, sets, codes, jobs)
    among = [one for one in SETS if one.name in names]
    wanted = [cell for table in asked for cell in trainings(table, among, rounds)]
    if allowed is not None:
        wanted = [cell for cell in wanted if cell.code in allowed or cell.table in SYNTHETIC]
    all_of(wanted, path, Path(output), jobs)


def report(output: str = KEPT, readme: str | None = None) -> None:
    """Write tables.md and its pictures, with whatever is done, and print what agrees; or put it into another file.

    Args:
        output: the folder that `run` wrote to.
        readme: a file that gets what agrees and the tables, between ``<!-- tables: begin -->`` and
            ``<!-- tables: end -->``.
    """
    folder = Path(output)
    text = write.report(folder)
    if readme is None:
        print("\n".join(text.split("\n## ")[1].splitlines()[2:]))
        print(f"written: {folder / 'tables.md'}")
        return
    file = Path(readme)
    write_atomically(file, put(file.read_text(encoding="utf-8"), "tables", write.short(folder)))
    print(f"written: {folder / 'tables.md'} and {file}")


def main(args: list[str] | None = None) -> object:
    """Run the command line."""
    commands = {"run": run, "report": report}
    return in_one_line(lambda: command_line("tables", commands, args, tables.__doc__.split("\n")[0]))
