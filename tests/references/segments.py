"""A structure for tests: semi-Markov segments as tags, to show what a new structure has to say."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from torch_multiclass.ops.chain.structure import log_sum_exp
from torch_multiclass.ops.precision import upcast
from torch_multiclass.scores._travel import registered
from torch_multiclass.scores.structured import Structured


class Segments(NamedTuple):
    """``scores (B, T, S, K)`` of the segment of length ``s + 1`` and kind ``k`` that ends at ``t``, and those of moves
    between kinds ``(K, K)``; written as tags, B-k = k and I-k = K + k."""

    scores: Tensor
    transitions: Tensor

    def plus(self, unary: Tensor) -> Segments:
        _, steps, longest, kinds = self.scores.shape
        first, inner = unary.expand(*unary.shape[:2], 2 * kinds).split(kinds, 2)
        total, within = [], torch.zeros_like(first)
        for s in range(longest):  # a segment pays `first` where it begins and `inner` after
            total.append(within + pad(first, (0, 0, s, 0))[:, :steps])
            within = within + pad(inner, (0, 0, s, 0))[:, :steps]
        return self._replace(scores=self.scores + torch.stack(total, 2))

    def times(self, factor) -> Segments:
        return Segments(self.scores * factor, self.transitions * factor)

    def terms(self, labels: Tensor) -> Tensor:
        batch, steps, longest, kinds = self.scores.shape
        place, kind, begins = torch.arange(steps), labels % kinds, labels < kinds
        before = kind.roll(1, 2)
        length = place - torch.where(begins, place, 0).cummax(2).values
        legal = begins | ((place > 0) & (kind == before) & (length < longest))
        ends = torch.cat([begins[..., 1:], torch.ones_like(begins[..., :1])], 2)
        own = self.scores[torch.arange(batch)[:, None, None], place, length.clamp(max=longest - 1), kind]
        moves = torch.where(begins & (place > 0), self.transitions[before, kind], 0.0)
        return torch.cat([torch.where(legal, torch.where(ends, own, 0.0), -math.inf), moves], 2)

    def by_position(self, terms: Tensor) -> tuple[Tensor, ...]:
        return terms.chunk(2, 1)

    def ways(self, join) -> tuple[list[Tensor], list[Tensor]]:
        """For each position, the ways to end in a kind there, ``(B, s, K)``, and what ``join`` makes of them."""
        ways, ended = [], []
        for t in range(self.scores.shape[1]):
            each = [
                self.scores[:, t, s] + (join(ended[t - s - 1].unsqueeze(2) + self.transitions, 1) if s < t else 0)
                for s in range(min(self.scores.shape[2], t + 1))
            ]
            ways.append(torch.stack(each, 1))
            ended.append(join(ways[-1], 1))
        return ways, ended

    def log_partition(self) -> Tensor:
        return log_sum_exp(self.ways(log_sum_exp)[1][-1], 1)

    def best_labels(self) -> Tensor:
        batch, steps, _, kinds = self.scores.shape
        ways, ended = self.ways(torch.amax)
        labels = torch.zeros(batch, steps, dtype=torch.long)
        for b in range(batch):
            t, kind = steps - 1, int(ended[-1][b].argmax())
            while t >= 0:
                s = int(ways[t][b, :, kind].argmax())
                labels[b, t - s : t + 1] = kinds + kind
                labels[b, t - s] = kind
                t -= s + 1
                if t >= 0:
                    kind = int((ended[t][b] + self.transitions[:, kind]).argmax())
        return labels


@registered
@dataclass(eq=False)
class SegmentScores(Structured):
    """The scores of segments, ``(B, T, S, K)``, and of moves between their kinds, ``(K, K)``."""

    segments: Tensor
    transitions: Tensor
    leading: ClassVar[str] = "segments"

    @property
    def num_classes(self) -> int:
        return 2 * self.segments.shape[-1]

    @property
    def sites(self) -> torch.Size:
        return self.segments.shape[:-2]

    @property
    def raw(self) -> Segments:
        return Segments(upcast(self._rows(self.segments, 3)), upcast(self.transitions))

    def _own_dims(self) -> dict[str, int]:
        return super()._own_dims() | {"segments": 3}


def enumerated(scores: SegmentScores) -> tuple[Tensor, Tensor]:
    """All labellings ``(N, T)`` and their scores ``(B, N)``, ``-inf`` for what are no segments; in plain Python."""
    scores = scores.detach()
    batch, steps, longest, kinds = scores.segments.shape
    labellings = list(itertools.product(range(2 * kinds), repeat=steps))
    values = torch.full((batch, len(labellings)), -math.inf, dtype=torch.float64)
    for n, y in enumerate(labellings):
        starts = [t for t in range(steps) if y[t] < kinds]
        bounds = list(zip(starts, [*starts[1:], steps], strict=False))
        whole = bool(starts) and starts[0] == 0
        same = all(y[t] == kinds + y[a] for a, b in bounds for t in range(a + 1, b))
        if whole and same and all(b - a <= longest for a, b in bounds):
            values[:, n] = sum(scores.segments[:, b - 1, b - a - 1, y[a]].double() for a, b in bounds)
            moves = list(itertools.pairwise(starts))
            values[:, n] += sum(float(scores.transitions[y[a], y[b]]) for a, b in moves)
    return torch.tensor(labellings), values
