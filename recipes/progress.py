"""How far a long work is: bars of one line, which rewrites itself on a terminal and stays within its width."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import RichProgressBar
from lightning.pytorch.callbacks.progress.rich_progress import CustomBarColumn
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.text import Text

from torch_multiclass.solvers import Interrupted
from torch_multiclass.solvers.report import Step

__all__ = ["Progress", "bar", "fitting", "line", "on_terminal", "percent", "quiet_line", "result", "spoken"]

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


class Facts(ProgressColumn):
    """Batches that are done, time left, and as many measured values as there is room for."""

    def __init__(self, callback: Progress, console_width: Callable[[], int]) -> None:
        self.callback, self.console_width = callback, console_width
        super().__init__()

    def render(self, task: Task) -> Text:
        """The rest of the line, behind the task's name and its bar."""
        total = f"{task.total:.0f}" if task.total is not None and task.total < float("inf") else "?"
        words = [f"{int(task.completed)}/{total}"]
        if task.time_remaining:
            words.append(f"{spoken(task.time_remaining)} left")
        if task.id == self.callback.train_progress_bar_id:
            words += [f"{name} {value:.3f}" for name, value in self.callback.measured.items()]
        name = max(len(task.description), len(self.callback.validation_description))
        return Text(fitting(words, self.console_width() - name - WIDTH - 3))


class Progress(RichProgressBar):
    """Lightning's bar on one line: what does not fit is left out, never cut or wrapped."""

    measured: Mapping[str, float]

    def __init__(self) -> None:
        super().__init__()
        self.measured = {}

    def configure_columns(self, trainer: Trainer) -> list[ProgressColumn]:
        """The parts of the line."""
        color = self.theme.progress_bar
        line = CustomBarColumn(bar_width=WIDTH, complete_style=color, finished_style=color, pulse_style=color)
        return [TextColumn("{task.description}"), line, Facts(self, lambda: self._console.width)]

    def get_metrics(self, trainer: Trainer, pl_module: LightningModule) -> dict:
        """Nothing for Lightning's own column; the values are kept for `Facts`."""
        metrics = super().get_metrics(trainer, pl_module)
        self.measured = {n: value for n, value in metrics.items() if n != "v_num" and isinstance(value, float)}
        return {}

    def _get_train_description(self, current_epoch: int) -> str:
        """Epochs counted from 1, as wide as the name of the validation's bar, which comes and goes below."""
        most = self.trainer.max_epochs
        name = f"Epoch {current_epoch + 1}" + (f"/{most}" if most is not None and most > 0 else "")
        return name.ljust(len(self.validation_description))


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


def line(console: Console | None = None, **options: Any) -> Bar:
    """A bar for `rich`: name, bar, how many of how many, the time so far and the time left, on one line."""
    console = Console() if console is None else console
    parts = Name(lambda: console.width), BarColumn(WIDTH), MofNCompleteColumn(), TimeElapsedColumn()
    return Bar(*parts, TimeRemainingColumn(), console=console, **options)


def quiet_line() -> Bar:
    """The same on standard error, gone once it is done, and only on a terminal."""
    console = Console(stderr=True)
    return line(console, transient=True, disable=not console.is_terminal)


@contextmanager
def bar(name: str, total: int | None, wanted: bool | None = None) -> Iterator[Callable[[Step], None]]:
    """A bar of the steps of a solver that are done, on standard error; by default on a terminal.

    Ctrl-C is for the recipe to speak of, in its one line.
    """
    console = Console(stderr=True)
    off = not (console.is_terminal if wanted is None else wanted)
    with warnings.catch_warnings(), line(console, transient=wanted is None, disable=off) as shown:
        warnings.simplefilter("ignore", Interrupted)
        task = shown.add_task(name, total=total)
        yield lambda step: shown.update(task, completed=step.iteration)


def percent(share: float) -> str:
    """``1.56 %``."""
    return f"{100 * share:.2f} %"


def result(metrics: Mapping[str, float], part: str) -> str:
    """What was measured on a part of the data, in one line: ``test error 1.56 %, loss 0.0787``."""
    found = sorted(metrics.items(), key=lambda item: item[0].endswith("loss"))
    values = {name.removeprefix(f"{part}_"): float(v) for name, v in found if name.startswith(f"{part}_")}
    said = [f"{n.replace('_', ' ')} {f'{v:.4g}' if n.endswith('loss') else percent(v)}" for n, v in values.items()]
    return f"{part} {', '.join(said)}"
