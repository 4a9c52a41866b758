r"""Max-margin losses of chains by the native library, each one node: ``\max_y [L(y*, y) + d(y)]`` and
``\max_y L(y*, y) [1 + d(y)]_+``, with ``d(y) = s(y) - s(y*)`` and costs that positions add up.

The gradient is that of ``slope * d`` at the labels found, where the slope is 1 or their cost. None where the library
does not vouch for every sequence, or is not for this chain: operators of torch take over.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_multiclass.ops import _native
from torch_multiclass.ops._native import pointer, room
from torch_multiclass.ops.chain import native
from torch_multiclass.ops.chain.calls import apply, batched
from torch_multiclass.ops.chain.structure import Chain

__all__ = ["Costs", "margin_loss", "slack_loss"]

MOST_BYTES = 1 << 28
"""Memory that slack rescaling may take: 128 MB of cells, and what grows with the length alone."""

pack_viterbi = struct.Struct("@14qd4q").pack
"""The fields of ``TmViterbi`` in ``native/chain.h``."""

pack_slack = struct.Struct("@14qd3q").pack
"""The fields of ``TmSlack``."""

pack_difference = struct.Struct("@12q").pack
"""The fields of ``TmDifference``."""

NAMES = {torch.float32: "f32", torch.float64: "f64"}


class Costs(NamedTuple):
    """What labels cost beside the gold one: a ``(K, K)`` matrix, else as much all; over the length if ``normalize``."""

    matrix: Tensor | None
    each: float
    normalize: bool


class Found(NamedTuple):
    """The best labels ``(B, T)``, the loss ``(B,)`` and its slope ``(B,)``."""

    labels: Tensor
    value: Tensor
    slope: Tensor


def margin_loss(chain: Chain, gold: Tensor, costs: Costs) -> Tensor | None:
    """``max_y [L(y*, y) + d(y)]``, ``(B,)``, for gold labels ``(B, T)``."""
    loops = native.loops_for(chain)
    if loops is None:
        return None
    parts, gold, matrix = dense(chain), gold.contiguous(), costs.matrix
    batch, steps, k = chain.emissions.shape
    labels, value, slope = results(chain)
    ahead = 16 * batch  # the score, and whether it is sound
    memory = room(ahead + loops.viterbi_work(batch, steps, k, matrix is not None), dtype=torch.uint8)
    at = memory.data_ptr()
    outputs = at + ahead, labels.data_ptr(), at, at + 8 * batch
    beside = pointer(gold, torch.int64), pointer(matrix, loops.dtype), costs.each, costs.normalize
    found = value.data_ptr(), slope.data_ptr(), 0
    unsound = loops.viterbi(
        pack_viterbi(*map(pointer, parts, native.KINDS[loops.dtype]), batch, steps, k, *outputs, *beside, *found)
    )
    return None if unsound else differentiable(chain, gold, Found(labels, value, slope))


def slack_loss(chain: Chain, gold: Tensor, units: Tensor, most: int, unit: float, normalize: bool) -> Tensor | None:
    """``max_y L(y*, y) [1 + d(y)]_+``, ``(B,)``, for costs of ``units (K, K)``, whole numbers up to ``most``."""
    batch, steps, k = chain.emissions.shape
    library, loops = _native.library(), native.loops_for(chain)
    if library is None or loops is None:
        return None
    bytes_of = library.function("tm_slack_work", *(ctypes.c_int64,) * 3)
    size = bytes_of(steps, k, most)
    if size > MOST_BYTES:
        return None
    parts, gold, units = dense(chain), gold.contiguous(), units.contiguous()
    labels, value, slope = results(chain)
    memory = room(batch + size, dtype=torch.uint8)
    at = memory.data_ptr()
    given = at + batch, labels.data_ptr(), at, pointer(gold, torch.int64), pointer(units, torch.int64), most
    call = library.function("tm_slack_" + NAMES[loops.dtype])
    rest = unit, normalize, value.data_ptr(), slope.data_ptr()
    unsound = call(pack_slack(*map(pointer, parts, native.KINDS[loops.dtype]), batch, steps, k, *given, *rest))
    return None if unsound else differentiable(chain, gold, Found(labels, value, slope))


def dense(chain: Chain) -> list[Tensor | None]:
    """The parts as the library reads them."""
    return [None if part is None else part.contiguous() for part in chain]


def results(chain: Chain) -> tuple[Tensor, Tensor, Tensor]:
    """Room for what is found."""
    batch, steps, _ = chain.emissions.shape
    own = chain.emissions.dtype
    return room(batch, steps, dtype=torch.long), room(batch, dtype=own), room(batch, dtype=own)


@functools.lru_cache(maxsize=8)
def all_but_gold(num_labels: int) -> Tensor:
    """One unit for each label that is not the gold one, ``(K, K)``."""
    return 1 - torch.eye(num_labels, dtype=torch.long, device="cpu")


class Loss(torch.autograd.Function):
    """What has been found, as a function of emissions, transitions, start and end."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        """The loss."""
        *tensors, found = inputs
        ctx.save_for_backward(*tensors, found.labels, found.slope)
        value: Tensor = found.value
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The gradient: a label found counts, and the gold one beside it, with opposite signs."""
        *parts, lengths, gold, labels, slope = ctx.saved_tensors
        if torch.is_grad_enabled() or batched(grad):
            return *by_torch(Chain._make([*parts, lengths]), labels, gold, slope, grad), None, None, None
        library = _native.library()
        assert library is not None
        found = tuple(torch.empty_like(part, memory_format=torch.contiguous_format) for part in parts)
        call = library.function("tm_difference_" + NAMES[slope.dtype])
        grad = grad.contiguous()
        lengths = None if lengths is None else lengths.contiguous()
        own = slope.dtype
        given = (pointer(part, torch.int64) for part in (lengths, labels, gold))
        rest = (pointer(part, own) for part in (grad, slope, *found))
        call(pack_difference(*given, *parts[0].shape, *rest))
        return *found, None, None, None


def by_torch(chain: Chain, labels: Tensor, gold: Tensor, slope: Tensor, grad: Tensor) -> list[Tensor | None]:
    """The same gradient by operators that can be differentiated."""
    with torch.enable_grad():
        own, other = chain.terms(torch.stack([labels, gold], 1)).unbind(1)
        value = slope * (own - other).sum(1)
        asked = [part for part in chain[:4] if part.requires_grad]
        found = iter(torch.autograd.grad(value, asked, grad, create_graph=torch.is_grad_enabled()))
    return [next(found) if part.requires_grad else None for part in chain[:4]]


def differentiable(chain: Chain, gold: Tensor, found: Found) -> Tensor:
    value: Tensor = apply(Loss)(*chain, gold, found)
    return value
