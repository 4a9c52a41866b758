"""Pairwise coupling against its definition."""

import itertools

import pytest
import torch

from torch_multiclass.ops.coupling import pairwise_coupling
from torch_multiclass.ops.pairs import pair_column


def generator():
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_pairwise_coupling_recovers_the_probabilities_behind_consistent_pairs(k):
    p = torch.rand(5, k, generator=generator(), dtype=torch.float64) + 0.05
    p = p / p.sum(-1, keepdim=True)
    first, second = torch.triu_indices(k, k, 1)
    pairs = p[:, first] / (p[:, first] + p[:, second])
    torch.testing.assert_close(pairwise_coupling(pairs, k), p)


@pytest.mark.parametrize("k", [3, 5])
def test_pairwise_coupling_minimises_its_objective(k):
    """Against random probabilities nearby and far away, on pairs that contradict each other."""
    pairs = torch.rand(k * (k - 1) // 2, generator=generator(), dtype=torch.float64).clamp(0.01, 0.99)
    r = torch.zeros(k, k, dtype=torch.float64)
    for i, j in itertools.combinations(range(k), 2):
        column = int(pair_column(torch.tensor(i), torch.tensor(j), k))
        r[i, j], r[j, i] = pairs[column], 1 - pairs[column]

    def objective(p):
        return sum((r[j, i] * p[..., i] - r[i, j] * p[..., j]) ** 2 for i in range(k) for j in range(k) if i != j)

    best = pairwise_coupling(pairs, k)
    assert float(best.sum()) == pytest.approx(1)
    assert bool((best >= 0).all())
    for width in (1e-3, 1e-1, 10.0):
        other = (best + width * torch.rand(500, k, generator=generator(), dtype=torch.float64)).clamp(min=0)
        other = other / other.sum(-1, keepdim=True)
        assert bool((objective(other) >= objective(best) - 1e-12).all())
