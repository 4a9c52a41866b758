"""Squared distances as sums of squared differences, by the native library."""

from __future__ import annotations

import struct

import torch
from torch import Tensor

from torch_multiclass.ops import _native
from torch_multiclass.ops._native import pointer

_pack = struct.Struct("@6q").pack  # the fields of ``TmDistances`` in ``native/distances.h``
_MANY = 64  # from more features on a matrix product is quicker


def squared_differences(left: Tensor, right: Tensor) -> Tensor | None:
    """``sum_d (x_d - x'_d)^2`` of all pairs of rows; None where the library is not for them.

    Shape:
        left ``(A, D)`` and right ``(B, D)``, of one dtype, float32 or float64; the result ``(A, B)``.
    """
    library = _native.library()
    if library is None or left.device.type != "cpu" or left.shape[1] > _MANY:
        return None
    end = {torch.float32: "f32", torch.float64: "f64"}[left.dtype]
    left, turned = left.contiguous(), right.mT.contiguous()
    squared = left.new_empty(len(left), len(right))
    parts = (*(pointer(part, left.dtype) for part in (left, turned, squared)), *squared.shape, left.shape[1])
    library.function(f"tm_distances_{end}")(_pack(*parts))
    return squared
