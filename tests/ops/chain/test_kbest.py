"""The k best labellings against all there are, by the library and by torch alone."""

import itertools
import math

import pytest
import torch

from torch_multiclass import ops
from torch_multiclass.ops.chain import Chain


def listed(chain, k):
    """All labellings of each sequence, best first; of equal ones those whose last labels are lowest."""
    batch, steps, classes = chain.emissions.shape
    for b in range(batch):
        length = steps if chain.lengths is None else int(chain.lengths[b])
        found = []
        for y in itertools.product(range(classes), repeat=length):
            score = sum(float(chain.emissions[b, t, label]) for t, label in enumerate(y))
            score += sum(float(chain.step(t).expand(batch, -1, -1)[b, y[t - 1], y[t]]) for t in range(1, length))
            score += float(chain.start.expand(batch, -1)[b, y[0]] + chain.end.expand(batch, -1)[b, y[-1]]) if y else 0.0
            if score > -math.inf:
                found.append((score, y))
        yield sorted(found, key=lambda pair: (-pair[0], pair[1][::-1]))[:k]


@pytest.mark.parametrize("k", [1, 2, 4, 30])
@pytest.mark.parametrize("forbidden", [False, True])
@pytest.mark.parametrize("lengths", [None, [4, 2, 0, 1]])
def test_they_are_the_best_of_all_in_order(k, forbidden, lengths):
    draws = torch.Generator().manual_seed(k)
    emissions, moves, start, end = (
        torch.randint(-9, 9, size, generator=draws).double() for size in ((4, 4, 2), (2, 2), (2,), (2,))
    )
    if forbidden:
        moves[1, 0] = -math.inf
    chain = Chain.of(emissions, moves, start=start, end=end, lengths=None if lengths is None else torch.tensor(lengths))
    labels, scores = ops.chain.k_best(chain, k)
    for b, expected in enumerate(listed(chain, k)):
        some = len(expected)
        assert scores[b, :some].tolist() == [score for score, _ in expected]
        assert (scores[b, some:] == -math.inf).all()
        assert (labels[b, some:] == -100).all()
        for row, (_, y) in zip(labels[b], expected, strict=False):
            assert row[: len(y)].tolist() == list(y)
            assert (row[len(y) :] == -100).all()
