"""The loops over time run on one thread: their steps are too small to share, and a busy machine makes sharing dear.

`torch.set_num_threads` would do, but what it sets is also what threads born meanwhile keep for life. OpenMP and MKL
each hold the number of the calling thread alone, and that is set here; where they cannot be reached, nothing is.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import torch
from torch import Tensor

LARGE = 1 << 20
"""Multiply-adds a step, ``B K^2``, from which threads are left alone."""

Result = TypeVar("Result")


def found(name: str) -> Callable[[int], Any] | None:
    """The function of this name in torch's own libraries, or in what they are linked to; None if there is none."""
    folder = os.path.join(os.path.dirname(torch.__file__), "lib")
    for library in ("libtorch_cpu.so", "libtorch_cpu.dylib", "torch_cpu.dll", "libiomp5md.dll"):
        path = os.path.join(folder, library)
        if os.path.exists(path):
            with suppress(OSError, AttributeError):
                function: Callable[[int], Any] = getattr(ctypes.PyDLL(path), name)
                return function
    return None


set_openmp = found("omp_set_num_threads")
set_mkl = found("MKL_Set_Num_Threads_Local")  # returns what was set before, 0 for nothing


def on_one_thread(emissions: Tensor, run: Callable[[], Result]) -> Result:
    """What ``run`` returns, on one thread of the CPU unless the steps of these ``emissions (B, T, K)`` are large."""
    batch, _, num_labels = emissions.shape
    if set_openmp is None or emissions.device.type != "cpu" or batch * num_labels**2 >= LARGE:
        return run()
    threads = torch.get_num_threads()  # of the calling thread, which torch sets up now if it has not yet
    if threads == 1:
        return run()
    set_openmp(1)
    before = set_mkl(1) if set_mkl is not None else 0
    try:
        return run()
    finally:
        set_openmp(threads)
        if set_mkl is not None:
            set_mkl(before)
