"""Rooted forests by the parents of their nodes, -1 for a root: how deep a node is, and masked nodes taken out."""

from __future__ import annotations

import torch
from torch import Tensor


def _jumps(steps: int) -> int:
    """How often a way up is doubled until it is longer than a tree is high: what a graph of any size takes is fixed."""
    return steps.bit_length() if type(steps) is int else _HIGHEST.bit_length()


_HIGHEST = 1 << 20
"""Up to so many nodes a tree may have in a graph that is captured for any number of them."""


def _above(parents: Tensor) -> Tensor:
    """Parents ``(*, T + 1)`` with one node more, past every root, which stays where it is."""
    *batch, steps = parents.shape
    return torch.cat([torch.where(parents < 0, steps, parents), parents.new_full((*batch, 1), steps)], -1)


def depths(parents: Tensor) -> Tensor:
    """How far each node ``(*, T)`` is from its root; -1 for one that no root is above, on a cycle or below one."""
    steps = parents.shape[-1]
    # jumps of 1, 2, 4, ... nodes up
    above = _above(parents)
    depth = (above != steps).long()
    for _ in range(_jumps(steps)):
        depth = depth + depth.gather(-1, above)
        above = above.gather(-1, above)
    return torch.where(above == steps, depth, -1)[..., :-1]


def joined(parents: Tensor, mask: Tensor) -> Tensor:
    """Parents with the masked nodes taken out: a node hangs on the nearest node above it that counts."""
    steps = parents.shape[-1]
    above = _above(parents)
    stops = torch.nn.functional.pad(mask, (0, 1), value=True)
    for _ in range(_jumps(steps)):
        above = torch.where(stops.gather(-1, above), above, above.gather(-1, above))
    return torch.where(above == steps, -1, above)[..., :-1]
