"""What the parts of a chain have to agree on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.ops.chain.structure import work_dtype
from torch_multiclass.ops.precision import no_autocast, upcast

if TYPE_CHECKING:
    from torch_multiclass.scores.chain import ChainScores


def low_rank(*factors: Any) -> Tensor:
    if len(factors) != 2:
        raise ValueError(f"transitions: got {len(factors)} factors; accepted is a pair (left, right)")
    left, right = factors
    check.floating("transitions", left)
    check.floating("transitions", right)
    if left.shape != right.shape or left.ndim < 2:
        raise ValueError(
            f"transitions: got factors of shape {tuple(left.shape)} and {tuple(right.shape)}; accepted are two of one "
            "shape, (K, R) or (*, T-1, K, R)"
        )
    with no_autocast(left):
        return upcast(left) @ upcast(right).mT


def check_parts(scores: ChainScores) -> None:
    emissions = scores.emissions
    check.floating("emissions", emissions)
    if emissions.ndim < 2 or emissions.shape[-1] == 0:
        raise ValueError(f"emissions: got shape {tuple(emissions.shape)}; accepted is (*, T, K) with K >= 1 labels")
    steps, k = emissions.shape[-2:]
    batch = tuple(emissions.shape[:-2])
    _check_part("transitions", scores.transitions, emissions)
    shape = tuple(scores.transitions.shape)
    moves = (max(steps - 1, 0), k, k)
    if shape != (k, k) and not (shape[-3:] == moves and _broadcasts(shape[:-3], batch)):
        raise ValueError(
            f"transitions: got shape {shape}; accepted are {(k, k)}, [from, to], and {(*batch, *moves)}, one matrix "
            "into each position but the first"
        )
    for name, part in (("start", scores.start), ("end", scores.end)):
        if part is None:
            continue
        _check_part(name, part, emissions)
        if part.ndim == 0 or part.shape[-1] != k or not _broadcasts(tuple(part.shape[:-1]), batch):
            raise ValueError(f"{name}: got shape {tuple(part.shape)}; accepted are {(k,)} and {(*batch, k)}")
    if scores.mask is not None:
        check.boolean("mask", scores.mask, "True where a position counts")
        check.shape("mask", scores.mask, (*batch, steps), "one entry for each position")
        check.same_device("mask", scores.mask, "emissions", emissions)
    if scores.lengths is not None:
        _check_lengths(scores, scores.lengths, batch, steps)


def _broadcasts(lead: tuple[int, ...], batch: tuple[int, ...]) -> bool:
    return len(lead) <= len(batch) and all(lead[-i] in (1, batch[-i]) for i in range(1, len(lead) + 1))


def _check_part(name: str, part: Tensor, emissions: Tensor) -> None:
    check.floating(name, part)
    check.same_device(name, part, "emissions", emissions)
    if work_dtype(part.dtype) != work_dtype(emissions.dtype):
        raise ValueError(
            f"{name}: has dtype {part.dtype}, but emissions have {emissions.dtype}; accepted is one dtype, where half "
            "precision counts as float32"
        )


def _check_lengths(scores: ChainScores, lengths: Tensor, batch: tuple[int, ...], steps: int) -> None:
    check.integers("lengths", lengths, "numbers of positions")
    check.shape("lengths", lengths, batch, "one length for each sequence")
    check.same_device("lengths", lengths, "emissions", scores.emissions)
    if lengths.numel() == 0 or not check.values_readable(lengths):
        return
    outside = (lengths < 0) | (lengths > steps)
    if bool(outside.any()):
        raise ValueError(f"lengths: {int(lengths[outside][0])} is outside 0..{steps} ({steps} positions)")
    if scores.mask is not None and bool((scores.mask.sum(-1) != lengths).any()):
        raise ValueError(
            "lengths: differ from the number of True entries in mask; accepted is one of the two, or agreement"
        )
