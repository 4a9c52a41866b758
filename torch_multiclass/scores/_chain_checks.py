"""What the parts of a chain have to agree on."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.ops.chain.structure import work_dtype
from torch_multiclass.ops.precision import no_autocast, upcast

PLAIN = (Tensor, torch.nn.Parameter)
"""The types of tensors that need no second look."""


class Parts(Protocol):
    """The fields of `torch_multiclass.ChainScores`."""

    emissions: Tensor
    transitions: Tensor
    start: Tensor | None
    end: Tensor | None
    mask: Tensor | None
    lengths: Tensor | None


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


def check_parts(scores: Parts) -> None:
    """Raise unless emissions, transitions, start, end, mask and lengths fit together."""
    emissions = scores.emissions
    if fit_plainly(scores):
        mask = scores.mask
        if scores.lengths is None and (mask is None or (type(mask) is Tensor and mask_fits(mask, emissions))):
            return
        batch, steps = tuple(emissions.shape[:-2]), emissions.shape[-2]
        return check_positions(mask, scores.lengths, ("emissions", emissions), batch, steps)
    check.floating("emissions", emissions)
    if emissions.ndim < 2 or emissions.shape[-1] == 0:
        raise ValueError(f"emissions: got shape {tuple(emissions.shape)}; accepted is (*, T, K) with K >= 1 labels")
    steps, k = emissions.shape[-2:]
    batch = tuple(emissions.shape[:-2])
    like = ("emissions", emissions)
    check_part("transitions", scores.transitions, like)
    shape = tuple(scores.transitions.shape)
    moves = (max(steps - 1, 0), k, k)
    if shape != (k, k) and not (shape[-3:] == moves and broadcasts(shape[:-3], batch)):
        raise ValueError(
            f"transitions: got shape {shape}; accepted are {(k, k)}, [from, to], and {(*batch, *moves)}, one matrix "
            "into each position but the first"
        )
    check_ends(scores.start, scores.end, like, batch, k)
    check_positions(scores.mask, scores.lengths, like, batch, steps)


def fit_plainly(scores: Parts) -> bool:
    """Whether all parts are of one dtype and of the shapes that are usual; else there is more to look at."""
    emissions = scores.emissions
    if (
        type(emissions) is not Tensor
        or emissions.is_nested
        or scores.transitions is None
        or emissions.ndim < 2
        or emissions.dtype not in check.FLOATING
    ):
        return False
    k, dtype, device = emissions.shape[-1], emissions.dtype, emissions.device
    for part, shape in ((scores.transitions, (k, k)), (scores.start, (k,)), (scores.end, (k,))):
        if part is not None and (
            type(part) not in PLAIN
            or part.is_nested
            or part.shape != shape
            or part.dtype != dtype
            or part.device != device
            or part.layout != torch.strided
        ):
            return False
    return k > 0 and emissions.layout == torch.strided


def mask_fits(mask: Tensor, emissions: Tensor) -> bool:
    """Whether a mask is what it should be."""
    right = mask.dtype == torch.bool and not mask.is_nested and mask.shape == emissions.shape[:-1]
    return right and mask.device == emissions.device and mask.layout == torch.strided


def broadcasts(lead: tuple[int, ...], batch: tuple[int, ...]) -> bool:
    """Whether a part with these dimensions in front serves every element of the batch."""
    return len(lead) <= len(batch) and all(lead[-i] in (1, batch[-i]) for i in range(1, len(lead) + 1))


def check_part(name: str, part: Tensor, like: tuple[str, Tensor]) -> None:
    """Raise unless ``part`` holds scores of the device and precision of ``like``, a name and a tensor."""
    check.floating(name, part)
    check.same_device(name, part, *like)
    if work_dtype(part.dtype) != work_dtype(like[1].dtype):
        raise ValueError(
            f"{name}: has dtype {part.dtype}, but {like[0]} have {like[1].dtype}; accepted is one dtype, where half "
            "precision counts as float32"
        )


def check_ends(
    start: Tensor | None, end: Tensor | None, like: tuple[str, Tensor], batch: tuple[int, ...], k: int
) -> None:
    """Raise unless start and end are None, ``(K,)`` or ``(*, K)``."""
    for name, part in (("start", start), ("end", end)):
        if part is None:
            continue
        check_part(name, part, like)
        if part.ndim == 0 or part.shape[-1] != k or not broadcasts(tuple(part.shape[:-1]), batch):
            raise ValueError(f"{name}: got shape {tuple(part.shape)}; accepted are {(k,)} and {(*batch, k)}")


def check_positions(
    mask: Tensor | None, lengths: Tensor | None, like: tuple[str, Tensor], batch: tuple[int, ...], steps: int
) -> None:
    """Raise unless mask and lengths say which of the ``T`` positions count, and the same."""
    if mask is not None:
        check.boolean("mask", mask, "True where a position counts")
        check.shape("mask", mask, (*batch, steps), "one entry for each position")
        check.same_device("mask", mask, *like)
    if lengths is None:
        return
    check.integers("lengths", lengths, "numbers of positions")
    check.shape("lengths", lengths, batch, "one length for each sequence")
    check.same_device("lengths", lengths, *like)
    if lengths.numel() == 0 or not check.values_readable(lengths):
        return
    outside = (lengths < 0) | (lengths > steps)
    if bool(outside.any()):
        raise ValueError(f"lengths: {int(lengths[outside][0])} is outside 0..{steps} ({steps} positions)")
    if mask is not None and bool((mask.sum(-1) != lengths).any()):
        raise ValueError(
            "lengths: differ from the number of True entries in mask; accepted is one of the two, or agreement"
        )
