"""Files that hold packed files: refused before memory is taken where they would fill it."""

from __future__ import annotations

from zipfile import ZipFile

LARGEST = 2**34
"""Bytes of an entry, unpacked."""
MOST_PACKED, SMALL = 500, 2**17
"""How much smaller than its content an entry may be; one of fewer bytes than `SMALL` counts as so many."""


class Bomb(ValueError):
    """A file that would fill the memory."""


def reasonable(packed: int, unpacked: int, largest: int = LARGEST) -> bool:
    """Whether so many bytes may unpack to so many."""
    return unpacked <= largest and unpacked <= MOST_PACKED * max(packed, SMALL)


def check_entries(path: str, argument: str, held: ZipFile) -> None:
    """Refuse entries that are packed beyond reason, or overlap, before any is read."""
    for entry in held.infolist():
        if not reasonable(entry.compress_size, entry.file_size):
            raise Bomb(
                f"{argument}: {entry.filename} in {path} unpacks {entry.compress_size} bytes to {entry.file_size}; "
                f"accepted is at most {MOST_PACKED} times its size, and {LARGEST >> 30} GB"
            )
