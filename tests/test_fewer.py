"""Of many cases some run: tests that are there, and cases that differ in everything they are made of."""

import importlib

import pytest

from tests.fewer import CASES, spread


@pytest.mark.parametrize("name", CASES)
def test_they_are_there(name):
    path, *parts = name.split("::")
    found = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    for part in parts:
        found = getattr(found, part)


def test_they_are_spread():
    assert spread(4, 2) == {0, 3}
    assert spread(12, 4) == {0, 4, 7, 11}
    assert spread(5, 5) == {0, 1, 2, 3, 4}
    assert spread(3, 1) == {2}
    assert spread(3, 0) == set()
