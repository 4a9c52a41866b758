"""How far a long work is: bars of one line, which rewrites itself on a terminal and stays within its width."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.text import Text

from torch_multiclass.solvers import Interrupted, Solver
from torch_multiclass.solvers.report import Step

__all__ = ["bar", "fitting", "line", "on_terminal", "percent", "quiet_line", "result", "spoken", "whole"]

WIDTH = 8
"""Of a bar, in characters."""


def fitting(words: Iterable[str], width: int) -> str:
    """As many of the words, from the first, as fit into a width, one space between them; none is cut."""
    line = ""
    for word in words:
        longer = f"{line} {word}".lstrip()
        if len(longer) > width:
            break
        line = longer
    return line


def spoken(seconds: float) -> str:
    """A time: ``12 s``, ``3 min``, ``2.5 h``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def on_terminal() -> bool:
    """Whether somebody looks at what is printed as it is."""
    console = Console()
    return console.is_terminal or console.is_jupyter


class Name(ProgressColumn):
    """What is being done, as many of its words as there is room for beside a bar, a count and two times."""

    def __init__(self, console_width: Callable[[], int]) -> None:
        self.console_width = console_width
        super().__init__()

    def render(self, task: Task) -> Text:
        """The name."""
        count = 2 * len(f"{task.total or 0:.0f}") + 1
        return Text(fitting(task.description.split(), self.console_width() - WIDTH - count - 2 * len("0:00:00") - 4))


def line(console: Console | None = None, disable: bool | None = None, **options: Any) -> Bar:
    """A bar for `rich`: name, bar, how many of how many, the time so far and the time left, on one line; by default
    only on a terminal.
    """
    console = Console() if console is None else console
    disable = not console.is_terminal if disable is None else disable
    parts = Name(lambda: console.width), BarColumn(WIDTH), MofNCompleteColumn(), TimeElapsedColumn()
    return Bar(*parts, TimeRemainingColumn(), console=console, disable=disable, **options)


def quiet_line() -> Bar:
    """The same on standard error, gone once it is done, and only on a terminal."""
    return line(Console(stderr=True), transient=True)


@contextmanager
def bar(name: str, total: int | None, wanted: bool | None = None) -> Iterator[Callable[[Step], None]]:
    """A bar of the steps of a solver that are done, on standard error; by default on a terminal.

    Ctrl-C is for the recipe to speak of, in its one line.
    """
    console = Console(stderr=True)
    with (
        warnings.catch_warnings(),
        line(console, transient=wanted is None, disable=None if wanted is None else not wanted) as shown,
    ):
        warnings.simplefilter("ignore", Interrupted)
        task = shown.add_task(name, total=total)
        yield lambda step: shown.update(task, completed=step.iteration)


def whole(solver: Solver, *data: Any, **more: Any) -> Any:
    """What a solver gives. Ended from the keyboard it is the best so far, which nobody asked for in the middle of a
    recipe, and which would be kept or compared as if it were whole: the recipe ends with it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Interrupted)
        found = solver.fit(*data, **more)
    if found.report.interrupted:
        raise KeyboardInterrupt
    return found


def percent(share: float) -> str:
    """``1.56 %``."""
    return f"{100 * share:.2f} %"


def result(metrics: Mapping[str, float], part: str) -> str:
    """What was measured on a part of the data, in one line: ``test error 1.56 %, loss 0.0787``."""
    found = sorted(metrics.items(), key=lambda item: item[0].endswith("loss"))
    values = {name.removeprefix(f"{part}_"): float(v) for name, v in found if name.startswith(f"{part}_")}
    said = [f"{n.replace('_', ' ')} {f'{v:.4g}' if n.endswith('loss') else percent(v)}" for n, v in values.items()]
    return f"{part} {', '.join(said)}"
