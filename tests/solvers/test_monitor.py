"""What watches a fit, by a clock of the test's own."""

import math

import pytest

from torch_multiclass.solvers import monitor as watch
from torch_multiclass.solvers.monitor import Monitor


@pytest.fixture
def clock(monkeypatch):
    """``clock[0]`` is the time."""
    now = [50.0]
    monkeypatch.setattr(watch.time, "perf_counter", lambda: now[0])
    return now


@pytest.mark.parametrize(
    ("wanted", "terminal", "said"),
    [
        (None, True, [(f"Solver: {s} s, pass {n}, primal 8, gap 7.5e-01", "\r") for s, n in ((5, 3), (6, 5))]),
        (None, False, []),
        (False, True, []),
        (True, False, [(f"Solver: {s} s, pass {n}, primal 8, gap 7.5e-01", "\n") for s, n in ((0, 1), (5, 3), (6, 5))]),
    ],
)
def test_a_line_now_and_then(wanted, terminal, said, clock, capsys, monkeypatch):
    """At once where it is asked for, from five seconds on by itself, and not again within half a second."""
    monkeypatch.setattr(watch.sys.stderr, "isatty", lambda: terminal)
    watched = Monitor("Solver", 5, wanted)
    watched.primal, watched.dual = 8.0, 2.0

    def passes():
        for seconds in (0.2, 0.5, 5.1, 5.4, 5.7, 9.0):
            clock[0] = 50.0 + seconds
            yield

    watched.run(passes())
    last = [("Solver: 9 s, pass 5, primal 8, gap 7.5e-01", "\n")] if said else []
    assert capsys.readouterr().err == "".join(f"{line:{79 * terminal}}{end}" for line, end in said + last)
    assert watched.passes == 5  # the sixth is asked for, and there are to be no more


def test_measurements_have_their_pass_and_time(clock):
    steps = []
    watched = Monitor("Solver", 9, on_step=steps.append)
    watched.passes, clock[0] = 3, 53.5
    watched.note(4.0, -math.inf)
    assert steps == watched.history == [(3, 3.5, 4.0, -math.inf)]


@pytest.mark.parametrize(("primal", "dual", "line"), [(math.inf, -math.inf, ""), (0.25, -math.inf, ", primal 0.25")])
def test_a_line_says_what_is_known(primal, dual, line, clock, capsys):
    watched = Monitor("Solver", 9, True)
    watched.primal, watched.dual = primal, dual
    watched.run(iter([]))
    assert capsys.readouterr().err == f"Solver: 0 s, pass 0{line}\n"
