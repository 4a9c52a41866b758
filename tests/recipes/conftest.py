"""What a recipe changes of its process is undone after each test."""

import sys
import warnings

import pytest

from recipes.start import Heard, Keyboard, printed


@pytest.fixture(autouse=True)
def _process(monkeypatch):
    printed.cache_clear()
    monkeypatch.setattr(Heard, "wanted", True)
    monkeypatch.setattr(Keyboard, "said", False)
    monkeypatch.setattr(Keyboard, "pressed", False)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
