"""In which precision everything is computed: float32 for half-precision inputs, else the input's own."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

# Asked once, since not every torch can ask while it compiles.
_DEVICES = ("cpu", "cuda", "hpu", "ipu", "maia", "mps", "mtia", "privateuseone", "xla", "xpu")
_HAVE_AUTOCAST = frozenset(kind for kind in _DEVICES if torch.amp.is_autocast_available(kind))


_HALVES = frozenset((torch.float16, torch.bfloat16))


def upcast(tensor: Tensor) -> Tensor:
    """``tensor`` in float32 when it is float16 or bfloat16, else unchanged."""
    return tensor.float() if tensor.dtype in _HALVES else tensor


def no_autocast(tensor: Tensor) -> AbstractContextManager[object]:
    """A context in which matrix products keep the dtype of their operands, for the device of ``tensor``."""
    kind = tensor.device.type
    on = kind in _HAVE_AUTOCAST and torch.is_autocast_enabled(kind)
    return torch.autocast(kind, enabled=False) if on else nullcontext()


def unrecorded() -> AbstractContextManager[object]:
    """A context for what has no gradient.

    It does nothing under compile and export: a graph drops by itself what nobody needs, and an exported program that
    holds such a region within another cannot be saved.
    """
    return nullcontext() if torch.compiler.is_compiling() else torch.no_grad()
