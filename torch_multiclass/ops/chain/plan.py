"""How to cut long chains in chunks that run side by side."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import torch

STEP = 4.0
"""What a step costs before it does any work, in microseconds: two operators."""

MADDS = 20_000.0
"""Multiply-adds a microsecond."""

SIZES = (16, 24, 32, 48, 64, 96, 128)
"""The chunk sizes to choose from."""

SHORT = 48
"""Below so many steps nothing is gained by chunks."""

MAX_STEP = 8.0
"""What a step of Viterbi, or of reading its path back, costs before it does any work: three operators."""

MAXES = 3_000.0
"""Sums and maxima a microsecond."""

READS = 400.0
"""Scores read back a microsecond."""


SMALL_STEP, SMALL_BATCH = 20_000, 40_000
"""Up to so many multiply-adds a step, and scores, float64 costs hardly more than float32: it is the calls that cost."""


class Cut(NamedTuple):
    """Positions cut in ``chunks`` of ``size``, each entered after ``warm`` steps over its neighbour."""

    size: int
    chunks: int
    warm: int


def small(batch: int, steps: int, num_labels: int) -> bool:
    """Whether a chain is computed in float64 from the start."""
    return batch * num_labels**2 <= SMALL_STEP and batch * steps * num_labels <= SMALL_BATCH and steps < SHORT


def warm_up(span: float, dtype: torch.dtype) -> int:
    """Steps after which the recursion has forgotten where it started, whatever the emissions.

    A step contracts Hilbert's metric by ``tanh(diameter / 4)`` (Birkhoff), and the diameter is at most twice the span.
    """
    goal = 1e-7 if dtype == torch.float32 else 1e-14
    diameter = max(2 * span, 1e-3)
    contraction = math.tanh(diameter / 4)
    if not contraction < 0.999:
        return 1 << 30
    return 1 + math.ceil(math.log(goal / diameter) / math.log(contraction))


@functools.lru_cache(256)
def chunks(
    batch: int, steps: int, num_labels: int, span: float, dtype: torch.dtype, most: int, *, forced: bool = False
) -> Cut:
    """The cut with the least estimated time that warms up as long as needed, or for ``most`` steps."""
    if steps < SHORT and not forced:
        return Cut(steps, 1, 0)
    warm = min(warm_up(span, dtype), most)
    work = batch * num_labels**2 / MADDS
    size = best_size(steps, warm, STEP, work, forced)
    return Cut(size, math.ceil(steps / size), warm if size < steps else 0)


def best_size(steps: int, warm: int, overhead: float, work: float, forced: bool = False) -> int:
    """The chunk size with the least estimated time; ``steps`` where chunks would not save a fifth of it."""

    def cost(size: int) -> float:
        return (size + warm) * (overhead + math.ceil(steps / size) * work)

    sizes = [size for size in SIZES if warm <= size and 2 * size <= steps]
    best = min(sizes, key=cost, default=steps)
    return best if forced or cost(best) < 0.8 * steps * (overhead + work) else steps


@functools.lru_cache(256)
def viterbi_cuts(batch: int, steps: int, num_labels: int) -> tuple[Cut, ...]:
    """The cuts to try for Viterbi, in turn: what did not meet after a short warm-up gets a long one."""
    work = batch * num_labels**2 / MAXES + batch * num_labels / READS
    tries = [(best_size(steps, warm, MAX_STEP, work), warm) for warm in (24, 96)]
    return *(Cut(size, -(-steps // size), warm) for size, warm in tries if size < steps), Cut(steps, 1, 0)
