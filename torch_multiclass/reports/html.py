"""Sections as one HTML page that needs nothing beside it."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from torch_multiclass.plots.style import STYLE, matplotlib
from torch_multiclass.reports.blocks import Block, Gap, Picture, Table, Text

__all__ = ["drawn", "page"]

_LOOK = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; border-bottom: 1px solid #ddd; }
nav a { margin-right: 1rem; color: #2a6f97; }
table { border-collapse: collapse; margin: .6rem 0; font-size: .9rem; }
caption { text-align: left; color: #555; padding-bottom: .2rem; }
th, td { padding: .15rem .7rem; text-align: left; border-bottom: 1px solid #eee; vertical-align: top; }
th { color: #555; font-weight: 600; } .number { text-align: right; white-space: nowrap; }
.scroll { overflow-x: auto; }
.gap { border-left: 4px solid #c1121f; background: #faf2f2; padding: .4rem .8rem; margin: .6rem 0; }
figure { display: inline-block; margin: .5rem 1rem .5rem 0; } figcaption { color: #555; font-size: .85rem; }
img { max-width: 100%; }
"""


def page(title: str, sections: Sequence[Any], images: Mapping[str, bytes]) -> str:
    """A whole document, with the pictures of `drawn` that it is given."""
    links = "".join(f'<a href="#{part.key}">{escape(part.title)}</a>' for part in sections)
    body = "\n".join(
        f'<h2 id="{part.key}">{escape(part.title)}</h2>\n' + "\n".join(_block(block, images) for block in part.blocks)
        for part in sections
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{escape(title)}</title><style>{_LOOK}</style>'
        f"</head><body>\n<h1>{escape(title)}</h1>\n<nav>{links}</nav>\n{body}\n</body></html>\n"
    )


def drawn(sections: Sequence[Any]) -> dict[str, bytes]:
    """Every picture as PNG, by its name."""
    found = [block for part in sections for block in part.blocks if isinstance(block, Picture)]
    return {block.name: _png(block) for block in found}


def _png(picture: Picture) -> bytes:
    library = matplotlib()
    from matplotlib.figure import Figure

    file = io.BytesIO()
    with library.rc_context(STYLE):
        figure = Figure(figsize=picture.size, layout="constrained" if picture.sides is None else None)
        axes = figure.subplots()
        if picture.sides is not None:
            (width, height), (left, right) = picture.size, picture.sides
            axes.set_position((left / width, 0.5 / height, 1 - (left + right) / width, 1 - 0.9 / height))
        picture.draw(axes)
        figure.savefig(file, dpi=110)
    return file.getvalue()


def _block(block: Block, images: Mapping[str, bytes]) -> str:
    if isinstance(block, Text):
        return f"<p>{escape(block.text)}</p>"
    if isinstance(block, Gap):
        return f'<p class="gap"><b>Not said: {escape(block.what)}</b> – {escape(block.why)}</p>'
    if isinstance(block, Table):
        return _table(block)
    if block.name not in images:
        return ""
    data = base64.b64encode(images[block.name]).decode()
    caption = escape(block.caption)
    return (
        f'<figure><img alt="{caption}" src="data:image/png;base64,{data}"><figcaption>{caption}</figcaption></figure>'
    )


def _table(table: Table) -> str:
    looks = [" class=number" if numeric else "" for numeric in table.numeric()]
    head = "".join(f"<th{look}>{escape(cell)}</th>" for cell, look in zip(table.header, looks, strict=True))
    rows = "".join(
        "<tr>" + "".join(f"<td{look}>{escape(cell)}</td>" for cell, look in zip(row, looks, strict=True)) + "</tr>"
        for row in table.rows
    )
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    return f'<div class="scroll"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
