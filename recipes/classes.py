"""The classes of the package that options name, read from its source, which is not run."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

from .signatures import parsed

__all__ = ["CLASSES", "ours", "package", "public"]

CLASSES = {"model.loss": "Loss", "model.head": "Head", "model.head.loss": "Loss"}
"""Options that name a class of the package, and how its name ends."""

UNFIT = {
    "model.head": ("ChainHead", "LabelTreeHead", "MultilabelHead", "SecondOrderHead", "SegmentHead"),
    "model.loss": ("AdaBoostLoss", "CodedLoss", "CrammerSingerLoss", "MarginRampLoss", "WestonWatkinsLoss"),
}
"""Those that do not fit: heads of several labels a row where a row has one, losses of one label where a chain has many.
"""


def package(name: str) -> Path:
    """The first file of a package, which is not imported."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin) if spec and spec.origin else Path("nowhere")


def public() -> Iterator[str]:
    """The public names of the package."""
    file = package("torch_multiclass")
    for node in ast.walk(parsed(file)) if file.is_file() else ():
        if isinstance(node, ast.Assign) and any(getattr(one, "id", None) == "__all__" for one in node.targets):
            yield from (one.value for one in getattr(node.value, "elts", []) if isinstance(one, ast.Constant))


def ours(option: str) -> list[str]:
    """The classes of the package that one of `CLASSES` accepts."""
    ending = CLASSES[option]
    return [one for one in public() if one.endswith(ending) and one not in (ending, *UNFIT.get(option, ()))]
