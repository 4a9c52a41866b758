"""How to cut long chains in chunks that run side by side."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torch_multiclass.ops.chain.scaled import Layout

STEP = 4.0
"""What a step costs before it does any work, in microseconds: two operators."""

MADDS = 20_000.0
"""Multiply-adds a microsecond."""

MAX_STEP = 8.0
"""What a step of Viterbi, or of reading its path back, costs before it does any work: three operators."""

MAXES = 3_000.0
"""Sums and maxima a microsecond."""

READS = 400.0
"""Scores read back a microsecond."""


def warm_up(span: float, dtype: torch.dtype) -> int:
    """Steps after which the recursion has forgotten where it started, whatever the emissions.

    A step contracts Hilbert's metric by ``tanh(diameter / 4)`` (Birkhoff), and the diameter is at most twice the span.
    """
    goal = 1e-7 if dtype == torch.float32 else 1e-14
    diameter = max(2 * span, 1e-3)
    contraction = math.tanh(diameter / 4)
    if contraction > 0.999:
        return 1 << 30
    return 1 + math.ceil(math.log(goal / diameter) / math.log(contraction))


def chunks(
    batch: int, steps: int, num_labels: int, span: float, dtype: torch.dtype, *, forced: bool = False
) -> Layout:
    """The layout with the least estimated time."""
    warm = min(warm_up(span, dtype), 32)
    work = batch * num_labels**2 / MADDS

    def cost(size: int) -> float:
        count = math.ceil(steps / size)
        return (size + warm) * (STEP + count * work)

    sizes = [size for size in (8, 12, 16, 24, 32, 48, 64, 96, 128) if warm <= size and 2 * size <= steps]
    best = min(sizes, key=cost, default=steps)
    if best == steps or (not forced and cost(best) > 0.8 * steps * (STEP + work)):
        return Layout(steps, 1, 0)
    return Layout(best, math.ceil(steps / best), warm)


def viterbi_chunks(emissions: Tensor) -> tuple[int, int]:
    """Chunk size and steps of warm-up for the max values of time-major emissions; all steps where one chunk is best."""
    steps, batch, num_labels = emissions.shape
    warm, work = 24, batch * num_labels**2 / MAXES

    def cost(size: int) -> float:
        return (size + warm) * (MAX_STEP + math.ceil(steps / size) * work)

    sizes = [size for size in (24, 32, 48, 64, 96, 128) if 2 * size <= steps]
    best = min(sizes, key=cost, default=steps)
    return (best, warm) if best < steps and cost(best) < 0.8 * steps * (MAX_STEP + work) else (steps, 0)


def read_back_chunks(emissions: Tensor) -> tuple[int, int]:
    """The same for reading the path back, whose work hardly depends on the number of rows."""
    steps, batch, num_labels = emissions.shape
    warm, work = 16, batch * num_labels / READS

    def cost(size: int) -> float:
        return (size + warm) * (MAX_STEP + math.ceil(steps / size) * work)

    sizes = [size for size in (16, 24, 32, 48, 64, 96, 128) if 2 * size <= steps]
    best = min(sizes, key=cost, default=steps)
    return (best, warm) if best < steps and cost(best) < 0.8 * steps * (MAX_STEP + work) else (steps, 0)
