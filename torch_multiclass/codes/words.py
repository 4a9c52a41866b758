"""Words over -1, 0 and +1 as numbers, and how many of them there are."""

from __future__ import annotations

import torch
from torch import Tensor


def word_keys(vectors: Tensor) -> Tensor:
    """A number for each vector over -1, 0, +1: equal vectors share it, opposite ones have opposite numbers.

    Base 3 up to 40 entries, where the number names the vector; beyond, it wraps around 64 bits, and a rare
    chance collision only makes a draw be repeated.
    """
    powers = torch.tensor([pow(3, i, 2**62) for i in range(vectors.shape[-1])], device=vectors.device)
    return (vectors.long() * powers).sum(-1)


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
    """How many columns have both signs, up to their sign: of ±1, or of -1, 0 and +1."""
    return int(2 ** (k - 1) - 1 if symbols == 2 else (3**k - 2 ** (k + 1) + 1) // 2)
