"""What a user told of the bounds, and the bounds and gaps that are found one after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch_multiclass.bounds import Bound

__all__ = ["Asked", "Found"]


@dataclass(frozen=True)
class Asked:
    """What a user told of the bounds."""

    held_out: bool | None
    delta: float
    radius: float | None
    norm: float | None
    margin: float | None
    learned: bool
    """Whether features come from a backbone."""


@dataclass
class Found:
    """Bounds and gaps, in order."""

    bounds: list[tuple[str, str, Bound]] = field(default_factory=list)
    gaps: list[tuple[str, str]] = field(default_factory=list)

    def try_(self, name: str, of: str, make: Callable[[], Bound]) -> None:
        """One bound; a refusal is its gap."""
        try:
            self.bounds.append((name, of, make()))
        except ValueError as refusal:
            self.gaps.append((name, f"{refusal}."))

    def gap(self, name: str, why: str) -> None:
        """One that is not there."""
        self.gaps.append((name, why))
