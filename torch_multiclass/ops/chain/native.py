"""Chains by the native library: one call for the values, one for the gradient, one for the best labels."""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass.ops import _native
from torch_multiclass.ops._native import Call, Library, pointer
from torch_multiclass.ops.chain.logspace import Gradients
from torch_multiclass.ops.chain.structure import Chain, work_dtype

LARGEST = 256
"""From more labels on, the products of matrices that torch uses are faster."""


PLAIN = (Tensor, torch.nn.Parameter)
"""The types of tensors that have their numbers where `data_ptr` says."""


Size = Callable[[int, int, int], int]
"""Bytes of memory to work in, for a batch, steps and labels."""

pack_chain = struct.Struct("@17q").pack
"""The fields of ``TmChain`` in ``native/chain.h``."""

pack_viterbi = struct.Struct("@11q").pack
"""The fields of ``TmViterbi``."""


class Loops(NamedTuple):
    """What there is for one dtype."""

    chain_work: Size
    chain_forward: Call
    chain_backward: Call
    viterbi_work: Size
    viterbi: Call


@functools.lru_cache
def loops_of(library: Library, dtype: torch.dtype) -> Loops:
    """The loops over chains of a library."""
    end, sizes = {torch.float32: "f32", torch.float64: "f64"}[dtype], (ctypes.c_int64,) * 3
    return Loops(
        library.function(f"tm_chain_work_{end}", *sizes),
        library.function(f"tm_chain_forward_{end}"),
        library.function(f"tm_chain_backward_{end}"),
        library.function("tm_viterbi_work", *sizes),
        library.function(f"tm_viterbi_{end}"),
    )


def loops_for(chain: Chain) -> Loops | None:
    """The loops that compute chains of this kind: on the CPU, one matrix, one start and one end."""
    emissions, transitions, start, end, _ = chain
    one_matrix = transitions.dim() == 2 and start.dim() == 1 and end.dim() == 1
    if not one_matrix or 0 in emissions.shape or emissions.device.type != "cpu":
        return None
    if any(type(part) not in PLAIN for part in (emissions, transitions, start, end)):
        return None
    library = _native.library()
    return None if library is None else loops_of(library, work_dtype(emissions.dtype))


def passes(chain: Chain) -> list[Callable[[Chain, Tensor | None], Pass]]:
    """What to try in turn: the chain's own dtype, then float64. None where the library is not for this chain."""
    loops = loops_for(chain) if chain.num_labels <= LARGEST else None
    library = _native.library()
    if loops is None or library is None:
        return []
    double = loops_of(library, torch.float64)
    wide: Callable[[Chain, Tensor | None], Pass] = lambda c, y: Pass(double, c.double(), y)  # noqa: E731
    return [wide] if chain.emissions.dtype == torch.float64 else [lambda c, y: Pass(loops, c.work(), y), wide]


class Pass:
    """``log Z``, or ``log Z - s(labels)``, ``value (B,)`` in float64, and what its gradient needs.

    ``sound (B,)`` says which rows are right; of the others nothing has been computed.
    """

    def __init__(self, loops: Loops, chain: Chain, labels: Tensor | None) -> None:
        self.loops = loops
        self.inputs = [None if part is None else part.contiguous() for part in (*chain, labels)]
        batch, steps, num_labels = chain.emissions.shape
        self.value = torch.empty(batch, dtype=torch.float64)
        self.sound = torch.empty(batch, dtype=torch.bool)
        self.work = torch.empty(loops.chain_work(batch, steps, num_labels), dtype=torch.uint8)
        self.fields = (
            *map(pointer, self.inputs),
            *(batch, steps, num_labels, self.work.data_ptr(), self.value.data_ptr()),
        )
        self.unsound = loops.chain_forward(pack_chain(*self.fields, self.sound.data_ptr(), 0, 0, 0, 0, 0))

    def forget(self, rows: Tensor) -> None:
        """Rows whose gradient is asked for with a weight of 0 are left out anyway."""

    def gradient(self, grad: Tensor) -> tuple[Gradients, Tensor | None]:
        """The gradient of ``sum(grad * value)``, asked for once, and which rows of it are sound (None: all)."""
        chain: list[Tensor] = self.inputs[:4]  # type: ignore[assignment]
        grad = grad.to(chain[0].dtype).contiguous()
        parts, sound = tuple(map(torch.empty_like, chain)), torch.empty_like(self.sound)
        outputs = sound.data_ptr(), grad.data_ptr(), *map(pointer, parts)
        unsound = self.loops.chain_backward(pack_chain(*self.fields, *outputs))
        return parts, sound if unsound else None  # type: ignore[return-value]


def best_labels(loops: Loops, chain: Chain) -> tuple[Tensor, Tensor | None]:
    """The best labels ``(B, T)``, and which rows are right (None: all); of the others nothing has been computed."""
    inputs = [None if part is None else part.contiguous() for part in chain]
    batch, steps, num_labels = chain.emissions.shape
    labels = torch.empty((batch, steps), dtype=torch.long)
    sound = torch.empty(batch, dtype=torch.bool)
    work = torch.empty(loops.viterbi_work(batch, steps, num_labels), dtype=torch.uint8)
    outputs = work.data_ptr(), labels.data_ptr(), sound.data_ptr()
    unsound = loops.viterbi(pack_viterbi(*map(pointer, inputs), batch, steps, num_labels, *outputs))
    return labels, sound if unsound else None
