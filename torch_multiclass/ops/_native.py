"""The native library: the one place that loads it, and that says why it is not used.

It holds the loops that operators of torch cannot express at speed, compiled from ``native/``. It is optional: the torch
code beside it computes the same. ``TORCH_MULTICLASS_NATIVE=0`` turns it off; the name of a level of the processor, such
as ``avx2``, takes the loops that were compiled for that level.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

ABI = 24
"""The interface that this file knows, `TM_ABI` in ``native/abi.h``."""

SWITCH = "TORCH_MULTICLASS_NATIVE"

FOLDER = Path(__file__).resolve().parents[1] / "_native"

Call = Callable[[bytes], int]
"""Takes the packed fields of its struct, which a header of ``native/`` describes."""


class Unusable(Exception):
    """Why the library cannot be used; `harmless` where nothing is wrong with it."""

    def __init__(self, reason: str, *, harmless: bool = False) -> None:
        super().__init__(reason)
        self.harmless = harmless


class Library:
    """A library that has been loaded, at one level of the processor."""

    def __init__(self, path: Path, level: str, handle: ctypes.CDLL) -> None:
        self.path, self.level, self.handle = path, level, handle
        self.functions: dict[str, Any] = {}

    def function(self, name: str, *arguments: type) -> Any:
        """A function that returns an integer; it takes the packed fields of its struct, or `arguments`."""
        found = self.functions.get(name)
        if found is None:
            found = getattr(self.handle, name)
            found.argtypes, found.restype = arguments or [ctypes.c_char_p], ctypes.c_int64
            self.functions[name] = found
        return found


def level() -> str:
    """The widest loops that this processor runs: what torch has found out."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return "base"
    return {"AVX512": "avx512", "AVX2": "avx2"}.get(torch.backends.cpu.get_cpu_capability(), "sse2")


def checked(folder: Path, wanted: str) -> Path:
    """The library's file for a level. What can be known without loading it: a damaged one could end the process."""
    note = folder / "library.json"
    if not note.exists():
        raise Unusable("this installation has none", harmless=True)
    try:
        facts = json.loads(note.read_text())
        abi, machine = facts["abi"], facts["machine"]
        digests: dict[str, str] = dict(facts["sha256"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise Unusable(f"{note} cannot be read ({type(error).__name__})") from error
    if abi != ABI:
        raise Unusable(f"{folder} is of version {abi}, and version {ABI} is needed")
    if machine != platform.machine():
        raise Unusable(f"{folder} is made for {machine}, and this machine is {platform.machine()}")
    names = [name for name in digests if name.split(".")[0] == wanted]
    if not names:
        raise Unusable(f"{folder} has no loops for {wanted!r}")
    path = folder / names[0]
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Unusable(f"{path} cannot be read ({error})") from error
    if hashlib.sha256(content).hexdigest() != digests[path.name]:
        raise Unusable(f"{path} is damaged")
    return path


def open_library(folder: Path, wanted: str) -> Library:
    """The library in a folder at a level."""
    path = checked(folder, wanted)
    try:
        library = ctypes.CDLL(str(path))
        found: int = library.tm_abi()
    except (OSError, AttributeError) as error:
        raise Unusable(f"{path} cannot be loaded ({error})") from error
    if found != ABI:
        raise Unusable(f"{path} is of version {found}, and version {ABI} is needed")
    return Library(path, wanted, library)


class _State:
    """What has been found, once a process."""

    lock = threading.Lock()
    looked = False
    library: Library | None = None
    reason = ""


def find(folder: Path, switch: str) -> tuple[Library | None, str]:
    """The library in a folder, and why it is used or not; warns where there is one that cannot be."""
    if switch == "0":
        return None, f"not used: {SWITCH}=0 turns it off"
    wanted = level() if switch in ("", "1") else switch
    try:
        library = open_library(folder, wanted)
    except Unusable as why:
        if not why.harmless:
            warnings.warn(f"the native library is not used: {why}", RuntimeWarning, stacklevel=2)
        return None, f"not used: {why}"
    return library, f"in use: {library.path}"


def library() -> Library | None:
    """The library, or None where torch computes everything; looked for at the first call."""
    if not _State.looked:
        with _State.lock:
            if not _State.looked:
                _State.library, _State.reason = find(FOLDER, os.environ.get(SWITCH, ""))
                _State.looked = True
    return _State.library


def pointer(part: Tensor | None, dtype: torch.dtype) -> int:
    """Where a tensor begins, of numbers of this dtype one after the other in memory of the CPU; 0 where there is none.

    The loops read what is there as that, so anything else ends here: read or written, it would damage the memory of the
    process.
    """
    if part is None:
        return 0
    if part.dtype is not dtype or not part.is_cpu or not part.is_contiguous():
        order = "" if part.is_contiguous() else ", not contiguous"
        raise TypeError(
            f"native: got {part.dtype} {tuple(part.shape)} on {part.device}{order}; the loops read {dtype} on the CPU, "
            "contiguous"
        )
    return part.data_ptr()


_CPU = torch.device("cpu")  # made once: a word is read anew in each call


def room(*sizes: int, dtype: torch.dtype) -> Tensor:
    """Memory of the CPU for a loop to work in or to write to, whatever the default device is."""
    return torch.empty(sizes, dtype=dtype, device=_CPU)


def backends() -> dict[str, str]:
    """What computes: whether the native library is in use and why, and which torch, with how many threads.

    Worth a line in a report of a bug. The library holds the loops over chains for the CPU; torch does what it does not.

    Reference: the loops and their interface are in ``native/``, which is compiled as the package is installed.

    >>> sorted(backends())
    ['native', 'torch']
    """
    library()
    threads = torch.get_num_threads()
    return {
        "native": _State.reason,
        "torch": f"{torch.__version__}, {threads} {'thread' if threads == 1 else 'threads'} on {platform.machine()}",
    }
