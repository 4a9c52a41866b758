"""How the demo speaks: claims that are what was measured, pictures, and a bar while it works."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import torch
from matplotlib.figure import Figure
from torch import Tensor

from ..plots import STYLE
from ..progress import quiet_line

WIDTH = 80


_kept: dict[str, Any] = {"folder": Path("demo"), "begun": ""}


def keep_in(place: str) -> None:
    """Where pictures are put from now on."""
    _kept["folder"] = Path(place)


def folder() -> Path:
    """Where they are put."""
    return _kept["folder"]


def kept() -> str:
    """Which pictures there are, and where."""
    return f"pictures in {folder()}: {', '.join(sorted(path.stem for path in folder().glob('*.png')))}"


def headline(words: str) -> None:
    """A line by itself."""
    print(words, flush=True)


def percent(share: float) -> str:
    """``3.1 %``, its parts never on two lines."""
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def seconds(time: float) -> str:
    """``0.8 s``."""
    return f"{time:.1f}\N{NO-BREAK SPACE}s"


def begun(topic: str) -> None:
    """Where nobody sees a bar: the topic that is being worked at; its claim follows on the same line."""
    if _kept["begun"] != topic and not sys.stderr.isatty():
        _kept["begun"] = topic
        print(f"{topic:<11}", end="", flush=True)


def claim(topic: str, words: str) -> None:
    """What was found, under its topic, within the width of a terminal."""
    lines = textwrap.wrap(words, WIDTH - 11, break_on_hyphens=False)
    there = topic and topic == _kept["begun"]
    _kept["begun"] = ""
    print("" if there else f"{topic:<11}", end="")
    print(f"\n{'':<11}".join(lines).replace("\N{NO-BREAK SPACE}", " "), flush=True)


def noted(ours: Tensor, theirs: Tensor) -> str:
    """Nothing where ours is below theirs, row by row or draw by draw, by more than two standard errors; else a word."""
    difference = (ours - theirs).double()
    error = float(difference.std()) / len(difference) ** 0.5
    mean = float(difference.mean())
    return " (level)" if abs(mean) <= 2 * error else "" if mean < 0 else " (worse)"


@contextmanager
def picture(name: str, width: float, height: float, title: str = "") -> Iterator[Figure]:
    """A figure that is kept under a name."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        if title:
            figure.suptitle(title, fontsize=11)
        yield figure
        folder().mkdir(parents=True, exist_ok=True)
        figure.savefig(folder() / f"{name}.png", dpi=150)


@contextmanager
def working(name: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal while so many things are done, elsewhere the topic; call what it gives after each."""
    begun(name)
    with quiet_line() as bar:
        task = bar.add_task(name, total=total)
        yield lambda: bar.advance(task)


def draws(count: int, seed: int) -> Tensor:
    """Row numbers in a random order."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed))
