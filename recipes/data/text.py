"""Lines of text files, plain or gzipped; what cannot be read is said with its place, before memory is taken for it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

LARGEST = 2**30
"""Bytes that a file may have, unpacked."""


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
    result, more = b"", data
    while more[:2] == b"\x1f\x8b":
        unpacker = zlib.decompressobj(wbits=31)
        try:
            result += unpacker.decompress(more, LARGEST + 1 - len(result))
        except zlib.error as error:
            raise ValueError(f"{path}: got a damaged gzip file ({error}); accepted is a whole one") from None
        if len(result) > LARGEST:
            too_large(path)
        if not unpacker.eof:
            raise ValueError(f"{path}: got a damaged gzip file (it ends too early); accepted is a whole one")
        more = unpacker.unused_data
        data = result
    return data


def too_large(path: Path) -> bytes:
    """Refuse it."""
    raise ValueError(f"{path}: holds more than {LARGEST >> 20} MB of text; accepted are files up to that")


def shortened(text: str, most: int = 40) -> str:
    """A value for a message."""
    return repr(text if len(text) <= most else f"{text[:most]}…")
