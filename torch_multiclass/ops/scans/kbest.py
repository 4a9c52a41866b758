"""The k best labellings: of a chain the k best prefixes that end in each label are carried along.

Of other structures `torch_multiclass.ops.kbest` divides what is left, and asks which of several labellings comes first.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from torch_multiclass.checks import IGNORE
from torch_multiclass.ops.chain.structure import Chain, row
from torch_multiclass.ops.scans.base import NEVER, scan, times


def k_best(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor | None, k: int
) -> tuple[Tensor, Tensor]:
    """As the operator ``chain_k_best``."""
    chain = Chain(emissions, transitions, start, end, lengths).work()
    batch, _, labels = chain.emissions.shape
    position, inside = times(chain.emissions, lengths)

    def forward(v: Tensor, at: Tensor, inside: Tensor, t: Tensor, moves: Tensor) -> tuple[Tensor, ...]:
        best, source = _merged(v, moves, k)
        moved = torch.where(t == 0, v, best) + at[:, :, None]
        stay = torch.arange(labels * k, device=v.device).view(labels, k).expand_as(source)
        return torch.where(inside[:, None, None], moved, v), torch.where(inside[:, None, None] & (t > 0), source, stay)

    def backward(state: Tensor, source: Tensor) -> tuple[Tensor, ...]:
        return source.flatten(1).gather(1, state), torch.div(state, k, rounding_mode="floor")

    first = torch.arange(k, device=position.device) == 0
    begun = torch.where(first, row(chain.start)[..., None], NEVER).expand(batch, labels, k)
    moves = _moves(chain)
    last, source = scan(forward, [begun], [chain.emissions.transpose(0, 1), inside, position, moves])
    scores, state = _top((last + row(chain.end)[..., None]).flatten(1), k)
    _, found = scan(backward, [state], [source], reverse=True)  # (T, B, k)
    found = found.permute(1, 2, 0)
    kept = inside.t()[:, None] & (scores > NEVER)[..., None]
    alone = torch.where(first, 0.0, NEVER).to(scores.dtype)
    scores = torch.where(inside.any(0)[:, None], scores, alone)
    return torch.where(kept, found, IGNORE).contiguous(), scores


def first_best(labels: Tensor, scores: Tensor) -> Tensor:
    """As the operator ``first_best``."""

    def step(left: Tensor, label: Tensor) -> tuple[Tensor, ...]:
        lowest = torch.where(left, label, label.amax(1, keepdim=True) + 1).amin(1, keepdim=True)
        return left & (label == lowest), label  # a scan has to find something

    left, _ = scan(step, [scores == scores.amax(1, keepdim=True)], [labels.permute(2, 0, 1)], reverse=True)
    return left.int().argmax(1)


def _moves(chain: Chain) -> Tensor:
    """``(T, B | 1, K, K)``, that into the first position of no meaning."""
    if chain.transitions.dim() == 4:
        return pad(chain.transitions.transpose(0, 1), (0, 0, 0, 0, 0, 0, 1, 0))
    return chain.step(1).expand(chain.emissions.shape[1], -1, -1, -1)


def _merged(v: Tensor, moves: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The ``k`` best ways into each label, ``(B, K, k)``, of prefixes ``v (B, K, k)``, and which these were."""
    batch, labels = v.shape[:2]
    ways = v[..., None] + moves[:, :, None]  # (B, label before, rank, label)
    return _top(ways.reshape(batch, labels * k, labels).transpose(1, 2), k)


def _top(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The ``k`` largest of the last dimension in order, of equal ones the first one first."""
    found, at = scores.sort(dim=-1, descending=True, stable=True)
    return found[..., :k], at[..., :k]
