"""The examples print what they say they do."""

import ast
import re
import runpy
import textwrap
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
NUMBER = r"\d+\.\d+"
CLOSE = 0.015
"""What rounding on other machines may change of a share."""


def promised(path):
    """The lines that the docstring shows."""
    text = ast.get_docstring(ast.parse(path.read_text()))
    return textwrap.dedent(text.partition("Prints::\n\n")[2]).strip().splitlines()


@pytest.fixture(params=EXAMPLES, ids=[path.stem for path in EXAMPLES])
def example(request):
    if "sklearn" in request.param.read_text():
        pytest.importorskip("sklearn")
    return request.param


def test_prints_what_it_promises(example, capsys):
    runpy.run_path(str(example), run_name="__main__")
    printed, lines = capsys.readouterr().out.splitlines(), promised(example)
    assert lines
    assert [re.sub(NUMBER, "#", line) for line in printed] == [re.sub(NUMBER, "#", line) for line in lines]
    for one, other in zip(printed, lines, strict=True):
        found, said = ([float(n) for n in re.findall(NUMBER, line)] for line in (one, other))
        assert found == pytest.approx(said, abs=CLOSE)


def test_what_it_shows_is_better(example):
    """Of the two lines that each promises, the second is not worse in any number, and better in most."""
    first, second = ([float(n) for n in re.findall(NUMBER, line)] for line in promised(example))
    assert all(b <= a for a, b in zip(first, second, strict=True))
    assert second[-1] < first[-1] - 2 * CLOSE or second[-1] == 0


def test_is_short(example):
    assert len(example.read_text().splitlines()) <= 60
