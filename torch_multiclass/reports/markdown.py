"""Sections as Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from torch_multiclass.reports.blocks import Block, Gap, Table, Text

__all__ = ["page"]

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#])")


def page(title: str, sections: Sequence[Any], pictures: Mapping[str, str]) -> str:
    """A whole document."""
    parts = [f"# {escaped(title)}"]
    for section in sections:
        parts.append(f"## {escaped(section.title)}")
        parts += [text for block in section.blocks if (text := _block(block, pictures))]
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """What people wrote, without effect on the layout."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _block(block: Block, pictures: Mapping[str, str]) -> str:
    if isinstance(block, Text):
        return escaped(block.text)
    if isinstance(block, Gap):
        return f"**Not said: {escaped(block.what)}** – {escaped(block.why)}"
    if isinstance(block, Table):
        rule = ["---:" if numeric else "---" for numeric in block.numeric()]
        lines = [block.header, rule, *block.rows]
        cells = [[cell if line is rule else escaped(cell) or " " for cell in line] for line in lines]
        table = "\n".join(f"| {' | '.join(line)} |" for line in cells)
        return f"{escaped(block.caption)}\n\n{table}" if block.caption else table
    if block.name in pictures:
        return f"![{escaped(block.caption)}]({pictures[block.name]})"
    return ""
