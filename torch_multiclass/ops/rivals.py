"""The hinge of the best rival of each label, by the native library."""

from __future__ import annotations

import struct

import torch
from torch import Tensor

from torch_multiclass.ops import _native
from torch_multiclass.ops._native import pointer, room

pack = struct.Struct("@5qd3q").pack
"""The fields of ``TmRivals`` in ``native/rivals.cpp``."""

NAMES = {torch.float32: "tm_rivals_f32", torch.float64: "tm_rivals_f64"}


def hinges(
    scores: Tensor, label: Tensor, margin: float, cost: Tensor | None = None, rescaled: bool = False
) -> tuple[Tensor, Tensor] | None:
    """``[margin + max_{k != y} f_k - f_y]_+`` and the lowest class that has the maximum, ``(n, 1)`` each.

    With a cost ``(K, K)`` it is ``[max_k L(y, k) + f_k - f_y]_+``, rescaled ``max_k L(y, k) [margin + f_k - f_y]_+``.
    For ``(n, K)`` scores, whose numbers may be read, and ``(n, 1)`` labels. None where the library is not for these, or
    where a score or a slack is NaN.
    """
    name = NAMES.get(scores.dtype)
    library = None if name is None else _native.library()
    if name is None or library is None or scores.shape[1] < 2:
        return None
    if not (scores.is_cpu and scores.is_contiguous() and label.is_contiguous()):
        return None
    rows, classes = scores.shape
    if cost is not None and (cost.shape != (classes, classes) or cost.dtype != scores.dtype):
        return None
    if cost is not None and not (cost.is_cpu and cost.is_contiguous()):
        return None
    hinge, rival = room(rows, 1, dtype=scores.dtype), room(rows, 1, dtype=torch.long)
    call = library.functions.get(name) or library.function(name)
    given = (
        pointer(scores, scores.dtype),
        pointer(label, torch.int64),
        pointer(cost, scores.dtype),
        rows,
        classes,
        margin,
        rescaled,
        hinge.data_ptr(),
        rival.data_ptr(),
    )
    return None if call(pack(*given)) else (hinge, rival)
