"""How to cut long chains in chunks that run side by side."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

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


class Cut(NamedTuple):
    """Positions cut in ``chunks`` of ``size``, each entered after ``warm`` steps over its neighbour."""

    size: int
    chunks: int
    warm: int

    def split(self, rows: Tensor) -> Tensor:
        """``(B, T, ...)`` as ``(size, chunks * B, ...)``, zeros past ``T``."""
        batch, steps = rows.shape[:2]
        if self.chunks == 1:
            return rows.transpose(0, 1).clone(memory_format=torch.contiguous_format)
        out = rows.new_empty(self.size, self.chunks, batch, *rows.shape[2:])
        full, rest = divmod(steps, self.size)
        chunks = rows[:, : full * self.size].reshape(batch, full, self.size, *rows.shape[2:])
        out[:, :full].copy_(chunks.movedim(2, 0).transpose(1, 2))
        if full < self.chunks:
            out[:rest, full].copy_(rows[:, full * self.size :].transpose(0, 1))
            out[rest:, full:].zero_()
        return out.flatten(1, 2)

    def join(self, rows: Tensor, batch: int, steps: int) -> Tensor:
        """The inverse of `split`."""
        if self.chunks == 1:
            return rows.transpose(0, 1)
        chunks = rows.view(self.size, self.chunks, batch, *rows.shape[2:]).movedim(0, 2)
        return chunks.transpose(0, 1).flatten(1, 2)[:, :steps]

    def take(self, rows: Tensor, which: Tensor) -> Tensor:
        """``(size, chunks * B, ...)`` of those sequences only."""
        return rows.view(self.size, self.chunks, -1, *rows.shape[2:])[:, :, which].flatten(1, 2)


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


def viterbi_chunks(emissions: Tensor, warm: int = 24) -> tuple[int, int]:
    """Chunk size and steps of warm-up for the max values of time-major emissions; all steps where one chunk is best."""
    steps, batch, num_labels = emissions.shape
    return best_size(steps, warm, MAX_STEP, batch * num_labels**2 / MAXES), warm


def read_back_chunks(emissions: Tensor, warm: int = 16) -> tuple[int, int]:
    """The same for reading the path back, whose work hardly depends on the number of rows."""
    steps, batch, num_labels = emissions.shape
    return best_size(steps, warm, MAX_STEP, batch * num_labels / READS), warm
