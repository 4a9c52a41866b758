"""Chains with a score for three labels in a row: the state is a pair of neighbouring labels ``(j, k)``.

The pair of the first label has ``j = 0``, as if that stood before it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad

from torch_multiclass.checks import IGNORE
from torch_multiclass.ops.chain.structure import Chain, row
from torch_multiclass.ops.scans.base import NEVER, centred, log_total, probability, scan, times


def _forward(chain: Chain, second: Tensor, step: Callable[..., tuple[Tensor, ...]]) -> list[Tensor]:
    """The scan of a step from the pairs that the first position may have, ``(B, K, K)``."""
    batch, _, k = chain.emissions.shape
    position, inside = times(chain.emissions, chain.lengths)
    first = torch.arange(k, device=position.device)[:, None] == 0
    start = torch.where(first, row(chain.start)[:, None], NEVER).expand(batch, k, k)
    return scan(step, [start], [chain.emissions.transpose(0, 1), inside, position, _moves(chain)], [second])


def _moves(chain: Chain) -> Tensor:
    """``(T, B | 1, K, K)``, that into the first position of no meaning."""
    if chain.transitions.dim() == 4:
        return pad(chain.transitions.transpose(0, 1), (0, 0, 0, 0, 0, 0, 1, 0))
    return chain.step(1).expand(chain.emissions.shape[1], -1, -1, -1)


def _ending(pairs: Tensor, chain: Chain) -> Tensor:
    return pairs + row(chain.end)[:, None]


def best_labels(
    emissions: Tensor, transitions: Tensor, second: Tensor, start: Tensor, end: Tensor, lengths: Tensor | None
) -> Tensor:
    """As the operator ``second_order_best_labels``."""
    chain = Chain(emissions, transitions, start, end, lengths)
    k = chain.num_labels

    def forward(v: Tensor, at: Tensor, inside: Tensor, t: Tensor, pairs: Tensor, third: Tensor) -> tuple[Tensor, ...]:
        sums = v[..., None] + torch.where(t > 1, third, 0.0)  # (B, i, j, k)
        moved = torch.where(t == 0, v, sums.amax(1) + pairs) + at[:, None]
        return torch.where(inside[:, None, None], centred(moved, [1, 2]), v), sums.argmax(1)

    def backward(before: Tensor, label: Tensor, first: Tensor, inside: Tensor, t: Tensor) -> tuple[Tensor, ...]:
        at = first.flatten(1).gather(1, (before * k + label)[:, None])[:, 0]
        moves = inside & (t > 0)
        return torch.where(moves, at, before), torch.where(moves, before, label), label

    position, inside = times(emissions, lengths)
    pairs, first = _forward(chain, second, forward)
    last = _ending(pairs, chain).transpose(1, 2).flatten(1).argmax(1)  # the lowest last label, then that before it
    carried = [last % k, torch.div(last, k, rounding_mode="floor")]
    *_, labels = scan(backward, carried, [first, inside, position], reverse=True)
    return torch.where(inside, labels, IGNORE).t().contiguous()


def _messages(chain: Chain, second: Tensor) -> tuple[Tensor, Tensor]:
    def step(v: Tensor, at: Tensor, inside: Tensor, t: Tensor, pairs: Tensor, third: Tensor) -> tuple[Tensor, ...]:
        sums = log_total(v[..., None] + torch.where(t > 1, third, 0.0), [1]) + pairs
        v = torch.where(inside[:, None, None], torch.where(t == 0, v, sums) + at[:, None], v)
        return v, v

    last, found = _forward(chain, second, step)
    return log_total(_ending(last, chain), [1, 2]), found


def _after(chain: Chain, second: Tensor) -> Tensor:
    """The log-sums over what follows each pair, ``(T, B, K, K)``."""
    batch, _, k = chain.emissions.shape
    position, inside = times(chain.emissions, chain.lengths)

    def step(v: Tensor, at: Tensor, inside: Tensor, t: Tensor, pairs: Tensor, third: Tensor) -> tuple[Tensor, ...]:
        own = (v + at[:, None] + pairs)[:, None] + torch.where(t > 1, third, 0.0)  # (B, i, j, k)
        return torch.where(inside[:, None, None], log_total(own, [3]), v), v

    end = row(chain.end)[:, None].expand(batch, k, k)
    return scan(step, [end], [chain.emissions.transpose(0, 1), inside, position, _moves(chain)], [second], True)[1]


def value(
    emissions: Tensor, transitions: Tensor, second: Tensor, start: Tensor, end: Tensor, lengths: Tensor | None
) -> Tensor:
    """As the operator ``second_order_value``."""
    log_z, _ = _messages(Chain(emissions, transitions, start, end, lengths).double(), second.double())
    _, inside = times(emissions, lengths)
    return torch.where(inside.any(0), log_z, 0.0).to(emissions.dtype)


def gradient(
    grad: Tensor,
    emissions: Tensor,
    transitions: Tensor,
    second: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
) -> tuple[Tensor, ...]:
    """As the operator ``second_order_gradient``, for emissions: the others are NaN."""
    chain = Chain(emissions, transitions, start, end, lengths).double()
    log_z, before = _messages(chain, second.double())
    share = probability(before + _after(chain, second.double()), log_z[:, None, None]).sum(2)
    _, inside = times(emissions, lengths)
    share = torch.where(inside[..., None], share * grad[:, None], 0.0).transpose(0, 1).to(emissions.dtype)
    return share.contiguous(), *(torch.full_like(part, torch.nan) for part in (transitions, second, start, end))
