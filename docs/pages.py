"""The pages that are made: the API reference from the public names, performance and accuracy from what is on record."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

MODULES = {
    "scores": "Scores",
    "scorers": "Scorers",
    "losses": "Losses",
    "functional": "Losses as functions",
    "decoders": "Decoders",
    "heads": "Heads",
    "solvers": "Solvers",
    "codes": "Codes",
    "costs": "Costs",
    "kernels": "Kernels",
    "ops.margins": "Binary losses",
    "preferences": "Preferences",
    "tags": "Tag schemes",
    "spans": "Spans",
    "calibration": "Calibration",
    "bounds": "Bounds",
    "reports": "Reports",
    "metrics": "Metrics",
    "plots": "Plots",
}
"""The modules whose `__all__` is public, and how the reference calls them."""


def public(module: str) -> dict[str, Any]:
    """What a module exports, by name."""
    found = importlib.import_module(f"torch_multiclass.{module}")
    names = getattr(found, "__all__", None) or [
        name
        for name, thing in vars(found).items()
        if getattr(thing, "__module__", "") == found.__name__ and name[0] != "_"
    ]
    return {name: getattr(found, name) for name in names}


def reference(module: str, title: str) -> str:
    """The page of a module: its own words, then each name."""
    found = importlib.import_module(f"torch_multiclass.{module}")
    lines = [title, "=" * len(title), "", inspect.getdoc(found) or "", "", f".. currentmodule:: {found.__name__}", ""]
    for name, thing in public(module).items():
        if inspect.isclass(thing):
            lines += [f".. autoclass:: {name}", "   :members:", "   :show-inheritance:", ""]
        elif inspect.isroutine(thing):
            lines += [f".. autofunction:: {name}", ""]
        else:
            lines += [f".. data:: {name}", ""]
    return "\n".join(lines)


def contents() -> str:
    """The first page of the reference."""
    lines = ["API reference", "=============", ""]
    lines += ["Everything below that bears a capital letter is also ``tm.NAME``, except solvers, metrics and kernels,"]
    lines += ["which stay in ``tm.solvers``, ``tm.metrics`` and ``tm.kernels``.", "", ".. toctree::", ""]
    return "\n".join([*lines, *(f"   {module.replace('.', '_')}" for module in MODULES), ""])


def put(path: Path, text: str) -> None:
    """Write a page unless it stands there already, so that an unchanged one is not built again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def write(docs: Path) -> None:
    """All of them, into the folder of the pages."""
    for module, title in MODULES.items():
        put(docs / "api" / f"{module.replace('.', '_')}.rst", reference(module, title))
    put(docs / "api" / "index.rst", contents())
