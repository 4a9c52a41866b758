"""Lines of text files, plain or gzipped; what cannot be read is said with its place, before memory is taken for it."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path

from .packed import MOST_PACKED, SMALL, reasonable

LARGEST = 2**30
"""Bytes that a file may have, unpacked."""
TIGHTEST = 1100
"""More than gzip can pack: a file that claims so much is damaged."""


def lines(path: str | Path, argument: str = "") -> Iterator[str]:
    """The lines of a file in UTF-8, without their ends; a complaint names the file and the line."""
    path = Path(path)
    said = f"{argument}: " if argument else ""
    if not path.is_file() and (not path.exists() or path.is_dir()):
        raise FileNotFoundError(f"{said}there is no file {path}; accepted is a text file, plain or gzipped")
    data = unpacked(path, path.read_bytes() if path.stat().st_size <= LARGEST else too_large(path))
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if b"\0" in line:
            raise ValueError(f"{path}:{number}: got a NUL byte; accepted is text in UTF-8")
        try:
            yield line.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}:{number}: got byte 0x{line[error.start]:02x} at position {error.start}; accepted is UTF-8"
            ) from None


def unpacked(path: Path, data: bytes) -> bytes:
    """What a gzip file holds; other data as they are."""
    if data[:2] != b"\x1f\x8b":
        return data
    claimed = int.from_bytes(data[-4:], "little")
    if claimed < TIGHTEST * len(data) and not reasonable(len(data), claimed, LARGEST):
        too_large(path)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            result = file.read(min(LARGEST, MOST_PACKED * max(len(data), SMALL)) + 1)
    except (zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: got a damaged gzip file ({error}); accepted is a whole one") from None
    if not reasonable(len(data), len(result), LARGEST):
        too_large(path)
    return result


def too_large(path: Path) -> bytes:
    """Refuse it."""
    raise ValueError(f"{path}: holds more than {LARGEST >> 20} MB of text, or packs it too tightly; accepted is less")


def shortened(text: str, most: int = 40) -> str:
    """A value for a message."""
    return repr(text if len(text) <= most else f"{text[:most]}…")
