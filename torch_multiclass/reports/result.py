"""What a report consists of, and how it is written: a dictionary, Markdown, HTML with its pictures, or a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch_multiclass import checks as check
from torch_multiclass.reports import html, markdown
from torch_multiclass.reports.blocks import Block, Gap, Picture, plain

__all__ = ["HeadReport", "Section"]


@dataclass(frozen=True)
class Section:
    """One topic: its numbers, and what is shown of them.

    Reference: a part of `HeadReport`.

    Example:
        >>> Section("error", "The error", {"wrong": 3, "of": 100}, []).facts["wrong"]
        3
    """

    key: str
    title: str
    facts: Mapping[str, Any]
    blocks: Sequence[Block]


@dataclass(frozen=True)
class HeadReport:
    """What `torch_multiclass.report` found of a head on some examples.

    Reference: Clopper and Pearson (1934), for the intervals; each bound in it names its own source.

    Example:
        >>> import torch, torch_multiclass as tm
        >>> fit = tm.solvers.DualSVM().fit(torch.eye(3), torch.arange(3))
        >>> found = tm.report(fit, (torch.eye(3), torch.arange(3)))
        >>> isinstance(found, HeadReport), found.as_dict()["error"]["rows"]["wrong"]
        (True, 0)
    """

    title: str
    sections: Sequence[Section] = field(repr=False)

    @property
    def gaps(self) -> dict[str, str]:
        """What could not be said, by its name, and why."""
        return {block.what: block.why for part in self.sections for block in part.blocks if isinstance(block, Gap)}

    @property
    def pictures(self) -> dict[str, Callable[[Any], Any]]:
        """What draws each picture into matplotlib axes, by its name."""
        return {block.name: block.draw for part in self.sections for block in part.blocks if isinstance(block, Picture)}

    def as_dict(self) -> dict[str, Any]:
        """Every number, by section, and the gaps: dictionaries, lists, strings, finite numbers, booleans and None."""
        facts: dict[str, Any] = {"title": self.title, **{part.key: plain(part.facts) for part in self.sections}}
        return {**facts, "gaps": dict(self.gaps)}

    def markdown(self, pictures: Mapping[str, str] | None = None) -> str:
        """The report in Markdown.

        Args:
            pictures: addresses of pictures to show, by their names; without, none is shown.
        """
        return markdown.page(self.title, self.sections, pictures or {})

    def html(self, pictures: bool = True) -> str:
        """The report as one HTML page, its pictures embedded.

        Raises:
            ModuleNotFoundError: without matplotlib, unless ``pictures=False``.
        """
        check.flag("pictures", pictures)
        return html.page(self.title, self.sections, html.drawn(self.sections) if pictures else {})

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write one file by its suffix, ``.html``, ``.md`` or ``.json``, or a folder that holds all three.

        In a folder the Markdown shows pictures that stand beside it.

        Raises:
            ValueError: another suffix.
            ModuleNotFoundError: HTML or a folder without matplotlib.
        """
        path = Path(path)
        written: dict[str, Callable[[], str]] = {".html": self.html, ".md": self.markdown, ".json": self._json}
        if path.suffix in written and not path.is_dir():
            _write(path, written[path.suffix]().encode())
            return path
        if path.suffix and not path.is_dir():
            raise ValueError(f"path: got {os.fspath(path)!r}; accepted are .html, .md and .json, or a folder")
        images = html.drawn(self.sections)
        shown = {name: f"pictures/{name}.png" for name in images}
        for name, address in shown.items():
            _write(path / address, images[name])
        _write(path / "report.md", self.markdown(shown).encode())
        _write(path / "report.html", html.page(self.title, self.sections, images).encode())
        _write(path / "report.json", self._json().encode())
        return path

    def _json(self) -> str:
        return json.dumps(self.as_dict(), indent=1, allow_nan=False) + "\n"

    def __str__(self) -> str:
        return self.markdown()

    def _repr_html_(self) -> str:
        """Shown by a notebook; without pictures where there is no matplotlib."""
        try:
            return self.html()
        except ModuleNotFoundError:
            return self.html(pictures=False)


def _write(path: Path, content: bytes) -> None:
    """A file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_bytes(content)
    part.replace(path)
