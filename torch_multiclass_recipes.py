"""The command ``torch-multiclass RECIPE ...``: the recipes, out of the installed package or a checkout.

The package is not imported for it: a mistake on the command line is said before torch is loaded. Inside the command the
folder goes by the name ``recipes``, as in a checkout, so that configurations and checkpoints mean the same in both.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

__all__ = ["known", "main"]


def folder() -> Path:
    """Where the recipes are: in the installed package, else beside this file."""
    package = importlib.util.find_spec("torch_multiclass")
    installed = Path(package.origin).parent / "recipes" if package and package.origin else Path("nowhere")
    return installed if installed.is_dir() else Path(__file__).parent / "recipes"


def known() -> None:
    """Have the folder go by the name ``recipes``, in this process; what processes that recipes start begin with."""
    if "recipes" not in sys.modules:
        place = folder()
        spec = importlib.util.spec_from_file_location(
            "recipes", place / "__init__.py", submodule_search_locations=[str(place)]
        )
        if spec is None or spec.loader is None:
            raise SystemExit(f"error: there are no recipes in {place}")
        sys.modules["recipes"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["recipes"])


def main(args: list[str] | None = None) -> None:
    """Run a recipe."""
    known()
    if "" not in sys.path:  # classes of the user's own, as with python -m; behind all else, which they cannot hide
        sys.path.append("")
    importlib.import_module("recipes.start").run(sys.argv[1:] if args is None else args)


if __name__ == "__main__":
    main()
