"""In which precision everything is computed: float32 for half-precision inputs, else the input's own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

Given = ParamSpec("Given")
Result = TypeVar("Result")

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


def undisturbed(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The function, within which matrix products keep the dtype of their operands on every device, and what names no
    device is on the CPU, whatever the default device is.

    For what trains without a graph: a narrower product in the midst of it would be another dtype than its own, which
    loops in C++ cannot read, or would lose the digits that a certificate needs. Nor can they read what is elsewhere.
    """

    @functools.wraps(function)
    def call(*given: Given.args, **named: Given.kwargs) -> Result:
        with ExitStack() as stack:
            for kind in _HAVE_AUTOCAST:
                if torch.is_autocast_enabled(kind):
                    stack.enter_context(torch.autocast(kind, enabled=False))
            if torch.get_default_device().type != "cpu":
                stack.enter_context(torch.device("cpu"))
            return function(*given, **named)

    return call


def unrecorded() -> AbstractContextManager[object]:
    """A context for what has no gradient.

    It does nothing under compile and export: a graph drops by itself what nobody needs, and an exported program that
    holds such a region within another cannot be saved.
    """
    return nullcontext() if torch.compiler.is_compiling() else torch.no_grad()
