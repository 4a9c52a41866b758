r"""The record of a chain, as every recursion here takes it.

s(y) = start[y_1] + sum_t e[t, y_t] + sum_{t>1} W_t[y_{t-1}, y_t] + end[y_n]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Chain(NamedTuple):
    """The scores that a labelling of each of ``B`` sequences adds up, positions aligned to the left.

    What stands past a length is of no meaning, and changes neither a value nor a gradient. ``-inf`` forbids.

    Shape:
        emissions ``(B, T, K)``; transitions ``[from, to]``, ``(K, K)``, ``(B, K, K)`` (one matrix a sequence) or
        ``(B | 1, T-1, K, K)`` (one matrix a step); start and end ``(K,)`` or ``(B, K)``; lengths ``(B,)`` or None
        (all ``T``).
    """

    emissions: Tensor
    transitions: Tensor
    start: Tensor
    end: Tensor
    lengths: Tensor | None

    @classmethod
    def of(
        cls,
        emissions: Tensor,
        transitions: Tensor,
        start: Tensor | None = None,
        end: Tensor | None = None,
        lengths: Tensor | None = None,
    ) -> Chain:
        """The chain of the parts that there are: a start or end of None is 0.

        >>> Chain.of(torch.zeros(1, 2, 2), torch.eye(2)).terms(torch.tensor([[[0, 0]]])).sum()
        tensor(1.)
        """
        if start is None or end is None:
            none = transitions.new_zeros(transitions.shape[-1])
            start, end = none if start is None else start, none if end is None else end
        return cls(emissions, transitions, start, end, lengths)

    def but(self, **parts: Tensor) -> Chain:
        """The chain with other parts; `_replace` is not traced by every torch that this runs on."""
        return Chain(*[parts[name] if name in parts else getattr(self, name) for name in Chain._fields])

    # ------------------------------------------------------------------------------------------------- shape and dtype

    @property
    def num_labels(self) -> int:
        """``K``."""
        return self.emissions.shape[2]

    def to(self, dtype: torch.dtype) -> Chain:
        """The same chain in another dtype."""
        return Chain(
            self.emissions.to(dtype), self.transitions.to(dtype), self.start.to(dtype), self.end.to(dtype), self.lengths
        )

    def map(self, change: Callable[[Tensor], Tensor]) -> Chain:
        """The same with every tensor of scores changed."""
        return Chain._make([*map(change, self[:4]), self.lengths])

    def double(self) -> Chain:
        """The same chain in float64."""
        return self.to(torch.float64)

    def work(self) -> Chain:
        """The same chain in the dtype it is computed in."""
        emissions, transitions, start, end, _ = self
        dtype = work_dtype(emissions.dtype)
        done = emissions.dtype == dtype and transitions.dtype == dtype and start.dtype == dtype and end.dtype == dtype
        return self if done else self.to(dtype)

    def inside(self) -> Tensor:
        """``(B, T)``: whether a position lies inside its sequence."""
        batch, steps = self.emissions.shape[:2]
        if self.lengths is None:
            return self.emissions.new_ones((batch, steps), dtype=torch.bool)
        return torch.arange(steps, device=self.emissions.device) < self.lengths[:, None]

    def last(self) -> Tensor:
        """``(B,)``: the last position of each sequence, 0 for an empty one."""
        batch, steps = self.emissions.shape[:2]
        lengths = torch.full((batch,), steps, device=self.emissions.device) if self.lengths is None else self.lengths
        return (lengths - 1).clamp_min(0)

    def step(self, t: int) -> Tensor:
        """The matrices ``(B | 1, K, K)`` of the move from position ``t-1`` to position ``t``."""
        if self.transitions.dim() == 4:
            return self.transitions[:, t - 1]
        return self.transitions if self.transitions.dim() == 3 else self.transitions[None]

    def steps(self, first: int, last: int) -> Tensor:
        """The matrices ``(last - first | 1, B | 1, K, K)`` of the moves into the positions ``first .. last - 1``."""
        if self.transitions.dim() == 4:
            return self.transitions[:, first - 1 : last - 1].transpose(0, 1)
        return self.transitions[None] if self.transitions.dim() == 3 else self.transitions[None, None]

    def rows(self, rows: Tensor) -> Chain:
        """The chains of the given rows ``(n,)`` of the batch."""
        transitions, start, end = self.transitions, self.start, self.end
        return Chain(
            self.emissions[rows],
            transitions[rows] if transitions.dim() > 2 and len(transitions) > 1 else transitions,
            start[rows] if start.dim() == 2 else start,
            end[rows] if end.dim() == 2 else end,
            None if self.lengths is None else self.lengths[rows],
        )

    # ----------------------------------------------------------------------------------------------- score and algebra

    def terms(self, labels: Tensor) -> Tensor:
        """The terms of ``n`` labellings of each sequence, ``(B, n, 2T + 1)``: emissions, start, transitions, end.

        Two labellings are compared by the sum of the differences of their terms, where nothing large cancels.

        Args:
            labels: ``(B, n, T)``, anything past a length. Terms that do not exist are 0.
        """
        batch, n, steps = labels.shape
        if steps == 0:
            return self.emissions.sum((1, 2))[:, None, None].expand(batch, n, 1)
        labels = labels.clamp(0, self.emissions.shape[2] - 1)
        at = self.emissions.gather(2, labels.transpose(1, 2)).transpose(1, 2)
        later = torch.arange(steps, device=labels.device) > 0
        moves = torch.where(later, self._moves(labels), _of_label(self.start, labels[..., :1]))
        if self.lengths is None:
            return torch.cat([at, moves, _of_label(self.end, labels[..., -1:])], 2)
        last = _of_label(self.end, labels.gather(2, self.last()[:, None, None].expand(batch, n, 1)))
        inside = self.inside()[:, None]
        return torch.where(torch.cat([inside, inside, inside[..., :1]], 2), torch.cat([at, moves, last], 2), 0.0)

    def _moves(self, labels: Tensor) -> Tensor:
        """``(B, n, T)``: the score of the move into each position; of no meaning at the first."""
        k = self.emissions.shape[2]
        if self.transitions.dim() == 4:
            step = torch.arange(labels.shape[2] - 1, device=labels.device) * k
            pairs = (step + labels[..., :-1]) * k + labels[..., 1:]
            moves = self.transitions.flatten(1).expand(len(pairs), -1).gather(1, pairs.flatten(1))
            return torch.nn.functional.pad(moves.view(pairs.shape), (1, 0))
        pairs = labels.roll(1, 2) * k + labels
        if self.transitions.dim() == 2:
            return self.transitions.reshape(-1).index_select(0, pairs.reshape(-1)).view(pairs.shape)
        return self.transitions.flatten(1).expand(len(pairs), -1).gather(1, pairs.flatten(1)).view(pairs.shape)

    def score(self, labels: Tensor) -> Tensor:
        """``s(y)`` of one labelling of each sequence, ``(B, T)`` to ``(B,)``. Differentiable."""
        return self.terms(labels[:, None]).sum(2)[:, 0]

    def by_position(self, terms: Tensor) -> tuple[Tensor, Tensor]:
        """The terms ``(B, 2T + 1)`` of a labelling as two ``(B, T)``: its emissions, and the moves into its positions.

        The start belongs to the first position, the end to the last. Emissions may be large, and their differences are
        not, so they are to be subtracted first.
        """
        steps = terms.shape[1] // 2
        position = torch.arange(steps, device=terms.device)
        final = steps - 1 if self.lengths is None else (self.lengths - 1)[:, None]
        return terms[:, :steps], terms[:, steps:-1] + torch.where(position == final, terms[:, -1:], 0.0)

    def plus(self, unary: Tensor) -> Chain:
        """The chain with ``unary (B, T, K | 1)`` added to its emissions."""
        return self.but(emissions=self.emissions + unary)

    def times(self, factor: float | Tensor) -> Chain:
        """The chain with every score multiplied by the factor."""
        emissions = self.emissions
        if self.lengths is not None:  # what stands past a length may be no number, and the factor's gradient sees it
            emissions = torch.where(self.inside()[..., None], emissions, 0)
        return Chain(
            emissions * factor, self.transitions * factor, self.start * factor, self.end * factor, self.lengths
        )

    def below_best(self) -> Chain:
        """Transitions, start and end less the best of each: every labelling loses the same."""
        parts = below_best(self.transitions, (-2, -1)), below_best(self.start, (-1,)), below_best(self.end, (-1,))
        return Chain(self.emissions, *parts, self.lengths)

    def centred(self) -> Chain:
        """Emissions less the best of their position, which changes no comparison of labellings."""
        return self.but(emissions=below_best(self.emissions, (-1,)))


def _of_label(scores: Tensor, labels: Tensor) -> Tensor:
    """Start or end scores of the labels ``(B, n, 1)``."""
    if scores.dim() == 1:
        return scores.index_select(0, labels.reshape(-1)).view(labels.shape)
    return scores.expand(labels.shape[0], -1).gather(1, labels.flatten(1)).view(labels.shape)


def below_best(scores: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The scores less the largest over ``dims``, a constant; as they are where that is not finite."""
    best = scores.detach().amax(dims, keepdim=True)
    return scores - torch.where(best.isfinite(), best, 0.0)


def work_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype results come in: float64 stays, everything shorter is float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def row(scores: Tensor) -> Tensor:
    """Start or end scores as ``(B | 1, K)``."""
    return scores if scores.dim() == 2 else scores[None]


def log_sum_exp(scores: Tensor, dim: int) -> Tensor:
    """``log sum exp`` over ``dim``; -inf (with gradient 0) where everything is -inf, NaN where anything is NaN."""
    best = scores.detach().amax(dim, keepdim=True)
    far = torch.finfo(scores.dtype).max
    top = best.clamp(-far, far)  # so that nothing infinite is subtracted from itself
    # The best adds 1 to the sum; what is less has no legal term.
    return (scores - top).exp_().sum(dim).clamp_min_(1).log_() + best.squeeze(dim)
