"""Lightning recipes: ``torch-multiclass RECIPE ...``, in a checkout also ``python -m recipes.RECIPE ...``."""

from __future__ import annotations

import importlib
import sys
from typing import Any

__all__ = ["Fitted", "load"]


def __getattr__(name: str) -> Any:
    """`load` and `Fitted`, when asked for: nothing slow is imported before a recipe starts."""
    if name in __all__:
        sys.modules.setdefault("recipes", sys.modules[__name__])  # checkpoints name their classes by it
        return getattr(importlib.import_module("recipes.fitted"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
