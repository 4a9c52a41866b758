"""The options of a command line as they were typed, those of the files that it names among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import yaml_files

__all__ = ["COMMANDS", "flat", "options", "words"]

COMMANDS = ("fit", "validate", "test", "predict")
"""The subcommands of the recipes that Lightning runs."""


NULL = ("null", "~")
"""How YAML, and so the parser, spells an option that is unset."""


def options(args: list[str]) -> dict[str, Any]:
    """The options by their dotted names, without ``init_args``: of the files that they name, then of the line."""
    given: dict[str, Any] = {}
    for option, following in zip(args, [*args[1:], ""], strict=False):
        if option == "-c":
            option = "--config"
        if option.startswith("--"):
            name, joined, value = option[2:].partition("=")
            name = name.replace(".init_args", "").removesuffix(".class_path")
            value = value if joined else following
            if name == "config" and Path(value).is_file():
                given |= flat(yaml_files.read(value))
            given[name] = None if value in NULL else value
    return given


def words(args: list[str]) -> list[str]:
    """The words that are neither options nor their values: the subcommand, and what a recipe without one is given."""
    found, follows = [], False
    for word in args:
        if word.startswith("--") or word == "-c":
            follows = "=" not in word and word != "--print_config"
            continue
        found += [] if follows or word.startswith("-") else [word]
        follows = False
    return found


def flat(value: Any, name: str = "") -> dict[str, Any]:
    """The leaves of a nested configuration by their dotted names."""
    if not isinstance(value, dict):
        return {name: value} if name else {}
    found: dict[str, Any] = {}
    for key, part in value.items():
        inner = name if key in ("init_args", "class_path") else f"{name}.{key}" if name else str(key)
        found |= flat(part, inner)
    return found
