"""What a caller may have set around a call: autocast, a default device, a default dtype."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import torch


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Within it, what names no dtype has this one."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


FRAMES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "": contextlib.nullcontext,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "meta": lambda: torch.device("meta"),
    "float64": lambda: default_dtype(torch.float64),
    "float16": lambda: default_dtype(torch.float16),
}


def drawn(r: random.Random, share: float = 0.05, *, made: bool = False) -> str:
    """The name of a frame, mostly of none; what is ``made`` on a device without numbers would keep it."""
    return r.choice([name for name in FRAMES if not (made and name == "meta")]) if r.random() < share else ""
