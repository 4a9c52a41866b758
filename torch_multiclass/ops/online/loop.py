"""The loop, by the native library or by NumPy.

Both add up the scores of all classes in the same order, so that classes of equal weights have equal scores, to the last
bit: a tie is a mistake.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator

import torch
from torch import Tensor

from torch_multiclass.ops import _native
from torch_multiclass.ops._native import pointer
from torch_multiclass.ops.online import by_numpy
from torch_multiclass.ops.online.records import ASKS, KINDS, RULES, Asked, Rows, Rule, State

ONLINE = "@16q3d8q"
"""The fields of ``TmOnline`` in ``native/online.h``."""

pack_online = struct.Struct(ONLINE).pack


def visit(state: State, rows: Rows, asked: Asked, steps: Tensor, rule: Rule, bias: bool, order: Tensor) -> None:
    """Visit the rows ``order (n)`` in turn; ``steps (N)``, float64, says how far each moves."""
    library = _native.library()
    if library is None:
        by_numpy.visit(state, rows, asked, steps, rule, bias, order)
        return
    work = _native.room(rows.width + bias + 2 * state.weights.shape[1], dtype=torch.float64)
    library.function("tm_online")(pack_online(*fields(state, rows, asked, steps, rule, bias, order, work)))


def visit_chains(
    state: State, rows: Rows, asked: Asked, steps: Tensor, allowed: Tensor | None, bias: bool, order: Tensor
) -> None:
    """Visit sequences: those of the positions ``asked.first[i]`` to ``asked.first[i + 1]``.

    The last ``K + 2`` rows of the weights are of the moves from each label, of the start and of the end; ``allowed``,
    ``(K + 2, P)``, is 0 or -inf.
    """
    library = _native.library()
    if library is None:
        by_numpy.visit_chains(state, rows, asked, steps, allowed, bias, order)
        return
    assert asked.first is not None
    longest, size = int(asked.first.diff().max()), library.function("tm_online_work", *[ctypes.c_int64] * 3)
    work = _native.room(size(rows.width, state.weights.shape[1], longest), dtype=torch.float64)
    given = fields(
        state, rows, asked, steps, Rule("perceptron"), bias, order, work, pointer(allowed, torch.float64), longest
    )
    library.function("tm_online_chains")(pack_online(*given))


def fields(
    state: State,
    rows: Rows,
    asked: Asked,
    steps: Tensor,
    rule: Rule,
    bias: bool,
    order: Tensor,
    work: Tensor,
    allowed: int = 0,
    longest: int = 0,
) -> tuple[float, ...]:
    """Those of ``TmOnline``, in order."""
    wide, real, whole = rows.values.dtype == torch.float64, torch.float64, torch.int64
    values = pointer(rows.values, real if wide else torch.float32)
    target = pointer(asked.target, torch.int8 if asked.kind == "signs" else whole)
    weights, drift, exponents, shift, moves, memory = (
        pointer(part, real) for part in (state.weights, state.drift, state.exponents, state.shift, steps, work)
    )
    return (
        *(values, pointer(rows.offsets, whole), pointer(rows.columns, whole), wide, rows.width, bias),
        *(pointer(order, whole), len(order), ASKS.index(asked.kind), target, pointer(asked.first, whole), moves),
        *(state.classes, state.weights.shape[1], RULES.index(rule.rule), KINDS.index(rule.kind)),
        *(rule.threshold, rule.ratio, rule.top, weights, drift, exponents, shift),
        *(pointer(state.counts, whole), memory, allowed, longest),
    )


def pieces(order: Tensor, cells: int, batch: int = 1) -> Iterator[Tensor]:
    """The visits in parts that take a fraction of a second each, between which the keyboard is listened to; each of
    whole batches."""
    size = -(-max(256, 2**24 // max(cells, 1)) // batch) * batch
    for begin in range(0, len(order), size):
        yield order[begin : begin + size]
