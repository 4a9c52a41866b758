r"""Sequences cut into segments, each with a kind: semi-Markov chains.

A labelling is a sequence of segments; one of kind ``k`` that ends at ``t`` after ``l`` positions adds
``seg[t, l - 1, k]``, and neighbours add ``W[k, k']``. It is written as tags: ``B-k`` where a segment of kind ``k``
begins, ``I-k`` where it goes on. With ``\alpha_t(k)`` the total of the ways to end a segment of kind ``k`` at ``t``,
and ``\gamma_t(k)`` that of what may come before one of kind ``k`` that begins at ``t + 1``,

.. math::
    \alpha_t(k) = \operatorname{total}_l [seg_{t, l, k} + \gamma_{t - l}(k)], \qquad
    \gamma_t(k) = \operatorname{total}_j [\alpha_t(j) + W_{jk}].

Time and memory grow with ``T S K``, and nothing with ``T^2``.

Reference: Sarawagi and Cohen (2004), Semi-Markov conditional random fields for information extraction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from torch_multiclass.ops.algebra import BEST, SUM, Algebra, Choose, drawn, lowest, scaled
from torch_multiclass.ops.chain.structure import Chain, below_best, row, work_dtype
from torch_multiclass.ops.kbest import k_best
from torch_multiclass.ops.operators import Differentiable, operator, without_derivative


class Segments(NamedTuple):
    """The scores that a segmentation of each of ``B`` sequences adds up, positions aligned to the left.

    Labels are ``B-k`` with number ``k`` and, for the kinds that may be longer than 1, ``I-k`` with the numbers from
    ``K`` on, in order. What stands past a length or begins before the first position is of no meaning.

    Shape:
        scores ``(B, T, S, K)``, of the segment of length ``s + 1`` and kind ``k`` that ends at ``t``; transitions
        ``(K, K)``; start and end ``(K,)`` or ``(B, K)``, of the first and last kind; lengths ``(B,)`` or None;
        longest, how long each kind may be.
    """

    scores: Tensor
    transitions: Tensor
    start: Tensor
    end: Tensor
    lengths: Tensor | None
    longest: tuple[int, ...]

    @property
    def num_labels(self) -> int:
        """``B-k`` and ``I-k`` together."""
        return len(self.longest) + len(self.inner)

    @property
    def inner(self) -> list[int]:
        """The kinds that have a label ``I-k``."""
        return [kind for kind, most in enumerate(self.longest) if most > 1]

    def map(self, change: Callable[[Tensor], Tensor]) -> Segments:
        """The same with every tensor of scores changed."""
        scores, transitions, start, end = map(change, self[:4])
        return Segments(scores, transitions, start, end, self.lengths, self.longest)

    def work(self) -> Segments:
        """The same in the dtype it is computed in."""
        dtype = work_dtype(self.scores.dtype)
        return self.map(lambda part: part.to(dtype))

    def clean(self) -> Segments:
        """The same with zeros where scores are of no meaning."""
        return self._replace(scores=torch.where(self.exists(), self.scores, 0.0))

    def inside(self) -> Tensor:
        """``(B, T)``: whether a position lies inside its sequence."""
        batch, steps = self.scores.shape[:2]
        position = torch.arange(steps, device=self.scores.device)
        return position.expand(batch, -1) < (steps if self.lengths is None else self.lengths[:, None])

    def last(self) -> Tensor:
        """``(B,)``: the last position of each sequence, -1 for an empty one."""
        return self.inside().sum(1) - 1

    def exists(self) -> Tensor:
        """``(B, T, S, K)``: whether a segment lies inside its sequence and is not longer than its kind may be."""
        _, steps, most, _ = self.scores.shape
        device = self.scores.device
        length = torch.arange(most, device=device)
        begun = length <= torch.arange(steps, device=device)[:, None]
        short = length[:, None] < torch.tensor(self.longest, device=device)
        return self.inside()[:, :, None, None] & begun[:, :, None] & short

    def rows(self, rows: Tensor) -> Segments:
        """The structures of the given rows ``(n,)`` of the batch."""
        start, end = (part[rows] if part.dim() == 2 and len(part) > 1 else part for part in (self.start, self.end))
        lengths = None if self.lengths is None else self.lengths[rows]
        return Segments(self.scores[rows], self.transitions, start, end, lengths, self.longest)

    # ----------------------------------------------------------------------------------------------- score and algebra

    def kinds(self, labels: Tensor) -> Tensor:
        """The kind of each label."""
        kind = torch.tensor([*range(len(self.longest)), *self.inner], device=labels.device)
        return kind[labels.clamp(0, self.num_labels - 1)]

    def lengths_at(self, labels: Tensor) -> Tensor:
        """How long the segment of each position is up to there, for labels ``(*, T)``."""
        position = torch.arange(labels.shape[-1], device=labels.device)
        return position - torch.where(labels < len(self.longest), position, 0).cummax(-1).values + 1

    def terms(self, labels: Tensor) -> Tensor:
        """The terms of ``n`` labellings of each sequence, ``(B, n, 2T + 1)``: segments, moves into them, end.

        A segment's score stands where it ends, a move's where it leads to. What is no segmentation has ``-inf``.

        Args:
            labels: ``(B, n, T)``, anything past a length. Terms that do not exist are 0.
        """
        batch, n, steps = labels.shape
        if steps == 0:
            return self.scores.sum((1, 2, 3))[:, None, None].expand(batch, n, 1)
        k, most = len(self.longest), self.scores.shape[2]
        inside = self.inside()[:, None]
        labels = torch.where(inside, labels, 0)
        begins, kind, length = labels < k, self.kinds(labels), self.lengths_at(labels)
        before = kind.roll(1, 2)
        first = torch.arange(steps, device=labels.device) == 0
        ends = ((begins | ~inside).roll(-1, 2) | first.flip(0)) & inside
        where = (length.clamp(max=most) - 1) * k + kind
        own = self.scores.flatten(2).gather(2, where.transpose(1, 2)).transpose(1, 2)
        own = torch.where(ends, own, 0.0)
        own = torch.where(length > torch.tensor(self.longest, device=labels.device)[kind], -torch.inf, own)
        moves = self.transitions[before, kind]
        moves = torch.where(first, row(self.start).expand(batch, -1).gather(1, kind[..., 0])[..., None], moves)
        moves = torch.where(begins, moves, torch.where(first | (before != kind), -torch.inf, 0.0))
        final = kind.gather(2, self.last().clamp_min(0)[:, None, None].expand(batch, n, 1))
        end = row(self.end).expand(batch, -1).gather(1, final[..., 0])[..., None]
        exists = torch.cat([inside, inside, inside[..., :1]], 2)
        return torch.where(exists, torch.cat([own, moves, end], 2), 0.0)

    def by_position(self, terms: Tensor) -> tuple[Tensor, Tensor]:
        """The terms ``(B, 2T + 1)`` as two ``(B, T)``: segments where they end, moves where they lead."""
        steps = terms.shape[1] // 2
        position = torch.arange(steps, device=terms.device)
        last = torch.where(position == self.last()[:, None], terms[:, -1:], 0.0)
        return terms[:, :steps], terms[:, steps:-1] + last

    def plus(self, unary: Tensor) -> Segments:
        """With ``unary (B, T, labels | 1)``: a segment adds that of ``B-k`` where it begins, of ``I-k`` after that."""
        k, steps = len(self.longest), self.scores.shape[1]
        first = inner = unary
        if unary.shape[-1] > 1 or self.num_labels == 1:
            first = unary[..., :k]
            at = [self.inner.index(kind) if kind in self.inner else len(self.inner) for kind in range(k)]
            inner = pad(unary[..., k:], (0, 1))[..., at]
        added, along = [], torch.zeros_like(inner)
        for s in range(self.scores.shape[2]):
            added.append(pad(first, (0, 0, s, 0))[:, :steps] + along)
            along = along + pad(inner, (0, 0, s, 0))[:, :steps]
        return self._replace(scores=self.scores + torch.stack(added, 2))

    def below_best(self) -> Segments:
        """Start and end less the best of each; what else a labelling loses would depend on its number of segments."""
        return self._replace(start=below_best(self.start, (-1,)), end=below_best(self.end, (-1,)))

    def centred(self) -> Segments:
        """The same: segments of many lengths share no constant."""
        return self

    def times(self, factor: float | Tensor) -> Segments:
        """With every score multiplied by the factor."""
        return self.clean().map(scaled(factor))

    # ------------------------------------------------------------------------------------------------------ recursions

    def as_chain(self) -> tuple[Chain, Tensor]:
        """A chain whose states ``s * K + k`` are kinds and places in a segment, and the label of each state.

        What a segment adds is paid by the move out of its last place.
        """
        scores = torch.where(self.exists(), self.scores, -torch.inf).flatten(2)  # (B, T, states)
        batch, steps, states = scores.shape
        k, device = len(self.longest), scores.device
        state = torch.arange(states, device=device)
        kind, place = state % k, state // k
        first = place == 0
        begins = scores[:, :-1, :, None] + torch.where(first, self.transitions[kind][:, kind], -torch.inf)
        goes_on = torch.where(state[:, None] + k == state, 0.0, -torch.inf)
        moves = torch.where(first, begins, goes_on.to(scores.dtype))
        start = torch.where(first, row(self.start)[:, kind], -torch.inf).expand(batch, -1)
        last = self.last().clamp_min(0)[:, None, None].expand(-1, 1, states)
        final = scores.gather(1, last)[:, 0] if steps else scores.new_zeros(batch, states)
        label = torch.where(first, kind, torch.tensor(self.goes_on(), device=device)[kind])
        emissions = torch.zeros_like(scores)
        return Chain(emissions, moves, start, final + row(self.end)[:, kind], self.lengths), label

    def goes_on(self) -> list[int]:
        """The label ``I-k`` of each kind; ``B-k`` for those without."""
        k = len(self.longest)
        return [k + self.inner.index(kind) if kind in self.inner else kind for kind in range(k)]

    def best_labels(self) -> Tensor:
        """The best labelling ``(B, T)``, -100 past the length; ties go to the lowest last label, then backwards."""
        labels: Tensor = best_labels(*self.work())
        return labels

    def k_best(self, k: int) -> tuple[Tensor, Tensor]:
        """The ``k`` best labellings ``(B, k, T)`` and their scores ``(B, k)``; -100 and -inf where fewer exist."""
        return k_best(self, k)

    def log_partition(self) -> Tensor:
        """``log sum_y exp s(y)``, ``(B,)``."""
        return value(*self.work())

    def marginals(self) -> Tensor:
        """``P(y_t = label)``, ``(B, T, labels)``; 0 past the length."""
        mass = value.gradients(*self.work())[0]  # of each segment
        most = mass.shape[2]
        begins, inner = torch.zeros_like(mass[:, :, 0]), torch.zeros_like(mass[:, :, 0])
        longer = mass.flip(2).cumsum(2).flip(2)  # of the segments at least so long
        for s in range(most):
            ahead = (0, 0, 0, s)
            begins = begins + pad(mass[:, :, s], ahead)[:, s:]
            if s + 1 < most:
                inner = inner + pad(longer[:, :, s + 1], ahead)[:, s:]
        return torch.cat([begins, inner[..., self.inner]], 2)

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` labellings drawn from ``p(y) ~ exp s(y)``, ``(B, n, T)``; -100 past the length."""
        with torch.no_grad():
            return _read_back(self.map(Tensor.double), SUM, drawn(generator), n)


def _ways(segments: Segments, algebra: Algebra) -> list[Tensor]:
    """For each position the totals of the labellings that end there by each segment, ``(B, S, K)``."""
    scores = torch.where(segments.exists(), segments.scores, -torch.inf)
    batch, _, most, k = scores.shape
    before = [scores.new_full((batch, k), -torch.inf)] * (most - 1) + [row(segments.start).expand(batch, k)]
    ways: list[Tensor] = []
    for at in scores.unbind(1):
        ways.append(at + torch.stack(before[: -most - 1 : -1], 1))
        before.append(algebra.product(algebra.total(ways[-1], 1), segments.transitions))
    return ways


def _log_partition(
    scores: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    longest: tuple[int, ...],
) -> Tensor:
    if scores.shape[1] == 0:
        return scores.sum((1, 2, 3))
    segments = Segments(scores, transitions, start, end, lengths, tuple(longest)).map(Tensor.double)
    ways = torch.stack(_ways(segments, SUM))
    final = ways[segments.last().clamp_min(0), torch.arange(ways.shape[1], device=ways.device)]
    total = SUM.total((final + row(segments.end)[:, None]).flatten(1), 1).to(scores.dtype)
    return total if lengths is None else torch.where(lengths > 0, total, 0.0)


value = Differentiable(
    "segments", _log_partition, ("scores", "transitions", "start", "end"), "Tensor? lengths, int[] longest"
)


def _best_labels(
    scores: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    longest: tuple[int, ...],
) -> Tensor:
    """The best labelling of each sequence, -100 past its length."""
    segments = Segments(scores, transitions, start, end, lengths, tuple(longest))
    return _read_back(segments, BEST, lowest, 1)[:, 0].clone()


best_labels = operator(
    "segments_best_labels(Tensor scores, Tensor transitions, Tensor start, Tensor end, Tensor? lengths, "
    "int[] longest) -> Tensor",
    _best_labels,
    lambda scores, *_: scores.new_empty(scores.shape[:2], dtype=torch.long),
)
without_derivative(best_labels)


def _read_back(segments: Segments, algebra: Algebra, choose: Choose, n: int) -> Tensor:
    """``n`` labellings ``(B, n, T)``, each segment chosen after the one that follows it."""
    batch, steps, most, k = segments.scores.shape
    device = segments.scores.device
    labels = torch.full((steps, batch * n), -100, dtype=torch.long, device=device)
    if labels.numel():
        ways = _ways(segments, algebra)
        rows = torch.arange(batch, device=device).repeat_interleave(n)
        order = by_last_labels(most, k).to(device)
        goes_on = torch.tensor(segments.goes_on(), device=device)
        end = row(segments.end).expand(batch, k)[rows]
        last = segments.last()[rows]
        begin, kind = last + 1, torch.zeros_like(last)  # of the segment after
        for t in range(steps - 1, -1, -1):
            after = torch.where((last == t)[:, None], end, segments.transitions[:, kind].t())
            picked = order[choose((ways[t][rows] + after[:, None]).flatten(1)[:, order])]
            ends = begin - 1 == t
            begin, kind = torch.where(ends, t - picked // k, begin), torch.where(ends, picked % k, kind)
            labels[t] = torch.where(begin == t, kind, goes_on[kind])
    out = labels.view(steps, batch, n).permute(1, 2, 0)
    return torch.where(segments.inside()[:, None], out, -100)


def by_last_labels(most: int, k: int) -> Tensor:
    """The pairs ``s * K + k`` of length and kind in the order in which ties go: lowest last label, then backwards.

    A segment of length 1 ends in ``B-k``, the others in ``I-k``; of two that end in ``I-k`` the shorter one comes to
    its ``B-k`` first.
    """
    pair = torch.arange(most * k, device="cpu").view(most, k)
    return torch.cat([pair[0], pair[1:].t().flatten()])
