"""What each mistake costs, from a file."""

from __future__ import annotations

from pathlib import Path

__all__ = ["costs"]


def costs(path: str) -> list[list[float]]:
    """Numbers between commas or blanks, a line a class."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        return [[float(entry) for entry in line.replace(",", " ").split()] for line in lines if line.strip()]
    except (OSError, ValueError) as problem:
        raise SystemExit(f"error: cost: {path}: {problem}; accepted is a file of numbers, a line a class") from None
