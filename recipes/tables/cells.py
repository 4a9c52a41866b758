"""The trainings that tables are made of: each is done once and kept, whichever process does it."""

from __future__ import annotations

import functools
import json
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from torch_multiclass_recipes import known

from ..data.arrays import digest
from ..files import write_atomically
from ..progress import line
from ..start import program

Facts = dict[str, Any]
KEPT = "runs/tables"
"""Where trainings are kept by default."""


@dataclass(frozen=True)
class Cell:
    """One training.

    Args:
        table: the folder of what is kept.
        set: the file.
        code: a name within it.
        number: of the fold, or of the draw.
        work: what trains, and says so in ``shown``; it has to be known by name to other processes.
        given: what it is given, JSON.
        by_column: whether it takes a folder ``columns=`` too, in which it keeps each column as soon as that is done.
    """

    table: str
    set: str
    code: str
    number: int
    work: Callable[..., Facts]
    given: dict[str, Any]
    by_column: bool = False

    def __str__(self) -> str:
        return f"{self.table}, {self.set}, {self.code}, {self.number}"

    def file(self, folder: Path) -> Path:
        """Where it is kept."""
        return folder / self.table / f"{self.set}.json"

    def columns(self, folder: Path) -> Path:
        """Where its columns are while it is not done."""
        return folder / "columns" / "-".join((self.table, self.set, self.code, str(self.number)))

    def data(self, path: str) -> dict[str, str]:
        """Which contents the file of its set has, where it is of one."""
        found = contents(Path(path) / f"{self.set}.npz")
        return {"data": found} if found else {}

    def done(self, folder: Path, path: str) -> bool:
        """Whether it is there, and was given the same options and rows."""
        kept = read(self.file(folder)).get(self.code, {}).get(str(self.number))
        if kept is None or kept["given"] != self.given:
            return False
        now = self.data(path)
        return not now or kept.get("data", now["data"]) == now["data"]

    def keep(self, folder: Path, facts: Facts, commit: str) -> None:
        """Put it with those of the same set."""
        kept = read(self.file(folder))
        kept.setdefault(self.code, {})[str(self.number)] = {"given": self.given, **facts, "commit": commit}
        kept[self.code] = {number: kept[self.code][number] for number in sorted(kept[self.code], key=int)}
        write_atomically(self.file(folder), json.dumps(kept, indent=1) + "\n")


def read(path: Path) -> dict[str, dict[str, Facts]]:
    """What is kept of a set: facts by code and number."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


@functools.cache
def contents(file: Path) -> str:
    """A short name of what is in a file; empty where there is none."""
    return digest(np.fromfile(file, np.uint8)) if file.is_file() else ""


def checked_out() -> str:
    """The commit of this checkout; empty where there is none."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return ""
    return found.stdout.strip()


def one_thread() -> None:
    """What a process begins with; from the keyboard it ends at once."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def train(cell: Cell, path: str, folder: Path) -> Facts:
    """Do it."""
    more = {"columns": cell.columns(folder)} if cell.by_column else {}
    return cell.work(path, cell.set, cell.code, cell.number, **cell.given, **more) | cell.data(path)


def train_alone(cell: Cell, path: str, folder: Path) -> Facts:
    """In a process of its own."""
    one_thread()
    return train(cell, path, folder)


def all_of(cells: Iterable[Cell], path: str, folder: Path, jobs: int) -> None:
    """Train what is not done, several at a time, with a bar; ended from the keyboard, what is done stays."""
    wanted = list(cells)
    todo = [cell for cell in wanted if not cell.done(folder, path)]
    if len(todo) < len(wanted):
        before = f"{len(wanted) - len(todo)} of {len(wanted)} trainings kept from before in {folder}"
        print(f"{before}; --output FOLDER trains anew", flush=True)
    commit = checked_out()
    console = Console()
    with line(console) as bar:
        task = bar.add_task("trainings", total=len(wanted), completed=len(wanted) - len(todo))
        try:
            work = functools.partial(train_alone, path=path, folder=folder)
            for cell, facts in in_processes(todo, work, jobs, lambda words: bar.update(task, description=words)):
                console.print(f"{cell}: {facts.pop('shown')}")
                cell.keep(folder, facts, commit)
                shutil.rmtree(cell.columns(folder), ignore_errors=True)
                bar.advance(task)
        except KeyboardInterrupt:
            raise SystemExit("ended from the keyboard: what is done is kept, and the same command goes on") from None
    print(
        f"{len(wanted)} trainings kept in {folder}; the tables and pictures of them: {program('tables')} report"
        + (f" --output {folder}" if str(folder) != KEPT else "")
    )


def in_processes(
    todo: Iterable[Cell], work: Callable[[Cell], Facts], jobs: int, tell: Callable[[str], None]
) -> Iterator[tuple[Cell, Facts]]:
    """Train so many at a time; those that are done first come first."""
    waiting = iter(todo)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=known) as pool:
        running = {pool.submit(work, cell): cell for cell in islice(waiting, jobs)}
        while running:
            tell("; ".join(map(str, running.values())))
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                cell = running.pop(future)
                running |= {pool.submit(work, following): following for following in islice(waiting, 1)}
                yield cell, future.result()
