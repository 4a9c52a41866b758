"""Hatchling's hook: the wheel holds the recipes, and the native library where there is a compiler for it."""

from __future__ import annotations

import platform
import re
import runpy
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class RecipesAndNativeLibrary(BuildHookInterface):
    """Adds ``recipes/`` as ``torch_multiclass/recipes`` with its command, and compiles ``native/`` into the package.

    With the native library the wheel is of this platform, and of any without a compiler.
    """

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before the wheel, or the link of an editable installation, is made."""
        root = Path(self.root)
        if self.target_name != "wheel":
            return
        if version != "editable":
            for kind in ("*.py", "*.yaml", "*.md"):
                for path in sorted((root / "recipes").rglob(kind)):
                    inside = path.relative_to(root / "recipes")
                    if inside.parts[0] != "results":
                        build_data["force_include"][str(path)] = f"torch_multiclass/recipes/{inside.as_posix()}"
            build_data["force_include"][str(root / "torch_multiclass_recipes.py")] = "torch_multiclass_recipes.py"
        if not (root / "native").is_dir():
            return
        script = runpy.run_path(str(root / "native" / "build.py"))
        made = script["build"](root / "torch_multiclass" / "_native")
        if not made or version == "editable":
            return
        for path in made:
            build_data["force_include"][str(path)] = f"torch_multiclass/_native/{path.name}"
        system = sysconfig.get_platform().replace("universal2", platform.machine())  # the library is of one machine
        build_data["tag"] = f"py3-none-{re.sub('[-.]', '_', system)}"
        build_data["pure_python"] = False
