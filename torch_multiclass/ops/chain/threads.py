"""The loops over time run on one thread: their steps are too small to share, and a busy machine makes sharing dear."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

LARGE = 1 << 20
"""Multiply-adds a step, ``B K^2``, from which threads are left alone."""

Result = TypeVar("Result")


def on_one_thread(emissions: Tensor, run: Callable[[], Result]) -> Result:
    """What ``run`` returns, on one thread of the CPU unless the steps of these ``emissions (B, T, K)`` are large."""
    threads = torch.get_num_threads()
    batch, _, num_labels = emissions.shape
    if threads == 1 or emissions.device.type != "cpu" or batch * num_labels**2 >= LARGE:
        return run()
    torch.set_num_threads(1)
    try:
        return run()
    finally:
        torch.set_num_threads(threads)
