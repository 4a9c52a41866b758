"""What a chain is made of, as every recursion here sees it.

Emissions ``(B, T, K)``, transitions ``[from, to]`` of shape ``(K, K)``, ``(B, K, K)`` (one matrix a sequence) or
``(B | 1, T-1, K, K)`` (one matrix a step), start and end ``(K,)`` or ``(B, K)``, lengths ``(B,)`` or None (all ``T``).
"""

from __future__ import annotations

import torch
from torch import Tensor


def step(transitions: Tensor, t: int) -> Tensor:
    """The matrices ``(B | 1, K, K)`` of the move from position ``t-1`` to position ``t``."""
    if transitions.dim() == 4:
        return transitions[:, t - 1]
    return transitions if transitions.dim() == 3 else transitions[None]


def steps_between(transitions: Tensor, first: int, last: int) -> Tensor:
    """The matrices ``(last - first | 1, B | 1, K, K)`` of the moves into the positions ``first .. last - 1``."""
    if transitions.dim() == 4:
        return transitions[:, first - 1 : last - 1].transpose(0, 1)
    return transitions[None] if transitions.dim() == 3 else transitions[None, None]


def inside(emissions: Tensor, lengths: Tensor | None) -> Tensor:
    """``(B, T)``: whether a position lies inside its sequence."""
    batch, steps = emissions.shape[:2]
    if lengths is None:
        return emissions.new_ones((batch, steps), dtype=torch.bool)
    return torch.arange(steps, device=emissions.device) < lengths[:, None]


def last_position(emissions: Tensor, lengths: Tensor | None) -> Tensor:
    """``(B,)``: the last position of each sequence, 0 for an empty one."""
    if lengths is None:
        lengths = torch.full(emissions.shape[:1], emissions.shape[1], device=emissions.device)
    return (lengths - 1).clamp_min(0)


def row(scores: Tensor) -> Tensor:
    """Start or end scores as ``(B | 1, K)``."""
    return scores if scores.dim() == 2 else scores[None]


def like(total: Tensor, scores: Tensor) -> Tensor:
    """A gradient held for each sequence ``(B, ...)``, summed to the shape of the ``scores`` it belongs to."""
    if total.dim() > scores.dim():
        return total.sum(0)
    return total.sum(0, keepdim=True) if scores.shape[0] == 1 and total.shape[0] != 1 else total


def pair_index(labels: Tensor, num_labels: int) -> Tensor:
    """``(B, T-1)``: where the moves between neighbouring ``labels`` stand in a flattened ``(K, K)`` matrix."""
    return labels[:, :-1] * num_labels + labels[:, 1:]


def transition_scores(transitions: Tensor, labels: Tensor) -> Tensor:
    """``(B, T)``: the score of the move into each position of ``labels (B, T)``; of no meaning at the first."""
    where = labels.roll(1, 1) * transitions.shape[-1] + labels
    if transitions.dim() == 2:
        return transitions.flatten().index_select(0, where.flatten()).view_as(where)
    if transitions.dim() == 3:
        return transitions.expand(labels.shape[0], -1, -1).flatten(1).gather(1, where)
    moves = torch.nn.functional.pad(transitions, (0, 0, 0, 0, 1, 0)).expand(labels.shape[0], -1, -1, -1)
    return moves.flatten(2).gather(2, where[..., None])[..., 0]


def path_score(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor | None, labels: Tensor
) -> Tensor:
    """``s(y)`` of each labelling, ``(B,)``; labels past the length count for nothing. Differentiable."""
    batch, steps, _ = emissions.shape
    if steps == 0:
        return emissions.new_zeros(batch) + emissions.sum((1, 2))
    if lengths is None:
        unary = emissions.gather(2, labels[..., None])[..., 0]
        later = torch.arange(steps, device=labels.device) > 0
        moves = torch.where(later, transition_scores(transitions, labels), 0)
        first = row(start).expand(batch, -1).gather(1, labels[:, :1])
        last = row(end).expand(batch, -1).gather(1, labels[:, -1:])
        return unary.sum(1) + moves.sum(1) + (first + last)[:, 0]
    kept = inside(emissions, lengths)
    moved = kept & (torch.arange(steps, device=kept.device) > 0)
    labels = torch.where(kept, labels, 0)
    final = labels.gather(1, last_position(emissions, lengths)[:, None])
    unary = torch.where(kept, emissions.gather(2, labels[..., None])[..., 0], 0).sum(1)
    moves = torch.where(moved, transition_scores(transitions, labels), 0).sum(1)
    first = row(start).expand(batch, -1).gather(1, labels[:, :1])[:, 0]
    last = row(end).expand(batch, -1).gather(1, final)[:, 0]
    return torch.where(kept[:, 0], unary + moves + first + last, 0)
