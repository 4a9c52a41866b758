"""The recursions in log space and float64: slower, and right on every input.

With ``a_t(k)`` the log mass of the prefixes that end in ``k`` at ``t``, ``b_t(j)`` that of the suffixes after ``j``,

    a_t(k) = e_t(k) + log sum_j exp(a_{t-1}(j) + W_t(j, k)),    b_{t-1}(j) = log sum_k exp(W_t(j, k) + e_t(k) + b_t(k)).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass.ops.chain.structure import Chain, log_sum_exp, row

Gradients = tuple[Tensor, Tensor, Tensor, Tensor]
"""What belongs to emissions, transitions, start and end."""

BLOCK = 1 << 20
"""Scores of pairs, ``(steps, B, K, K)``, to be held at a time."""


def prefixes(chain: Chain) -> Tensor:
    """``a``, time-major ``(T, B, K)``."""
    emissions = chain.emissions.transpose(0, 1)
    mass = torch.empty_like(emissions, memory_format=torch.contiguous_format)
    mass[0] = emissions[0] + row(chain.start)
    for t in range(1, len(mass)):
        mass[t] = log_sum_exp(mass[t - 1, :, :, None] + chain.step(t), 1) + emissions[t]
    return mass


def suffixes(chain: Chain) -> Tensor:
    """``b``, time-major ``(T, B, K)``; at and past the last position it is the end score."""
    emissions = chain.emissions.transpose(0, 1)
    kept = chain.inside().t()[..., None]
    mass = torch.empty_like(emissions, memory_format=torch.contiguous_format)
    mass[-1] = row(chain.end)
    for t in range(len(mass) - 1, 0, -1):
        before = log_sum_exp(chain.step(t) + (emissions[t] + mass[t])[:, None, :], 2)
        mass[t - 1] = torch.where(kept[t], before, row(chain.end))
    return mass


def prefixes_and_suffixes(chain: Chain) -> tuple[Tensor, Tensor]:
    """Both at once where one matrix serves all steps: the suffixes are the prefixes of the reversed chain.

    What the reversed chain finds past the length of a sequence is of no meaning.
    """
    if chain.transitions.dim() == 4:
        return prefixes(chain), suffixes(chain)
    emissions = chain.emissions.transpose(0, 1)
    steps, batch, num_labels = emissions.shape
    place = torch.arange(steps, device=emissions.device)[:, None]
    last = torch.full((batch,), steps - 1, device=place.device) if chain.lengths is None else chain.lengths - 1
    mirror = (last - place).remainder(steps)[..., None].expand(steps, batch, num_labels)
    both = torch.stack([emissions, emissions.gather(0, mirror)], 1)
    matrix = chain.step(1)
    matrices = torch.stack([matrix, matrix.mT])
    before = torch.empty_like(both)  # the masses without the emission at their own position
    before[0, 0], before[0, 1] = row(chain.start), row(chain.end)
    for t in range(1, steps):
        mass = before[t - 1] + both[t - 1]
        before[t] = log_sum_exp(mass[..., None] + matrices, 2)
    return before[:, 0] + both[:, 0], before[:, 1].gather(0, mirror)


def total(chain: Chain, prefix: Tensor) -> Tensor:
    """``log Z`` of each sequence ``(B,)``; 0 for an empty one."""
    batch, num_labels = prefix.shape[1:]
    final = chain.last()[None, :, None].expand(1, batch, num_labels)
    log_z = log_sum_exp(prefix.gather(0, final)[0] + row(chain.end), 1)
    return log_z if chain.lengths is None else torch.where(chain.lengths > 0, log_z, 0)


def relative(chain: Chain, labels: Tensor) -> Chain:
    """The chain whose emissions are measured from those of the gold ``labels``: nothing is left to cancel later."""
    kept = chain.inside()
    gold = chain.emissions.gather(2, torch.where(kept, labels, 0)[..., None])
    return chain._replace(emissions=chain.emissions - torch.where(gold.isfinite(), gold, 0))


def value(chain: Chain, labels: Tensor | None) -> Tensor:
    """``log Z``, or ``log Z - s(labels)``: +inf for labels that are forbidden."""
    chain = chain.double()
    batch, steps, _ = chain.emissions.shape
    if steps == 0 or batch == 0:
        return chain.emissions.new_zeros(batch)
    if labels is None:
        return total(chain, prefixes(chain))
    chain = relative(chain, labels)
    legal = chain.score(labels) != -torch.inf
    return torch.where(legal, beside_gold(chain, prefixes(chain), labels), torch.inf)


def beside_gold(chain: Chain, prefix: Tensor, labels: Tensor) -> Tensor:
    """``- log p(labels)``, ``(B,)``: nothing cancels, however small it is.

    Read backwards a chain is a Markov chain, ``p(y_t = j | y_{t+1}) ~ exp(a_t(j) + W(j, y_{t+1}))``, and minus the log
    of what this gives the gold label is ``log(1 + exp(others - own))``.
    """
    steps, batch, k = prefix.shape
    inside = chain.inside().t()
    gold = torch.where(inside, labels.t(), 0)[..., None]
    moves = chain.steps(1, steps).mT.expand(steps - 1, batch, k, k)  # [to, from]
    after = moves.gather(2, gold[1:, ..., None].expand(-1, -1, 1, k))[:, :, 0]
    ends = (torch.arange(steps, device=gold.device)[:, None] == chain.last())[..., None]
    joint = prefix + torch.where(ends, row(chain.end), torch.nn.functional.pad(after, (0, 0, 0, 0, 0, 1)))
    others = log_sum_exp(joint.scatter(2, gold, -torch.inf), 2) - joint.gather(2, gold)[..., 0]
    return torch.where(inside, torch.logaddexp(others, torch.zeros_like(others)), 0).sum(0)


class Posterior(NamedTuple):
    """Log masses of prefixes and suffixes, ``log Z``, and which rows have a finite one."""

    prefix: Tensor
    suffix: Tensor
    log_z: Tensor
    kept: Tensor  # (T, B, 1): inside the sequence, and the sequence has a legal labelling

    def unary(self) -> Tensor:
        """``P(y_t = k)``, time-major."""
        return torch.where(self.kept, (self.prefix + self.suffix - self.log_z[:, None]).exp(), 0)

    def pairs(self, chain: Chain, first: int, last: int) -> Tensor:
        """``P(y_{t-1} = j, y_t = k)`` for the positions ``first .. last - 1``, ``(steps, B, K, K)``."""
        arrival = chain.emissions.transpose(0, 1)[first:last] + self.suffix[first:last] - self.log_z[:, None]
        log_p = self.prefix[first - 1 : last - 1, :, :, None] + chain.steps(first, last)
        return torch.where(self.kept[first:last, :, :, None], (log_p + arrival[:, :, None, :]).exp_(), 0)


def posterior(chain: Chain) -> Posterior:
    """Everything the marginals are made of, for a chain in float64 with ``T >= 1``."""
    prefix, suffix = prefixes_and_suffixes(chain)
    log_z = total(chain, prefix)
    kept = chain.inside().t() & ~log_z.isinf()
    return Posterior(prefix, suffix, log_z, kept[..., None])


def like(total: Tensor, scores: Tensor) -> Tensor:
    """What is held for each sequence ``(B, ...)``, summed to the shape of the ``scores`` it belongs to."""
    if total.dim() > scores.dim():
        return total.sum(0)
    return total.sum(0, keepdim=True) if scores.shape[0] == 1 and total.shape[0] != 1 else total


def collect(chain: Chain, unary: Tensor, pairs: Callable[[int, int], Tensor] | None) -> Gradients:
    """Per-position quantities ``(T, B, K)`` and per-move ones, summed to the shapes of the inputs.

    ``pairs(first, last)`` gives those of the moves into the positions ``first .. last - 1``, ``(steps, B, K, K)``.
    """
    final = chain.last()[None, :, None].expand(1, *unary.shape[1:])
    first, last = unary[0].clone(), unary.gather(0, final)[0]
    moves = torch.zeros_like(chain.transitions)
    steps, batch, num_labels = unary.shape
    size = max(1, BLOCK // (batch * num_labels**2))
    if pairs is None:
        return unary.transpose(0, 1), moves, like(first, chain.start), like(last, chain.end)
    for low in range(1, steps, size):
        high = min(low + size, steps)
        block = pairs(low, high)
        if moves.dim() == 4:
            moves[:, low - 1 : high - 1] = like(block.transpose(0, 1), moves)
        else:
            moves += like(block.sum(0), moves)
    return unary.transpose(0, 1), moves, like(first, chain.start), like(last, chain.end)


def gold_indicators(chain: Chain, labels: Tensor, weight: Tensor) -> Gradients:
    """``weight`` at every position and move of the gold labelling: the gradient of ``sum(weight * s(labels))``."""
    kept = chain.inside()
    labels = torch.where(kept, labels, 0)
    ones = weight[:, None] * kept
    unary = torch.zeros_like(chain.emissions).scatter_(2, labels[..., None], ones[..., None])
    num_labels = unary.shape[2]
    where, ones = labels[:, :-1] * num_labels + labels[:, 1:], ones[:, 1:]
    if chain.transitions.dim() == 2:
        moves = ones.new_zeros(num_labels**2).index_add_(0, where.flatten(), ones.flatten())
    elif chain.transitions.dim() == 3:
        moves = like(ones.new_zeros(len(ones), num_labels**2).scatter_add_(1, where, ones), chain.transitions)
    else:
        moves = ones.new_zeros(*ones.shape, num_labels**2).scatter_(2, where[..., None], ones[..., None])
        moves = like(moves, chain.transitions)
    parts = collect(chain, unary.transpose(0, 1), None)
    return parts[0], moves.view(chain.transitions.shape), parts[2], parts[3]


def gradient(grad: Tensor, chain: Chain, labels: Tensor | None) -> Gradients:
    """The gradient of ``sum(grad * value)``: the marginals, less the gold labelling where there is one.

    A row without a legal labelling, or whose gold labelling is forbidden, has gradient zero.
    """
    chain, weight = chain.double(), grad.double()
    if chain.emissions.shape[0] == 0 or chain.emissions.shape[1] == 0:
        return tuple(torch.zeros_like(part) for part in chain[:4])  # type: ignore[return-value]
    if labels is not None:
        weight = torch.where(chain.score(labels) == -torch.inf, 0, weight)
        chain = relative(chain, labels)
    mass = posterior(chain)

    def pairs(first: int, last: int) -> Tensor:
        return mass.pairs(chain, first, last).mul_(weight[:, None, None])

    parts = collect(chain, mass.unary() * weight[:, None], pairs)
    if labels is None:
        return parts
    gold = gold_indicators(chain, labels, torch.where(mass.log_z.isinf(), 0, weight))
    return tuple(part.sub_(own) for part, own in zip(parts, gold, strict=True))  # type: ignore[return-value]


def curvature(grad: Tensor, directions: Gradients, chain: Chain, labels: Tensor | None) -> tuple[Tensor, Gradients]:
    """The derivatives of ``<gradient(grad), directions>``: with ``V(y)`` the score of ``y`` under the directions,

    ``E[V] - V(gold)`` of each row for ``grad``, and ``grad * Cov(indicator, V)`` for the chain's parts. ``f_t(k)`` is
    the mean of ``V`` over the prefixes that end in ``k``, ``g_t(j)`` over the suffixes after ``j``.
    """
    chain, weight = chain.double(), grad.double()
    batch, steps, _ = chain.emissions.shape
    if batch == 0 or steps == 0:
        return torch.zeros_like(weight), tuple(torch.zeros_like(part) for part in chain[:4])  # type: ignore[return-value]
    ahead = Chain(*directions, chain.lengths).double()
    mass = posterior(chain)
    inner = chain.inside().t()[..., None]
    slope = torch.where(inner, ahead.emissions.transpose(0, 1), 0)
    before = [slope[0] + row(ahead.start)]
    for t in range(1, steps):
        arrive = (chain.emissions[:, t] - mass.prefix[t])[:, None, :]
        share = (mass.prefix[t - 1, :, :, None] + chain.step(t) + arrive).exp()
        share = torch.where((inner[t] & (mass.prefix[t] > -torch.inf))[:, None, :], share, 0)
        before.append(slope[t] + (share * (before[-1][:, :, None] + ahead.step(t))).sum(1))
    after = [row(ahead.end).expand(batch, -1)] * steps
    for t in range(steps - 1, 0, -1):
        leave = (chain.emissions[:, t] + mass.suffix[t])[:, None, :] - mass.suffix[t - 1][:, :, None]
        share = (chain.step(t) + leave).exp()
        share = torch.where((inner[t] & (mass.suffix[t - 1] > -torch.inf))[:, :, None], share, 0)
        mean = (share * (ahead.step(t) + (slope[t] + after[t])[:, None, :])).sum(2)
        after[t - 1] = torch.where(inner[t], mean, row(ahead.end))
    unary = mass.unary()
    before_all, after_all = torch.stack(before), torch.stack(after)
    spread = before_all + after_all
    expected = (unary[0] * spread[0]).sum(1)
    own = torch.zeros_like(expected)
    if labels is not None:
        legal = chain.score(labels) != -torch.inf
        weight = torch.where(legal, weight, 0)
        expected = torch.where(legal, expected, 0)
        own = torch.where(legal & mass.kept[0, :, 0], ahead.score(labels), 0)

    def covariances(first: int, last: int) -> Tensor:
        through = before_all[first - 1 : last - 1, :, :, None] + ahead.steps(first, last)
        through = through + (slope[first:last] + after_all[first:last] - expected[:, None])[:, :, None, :]
        return mass.pairs(chain, first, last) * through * weight[:, None, None]

    by_label = unary * (spread - expected[:, None]) * weight[:, None]
    return expected - own, collect(chain, by_label, covariances)
