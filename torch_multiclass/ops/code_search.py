"""What decides whether a random code is worth a look: which columns are in doubt, and how far apart the rows are.

Codes are int8 with entries -1, 0 and +1. On the CPU the native library looks, where it is there.
"""

from __future__ import annotations

import math
import struct

import torch
from torch import Tensor

from torch_multiclass.ops import _native

_ROWS = 128  # rows that are compared with all others at a time; most codes are given up after the first few

pack = struct.Struct("@10q").pack
"""The fields of ``TmCodes`` in ``native/codes.h``."""


def apart(codes: Tensor, least: float) -> Tensor:
    """Which of ``(n, K, L)`` codes have rows that are all further apart than ``least``, in order.

    ``Delta(u, v) = (L - u.v)/2``. A code is given up at the first two rows that are not.
    """
    if not _natively(codes):
        return _apart(codes, least)
    found, words = [], 2 * codes.shape[1] * math.ceil(codes.shape[2] / 64)
    place = _first("tm_codes_apart", codes, words, 0, least)
    while place < len(codes):
        found.append(place)
        place = _first("tm_codes_apart", codes, words, place + 1, least)
    return torch.tensor(found, dtype=torch.int64, device="cpu")


def _apart(codes: Tensor, least: float) -> Tensor:
    """The same by matrix products, block of rows by block of rows."""
    alive = torch.arange(len(codes), device=codes.device)
    for begin in range(0, codes.shape[1], _ROWS):
        some = codes[alive].float()
        gram = some[:, begin : begin + _ROWS] @ some.mT
        gram.diagonal(begin, 1, 2).fill_(-math.inf)
        alive = alive[(codes.shape[2] - gram.flatten(1).amax(1)) / 2 > least]
        if not len(alive):
            break
    return alive


def without_doubt(vectors: Tensor) -> bool:
    """Whether in each of ``(n, L, K)`` sets all vectors have both signs and no two are equal or opposite.

    False where that is not found out at a glance.
    """
    if not _natively(vectors):
        return False
    return _first("tm_codes_suspect", vectors.mT, vectors.shape[1], 0, 0.0) == len(vectors)


def _natively(codes: Tensor) -> bool:
    return codes.device.type == "cpu" and _native.library() is not None


def _first(name: str, codes: Tensor, words: int, start: int, least: float) -> int:
    """The first code from ``start`` on that the function of that name finds, or how many there are."""
    library = _native.library()
    assert library is not None
    count, rows, columns = codes.shape
    size, of_row, of_column = codes.stride()
    work = torch.empty(words, dtype=torch.int64, device="cpu")
    if codes.dtype is not torch.int8:
        raise TypeError(f"codes: got {codes.dtype}; the loops read int8")
    fields = codes.data_ptr(), count, rows, columns, size, of_row, of_column, start, int(2 * least), work.data_ptr()
    return int(library.function(name)(pack(*fields)))
