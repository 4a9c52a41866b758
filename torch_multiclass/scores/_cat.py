"""Scores of several batches as those of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torch_multiclass.checks import shown

CAT = (torch.cat, torch.concat, torch.concatenate)


def cat(tensors: Sequence[Any], dim: int = 0, *, out: None = None) -> Any:
    """Scores of one kind, one batch behind the other; sequences are padded to the longest.

    Raises:
        TypeError: scores of different kinds.
        ValueError: another dimension, scores without a batch, or that do not share what they have to.
    """
    first = tensors[0]
    if out is not None or dim != 0:
        raise ValueError(f"dim: got {dim}, out={shown(out)}; accepted for {type(first).__name__} are 0 and no out")
    for other in tensors:
        if type(other) is not type(first):
            raise TypeError(
                f"tensors: hold {type(first).__name__} and {type(other).__name__}; accepted are scores of one kind"
            )
    if not first._batch_shape():
        raise ValueError("tensors: are scores of one example without a batch; accepted are batches (B, ...)")
    steps = max(one._steps for one in tensors)
    ways = {_way(one) for one in tensors}
    masked = len(ways) > 1 or (ways == {(False, False)} and any(one._steps != steps for one in tensors))
    alike = [one._alike(steps, masked) for one in tensors]
    rows = [one._each() for one in alike]
    changes = {name: _joined(name, [getattr(one, name) for one in alike], rows) for name in first.field_names}
    return alike[0]._with(**changes)


def _way(scores: object) -> tuple[bool, ...]:
    """How scores say which positions count."""
    return tuple(getattr(scores, name, None) is not None for name in ("mask", "lengths"))


def _joined(name: str, given: list[Any], rows: list[dict[str, Tensor]]) -> Any:
    if any(name in each for each in rows):
        if not all(name in each for each in rows):
            raise ValueError(f"tensors: some have {name} of their own and some have not; accepted are all or none")
        return torch.cat([each[name] for each in rows])
    first = given[0]
    for other in given[1:]:
        if other is not first and not _same(first, other):
            raise ValueError(
                f"tensors: have different {name}, which examples share (did weights change in between?); "
                "accepted are scores of one scorer"
            )
    return first


def _same(first: Any, other: Any) -> bool:
    if isinstance(first, Tensor) and isinstance(other, Tensor):
        return first.shape == other.shape and bool(torch.equal(first, other))
    return type(first) is type(other) and bool(first == other)
