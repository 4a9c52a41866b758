"""What watches a fit: the clock, the passes, the keyboard, the history, and one line of progress."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator

from torch import Tensor

from torch_multiclass.solvers.report import Step, relative_gap

_PATIENCE = 5.0  # seconds before a fit on a terminal says how it goes
_PERIOD = 0.5  # seconds between two lines


class Interrupted(UserWarning):
    """A fit was ended from the keyboard and gave the best it had.

    A loop around `fit` goes on after it: look at ``report.interrupted``, or make the warning an error.

    Reference: raised as a warning by `Solver`.

    Example:
        >>> import warnings
        >>> warnings.simplefilter("error", Interrupted)  # Ctrl-C in a fit now ends the loop around it too
    """


class Monitor:
    """Counts passes, keeps what has been reached, and ends the work when it is done, out of passes or interrupted.

    Args:
        name: of the solver, in its line of progress.
        max_passes: how many passes at most.
        progress: whether to print a line now and then; None: on a terminal, once the fit takes long.
        on_step: called with every measurement.
    """

    weight: Tensor
    """The best so far."""
    measure_unfinished: Callable[[], object] | None = None
    """What takes note of where the work stands, while that has not been measured yet."""

    def __init__(
        self,
        name: str,
        max_passes: int,
        progress: bool | None = None,
        on_step: Callable[[Step], None] | None = None,
    ) -> None:
        self.max_passes, self.on_step, self.progress = max_passes, on_step, _Progress(name, progress)
        self.started, self.passes, self.interrupted = time.perf_counter(), 0, False
        self.history: list[Step] = []
        self.primal, self.dual = math.inf, -math.inf

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self.started

    def run(self, passes: Iterator[None]) -> None:
        """Go through the passes, which yield before each of them.

        The first Ctrl-C ends them, and what they have reached by then is measured; a second one, while that is being
        done, is not held back.
        """
        try:
            for _ in passes:
                if self.passes == self.max_passes:
                    break
                self.passes += 1
                self.progress.show(self)
        except KeyboardInterrupt:
            self.interrupted = True
        if self.measure_unfinished is not None:
            self.measure_unfinished()
        self.progress.close(self)

    def note(self, primal: float, dual: float) -> None:
        """Put a measurement into the history."""
        self.measure_unfinished = None
        step = Step(self.passes, self.seconds, primal, dual)
        self.history.append(step)
        if self.on_step is not None:
            self.on_step(step)

    def settle(self) -> Tensor:
        """The best, as it is to be stored."""
        return self.weight


class _Progress:
    """A line on standard error, written over on a terminal: ``DualSVM: 12 s, pass 340, primal 93.2, gap 1.3e-02``."""

    def __init__(self, name: str, wanted: bool | None) -> None:
        self.name, self.wanted = name, wanted
        self.due = time.perf_counter() + (0.0 if wanted else _PATIENCE)
        self.terminal = bool(getattr(sys.stderr, "isatty", bool)())
        self.shown = False

    def show(self, monitor: Monitor) -> None:
        """Write, where it is wanted and time."""
        if self.wanted or (self.wanted is None and self.terminal):
            now = time.perf_counter()
            if now >= self.due:
                self.due, self.shown = now + _PERIOD, True
                self._write(monitor, "\r" if self.terminal else "\n")

    def close(self, monitor: Monitor) -> None:
        """The last line, where there is to be one."""
        if self.shown or self.wanted:
            self._write(monitor, "\n")

    def _write(self, monitor: Monitor, end: str) -> None:
        line = f"{self.name}: {monitor.seconds:.0f} s, pass {monitor.passes}"
        if math.isfinite(monitor.primal):
            line += f", primal {monitor.primal:.6g}"
        if math.isfinite(monitor.dual):
            line += f", gap {relative_gap(monitor.primal, monitor.dual):.1e}"
        print(line.ljust(79) if self.terminal else line, end=end, file=sys.stderr, flush=True)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of the line that called this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("torch_multiclass.", "torch.")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
