"""The table of a chain's transitions that the scaled recursions share."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch

from torch_multiclass.ops.chain.arrays import NUMBERS, Array, numbers, quiet
from torch_multiclass.ops.chain.structure import Chain

SAFE = {torch.float32: 33.0, torch.float64: 330.0}
"""How many nats the transitions may span for the recursion to be right whatever the emissions."""


class Weights(NamedTuple):
    """Transitions ``(K, K)``, start and end, of which the largest entry is 1."""

    dtype: torch.dtype
    log: Array  # flat, one after the other, in float64: what is added up step after step has no error of its own
    moves: Array
    start: Array
    end: Array
    top: tuple[float, float, float]  # what was taken out of transitions, start and end
    span: float  # between the largest and the smallest finite entry
    forbids: bool  # whether an entry is -inf

    @property
    def log_moves(self) -> Array:
        """``(K, K)``."""
        return self.log[: self.moves.size].reshape(self.moves.shape)


@quiet
def tabulate(chain: Chain, dtype: torch.dtype) -> Weights:
    """The table of a chain with one transition matrix, its parts each or all together brought down to 0 at most."""
    k = chain.emissions.shape[2]
    log = np.concatenate([numbers(part).ravel() for part in chain[1:4]], dtype=np.float64)
    low, high = float(np.minimum.reduce(log)), float(np.maximum.reduce(log))
    forbids = low == -math.inf
    if k > 1 and high - low <= SAFE[torch.float32]:  # with one label, nothing but ones is left
        top = (high, high, high)
        log -= high
    else:
        parts = log[: k * k], log[k * k : -k], log[-k:]
        first, second, third = (float(part.max()) for part in parts)
        top = first, second, third
        for part, high in zip(parts, top, strict=True):
            part -= high
        low, high = float(np.where(log == -math.inf, 0, log).min()), 0.0
    prob = np.exp(log).astype(NUMBERS[dtype], copy=False)
    moves = prob[: k * k].reshape(k, k)
    return Weights(dtype, log, moves, prob[k * k : -k], prob[-k:], top, high - low, forbids)
