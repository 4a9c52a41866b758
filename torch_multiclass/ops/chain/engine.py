"""Which recursion computes a chain, and what takes over for the sequences that it cannot vouch for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from torch_multiclass.ops.chain import logspace, native, plan
from torch_multiclass.ops.chain.arrays import PLAIN, array
from torch_multiclass.ops.chain.logspace import Gradients
from torch_multiclass.ops.chain.plan import Cut
from torch_multiclass.ops.chain.scaled import Scaled, scaled
from torch_multiclass.ops.chain.structure import Chain
from torch_multiclass.ops.chain.table import tabulate


class Solution(Protocol):
    """A chain's values ``(B,)`` in float64 and the way to their gradient."""

    value: Tensor

    def gradient(self, grad: Tensor) -> Gradients:
        """The gradient of ``sum(grad * value)``."""


class Logspace:
    """The last resort, and the only one that needs no reading of values: log space in float64."""

    def __init__(self, chain: Chain, labels: Tensor | None) -> None:
        self.chain, self.labels = chain, labels
        self.value = logspace.value(chain, labels)

    def gradient(self, grad: Tensor) -> Gradients:
        """The gradient of ``sum(grad * value)``."""
        return logspace.gradient(grad, self.chain, self.labels)


Rung = Callable[[Chain, "Tensor | None"], "Scaled | native.Pass"]


class Ladder:
    """Scaled recursions, each for the sequences that the ones before are not sound for, and log space at the end."""

    def __init__(self, chain: Chain, labels: Tensor | None, rungs: Sequence[Rung]) -> None:
        self.chain, self.labels, self.rungs = chain, labels, rungs
        self.first = rungs[0](chain, labels)
        self.value = self.first.value
        self.others: list[tuple[Tensor, Solution]] = []
        if not bool(array(self.first.sound).all()):
            rows, rest = self.hand_on(~self.first.sound)
            self.value[rows] = rest.value

    def hand_on(self, unsound: Tensor) -> tuple[Tensor, Solution]:
        """Leave the unsound sequences to the next rung."""
        rows = unsound.nonzero()[:, 0]
        self.first.forget(rows)
        labels = None if self.labels is None else self.labels[rows]
        chain = self.chain.rows(rows)
        rest = Ladder(chain, labels, self.rungs[1:]) if len(self.rungs) > 1 else Logspace(chain, labels)
        self.others.append((rows, rest))
        return self.others[-1]

    def gradient(self, grad: Tensor) -> Gradients:
        """The gradient of ``sum(grad * value)``; asked for once."""
        own = grad.clone() if self.others else grad
        for rows, _ in self.others:
            own[rows] = 0
        parts, sound = self.first.gradient(own)
        if sound is not None and not bool(sound.all()):
            self.first = self.rungs[0](self.chain, self.labels)
            for rows, _ in self.others:
                self.first.forget(rows)
            self.hand_on(~sound)
            return self.gradient(grad)
        wider = len(self.rungs) > 1 and self.chain.emissions.dtype != torch.float64  # the last rung is in float64
        if wider and isinstance(self.first, Scaled) and self.first.cancelled:
            return Ladder(self.chain, self.labels, self.rungs[-1:]).gradient(grad)
        for rows, solution in self.others:
            unary, *shared = solution.gradient(grad[rows])
            parts[0][rows] = unary.to(parts[0].dtype)
            for part, new in zip(parts[1:], shared, strict=True):
                part.add_(new)
        return parts


def solve(chain: Chain, labels: Tensor | None, method: str) -> Solution:
    """``log Z``, or ``log Z - s(labels)``, by the ``method`` that is asked for, or by the fastest that is sound."""
    rungs: list[Rung] = [*native.passes(chain)] if method == "auto" else []
    if not rungs and method != "log":
        rungs = plan_rungs(chain, method)
    return Ladder(chain, labels, rungs) if rungs else Logspace(chain, labels)


def plan_rungs(chain: Chain, method: str) -> list[Rung]:
    """The scaled recursions to try, in turn. None where only log space applies."""
    if not scalable(chain):
        return []
    batch, steps, num_labels = chain.emissions.shape
    straight = Cut(steps, 1, 0)
    small = method == "auto" and plan.small(batch, steps, num_labels)
    double = chain.emissions.dtype == torch.float64 or method == "scaled64" or small
    dtype = torch.float64 if double else torch.float32
    weights = tabulate(chain, dtype)
    if not math.isfinite(weights.span) or not all(map(math.isfinite, weights.top)):
        return []
    cuts = [straight]
    if method in ("auto", "chunked"):
        span = math.inf if weights.forbids else weights.span
        forced = method == "chunked"
        # What has not forgotten its start after a short warm-up gets a long one.
        short = min(32, 20 + 2 * math.ceil(weights.span)) if weights.forbids else 32
        tries = [plan.chunks(batch, steps, num_labels, span, dtype, most, forced=forced) for most in (short, 96)]
        cuts = [*dict.fromkeys(cut for cut in tries if cut.chunks > 1), straight]
    rungs: list[Rung] = [partial(scaled, weights=weights, cut=cut) for cut in cuts]
    return rungs if double else [*rungs, lambda c, y: scaled(c, y, tabulate(c, torch.float64), straight)]


def scalable(chain: Chain) -> bool:
    """Whether the scaled recursions take chains of this kind: plain tensors on the CPU, one matrix, some position."""
    emissions, transitions, start, end, lengths = chain
    if transitions.dim() > 2 or start.dim() > 1 or end.dim() > 1 or 0 in emissions.shape or not emissions.is_cpu:
        return False
    if any(type(part) not in PLAIN for part in chain if part is not None):
        return False
    return lengths is None or bool(array(lengths).any())
