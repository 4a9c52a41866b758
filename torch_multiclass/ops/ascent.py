"""Row-wise dual ascent by the native library: one row at a time, each exactly, over the polytopes of hinge losses."""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass.ops import _native
from torch_multiclass.ops._native import Call, Library, pointer, room

SIMPLEX, BOX, SIGN = range(3)
"""``b >= 0, sum b = C``; ``0 <= b <= C, b_y = 0``; one score and a sign, ``0 <= b <= C``."""

BY_FEATURE, BY_CLASS, OF_GRAM = range(3)
"""How the loops have a weight: ``(D, P)``, padded; ``(K, D)``; coefficients and scores of the rows, ``(2, K, N)``."""

_SPARSE = 0.5  # rows with a smaller share of entries that are not 0 are kept as sparse ones
_SAMPLE = 1000  # rows looked at for that
_SUM = 6  # operations for the sum of a vector
_WORK = 1 << 28  # multiplications a call, a tenth of a second or so: between two calls Ctrl-C is heard

_pack = struct.Struct("@19q2d").pack  # the fields of ``TmAscent`` in ``native/svm.h``


class Loops(NamedTuple):
    """What there is for one dtype."""

    padded: Callable[[int], int]
    work: Callable[[int], int]
    ascend: Call
    compress: Callable[..., int]


@functools.lru_cache
def _loops_of(library: Library, dtype: torch.dtype) -> Loops:
    end = {torch.float32: "f32", torch.float64: "f64"}[dtype]
    size, place = ctypes.c_int64, ctypes.c_void_p
    return Loops(
        library.function(f"tm_ascent_padded_{end}", size),
        library.function("tm_ascent_work", size),
        library.function(f"tm_ascent_{end}"),
        library.function(f"tm_compress_{end}", place, size, size, place, place, place),
    )


def loops_for(values: Tensor) -> Loops | None:
    """The loops for rows, or a Gram matrix, of this kind."""
    library = _native.library()
    return None if library is None or values.device.type != "cpu" else _loops_of(library, values.dtype)


@dataclass(frozen=True)
class Polytopes:
    """Example i's loss ``C_i max_{b in B_i} b · t_i`` with ``t_i = cost_i + s_i - s_iy``.

    Shape:
        labels ``(N)``, classes or signs; upper ``(N, 1)``, the ``C_i``; cost ``(N, K)``, or None: zero-one.
    """

    kind: int
    outputs: int
    labels: Tensor
    upper: Tensor
    cost: Tensor | None


class RowAscent:
    r"""Maximises the dual over one row after the other: ``beta_i <- argmax b · t_i - ½ a_i |T^T (b - beta_i)|^2``.

    Args:
        loops: from `loops_for`.
        polytopes: the losses.
        values: the rows, or their Gram matrix.
        of_gram: which of the two.
        constant: of a Gram matrix, whose weights have a row more: what of it the coefficients make, over their sum.

    Shape:
        values ``(N, D)`` or ``(N, N)``.
    """

    def __init__(
        self, loops: Loops, polytopes: Polytopes, values: Tensor, of_gram: bool, constant: float = 0.0
    ) -> None:
        self.loops, self.count, self.constant = loops, values.shape[1], constant
        cost = polytopes.cost
        self.work = room(loops.work(polytopes.outputs), dtype=torch.uint8)
        self.kind, self.labels = polytopes.kind, polytopes.labels.contiguous()
        self.upper = polytopes.upper.to(values.dtype).contiguous()
        self.cost = None if cost is None else cost.to(values.dtype).contiguous()
        self.values = values.contiguous()
        self.starts: Tensor | None = None
        self.columns: Tensor | None = None
        if not of_gram:
            self._compress()
        self.layout = OF_GRAM if of_gram else self._layout(polytopes.outputs)

    def _layout(self, outputs: int) -> int:
        """What takes fewer operations on vectors: a sum of each class costs some at its end."""
        padded, lanes = self.loops.padded(outputs), self.loops.padded(2)
        by_class = outputs * (self.count / lanes + _SUM) <= self.count * padded / lanes
        return BY_CLASS if self.starts is None and (by_class or outputs == 1) else BY_FEATURE

    def _compress(self) -> None:
        """Keep the entries alone where many are 0."""
        dense = self.values
        rows, features = dense.shape
        sample = dense[:: max(1, rows // _SAMPLE)]
        if int(sample.count_nonzero()) >= _SPARSE * sample.numel() or features >= 1 << 31:
            return
        count = int(dense.count_nonzero())
        self.values, self.columns = dense.new_empty(count), room(count, dtype=torch.int32)
        self.starts = room(rows + 1, dtype=torch.long)
        self.loops.compress(
            *(pointer(dense, dense.dtype), rows, features),
            *(pointer(self.starts, torch.int64), pointer(self.columns, torch.int32)),
            pointer(self.values, dense.dtype),
        )

    def lay(self, weight: Tensor) -> Tensor:
        """A weight ``(K, D)``, or ``(2, N, K)`` of a Gram matrix, as the loops have it."""
        if self.layout == BY_CLASS:
            return weight.clone(memory_format=torch.contiguous_format)
        if self.layout == OF_GRAM:
            return self._less(weight.mT.clone(memory_format=torch.contiguous_format), self.constant)
        laid = weight.new_zeros(weight.shape[1], self.loops.padded(len(weight)))
        laid[:, : len(weight)] = weight.mT
        return laid

    @staticmethod
    def _less(laid: Tensor, constant: float) -> Tensor:
        """In place, of ``(2, K, N + 1)`` the row below the coefficients less what they make of it, moving with them."""
        if constant:
            laid[0, :, -1].sub_(laid[0, :, :-1].sum(1), alpha=constant)
        return laid

    def lift(self, laid: Tensor, outputs: int) -> Tensor:
        """The weight again."""
        if self.layout == BY_CLASS:
            return laid.clone()
        if self.layout == OF_GRAM:
            return self._less(laid.clone(), -self.constant).mT.contiguous()
        return laid[:, :outputs].mT.contiguous()

    def square(self, laid: Tensor) -> float:
        """``sum_l |w_l|^2``."""
        return float((laid[0] * laid[1]).sum() if self.layout == OF_GRAM else laid.square().sum())

    def sweep(
        self, laid: Tensor, beta: Tensor, order: Tensor, squares: Tensor, damp: float, skip: float
    ) -> tuple[float, Tensor]:
        """Go over some rows, moving the weight and ``beta`` in place.

        Args:
            laid: the weight, from `lay`.
            beta: the dual variables.
            order: the rows to go over.
            squares: each row's ``a_i``.
            damp: the weight moves by ``damp`` times what the multipliers of the scores do.
            skip: rows whose gap is at most ``skip C_i`` stay where they are.

        Shape:
            beta ``(N, K)``; order ``(M)``; squares ``(N)``.

        Returns:
            The sum over the rows of how far each loss was from its dual value, and which of them moved, ``(M)``.
        """
        rows, outputs = laid.shape[-1] if self.layout == OF_GRAM else len(beta), beta.shape[1]
        moved = room(len(order), dtype=torch.bool)
        gap, total = room(dtype=torch.float64).zero_(), 0.0
        inputs = (self.values, self.starts, self.columns, squares, self.upper, self.labels, self.cost, beta, laid)
        own, whole = self.values.dtype, torch.int64
        pointers = tuple(map(pointer, inputs, (own, whole, torch.int32, own, own, whole, own, own, own)))
        kinds = whole, torch.bool, torch.float64, torch.uint8
        size = max(1, _WORK // (self.count * outputs))
        for start in range(0, len(order), size):
            part, flags = order[start : start + size], moved[start : start + size]
            places = (*pointers, *map(pointer, (part, flags, gap, self.work), kinds))
            numbers = (len(part), rows, self.count, outputs, self.kind, self.layout)
            self.loops.ascend(_pack(*places, *numbers, damp, skip))
            total += float(gap)
        return total, moved
