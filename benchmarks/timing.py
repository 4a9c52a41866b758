"""Fair timings: contestants take turns in one run, and what is quoted are medians and their ratio.

On the CPU the clock is the process's CPU time on one thread, which a busy machine disturbs least; on a GPU it is
the time between two events on its stream.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch


@dataclass
class Timing:
    """Seconds of each counted call."""

    seconds: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The figure to quote, in seconds."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> str:
        """Lowest and highest, in milliseconds."""
        return f"{min(self.seconds) * 1e3:.2f}–{max(self.seconds) * 1e3:.2f}"


class Row(NamedTuple):
    """A line of the one table that ``python -m benchmarks`` prints: ours beside a peer of the same run.

    A benchmark with a function ``rows(repeats: int) -> Iterator[Row]`` has its lines there; the other columns come from
    a second process without the native library.
    """

    name: str
    """What is measured, with its sizes; it is the same in every run."""
    ours: Timing | float
    """Seconds, or all of them."""
    peer: str = ""
    """Whom it is compared with."""
    theirs: Timing | float | None = None
    asked: float | None = None
    """How many times faster than the peer it has to be; below 1 it may be slower."""
    memory: float | None = None
    """MiB that ours holds at most above what it starts with."""


def take_turns(
    contestants: dict[str, Callable[[], object]],
    repeats: int = 9,
    warmup: int = 2,
    device: str = "cpu",
    turn_seconds: float = 0.0,
) -> dict[str, Timing]:
    """Time every contestant once a round, for ``repeats`` rounds after ``warmup`` that do not count.

    With ``turn_seconds`` a turn of a shorter call is one call that does not count, since it clears up what the
    contestant before has left in the allocator and in the caches, and then as many as fill that time.
    """
    timings = {name: Timing() for name in contestants}
    calls = dict.fromkeys(contestants, 1)
    if turn_seconds:
        for name, run in contestants.items():
            run()
            calls[name] = 1 + int(turn_seconds / max(_once(run, device, 1)[1], 1e-6))
    for turn in range(warmup + repeats):
        for name, run in contestants.items():
            seconds, wall = _once(run, device, calls[name])
            if turn >= warmup:
                timings[name].seconds.append(seconds)
                timings[name].wall.append(wall)
    return timings


def _once(run: Callable[[], object], device: str, calls: int) -> tuple[float, float]:
    if calls > 1:
        run()
    if device != "cpu":
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start = time.perf_counter()
        begin.record()
        for _ in range(calls):
            run()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / 1e3 / calls, (time.perf_counter() - start) / calls
    start, start_cpu = time.perf_counter(), time.process_time()
    for _ in range(calls):
        run()
    return (time.process_time() - start_cpu) / calls, (time.perf_counter() - start) / calls


def table(header: list[str], rows: list[list[str]], title: str = "") -> str:
    """A Markdown table with columns of even width."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]

    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    body = [line(header), "|" + "|".join("-" * (width + 2) for width in widths) + "|", *map(line, rows)]
    return "\n".join(([title, ""] if title else []) + body)


def describe(device: str) -> str:
    """What the figures were measured on, without naming the machine."""
    if device != "cpu":
        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    return f"CPU, one thread, torch {torch.__version__}"
