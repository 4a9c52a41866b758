"""The scores that a labelling adds up, one term for each emission, transition, start and end."""

from __future__ import annotations

import torch
from torch import Tensor


def path_terms(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor | None,
    end: Tensor | None,
    lengths: Tensor | None,
    labels: Tensor,
    mask: Tensor | None = None,
    index: Tensor | None = None,
) -> Tensor:
    """The terms of ``n`` labellings of each sequence, ``(B, n, 2T + 1)``: emissions, transitions, start, end.

    Two labellings are compared by the sum of the differences of their terms, where nothing large cancels.

    Shape:
        emissions ``(B, T, K)``, transitions ``(K, K)`` or ``(B or 1, T-1, K, K)``, start and end ``(K,)`` or ``(B, K)``
        or None, labels ``(B, n, T)``, any value where masked. Masked positions need the mask, the index of `compact`
        and the lengths; a left-aligned chain needs the lengths only; a full one neither. Terms that do not exist are 0.
    """
    batch, n, steps = labels.shape
    num_classes = emissions.shape[2]
    if steps == 0:
        return emissions.new_zeros(batch, n, 1)
    labels = labels.clamp(0, num_classes - 1)
    at = emissions.gather(2, labels.transpose(1, 2)).transpose(1, 2)
    order = labels if index is None else labels.gather(2, index.unsqueeze(1).expand_as(labels))
    pairs = order[..., :-1] * num_classes + order[..., 1:]
    between = _transition_terms(transitions, pairs, index)
    first = _label_terms(start, order[..., :1], emissions)
    if lengths is None:
        return torch.cat([at, between, first, _label_terms(end, order[..., -1:], emissions)], 2)
    final = (lengths - 1).clamp(min=0).view(batch, 1, 1).expand(batch, n, 1)
    last = _label_terms(end, order.gather(2, final), emissions)
    inside = (torch.arange(steps, device=labels.device) < lengths.unsqueeze(1)).unsqueeze(1)
    counts = inside if mask is None else mask.unsqueeze(1)
    exists = torch.cat([counts, inside[..., 1:], inside[..., :1], inside[..., :1]], 2)
    return torch.where(exists, torch.cat([at, between, first, last], 2), 0.0)


def centred(emissions: Tensor) -> Tensor:
    """``(B, T, K)`` emissions less the best of their position, which changes no comparison of labellings."""
    return below_best(emissions, (-1,))


def below_best(scores: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The scores less the largest over ``dims``, a constant; 0 where that is infinite."""
    best = scores.detach().amax(dims, keepdim=True)
    return scores - torch.where(best.isinf(), 0.0, best)


def _label_terms(scores: Tensor | None, labels: Tensor, like: Tensor) -> Tensor:
    if scores is None:
        return like.new_zeros(labels.shape)
    if scores.ndim == 1:
        return scores.index_select(0, labels.reshape(-1)).view(labels.shape)
    return scores.expand(labels.shape[0], -1).gather(1, labels.flatten(1)).view(labels.shape)


def _transition_terms(transitions: Tensor, pairs: Tensor, index: Tensor | None) -> Tensor:
    if transitions.ndim == 2:
        return transitions.reshape(-1).index_select(0, pairs.reshape(-1)).view(pairs.shape)
    batch, _, moves = pairs.shape
    size = transitions.shape[-1] ** 2
    into = torch.arange(moves, device=pairs.device).unsqueeze(0) if index is None else (index[:, 1:] - 1).clamp(min=0)
    flat = transitions.flatten(1).expand(batch, -1)
    return flat.gather(1, (into.unsqueeze(1) * size + pairs).flatten(1)).view(pairs.shape)
