"""One label among K: the best class, the best rival of a label, the log-sum. Scores ``(*, K)``, labels ``(*)``."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_CHUNKED_FROM = 256  # classes; below, one masked copy is as cheap as two passes over chunks


def pick(scores: Tensor, labels: Tensor) -> Tensor:
    """The score of each label, ``f_y``: ``(*, K)`` and ``(*)`` to ``(*)``."""
    return scores.gather(-1, labels.unsqueeze(-1)).squeeze(-1)


def best_class(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The best score and the lowest class that has it, ``(*, 1)`` each."""
    if scores.shape[-1] < _CHUNKED_FROM:
        return scores.max(-1, keepdim=True)
    best = _best_by_chunks(scores, None)
    return scores.gather(-1, best), best


def best_of_rivals(scores: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
    """The best score of another class than the label ``(*, 1)``, and the lowest class that has it, ``(*, 1)`` each.

    Where there is none but ``-inf`` any class may be named.
    """
    if scores.shape[-1] < _CHUNKED_FROM:
        return scores.scatter(-1, label, -math.inf).max(-1, keepdim=True)
    best = _best_by_chunks(scores, label)
    return scores.gather(-1, best).masked_fill_(best == label, -math.inf), best


def best_rival(scores: Tensor, label: Tensor) -> Tensor:
    """The lowest class among the best other than the label, ``(*, 1)`` each. Needs ``K >= 2``."""
    best = best_of_rivals(scores.detach(), label)[1]
    # where every rival is -inf, the masked label may have won the tie: the lowest rival is class 0 or 1
    return torch.where(best == label, (label == 0).to(best.dtype), best)


def _best_by_chunks(scores: Tensor, label: Tensor | None) -> Tensor:
    num_classes = scores.shape[-1]
    # `amax` runs at memory speed and `argmax` six times slower: take the maximum of each chunk, repair the label's
    # own chunk, and look for the index only within the chunk that won.
    width = math.isqrt(num_classes)
    whole = num_classes // width * width
    within = torch.arange(width, device=scores.device)

    def chunk(index: Tensor) -> tuple[Tensor, Tensor]:
        classes = (index * width + within).clamp(max=num_classes - 1)
        values = scores.gather(-1, classes)
        return classes, values if label is None else values.masked_fill(classes == label, -math.inf)

    maxima = scores[..., :whole].reshape(*scores.shape[:-1], whole // width, width).amax(-1)
    if whole < num_classes:
        maxima = torch.cat([maxima, scores[..., whole:].amax(-1, keepdim=True)], -1)
    if label is not None:
        own = label // width
        maxima = maxima.scatter(-1, own, chunk(own)[1].amax(-1, keepdim=True))
    classes, values = chunk(maxima.argmax(-1, keepdim=True))
    return classes.gather(-1, values.argmax(-1, keepdim=True))


def power_of(hinge: Tensor, power: float) -> Tensor:
    """``hinge ** power`` for a non-negative hinge, with finite derivatives at 0 for powers 1 and 2."""
    if power == 1:
        return hinge
    return hinge.square() if power == 2 else hinge.pow(power)


def log_sum_exp(scores: Tensor) -> Tensor:
    """``log sum_y e^{f_y}``, ``-inf`` with zero gradient where every score is ``-inf``: ``(*, K)`` to ``(*)``."""
    top = scores.detach().amax(-1, keepdim=True)
    top = torch.where(top.isinf(), 0.0, top)  # so that a shift by it does not make NaN
    total = (scores - top).exp().sum(-1)
    dead = total == 0
    log_sum = torch.where(dead, -math.inf, torch.where(dead, 1.0, total).log())
    return log_sum + top.squeeze(-1)
