r"""Targets that leave labels open: ``log \sum_y e^{s(y)} - log \sum_{y agrees} e^{s(y)}``, and the best that agrees.

A target is a set of labels for each position, ``(B, T, K)`` bool; a labelling agrees if each of its labels is in its
set. Where values can be read, one labelling is enough for a sequence whose sets hold one label each, and a second
recursion runs only for the others. Elsewhere both run side by side as one batch of twice the size.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torch_multiclass.checks import IGNORE
from torch_multiclass.ops.chain import engine, logspace
from torch_multiclass.ops.chain.engine import Solution
from torch_multiclass.ops.chain.logspace import Gradients
from torch_multiclass.ops.chain.structure import Chain
from torch_multiclass.ops.chain.viterbi import best_labels as decode

SHARED = (2, 2, 1, 1)
"""The dimensions of emissions, transitions, start and end that sequences may share; one more means one a sequence."""


def solve(chain: Chain, target: Tensor | None, method: str) -> Solution:
    """``log Z``; or its difference to the score of a labelling ``(B, T)``, or to the log-sum over those that agree."""
    if target is None or target.dim() == 2:
        return engine.solve(chain, target, method)
    return Rows(chain, target, method) if readable(chain) else Twice(chain, target)


def readable(chain: Chain) -> bool:
    """Whether an operator may read values."""
    return chain.emissions.device.type == "cpu"


def agreeing(chain: Chain, allowed: Tensor) -> Chain:
    """The chain with every label that is not allowed forbidden."""
    return chain._replace(emissions=torch.where(allowed, chain.emissions, -torch.inf))


class Rows:
    """Measured from the best labelling that agrees; the other labellings that agree counted where there are any."""

    def __init__(self, chain: Chain, allowed: Tensor, method: str) -> None:
        labels, self.rows = best_that_agrees(chain.work(), allowed)
        self.free = engine.solve(chain, labels, method)
        self.value = self.free.value
        if len(self.rows) > 0:
            self.rest = engine.solve(agreeing(chain, allowed).rows(self.rows), labels[self.rows], method)
            dead = self.rest.value == torch.inf
            every = (allowed | ~chain.inside()[..., None])[self.rows].flatten(1).all(1)  # all labellings agree
            value = torch.where(every, 0, (self.value[self.rows] - self.rest.value).clamp_min(0))
            self.value[self.rows] = torch.where(dead, torch.inf, value)
            self.flat = dead | every

    def gradient(self, grad: Tensor) -> Gradients:
        """The gradient of ``sum(grad * value)``."""
        if len(self.rows) == 0:
            return self.free.gradient(grad)
        own = grad.clone()
        own[self.rows[self.flat]] = 0
        parts = self.free.gradient(own)
        for part, less, shared in zip(parts, self.rest.gradient(own[self.rows]), SHARED, strict=True):
            if part.dim() > shared and len(part) > 1:
                part[self.rows] -= less.to(part.dtype)
            else:
                part -= less.to(part.dtype)
        return parts


class Twice:
    """Both recursions as one batch, in log space and float64, which reads no value."""

    def __init__(self, chain: Chain, allowed: Tensor) -> None:
        self.both = twice(chain, allowed)
        free, rest = logspace.value(self.both, None).chunk(2)
        self.dead = rest == -torch.inf
        self.value = torch.where(self.dead, torch.inf, (free - rest).clamp_min(0))

    def gradient(self, grad: Tensor) -> Gradients:
        """The gradient of ``sum(grad * value)``."""
        grad = torch.where(self.dead, 0, grad)
        return folded(logspace.gradient(torch.cat([grad, -grad]), self.both, None), len(grad))


def twice(chain: Chain, allowed: Tensor) -> Chain:
    """The chains, then those in which only the allowed labels are legal, as one batch."""
    batch = len(chain.emissions)
    parts = [
        torch.cat([free, rest]) if free.dim() > shared and len(free) == batch else free
        for free, rest, shared in zip(chain[:4], agreeing(chain, allowed)[:4], SHARED, strict=True)
    ]
    return Chain._make([*parts, None if chain.lengths is None else chain.lengths.repeat(2)])


def folded(parts: Gradients, batch: int) -> Gradients:
    """What belongs to `twice` a chain as what belongs to the chain."""
    return tuple(
        sum(part.chunk(2)) if part.dim() > shared and len(part) == 2 * batch else part
        for part, shared in zip(parts, SHARED, strict=True)
    )  # type: ignore[return-value]


def curvature(grad: Tensor, along: Gradients, chain: Chain, target: Tensor | None) -> tuple[Tensor, Gradients]:
    """As `logspace.curvature`, for targets of both kinds."""
    if target is None or target.dim() == 2:
        return logspace.curvature(grad, along, chain, target)
    dead = Twice(chain, target).dead
    grad = torch.where(dead, 0, grad)
    twofold = twice(chain._replace(**dict(zip(Chain._fields, along, strict=False))), torch.ones_like(target))
    by_grad, parts = logspace.curvature(torch.cat([grad, -grad]), twofold[:4], twice(chain, target), None)
    free, rest = by_grad.chunk(2)
    return torch.where(dead, 0, free - rest), folded(parts, len(grad))


def best_that_agrees(chain: Chain, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """The best labelling of each sequence that agrees, ``(B, T)``, and the rows where there is more than one."""
    single = (allowed.sum(2) == 1) | ~chain.inside()
    rows = (~single.all(1)).nonzero()[:, 0]
    labels = torch.where(chain.inside(), allowed.to(torch.uint8).argmax(2), IGNORE)
    if len(rows) > 0:
        found = decode(agreeing(chain, allowed).rows(rows))
        labels[rows] = torch.where(found < 0, labels[rows], found)
    return labels, rows


def best_labels(chain: Chain, allowed: Tensor) -> Tensor:
    """The best labelling of each sequence, and the best that agrees, ``(B, 2, T)``; -100 past its length."""
    if readable(chain):
        return torch.stack([decode(chain), best_that_agrees(chain, allowed)[0]], 1)
    return torch.stack(decode(twice(chain, allowed)).chunk(2), 1)


def measured(chain: Chain, allowed: Tensor) -> tuple[Chain, Tensor]:
    """The chain whose best labelling that agrees has score 0, unless it is forbidden; and that labelling."""
    if readable(chain):
        gold = best_that_agrees(chain, allowed)[0]
    else:
        gold = decode(agreeing(chain, allowed))
    score = chain.score(gold)
    return chain._replace(start=chain.start - torch.where(score.isinf(), 0, score)[:, None]), gold
