r"""What a labelling adds up on average, where the label of each position is drawn on its own.

A term of a score depends on one, two or three labels; with probabilities ``q`` of the labels at each position its mean
is ``\sum_k q_{tk} e_{tk}``, ``\sum_{jk} q_{t-1,j} q_{tk} W_{jk}`` and so on. What has no probability counts for
nothing, ``-\infty`` included. Beside each mean stands the probability of what the term forbids.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass.ops.chain.structure import Chain, row


class Expected(NamedTuple):
    """For the terms of a structure, in the order of its ``terms``."""

    means: Tensor
    """``(B, M)``, of what is not forbidden."""
    forbidden: Tensor
    """``(B, M)``: the probability of what is."""

    def where(self, exists: Tensor) -> Expected:
        """0 for terms that do not exist."""
        return Expected(*(torch.where(exists, part, 0.0) for part in self))

    def allowed(self) -> Expected:
        """The means given that nothing is forbidden, where that is possible."""
        rest = 1 - self.forbidden
        never = rest <= _LEFT
        return Expected(
            torch.where(never, 0.0, self.means / torch.where(never, 1.0, rest)),
            torch.where(never, self.forbidden, 0.0),
        )


_LEFT = 1e-6
"""What is left of a probability where rounding alone keeps it from 0."""


def joined(*parts: Expected) -> Expected:
    """Terms one after the other."""
    return Expected(torch.cat([part.means for part in parts], -1), torch.cat([part.forbidden for part in parts], -1))


def _split(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Scores with 0 where forbidden, and 1 there."""
    dead = scores == -torch.inf
    return torch.where(dead, 0.0, scores), dead.to(scores.dtype)


def of_labels(scores: Tensor, q: Tensor) -> Expected:
    """Scores ``(*, K)`` of labels with probabilities ``(*, K)``."""
    return Expected(*((part * q).sum(-1) for part in _split(scores)))


def of_pairs(moves: Tensor, before: Tensor, after: Tensor) -> Expected:
    """Scores ``(K, K)`` or ``(*, K, K)`` of two labels with probabilities ``(*, K)`` each."""
    if moves.dim() == 2:
        return Expected(*((before @ part * after).sum(-1) for part in _split(moves)))
    return Expected(*(((before.unsqueeze(-2) @ part).squeeze(-2) * after).sum(-1) for part in _split(moves)))


def of_triples(scores: Tensor, q: Tensor) -> Expected:
    """Scores ``(K, K, K)`` of three labels in a row, with probabilities ``(B, T, K)``."""
    k = scores.shape[0]

    def mean(part: Tensor) -> Tensor:
        of_two = (q[:, :-2] @ part.reshape(k, k * k)).view(len(q), -1, k, k)  # (B, T-2, through, to)
        mean: Tensor = ((q[:, 1:-1].unsqueeze(-2) @ of_two).squeeze(-2) * q[:, 2:]).sum(-1)
        return mean

    return Expected(*map(mean, _split(scores)))


def of_chain(chain: Chain, q: Tensor) -> Expected:
    """The terms of a chain as `Chain.terms` has them, ``(B, 2T + 1)``; ``q (B, T, K)``, anything past a length."""
    batch, steps, k = q.shape
    inside = chain.inside()
    if steps == 0:
        nothing = q.sum((1, 2))[:, None]
        return Expected(nothing, nothing)
    q = torch.where(inside[..., None], q, 0.0)
    transitions = chain.transitions
    if transitions.dim() == 3:
        transitions = transitions[:, None]
    elif transitions.dim() == 4:
        transitions = torch.where(inside[:, 1:, None, None], transitions, 0.0)
    last = q.gather(1, chain.last()[:, None, None].expand(batch, 1, k))[:, 0]
    start, end = of_labels(row(chain.start), q[:, 0]), of_labels(row(chain.end), last)
    terms = joined(
        of_labels(torch.where(inside[..., None], chain.emissions, 0.0), q),
        Expected(*(part[:, None] for part in start)),
        of_pairs(transitions, q[:, :-1], q[:, 1:]),
        Expected(*(part[:, None] for part in end)),
    )
    return terms.where(torch.cat([inside, inside, inside[:, :1]], 1))
