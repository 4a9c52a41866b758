r"""Positions that know nothing of each other: ``s(y) = \sum_t e_{t, y_t}``, so every verb is one of each position."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass.ops.algebra import drawn, log_sum_exp, scaled
from torch_multiclass.ops.chain.expected import Expected, of_labels
from torch_multiclass.ops.chain.structure import Chain, below_best, work_dtype
from torch_multiclass.ops.kbest import k_best


class Independent(NamedTuple):
    """The scores that a labelling adds up, one for each position that counts.

    Shape:
        emissions ``(B, T, K)``; mask ``(B, T)``, which positions count, or None. What stands at one that does not count
        is of no meaning.
    """

    emissions: Tensor
    mask: Tensor | None

    @property
    def num_labels(self) -> int:
        """``K``."""
        return self.emissions.shape[2]

    def rows(self, rows: Tensor) -> Independent:
        """The structures of the given rows ``(n,)`` of the batch."""
        return Independent(self.emissions[rows], None if self.mask is None else self.mask[rows])

    def inside(self) -> Tensor:
        """``(B, T)``: which positions count."""
        return torch.ones_like(self.emissions[..., 0], dtype=torch.bool) if self.mask is None else self.mask

    def map(self, change: Callable[[Tensor], Tensor]) -> Independent:
        """The same with every tensor of scores changed."""
        return self._replace(emissions=change(self.emissions))

    def clean(self) -> Independent:
        """The same with zeros where scores are of no meaning."""
        if self.mask is None:
            return self
        return self._replace(emissions=torch.where(self.mask[..., None], self.emissions, 0.0))

    def _work(self) -> Tensor:
        """Clean emissions in the dtype they are computed in."""
        return self.clean().emissions.to(work_dtype(self.emissions.dtype))

    def terms(self, labels: Tensor) -> Tensor:
        """The emissions of ``n`` labellings ``(B, n, T)``, likewise."""
        at = self.emissions.gather(2, labels.clamp(0, self.num_labels - 1).transpose(1, 2)).transpose(1, 2)
        return torch.where(self.inside()[:, None], at, 0.0)

    def expected(self, q: Tensor) -> Expected:
        """The mean of each term, and what is forbidden of it, for independent labels of probabilities ``(B, T, K)``."""
        inside = self.inside()
        q = torch.where(inside[..., None], q, 0.0)
        return of_labels(self.clean().emissions, q).where(inside)

    def by_position(self, terms: Tensor) -> tuple[Tensor]:
        """The terms ``(B, T)`` as they are."""
        return (terms,)

    def plus(self, unary: Tensor) -> Independent:
        """With ``unary (B, T, K | 1)`` added to the emissions."""
        return self._replace(emissions=self.emissions + unary)

    def times(self, factor: float | Tensor) -> Independent:
        """With every score multiplied by the factor."""
        return self.clean().map(scaled(factor))

    def below_best(self) -> Independent:
        """The same: there is nothing but emissions."""
        return self

    def centred(self) -> Independent:
        """Emissions less the best of their position, which changes no comparison of labellings."""
        return self._replace(emissions=below_best(self.emissions, (-1,)))

    def as_chain(self) -> tuple[Chain, Tensor]:
        """A chain whose transitions say nothing, and the label of each state: itself, and 0 where masked."""
        emissions = self._work()
        label = torch.arange(self.num_labels, device=emissions.device)
        emissions = torch.where(self.inside()[..., None] | (label == 0), emissions, -torch.inf)
        return Chain.of(emissions, emissions.new_zeros(self.num_labels, self.num_labels)), label

    def best_labels(self) -> Tensor:
        """The best label of each position ``(B, T)``, the lowest of equal ones; -100 where masked."""
        return torch.where(self.inside(), self._work().argmax(2), -100)

    def k_best(self, k: int) -> tuple[Tensor, Tensor]:
        """The ``k`` best labellings ``(B, k, T)`` and their scores ``(B, k)``; -100 and -inf where fewer exist."""
        return k_best(self, k)

    def log_partition(self) -> Tensor:
        """``log sum_y exp s(y)``, ``(B,)``."""
        totals = log_sum_exp(self._work(), 2)
        total = (totals if self.mask is None else torch.where(self.mask, totals, 0.0)).sum(1)
        return torch.where(total == -torch.inf, -torch.inf, total)  # no gradient beside an impossible position

    def marginals(self) -> Tensor:
        """``P(y_t = k)``, ``(B, T, K)``; 0 where masked or where no labelling is possible."""
        emissions = self._work()
        possible = (emissions != -torch.inf).any(2).all(1)[:, None, None] & self.inside()[..., None]
        return torch.where(possible, torch.where(possible, emissions, 0.0).softmax(2), 0.0)

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` labellings drawn from ``p(y) ~ exp s(y)``, ``(B, n, T)``; -100 where masked."""
        with torch.no_grad():
            batch, steps, k = self.emissions.shape
            labels = drawn(generator)(self._work()[:, None].expand(batch, n, steps, k))
            return torch.where(self.inside()[:, None], labels, -100)
