"""Configurations in YAML, read without running code and without taking more memory than the text suggests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

LARGEST = 2**24
"""Bytes of a file."""
MOST = 200_000
"""Entries, those of an anchor counted wherever it is used."""


def check(text: str, what: str = "the text") -> None:
    """Refuse YAML that anchors expand beyond `MOST` entries or without end, which its loader would not notice."""
    if len(text) > LARGEST:
        raise ValueError(f"config: {what} has {len(text)} characters; accepted are up to {LARGEST}")
    if "&" not in text or "*" not in text:
        return
    try:
        root = yaml.compose(text, yaml.SafeLoader)
        expanded = 0 if root is None else entries(root, {})
    except yaml.YAMLError:
        return  # for the loader to speak of
    except RecursionError:
        raise ValueError(f"config: {what} is nested too deeply; accepted is a configuration") from None
    if expanded > MOST:
        raise ValueError(
            f"config: the anchors of {what} expand to more than {MOST} entries; accepted is a configuration of fewer"
        )


def entries(node: yaml.Node, sizes: dict[int, int]) -> int:
    """How many a node expands to; more than `MOST` where it holds itself."""
    if id(node) not in sizes:
        sizes[id(node)] = MOST + 1
        below = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
        inner = [] if isinstance(node, yaml.ScalarNode) else below
        sizes[id(node)] = 1 + sum(entries(part, sizes) for part in inner)
    return sizes[id(node)]


def read(path: str | Path) -> Any:
    """The content of a file."""
    if Path(path).stat().st_size > LARGEST:
        raise ValueError(f"config: {path} has more than {LARGEST >> 20} MB; accepted are files up to that")
    try:
        text = Path(path).read_bytes().decode("utf-8")
        check(text, str(path))
        return yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        where = getattr(problem, "problem_mark", None)
        place = f"{path}:{where.line + 1}" if where else path
        raise ValueError(f"config: {place}: {getattr(problem, 'problem', None) or problem}; accepted is YAML") from None
    except RecursionError:
        raise ValueError(f"config: {path} is nested too deeply; accepted is a configuration") from None
