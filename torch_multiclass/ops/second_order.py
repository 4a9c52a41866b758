r"""Chains with a score for three labels in a row.

.. math::
    s(y) = start_{y_1} + \sum_t e_{t, y_t} + \sum_{t > 1} W_{y_{t-1}, y_t} + \sum_{t > 2} V_{y_{t-2}, y_{t-1}, y_t}
        + end_{y_n}

The message ``u_t(j, k)`` adds up the prefixes that end in the labels ``j, k``, without the emission of ``k``,

.. math::
    u_t(j, k) = \operatorname{total}_i [u_{t-1}(i, j) + V_{ijk}] + e_{t-1, j} + W_{jk},

in this order, so that with ``V = 0`` the best path takes each decision on the numbers that the chain takes it on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass.checks import captured, values_readable
from torch_multiclass.ops import second_order_scaled as scaled_sums
from torch_multiclass.ops.algebra import BEST, SUM, Algebra, Choose, drawn, lowest, scaled
from torch_multiclass.ops.chain.expected import Expected, joined, of_chain, of_triples
from torch_multiclass.ops.chain.structure import Chain, row, work_dtype
from torch_multiclass.ops.kbest import k_best
from torch_multiclass.ops.operators import Differentiable, operator, without_derivative


class SecondOrder(NamedTuple):
    """A chain and what three labels in a row add to its score.

    Shape:
        chain as `Chain` says, transitions ``(K, K)`` or one matrix a step; second ``(K, K, K)``, ``[from, through,
        to]``.
    """

    chain: Chain
    second: Tensor

    @property
    def num_labels(self) -> int:
        """``K``."""
        return self.chain.num_labels

    def map(self, change: Callable[[Tensor], Tensor]) -> SecondOrder:
        """The same with every tensor of scores changed."""
        chain = Chain._make([*map(change, self.chain[:4]), self.chain.lengths])
        return SecondOrder(chain, change(self.second))

    def work(self) -> SecondOrder:
        """The same in the dtype it is computed in."""
        dtype = work_dtype(self.chain.emissions.dtype)
        return self.map(lambda part: part.to(dtype))

    def clean(self) -> SecondOrder:
        """The same with zeros where scores are of no meaning."""
        chain = self.chain
        if chain.lengths is None:
            return self
        inside = chain.inside()[..., None]
        chain = chain._replace(emissions=torch.where(inside, chain.emissions, 0.0))
        if chain.transitions.dim() == 4:
            chain = chain._replace(transitions=torch.where(inside[:, 1:, None], chain.transitions, 0.0))
        return self._replace(chain=chain)

    def rows(self, rows: Tensor) -> SecondOrder:
        """The structures of the given rows ``(n,)`` of the batch."""
        return self._replace(chain=self.chain.rows(rows))

    def inside(self) -> Tensor:
        """``(B, T)``: whether a position lies inside its sequence."""
        return self.chain.inside()

    def terms(self, labels: Tensor) -> Tensor:
        """The terms of labellings ``(B, n, T)``: those of the chain, then what each position adds as a third one."""
        k = self.num_labels
        safe = labels.clamp(0, k - 1)
        triples = (safe.roll(2, 2) * k + safe.roll(1, 2)) * k + safe
        third = self.second.reshape(-1).index_select(0, triples.reshape(-1)).view(triples.shape)
        return torch.cat([self.chain.terms(labels), torch.where(self._thirds()[:, None], third, 0.0)], 2)

    def _thirds(self) -> Tensor:
        """``(B, T)``: which positions lie inside their sequence and have two before them."""
        inside = self.inside()
        return inside & (torch.arange(inside.shape[1], device=inside.device) > 1)

    def expected(self, q: Tensor) -> Expected:
        """The mean of each term, and what is forbidden of it, for independent labels of probabilities ``(B, T, K)``."""
        q = torch.nn.functional.pad(torch.where(self.inside()[..., None], q, 0.0), (0, 0, 2, 0))
        return joined(of_chain(self.chain, q[:, 2:]), of_triples(self.second, q).where(self._thirds()))

    def by_position(self, terms: Tensor) -> tuple[Tensor, ...]:
        """The terms of a labelling as three ``(B, T)``: emissions, moves, and what a position adds as a third one."""
        steps = self.chain.emissions.shape[1]
        return *self.chain.by_position(terms[:, : 2 * steps + 1]), terms[:, 2 * steps + 1 :]

    def plus(self, unary: Tensor) -> SecondOrder:
        """With ``unary (B, T, K | 1)`` added to the emissions."""
        return self._replace(chain=self.chain.plus(unary))

    def times(self, factor: float | Tensor) -> SecondOrder:
        """With every score multiplied by the factor."""
        return self.clean().map(scaled(factor))

    def below_best(self) -> SecondOrder:
        """Scores of moves less the best of each kind: every labelling of a sequence loses the same."""
        best = self.second.detach().amax((0, 1, 2))
        return SecondOrder(self.chain.below_best(), self.second - torch.where(best.isinf(), 0.0, best))

    def centred(self) -> SecondOrder:
        """Emissions less the best of their position, which changes no comparison of labellings."""
        return self._replace(chain=self.chain.centred())

    def as_chain(self) -> tuple[Chain, Tensor]:
        """A chain whose states are pairs of neighbouring labels, and the label of each state, the second of its pair.

        The pair of the first label starts with the label 0, as if that stood before it.
        """
        chain, k = self.chain, self.num_labels
        steps = chain.emissions.shape[1]
        label = torch.arange(k, device=self.second.device).repeat(k)
        start = torch.where(torch.arange(k * k, device=label.device) < k, chain.start[..., label], -torch.inf)
        pairs = chain.steps(1, max(steps, 1)).expand(max(steps - 1, 0), -1, k, k).transpose(0, 1)  # (B | 1, T-1, j, k)
        third = torch.arange(max(steps - 1, 0), device=label.device)[:, None, None, None] > 0
        moves = pairs[:, :, None] + torch.where(third, self.second, 0.0)  # (B | 1, T-1, i, j, k)
        same = torch.eye(k, dtype=torch.bool, device=label.device)[None, :, :, None]
        moves = torch.where(same, moves[:, :, :, :, None], -torch.inf)  # (B | 1, T-1, i, j, j', k)
        moves = moves.reshape(len(moves), max(steps - 1, 0), k * k, k * k)
        states = Chain(chain.emissions[..., label], moves, start, chain.end[..., label], chain.lengths)
        return states, label

    def best_labels(self) -> Tensor:
        """The best labelling ``(B, T)``, -100 past the length; ties go to the lowest last label, then backwards."""
        labels: Tensor = best_labels(*_parts(self.work()))
        return labels

    def k_best(self, k: int) -> tuple[Tensor, Tensor]:
        """The ``k`` best labellings ``(B, k, T)`` and their scores ``(B, k)``; -100 and -inf where fewer exist."""
        return k_best(self, k)

    def log_partition(self) -> Tensor:
        """``log sum_y exp s(y)``, ``(B,)``."""
        return value(*_parts(self.work()))

    def marginals(self) -> Tensor:
        """``P(y_t = k)``, ``(B, T, K)``; 0 past the length."""
        return value.gradients(*_parts(self.work()))[0]

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` labellings drawn from ``p(y) ~ exp s(y)``, ``(B, n, T)``; -100 past the length."""
        with torch.no_grad():
            return _read_back(self.map(Tensor.double), SUM, drawn(generator), n)


def _parts(record: SecondOrder) -> tuple[Tensor | None, ...]:
    emissions, transitions, start, end, lengths = record.chain
    return emissions, transitions, record.second, start, end, lengths


def _record(
    emissions: Tensor, transitions: Tensor, second: Tensor, start: Tensor, end: Tensor, lengths: Tensor | None
) -> SecondOrder:
    return SecondOrder(Chain(emissions, transitions, start, end, lengths), second)


def _messages(record: SecondOrder, algebra: Algebra) -> tuple[Tensor, list[Tensor]]:
    """Emissions, 0 past the lengths, and ``u_t`` as ``(K_j, B, K_k)`` for each position but the first."""
    chain, second = record.clean()
    emissions = chain.emissions
    through = second.transpose(0, 1)  # (j, i, k), a matrix for each label in the middle
    messages: list[Tensor] = []
    for t, at in enumerate(emissions.unbind(1)[:-1], 1):
        if messages:
            product = _best_product if algebra is BEST else algebra.product
            into = product(messages[-1].transpose(0, 2), through)  # (j, B, k)
        else:
            into = row(chain.start).t()[..., None]
        messages.append(into + at.t()[..., None] + chain.step(t).transpose(0, 1))
    return emissions, messages


def _best_product(a: Tensor, w: Tensor) -> Tensor:
    """``max_i a[..., i] + w[..., i, :]``, one ``i`` after the other: faster than all sums at once."""
    best = a[..., :1] + w[..., :1, :]
    for i in range(1, a.shape[-1]):
        best = torch.maximum(best, a[..., i : i + 1] + w[..., i : i + 1, :])
    return best


def _finals(record: SecondOrder, emissions: Tensor, messages: list[Tensor], algebra: Algebra) -> Tensor:
    """The total of the labellings that end in each label, ``(B, K)``."""
    chain = record.chain
    if not messages:
        return emissions[:, 0] + row(chain.start) + row(chain.end)
    last, rows = chain.last(), torch.arange(len(emissions), device=emissions.device)
    into = torch.stack(messages)[(last - 1).clamp_min(0), :, rows]  # (B, j, k)
    moved = torch.where((last > 0)[:, None], algebra.total(into, 1), row(chain.start))
    return moved + emissions[rows, last] + row(chain.end)


def _log_partition(
    emissions: Tensor, transitions: Tensor, second: Tensor, start: Tensor, end: Tensor, lengths: Tensor | None
) -> Tensor:
    if emissions.shape[1] == 0:
        return emissions.sum((1, 2))
    record = _record(emissions, transitions, second, start, end, lengths).map(Tensor.double)
    few = emissions.shape[0] * emissions.shape[2] ** 3 <= _TERM_BY_TERM
    total = None if few else _scaled(record)
    total = (_logspace(record) if total is None else total).to(emissions.dtype)
    return total if lengths is None else torch.where(lengths > 0, total, 0.0)


_TERM_BY_TERM = 4096
"""Terms of a step up to which log space is as fast."""


def _logspace(record: SecondOrder) -> Tensor:
    """``log Z`` on any scores."""
    return SUM.total(_finals(record, *_messages(record, SUM), SUM), 1)


def _scaled(record: SecondOrder) -> Tensor | None:
    """``log Z`` in scaled probability space, where that can hold it and values may be read."""
    emissions, lengths = record.chain.emissions, record.chain.lengths
    few = emissions.shape[1] < 3 or emissions.numel() == 0
    if few or record.chain.transitions.dim() == 3 or captured() or not values_readable(emissions):
        return None
    if lengths is not None and bool((lengths < 3).any()):
        rows = (lengths >= 3).nonzero()[:, 0]
        found = _scaled(record.rows(rows)) if len(rows) else None
        if found is None:
            return None
        rest = (lengths < 3).nonzero()[:, 0]
        values = emissions.new_zeros(len(lengths)).index_add(0, rows, found)
        return values.index_add(0, rest, _logspace(record.rows(rest)))
    clean = record.clean()
    scores, last = (*clean.chain[:2], clean.second, *clean.chain[2:4]), clean.chain.last()
    with torch.no_grad():
        scaled = scaled_sums.forward(*scores, last)
    if scaled is None:
        return None

    def other(emissions: Tensor, transitions: Tensor, second: Tensor, start: Tensor, end: Tensor) -> Tensor:
        return _logspace(_record(emissions, transitions, second, start, end, lengths))

    value: Tensor = scaled_sums.ScaledValue.apply(scaled, last, other, *scores)  # type: ignore[no-untyped-call]
    return value


value = Differentiable(
    "second_order", _log_partition, ("emissions", "transitions", "second", "start", "end"), "Tensor? lengths"
)


def _best_labels(
    emissions: Tensor, transitions: Tensor, second: Tensor, start: Tensor, end: Tensor, lengths: Tensor | None
) -> Tensor:
    """The best labelling of each sequence, -100 past its length."""
    return _read_back(_record(emissions, transitions, second, start, end, lengths), BEST, lowest, 1)[:, 0].clone()


best_labels = operator(
    "second_order_best_labels(Tensor emissions, Tensor transitions, Tensor second, Tensor start, Tensor end, "
    "Tensor? lengths) -> Tensor",
    _best_labels,
    lambda emissions, *_: emissions.new_empty(emissions.shape[:2], dtype=torch.long),
)
without_derivative(best_labels)


def _read_back(record: SecondOrder, algebra: Algebra, choose: Choose, n: int) -> Tensor:
    """``n`` labellings ``(B, n, T)``, each label chosen after those that follow it."""
    batch, steps, _ = record.chain.emissions.shape
    labels = record.chain.emissions.new_full((steps, batch * n), -100, dtype=torch.long)
    if steps == 0 or batch == 0 or n == 0:
        return labels.view(steps, batch, n).permute(1, 2, 0)
    emissions, messages = _messages(record, algebra)
    rows = torch.arange(batch, device=labels.device).repeat_interleave(n)
    finals = _finals(record, emissions, messages, algebra)[rows]
    last = record.chain.last()[rows]
    label = following = labels.new_zeros(batch * n)  # those at t + 1 and t + 2
    for t in range(steps - 1, -1, -1):
        scores = finals
        if t + 1 < steps:
            later = (t + 2 <= last)[:, None]
            thrice = torch.where(later, record.second[:, label, following].t(), 0.0)
            inner = messages[t].transpose(0, 1)[rows, :, label] + thrice
            scores = torch.where((t < last)[:, None], inner, finals)
        chosen = choose(scores)
        following, label = label, torch.where(t <= last, chosen, 0)
        labels[t] = label
    out = labels.view(steps, batch, n).permute(1, 2, 0)
    return torch.where(record.chain.inside()[:, None], out, -100)
