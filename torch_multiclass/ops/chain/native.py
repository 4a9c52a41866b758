"""Chains by the native library: one call for the values, one for the gradient, one for the best labels."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from torch_multiclass.ops import _native
from torch_multiclass.ops._native import Loops, pointer
from torch_multiclass.ops.chain.logspace import Gradients
from torch_multiclass.ops.chain.structure import Chain, work_dtype

LARGEST = 256
"""From more labels on, the products of matrices that torch uses are faster."""


def loops_for(chain: Chain) -> Loops | None:
    """The loops that compute chains of this kind: on the CPU, one matrix, one start and one end."""
    emissions, transitions, start, end, _ = chain
    batch, steps, num_labels = emissions.shape
    one_matrix = transitions.dim() == 2 and start.dim() == 1 and end.dim() == 1
    if not one_matrix or min(batch, steps, num_labels) == 0 or emissions.device.type != "cpu":
        return None
    return _native.loops(work_dtype(emissions.dtype))


def passes(chain: Chain) -> list[Callable[[Chain, Tensor | None], Pass]]:
    """What to try in turn: the chain's own dtype, then float64. None where the library is not for this chain."""
    loops = loops_for(chain) if chain.num_labels <= LARGEST else None
    double = None if loops is None else _native.loops(torch.float64)
    if loops is None or double is None:
        return []
    wide: Callable[[Chain, Tensor | None], Pass] = lambda c, y: Pass(double, c.double(), y)  # noqa: E731
    return [wide] if chain.emissions.dtype == torch.float64 else [lambda c, y: Pass(loops, c.work(), y), wide]


class Pass:
    """``log Z``, or ``log Z - s(labels)``, ``value (B,)`` in float64, and what its gradient needs.

    ``sound (B,)`` says which rows are right; of the others nothing has been computed.
    """

    def __init__(self, loops: Loops, chain: Chain, labels: Tensor | None) -> None:
        self.loops = loops
        self.chain = Chain._make([None if part is None else part.contiguous() for part in chain])
        self.labels = None if labels is None else labels.contiguous()
        batch = chain.emissions.shape[0]
        self.value = torch.empty(batch, dtype=torch.float64)
        self.sound = torch.empty(batch, dtype=torch.bool)
        self.work = torch.empty(loops.chain_work(self.packed(0)), dtype=torch.uint8)
        self.unsound = loops.chain_forward(self.packed(self.work.data_ptr()))

    def packed(self, work: int, *more: int) -> bytes:
        """The call's arguments."""
        return _native.pack_chain(
            *map(pointer, self.chain),
            pointer(self.labels),
            *self.chain.emissions.shape,
            work,
            self.value.data_ptr(),
            self.sound.data_ptr(),
            *(more or (0,) * 5),
        )

    def forget(self, rows: Tensor) -> None:
        """Rows whose gradient is asked for with a weight of 0 are left out anyway."""

    def gradient(self, grad: Tensor) -> tuple[Gradients, Tensor | None]:
        """The gradient of ``sum(grad * value)``, asked for once, and which rows of it are sound (None: all)."""
        grad = grad.to(self.chain.emissions.dtype).contiguous()
        sound, parts = self.sound, tuple(map(torch.empty_like, self.chain[:4]))
        self.sound = torch.empty_like(sound)
        unsound = self.loops.chain_backward(self.packed(self.work.data_ptr(), pointer(grad), *map(pointer, parts)))
        found, self.sound = self.sound, sound
        return parts, found if unsound else None  # type: ignore[return-value]


def best_labels(loops: Loops, chain: Chain) -> tuple[Tensor, Tensor | None]:
    """The best labels ``(B, T)``, and which rows are right (None: all); of the others nothing has been computed."""
    emissions, transitions, start, end = (part.contiguous() for part in chain[:4])
    lengths = None if chain.lengths is None else chain.lengths.contiguous()
    labels = torch.empty(emissions.shape[:2], dtype=torch.long)
    sound = torch.empty(len(emissions), dtype=torch.bool)

    def packed(work: int) -> bytes:
        inputs = map(pointer, (emissions, transitions, start, end, lengths))
        return _native.pack_viterbi(*inputs, *emissions.shape, work, labels.data_ptr(), sound.data_ptr())

    work = torch.empty(loops.viterbi_work(packed(0)), dtype=torch.uint8)
    return labels, sound if loops.viterbi(packed(work.data_ptr())) else None
