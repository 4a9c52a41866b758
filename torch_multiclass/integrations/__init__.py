"""Bridges to other libraries, each imported when it is first asked for."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if not TYPE_CHECKING:  # a checker reads the modules themselves

    def __getattr__(name: str) -> Any:
        """A bridge: ``tm.integrations.onnx`` after ``import torch_multiclass as tm``."""
        if name in _modules():
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; the bridges are {sorted(_modules())}")


def __dir__() -> list[str]:
    return sorted(_modules())


def _modules() -> set[str]:
    return {module.name for module in iter_modules(__path__)}
