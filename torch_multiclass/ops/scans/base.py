"""One scan over time, and the totals of both algebras."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

NEVER = -torch.inf


def scan(
    step: Callable[..., tuple[Tensor, ...]],
    carried: Sequence[Tensor],
    along: Sequence[Tensor],
    fixed: Sequence[Tensor] = (),
    reverse: bool = False,
) -> list[Tensor]:
    """``step(*carried, *of this time, *fixed)`` for each entry of the first dimension of ``along``, in turn.

    It returns what is carried on, then what it finds at this time. The result is what is carried at last, then what was
    found, one entry a time.
    """

    def alone(*given: Tensor) -> list[Tensor]:
        return [part.clone() for part in step(*given)]  # what comes out may share no memory with what came in

    along = [part.flip(0) if reverse else part.contiguous() for part in along]
    carried, along, fixed = ([part.detach() for part in parts] for parts in (carried, along, fixed))
    found = torch.ops.higher_order.scan(alone, [part.contiguous() for part in carried], along, tuple(fixed))
    count = len(carried)
    return [*found[:count], *(part.flip(0) if reverse else part for part in found[count:])]


def log_total(scores: Tensor, dims: list[int]) -> Tensor:
    """``log sum exp`` over the dimensions; -inf of nothing else."""
    top = scores.amax(dims, keepdim=True)
    top = torch.where(top == NEVER, 0.0, top)
    return ((scores - top).exp().sum(dims, keepdim=True).log() + top).squeeze(dims)


def centred(scores: Tensor, dims: list[int]) -> Tensor:
    """Less the largest, unless everything is -inf: no comparison changes, and values stay small over time."""
    top = scores.amax(dims, keepdim=True)
    return scores - torch.where(top == NEVER, 0.0, top)


def probability(scores: Tensor, log_z: Tensor) -> Tensor:
    """``exp(scores - log Z)``; 0 where nothing is possible."""
    never = log_z == NEVER
    return torch.where(never, 0.0, (scores - torch.where(never, 0.0, log_z)).exp())


def times(scores: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
    """The positions ``(T,)`` of scores ``(B, T, ...)``, and which lie inside their sequence, ``(T, B)``."""
    batch, steps = scores.shape[:2]
    position = torch.arange(steps, device=scores.device)
    if lengths is None:
        lengths = torch.full((batch,), steps, device=scores.device)
    return position, position[:, None] < lengths
