"""Hatchling's hook: the native library is compiled with the wheel, where there is a compiler for it."""

from __future__ import annotations

import platform
import re
import runpy
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NativeLibrary(BuildHookInterface):
    """Compiles ``native/`` into the package; the wheel is of this platform then, and of any without a compiler."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before the wheel, or the link of an editable installation, is made."""
        root = Path(self.root)
        if self.target_name != "wheel" or not (root / "native").is_dir():
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
