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
from torch_multiclass.ops._native import Call, Library, pointer, room
from torch_multiclass.ops.chain.arrays import PLAIN
from torch_multiclass.ops.chain.logspace import Gradients
from torch_multiclass.ops.chain.structure import Chain, work_dtype

LARGEST = 400
"""From more labels on, the products of matrices that torch uses are faster."""


Size = Callable[..., int]
"""Bytes of memory to work in, for a batch, steps and labels; of Viterbi, also whether costs are a matrix."""

pack_chain = struct.Struct("@18q").pack
"""The fields of ``TmChain`` in ``native/chain.h``."""

pack_viterbi = struct.Struct("@12q6qq").pack
"""The fields of ``TmViterbi``."""

NO_COSTS = (0,) * 6
"""Those of its ``TmCosts``."""


KINDS = {own: (own, own, own, own, torch.int64, torch.int64, own) for own in (torch.float32, torch.float64)}
"""The dtypes of emissions, transitions, start and end, of lengths, labels, and the gradient by the value."""


class Loops(NamedTuple):
    """What there is for one dtype."""

    dtype: torch.dtype
    chain_work: Size
    chain: Call
    viterbi_work: Size
    viterbi: Call


@functools.lru_cache
def loops_of(library: Library, dtype: torch.dtype) -> Loops:
    """The loops over chains of a library."""
    end, sizes = {torch.float32: "f32", torch.float64: "f64"}[dtype], (ctypes.c_int64,) * 3
    remembered = functools.lru_cache(maxsize=64)
    return Loops(
        dtype,
        remembered(library.function(f"tm_chain_work_{end}", *sizes)),
        library.function(f"tm_chain_{end}"),
        remembered(library.function("tm_viterbi_work", *sizes, ctypes.c_int64)),
        library.function(f"tm_viterbi_{end}"),
    )


def loops_for(chain: Chain) -> Loops | None:
    """The loops that compute chains of this kind: on the CPU, one matrix, one start and one end."""
    emissions, transitions, start, end, _ = chain
    one_matrix = transitions.ndim == 2 and start.ndim == 1 and end.ndim == 1
    if not one_matrix or 0 in emissions.shape or not emissions.is_cpu:
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


class Run:
    """``log Z``, or ``log Z - s(labels)``, and with ``gradient`` that of its sum, or of ``sum(grad * value)``.

    ``unsound`` rows are not vouched for, those that `sound` does not name: of them nothing has been computed. Rows
    whose ``grad`` is 0 are left out.
    """

    def __init__(
        self, loops: Loops, chain: Chain, labels: Tensor | None, gradient: bool = False, grad: Tensor | None = None
    ) -> None:
        inputs = [None if part is None else part.contiguous() for part in (*chain, labels, grad)]
        self.batch, steps, num_labels = chain.emissions.shape
        self.result: Tensor | None = room(self.batch, dtype=chain.emissions.dtype)
        self.parts = tuple(map(torch.empty_like, inputs[:4])) if gradient else ()  # type: ignore[arg-type]
        ahead = 16 * self.batch  # the value, and whether it is sound
        self.memory = room(ahead + loops.chain_work(self.batch, steps, num_labels), dtype=torch.uint8)
        at = self.memory.data_ptr()
        *where, by = map(pointer, inputs, KINDS[loops.dtype])
        outputs = [part.data_ptr() for part in self.parts] or (0, 0, 0, 0)
        fields = (self.batch, steps, num_labels, at + ahead, at, self.result.data_ptr(), at + 8 * self.batch, by)
        self.unsound = loops.chain(pack_chain(*where, *fields, *outputs))

    def hand_over(self) -> Tensor:
        """The value ``(B,)`` in the dtype of the scores, which whoever gets it holds alone."""
        result, self.result = self.result, None
        assert result is not None
        return result

    @property
    def value(self) -> Tensor:
        """``(B,)`` in float64."""
        return self.memory[: 8 * self.batch].view(torch.float64)

    @property
    def sound(self) -> Tensor:
        """``(B,)``: which rows are right."""
        return self.memory[8 * self.batch : 9 * self.batch].view(torch.bool)


class Pass:
    """``log Z``, or ``log Z - s(labels)``, ``value (B,)`` in float64, and the way to its gradient.

    ``sound (B,)`` says which rows are right.
    """

    def __init__(self, loops: Loops, chain: Chain, labels: Tensor | None) -> None:
        self.given = loops, chain, labels
        run = Run(*self.given)
        self.value, self.sound, self.unsound = run.value.clone(), run.sound.clone(), run.unsound

    def forget(self, rows: Tensor) -> None:
        """Rows whose gradient is asked for with a weight of 0 are left out anyway."""

    def gradient(self, grad: Tensor) -> tuple[Gradients, Tensor | None]:
        """The gradient of ``sum(grad * value)``, and which rows of it are sound (None: all)."""
        run = Run(*self.given, True, grad.to(self.given[1].emissions.dtype))
        return run.parts, run.sound.clone() if run.unsound else None  # type: ignore[return-value]


def vouched(chain: Chain, labels: Tensor | None, gradient: bool) -> Run | None:
    """The value, and the gradient of its sum, in the chain's own dtype; None unless the library vouches for all rows.

    Both at once take a third less time and a third of the memory.
    """
    if chain.emissions.shape[2] > LARGEST or (labels is not None and labels.ndim != 2):
        return None
    loops = loops_for(chain)
    if loops is None:
        return None
    run = Run(loops, chain.work(), labels, gradient)
    return None if run.unsound else run


class Path:
    """The best ``labels (B, T)``, -100 past a length, and their score.

    ``unsound`` rows are not vouched for, those that `sound` does not name: of them nothing has been computed.
    """

    def __init__(self, loops: Loops, chain: Chain, mask: Tensor | None = None) -> None:
        inputs = [None if part is None else part.contiguous() for part in chain]
        self.batch, steps, num_labels = chain.emissions.shape
        self.labels = room(self.batch, steps, dtype=torch.long)
        ahead = 16 * self.batch  # the score, and whether it is sound
        self.memory = room(ahead + loops.viterbi_work(self.batch, steps, num_labels, False), dtype=torch.uint8)
        score = self.memory.data_ptr()
        outputs = score + ahead, self.labels.data_ptr(), score, score + 8 * self.batch
        given = *map(pointer, inputs, KINDS[loops.dtype]), self.batch, steps, num_labels, *outputs
        which = pointer(mask, torch.bool)
        self.unsound = loops.viterbi(pack_viterbi(*given, *NO_COSTS, which))

    @property
    def score(self) -> Tensor:
        """``(B,)`` in float64."""
        return self.memory[: 8 * self.batch].view(torch.float64).clone()

    @property
    def sound(self) -> Tensor:
        """``(B,)``: which rows are right."""
        return self.memory[8 * self.batch : 9 * self.batch].view(torch.bool)


def best_path(chain: Chain) -> Path | None:
    """The best labels; None where the library is not for this chain."""
    loops = loops_for(chain)
    return None if loops is None else Path(loops, chain)


def labels_of(chain: Chain, mask: Tensor | None) -> Tensor | None:
    """The best labels of a chain whose positions are those of a mask ``(B, T)``, at the least expense.

    None where the library is not for it, such as a mask with holes, or does not vouch for every row.
    """
    loops = loops_for(chain)
    if loops is None or (mask is not None and (type(mask) is not Tensor or not mask.is_contiguous())):
        return None
    path = Path(loops, chain.work(), mask)
    return None if path.unsound else path.labels


def mask_lengths(mask: Tensor) -> tuple[Tensor, bool, bool] | None:
    """How many positions of a mask ``(B, T)`` count, whether all do, and whether in each row they come first.

    None where the library is not for this mask.
    """
    library = _native.library() if type(mask) is Tensor and mask.is_cpu else None
    if library is None:
        return None
    batch, steps = mask.shape
    mask, lengths = mask.contiguous(), room(batch, dtype=torch.long)
    look = library.functions.get("tm_mask_lengths") or library.function("tm_mask_lengths", *(ctypes.c_int64,) * 4)
    found = look(pointer(mask, torch.bool), batch, steps, lengths.data_ptr())
    return lengths, bool(found & 1), bool(found & 2)


def mask_labels(mask: Tensor, labels: Tensor, num_labels: int) -> Tensor | None:
    """The labels that count, and 0 for the others; None unless the library finds them in ``0..num_labels-1``."""
    library = _native.library() if type(mask) is type(labels) is Tensor and mask.is_cpu and labels.is_cpu else None
    if library is None or labels.dtype != torch.long or mask.shape != labels.shape or labels.layout != torch.strided:
        return None
    mask, labels = mask.contiguous(), labels.contiguous()
    out = torch.empty_like(labels)
    look = library.function("tm_mask_labels", *(ctypes.c_int64,) * 5)
    at, given = pointer(mask, torch.bool), pointer(labels, torch.long)
    known = look(at, given, labels.numel(), num_labels, out.data_ptr())
    return out if known else None
