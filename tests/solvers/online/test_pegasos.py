"""Pegasos against its definition, step by step, and on compressed rows."""

import numpy as np
import pytest
import torch

from tests.contracts.online import compressed
from torch_multiclass.solvers import Pegasos


def by_definition(batches, classes, strength, expected):
    """``W`` after each batch, and the average."""
    weights, average, averaged = np.zeros((classes, batches[0][0].shape[1])), 0.0, 0
    for t, (x, y) in enumerate(batches, 1):
        scores = x @ weights.T
        slope = np.zeros_like(weights)
        for row, label, found in zip(x, y, scores, strict=True):
            losses = [0.0 if k == label else found[k] - found[label] + 1 for k in range(classes)]
            worst = int(np.argmax(losses))
            slope[worst] += row / len(x)
            slope[label] -= row / len(x)
        weights = (1 - 1 / t) * weights - slope / (strength * t)
        weights = weights * min(1.0, (2 / strength) ** 0.5 / max(np.linalg.norm(weights), 1e-30))
        if expected is None:
            averaged += t
            average = average + t * weights
        elif 2 * t > expected:
            averaged += 1
            average = average + weights
    return average / averaged


def drawn(rows=40):
    g = torch.Generator().manual_seed(0)
    x = torch.randn(rows, 4, generator=g).double() * (torch.rand(rows, 4, generator=g) < 0.7)
    return x, torch.arange(rows) % 3


@pytest.mark.parametrize("batch", [1, 6, 40])
def test_a_fit_is_what_it_says(batch):
    x, y = drawn()
    generator, batches = torch.Generator().manual_seed(0), []
    for _ in range(3):
        for rows in torch.randperm(40, generator=generator).split(batch):
            batches.append((x[rows].numpy(), y[rows].tolist()))
    expected = by_definition(batches, 3, 0.05, len(batches))
    scorer, report = Pegasos(regularisation=0.05, epochs=3, batch_size=batch).fit(x, y)
    assert report.iterations == len(batches)
    torch.testing.assert_close(scorer.weight.detach(), torch.tensor(expected), rtol=1e-9, atol=1e-9)


def test_a_stream_is_what_it_says():
    x, y = drawn()
    parts = [(x[rows], y[rows]) for rows in torch.arange(40).split(7)]
    expected = by_definition([(a.numpy(), b.tolist()) for a, b in parts], 3, 0.05, None)
    scorer = Pegasos(regularisation=0.05).fit_stream(parts, 4, 3).scorer
    torch.testing.assert_close(scorer.weight.detach(), torch.tensor(expected), rtol=1e-9, atol=1e-9)
    marked = [(torch.cat([a, a[:1]]), torch.cat([b, torch.tensor([-100])])) for a, b in parts]
    again = Pegasos(regularisation=0.05).fit_stream([*marked[:2], (x[:0], y[:0]), *marked[2:]], 4, 3).scorer
    assert torch.equal(again.weight, scorer.weight)


def test_compressed_rows_are_as_good_as_dense_ones():
    x, y = drawn()
    weight = torch.rand(40, generator=torch.Generator().manual_seed(1))
    weight[3] = 0
    for bias in (False, True):
        learner = Pegasos(C=2.0, bias=bias, batch_size=5)
        dense = learner.fit(x, y, weight=weight)
        streamed = Pegasos(regularisation=0.05, bias=bias).fit_stream([(x, y)], 4, 3).scorer
        for given in compressed(x):
            fit = learner.fit(given, y, weight=weight)
            torch.testing.assert_close(fit.scorer.weight, dense.scorer.weight, rtol=1e-9, atol=1e-9)
            assert fit.report.primal == pytest.approx(dense.report.primal, rel=1e-9)
            again = Pegasos(regularisation=0.05, bias=bias).fit_stream([(given, y)], 4, 3).scorer
            torch.testing.assert_close(again.weight, streamed.weight, rtol=1e-9, atol=1e-9)
