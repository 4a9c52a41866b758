"""The pages that are made: the API reference from the public names, performance and accuracy from what is on record."""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
from functools import cache
from importlib.util import find_spec
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

BRIDGES = {
    "integrations.sklearn": ("sklearn", "scikit-learn"),
    "integrations.onnx": ("torch", "ONNX"),
    "integrations.network": ("lightning", "Networks as learners"),
    "integrations.duality_gap": ("lightning", "Gaps while training"),
}
"""Modules that need another library: which, and the title."""

MODULES |= {module: title for module, (needed, title) in BRIDGES.items() if find_spec(needed)}


def public(module: str) -> dict[str, Any]:
    """What a module exports, by name."""
    found = importlib.import_module(f"torch_multiclass.{module}")
    names = getattr(found, "__all__", None) or [
        name
        for name, thing in vars(found).items()
        if getattr(thing, "__module__", "") == found.__name__ and name[0] != "_"
    ]
    return {name: getattr(found, name) for name in names}


def elsewhere(module: str, name: str) -> bool:
    """Whether the reference has a name at another module that exports it."""
    return module == "heads" and name in public("calibration")


@cache
def places() -> dict[str, str]:
    """Where each public name is, by ``module.name`` and, of a class, by its name alone."""
    found: dict[str, str] = {}
    for module in reversed(MODULES):
        for name, thing in public(module).items():
            if elsewhere(module, name):
                continue
            place = f"torch_multiclass.{module}.{name}"
            found |= {f"{module}.{name}": place, f"{module.removeprefix('ops.')}.{name}": place} | (
                {name: place} if inspect.isclass(thing) else {}
            )
    return found


def target(code: str) -> str | None:
    """What a piece of code names: ``CRFLoss``, ``CRFLoss()`` or ``tm.bounds.margin_error``; None of others."""
    name = re.fullmatch(r"(?:tm\.|torch_multiclass\.)?([\w.]+)(?:\(.*\))?", code)
    return None if name is None else places().get(name[1])


def reference(module: str, title: str) -> str:
    """The page of a module: its own words, then each name."""
    found = importlib.import_module(f"torch_multiclass.{module}")
    lines = [title, "=" * len(title), "", inspect.getdoc(found) or "", "", f".. currentmodule:: {found.__name__}", ""]
    for name, thing in public(module).items():
        if elsewhere(module, name):
            continue
        if inspect.isclass(thing):
            lines += [f".. autoclass:: {name}", "   :members:", "   :show-inheritance:", ""]
        elif inspect.isroutine(thing):
            lines += [f".. autofunction:: {name}", ""]
        else:
            lines += [f".. data:: {name}", ""]
    return "\n".join(lines)


def alone() -> list[str]:
    """The functions of the package itself that no module above exports."""
    package = importlib.import_module("torch_multiclass")
    shown = {name for module in MODULES for name in public(module)}
    return [name for name in package.__all__ if name not in shown and inspect.isroutine(getattr(package, name))]


def contents() -> str:
    """The first page of the reference."""
    lines = ["API reference", "=============", ""]
    lines += ["Scores, scorers, losses, decoders, heads and calibration are also ``tm.NAME``; solvers, metrics, codes,"]
    lines += [
        "costs, kernels and the rest stay in the module of their name, ``tm.solvers`` and so on. The bridges to other"
    ]
    lines += ["tools are in ``torch_multiclass.integrations``; :doc:`../integrations` shows each.", ""]
    lines += [".. toctree::", "   :hidden:", "", *(f"   {module.replace('.', '_')}" for module in MODULES), ""]
    for module, title in MODULES.items():
        where = f"torch_multiclass.{module}"
        names = ", ".join(f":py:obj:`~{where}.{name}`" for name in public(module))
        lines += [f":doc:`{title} <{module.replace('.', '_')}>`", f"   {names}", ""]
    lines += [".. currentmodule:: torch_multiclass", ""]
    return "\n".join([*lines, *(f".. autofunction:: {name}\n" for name in alone())])


def put(path: Path, text: str) -> None:
    """Write a page unless it stands there already, so that an unchanged one is not built again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def recorded(name: str) -> str:
    """What a recipe's README has between the marks of a name, made there from what is on record."""
    text = (ROOT / "recipes" / "README.md").read_text(encoding="utf-8")
    found = re.search(f"<!-- {name}: begin -->\n(.*?)<!-- {name}: end -->", text, re.DOTALL)
    if found is None:
        raise ValueError(f"recipes/README.md: the marks of {name} are not there")
    return found[1]


def page_of(path: Path, level: str = "#") -> str:
    """A page on record without its title, its other titles lower."""
    lines = path.read_text(encoding="utf-8").splitlines()
    kept = lines[1:] if lines and lines[0].startswith("# ") else lines
    return "\n".join(level + line if line.startswith("#") else line for line in kept)


def performance() -> str:
    """Every figure of the benchmarks."""
    said = "Times of ours and of the peer in the same run. *Faster* is theirs over ours, so that below 1 we are slower;"
    said += "\n*torch alone* is without the native library.\n"
    return f"# Performance\n\n{said}\n{page_of(ROOT / 'benchmarks' / 'results' / 'cpu.md')}\n"


def accuracy() -> str:
    """Every figure of the recipes."""
    results = ROOT / "recipes" / "results"
    parts = ["# Accuracy\n\nMade from `recipes/results`; `recipes/README.md` says how each was trained.\n"]
    parts += ["## Digits\n", recorded("digits"), "## Tagging\n", recorded("tagging"), "## Handwriting\n"]
    parts += [page_of(results / "ocr" / "table.md"), "\n![words](words.png)\n"]
    parts += ["## Tables of papers\n", page_of(results / "tables" / "tables.md")]
    return "\n".join(parts) + "\n"


def write(docs: Path) -> None:
    """All of them, into the folder of the pages."""
    put(docs / "results" / "performance.md", performance())
    put(docs / "results" / "accuracy.md", accuracy())
    for picture in (*(ROOT / "recipes" / "results").glob("*/*.png"), *(ROOT / "recipes" / "results").glob("*.png")):
        shutil.copyfile(picture, docs / "results" / picture.name)
    for module, title in MODULES.items():
        put(docs / "api" / f"{module.replace('.', '_')}.rst", reference(module, title))
    put(docs / "api" / "index.rst", contents())
