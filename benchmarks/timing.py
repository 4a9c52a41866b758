"""Fair timings: contestants take turns in one run, and what is quoted are medians and their ratio.

On the CPU the clock is the process's CPU time on one thread, which a busy machine disturbs least; on a GPU it is
the time between two events on its stream.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

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


def take_turns(
    contestants: dict[str, Callable[[], object]], repeats: int = 9, warmup: int = 2, device: str = "cpu"
) -> dict[str, Timing]:
    """Time every contestant once a round, for ``repeats`` rounds after ``warmup`` that do not count."""
    timings = {name: Timing() for name in contestants}
    for turn in range(warmup + repeats):
        for name, run in contestants.items():
            seconds, wall = _once(run, device)
            if turn >= warmup:
                timings[name].seconds.append(seconds)
                timings[name].wall.append(wall)
    return timings


def _once(run: Callable[[], object], device: str) -> tuple[float, float]:
    if device != "cpu":
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start = time.perf_counter()
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / 1e3, time.perf_counter() - start
    start, start_cpu = time.perf_counter(), time.process_time()
    run()
    return time.process_time() - start_cpu, time.perf_counter() - start


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
