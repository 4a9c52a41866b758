"""Words over -1, 0 and +1 as numbers, and how many of them there are."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from torch_multiclass import checks as validate

_BLOCK = 1 << 22  # entries that are looked at at a time
_MOST = 2**38  # entries of a code, and of what is made beside it
_COUNTED = 80  # rows that have more splits than columns can be


def word_keys(vectors: Tensor) -> Tensor:
    """A number for each vector over -1, 0, +1: equal vectors share it, opposite ones have opposite numbers.

    Base 3 up to 40 entries, where the number names the vector; beyond, it wraps around 64 bits, and a rare
    chance collision only makes a draw be repeated. Some vectors at a time, which take eight times their memory.
    """
    powers = torch.tensor(_powers(vectors.shape[-1]), device=vectors.device)
    rows = vectors.reshape(-1, vectors.shape[-1])
    blocks = torch.split(rows, max(1, _BLOCK // max(1, rows.shape[1])))
    return torch.cat([(block.long() * powers).sum(-1) for block in blocks]).reshape(vectors.shape[:-1])


@lru_cache(maxsize=8)
def _powers(count: int) -> list[int]:
    """``3^i`` modulo ``2^62``."""
    powers, power = [], 1
    for _ in range(count):
        powers.append(power)
        power = 3 * power % 2**62
    return powers


def binary_signs(numbers: Tensor, digits: int) -> Tensor:
    """Binary digits of ``numbers``, highest first, 0 as +1 and 1 as -1: ``(n,)`` → ``(n, digits)``, int8."""
    shifts = torch.arange(digits - 1, -1, -1, device=numbers.device)
    return (1 - 2 * ((numbers[:, None] >> shifts) & 1)).to(torch.int8)


def digits_for(count: int, base: int = 2) -> int:
    """The least number of digits that tell ``count`` things apart."""
    digits = 1
    while base**digits < count:
        digits += 1
    return digits


def count_splits(k: int, symbols: int) -> int:
    """How many columns have both signs, up to their sign: of ±1, or of -1, 0 and +1; of many rows, as of 80 of them."""
    k = min(k, _COUNTED)
    return int(2 ** (k - 1) - 1 if symbols == 2 else (3**k - 2 ** (k + 1) + 1) // 2)


def fits(k: int, columns: int, beside: int = 0) -> None:
    """Raise unless a code for ``k`` classes, with so many columns ``beside`` it while it is made, can be in memory."""
    if k * (columns + beside) > _MOST:
        raise ValueError(f"k: got {k} with {validate.shown(columns)} columns; accepted are so few that a code fits")
