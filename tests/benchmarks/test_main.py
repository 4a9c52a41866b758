"""What ``python -m benchmarks`` runs, and that asking for help runs nothing."""

import contextlib
import importlib.util
import subprocess
import sys
import types
from pathlib import Path

import pytest

from benchmarks import __main__ as command

ROOT = Path(command.__file__).parents[1]


@pytest.fixture
def ran(monkeypatch):
    """The names of the benchmarks that were started, none of them really."""
    names = []

    def stand_in(module):
        return types.SimpleNamespace(main=lambda: names.append((module.removeprefix("benchmarks."), sys.argv[1:])))

    monkeypatch.setattr(command.importlib, "import_module", stand_in)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "left over"])
    return names


@pytest.mark.parametrize("option", ["--help", "-h", "--list"])
def test_help_runs_nothing_and_names_each(option, ran, capsys):
    with contextlib.suppress(SystemExit):
        command.main([option])
    shown = capsys.readouterr().out
    assert ran == []
    for name in ("losses", "chains", "codes", "svm", "heads"):
        assert f"  {name} " in shown
    assert "timing" not in shown


def test_the_table_and_the_pictures_by_default(ran):
    command.main([])
    assert ran == [("summary", []), ("scaling", [])]


def test_those_named_in_that_order(ran):
    command.main(["losses", "card"])
    assert ran == [("losses", []), ("card", [])]


def test_a_name_that_is_none(ran, capsys):
    with pytest.raises(SystemExit):
        command.main(["losses", "speed"])
    assert "NAME: got 'speed'; accepted are " in capsys.readouterr().err
    assert ran == []


HELP = """
import contextlib, io, runpy, sys
for name in sys.argv[1:]:
    sys.argv, shown = [name, "--help"], io.StringIO()
    try:
        with contextlib.redirect_stdout(shown):
            runpy.run_module(f"benchmarks.{name}", run_name="__main__")
    except SystemExit as end:
        assert not end.code, (name, end.code)
    assert "usage" in shown.getvalue(), name
"""


@pytest.mark.slow
def test_each_has_help_of_its_own():
    """One process for all, or most of the time would go into imports."""
    pytest.importorskip("sklearn")
    names = [name for name in command.benchmarks() if name != "heads" or importlib.util.find_spec("lightning")]
    done = subprocess.run([sys.executable, "-c", HELP, *names], capture_output=True, text=True, cwd=ROOT, timeout=240)
    assert done.returncode == 0, done.stderr
