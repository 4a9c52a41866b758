"""The k best labellings of a chain, distinct and in order."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torch_multiclass.ops.chain.structure import Chain


def k_best(chain: Chain, k: int) -> tuple[Tensor, Tensor]:
    """Labels ``(B, k, T)`` and scores ``(B, k)``, best first; -100 and ``-inf`` where fewer exist.

    For every position and label, the ``k`` best prefixes that end there: a merge of the ``K`` ordered lists of the
    position before, so ``k`` maxima over ``(B, K, K)`` a step. Ties go to the lowest last label, then backwards.
    """
    emissions, lengths = chain.emissions, chain.lengths
    batch, steps, num_classes = emissions.shape
    labels = torch.full((batch, k, steps), -100, dtype=torch.long, device=emissions.device)
    scores = emissions.new_full((batch, k), -math.inf)
    if steps == 0:
        scores[:, 0] = 0.0  # the empty labelling
        return labels, scores
    if lengths is None:
        lengths = torch.full((batch,), steps, device=emissions.device)
    prefixes = emissions.new_full((batch, k, num_classes), -math.inf)
    prefixes[:, 0] = emissions[:, 0] + chain.start
    came_from: list[Tensor] = []  # for each step: (B, k, K), previous label * k + its rank
    for t in range(1, steps):
        new, source = _merge(prefixes, chain.step(t).expand(batch, -1, -1))
        prefixes = torch.where((t < lengths).view(-1, 1, 1), new + emissions[:, t].unsqueeze(1), prefixes)
        came_from.append(source)
    scores, source = _merge(prefixes, chain.end.expand(batch, -1).unsqueeze(2))
    scores, state = scores.squeeze(2), source.squeeze(2)  # (B, k)
    for t in range(steps - 1, -1, -1):
        inside = (t < lengths).unsqueeze(1)
        labels[:, :, t] = torch.where(inside & (scores > -math.inf), state // k, -100)
        if t:
            flat = came_from[t - 1].transpose(1, 2).flatten(1)  # (B, K * k), indexed as the states are
            state = torch.where(inside, flat.gather(1, state), state)
    empty = (lengths == 0).unsqueeze(1)
    alone = torch.arange(k, device=scores.device) == 0
    return labels, torch.where(empty, torch.where(alone, 0.0, -math.inf), scores)


def _merge(lists: Tensor, moves: Tensor) -> tuple[Tensor, Tensor]:
    """The ``k`` best of ``lists[b, r, i] + moves[b, i, j]`` over ``(r, i)``, each list ``lists[b, :, i]`` in order.

    Returns the values ``(B, k, J)`` and where they came from, ``i * k + r``.
    """
    batch, k, _ = lists.shape
    targets = moves.shape[2]
    heads = lists[:, 0].unsqueeze(2) + moves  # the best unused entry of every list, (B, i, j)
    rank = torch.zeros(heads.shape, dtype=torch.long, device=heads.device)
    nothing = torch.full_like(lists[:, :1], -math.inf)
    padded = torch.cat([lists, nothing], 1).transpose(1, 2).flatten(1)  # (B, i * (k+1))
    values = lists.new_empty(batch, k, targets)
    source = torch.empty(batch, k, targets, dtype=torch.long, device=lists.device)
    for r in range(k):
        best, i = heads.max(1, keepdim=True)  # the first of equal maxima: the lowest label
        used = rank.gather(1, i)
        values[:, r], source[:, r] = best.squeeze(1), (i * k + used.clamp(max=k - 1)).squeeze(1)
        if r + 1 < k:
            used = (used + 1).clamp_(max=k)  # an exhausted list offers -inf, and may be asked again
            rank.scatter_(1, i, used)
            following = padded.gather(1, (i * (k + 1) + used).flatten(1)).view_as(best)
            heads.scatter_(1, i, following + moves.gather(1, i))
    return values, source
