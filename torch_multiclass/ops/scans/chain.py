"""Chains: Viterbi, ``log Z`` and the probabilities of labels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_multiclass.checks import IGNORE
from torch_multiclass.ops.chain.structure import Chain, row
from torch_multiclass.ops.scans.base import NEVER, centred, log_total, probability, scan, times


def best_labels(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    allowed: Tensor | None,
) -> Tensor:
    """As the operator ``chain_best_labels``."""
    chain = Chain(emissions, transitions, start, end, lengths).work()
    if allowed is None:
        return _viterbi(chain)
    return torch.stack([_viterbi(chain), _viterbi(_only(chain, allowed))], 1)


def _only(chain: Chain, allowed: Tensor) -> Chain:
    return chain.plus(torch.where(allowed, 0.0, NEVER).to(chain.emissions.dtype))


def _viterbi(chain: Chain) -> Tensor:
    position, inside = times(chain.emissions, chain.lengths)

    def forward(v: Tensor, at: Tensor, inside: Tensor, t: Tensor, moves: Tensor) -> tuple[Tensor, ...]:
        sums = v[:, :, None] + moves
        moved = torch.where(t == 0, v, sums.amax(1)) + at
        stay = torch.arange(v.shape[1], device=v.device).expand_as(v)
        before = torch.where(inside[:, None] & (t > 0), sums.argmax(1), stay)
        return torch.where(inside[:, None], centred(moved, [1]), v), before

    def backward(label: Tensor, before: Tensor) -> tuple[Tensor, ...]:
        return before.gather(1, label[:, None])[:, 0], label

    last, before = _along(forward, chain, row(chain.start), (inside, position))
    _, labels = scan(backward, [(last + row(chain.end)).argmax(1)], [before], reverse=True)
    return torch.where(inside, labels, IGNORE).t().contiguous()


def _along(step: Any, chain: Chain, first: Tensor, others: tuple[Tensor, ...], reverse: bool = False) -> list[Tensor]:
    """The scan of a step that takes values ``(B, K)``, emissions, ``others`` and the matrices of moves."""
    batch, _, k = chain.emissions.shape
    along = [chain.emissions.transpose(0, 1), *others]
    values = first.expand(batch, k)
    if chain.transitions.dim() < 4:
        return scan(step, [values], along, [chain.transitions], reverse)
    moves = torch.nn.functional.pad(chain.transitions.transpose(0, 1), (0, 0, 0, 0, 0, 0, 1, 0))
    return scan(step, [values], [*along, moves], [], reverse)


def value(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    labels: Tensor | None,
    method: str,
) -> Tensor:
    """As the operator ``chain_value``."""
    chain = Chain(emissions, transitions, start, end, lengths)
    total = _log_partition(chain.double())
    if labels is not None:
        own = chain.double().score(labels) if labels.dim() == 2 else _log_partition(_only(chain.double(), labels))
        total = total - own
    return total.to(chain.work().emissions.dtype)


def _log_partition(chain: Chain) -> Tensor:
    last, _ = _forward(chain)
    _, inside = times(chain.emissions, chain.lengths)
    return torch.where(inside.any(0), log_total(last + row(chain.end), [1]), 0.0)


def _forward(chain: Chain) -> list[Tensor]:
    """The log-sums over the labellings up to each position that end in each label, ``(B, K)`` and ``(T, B, K)``."""
    position, inside = times(chain.emissions, chain.lengths)

    def step(v: Tensor, at: Tensor, inside: Tensor, t: Tensor, moves: Tensor) -> tuple[Tensor, ...]:
        moved = torch.where(t == 0, v, log_total(v[:, :, None] + moves, [1])) + at
        v = torch.where(inside[:, None], moved, v)
        return v, v

    return _along(step, chain, row(chain.start), (inside, position))


def _backward(chain: Chain) -> Tensor:
    """The log-sums over what follows each label at each position, ``(T, B, K)``."""
    _, inside = times(chain.emissions, chain.lengths)

    def step(v: Tensor, at: Tensor, inside: Tensor, moves: Tensor) -> tuple[Tensor, ...]:
        moved = log_total((v + at)[:, None] + moves, [2])
        return torch.where(inside[:, None], moved, v), v

    return _along(step, chain, row(chain.end), (inside,), reverse=True)[1]


def gradient(
    grad: Tensor,
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    labels: Tensor | None,
    method: str,
) -> tuple[Tensor, ...]:
    """As the operator ``chain_gradient``, for emissions without a target: the others are NaN."""
    chain = Chain(emissions, transitions, start, end, lengths).double()
    _, inside = times(emissions, lengths)
    last, before = _forward(chain)
    log_z = log_total(last + row(chain.end), [1])
    share = probability(before + _backward(chain), log_z[:, None])
    share = torch.where(inside[..., None], share * grad[:, None], 0.0).transpose(0, 1)
    unknown = [torch.full_like(part, torch.nan) for part in (transitions, start, end)]
    return share.to(emissions.dtype).contiguous(), *unknown
