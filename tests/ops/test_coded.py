"""Pairwise coupling against its definition."""

import itertools
import math

import pytest
import torch

from torch_multiclass.codes import OneVsAll, one_vs_all, one_vs_one
from torch_multiclass.ops import coded, pairs
from torch_multiclass.ops.coded import as_coding, nearest
from torch_multiclass.ops.coupling import coupled_log_probabilities, pairwise_coupling
from torch_multiclass.ops.margins import as_margin_loss
from torch_multiclass.ops.pairs import label_margins, pair_column


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


@pytest.mark.skipif(not pairs.in_use(), reason="by the native library")
@pytest.mark.parametrize("sparse", [True, False])
def test_margins_of_the_pairs_of_a_label_and_their_derivatives(sparse):
    """``f_yj`` for ``y < j`` and ``-f_jy`` for ``j < y``; the slopes are the same where they are differentiable."""
    k, labels = 4, torch.tensor([2, 0, -1, 3, 2])
    draw = {"generator": generator(), "dtype": torch.float64}
    x, weight, bias = torch.randn(5, 3, **draw), torch.randn(6, 3, **draw), torch.randn(6, **draw)
    inputs = [part.requires_grad_() for part in (x, weight, bias)]
    expected = torch.zeros(5, k - 1, dtype=torch.float64)
    for row, y in enumerate(labels.tolist()):
        for place, j in enumerate(j for j in range(k) if j != y and y >= 0):
            column = int(pair_column(torch.tensor(min(y, j)), torch.tensor(max(y, j)), k))
            expected[row, place] = (1 if y < j else -1) * (weight[column] @ x[row] + bias[column])
    found = label_margins(*inputs, labels, sparse)
    torch.testing.assert_close(found, expected)
    upstream = torch.randn(5, k - 1, **draw)
    right = torch.autograd.grad(expected, inputs, upstream)
    for recorded in (False, True):
        slopes = torch.autograd.grad(found, inputs, upstream, retain_graph=True, create_graph=recorded)
        for slope, wanted in zip(slopes, right, strict=True):
            torch.testing.assert_close(slope.to_dense(), wanted)


@pytest.mark.parametrize("recorded", [True, False])
def test_coupling_of_margins(recorded):
    """Of pairs won with ``1 / (1 + e^{-2 f})``, never quite certain; an absent class loses to each that is not."""
    f = torch.tensor([[[0.3, -1.0, 0.5]], [[100.0, 100.0, -0.2]]], dtype=torch.float64, requires_grad=recorded)
    pairs = torch.tensor(
        [[[1 / (1 + math.exp(-2 * z)) for z in (0.3, -1.0, 0.5)]], [[0.0, 0.0, 0.0]]], dtype=torch.float64
    )
    pairs[1, 0] = torch.tensor([1 - 1e-7, 1 - 1e-7, 1 / (1 + math.exp(0.4))], dtype=torch.float64)
    torch.testing.assert_close(coupled_log_probabilities(f, 3).detach(), pairwise_coupling(pairs, 3).log())
    without = torch.tensor([False, True, False])
    pairs[..., 0], pairs[..., 2] = 1 - 1e-7, 1e-7
    found = coupled_log_probabilities(f, 3, without).detach()
    torch.testing.assert_close(found, pairwise_coupling(pairs, 3).log())
    two = coupled_log_probabilities(f[..., :1], 2).detach()[:, 0]
    torch.testing.assert_close(
        two.exp(), torch.tensor([[0.6456563062, 0.3543436938], [1 - 1e-7, 1e-7]], dtype=torch.float64)
    )


@pytest.mark.parametrize("name", ["hinge", "logistic", "exponential", "squared", "zero_one"])
@pytest.mark.parametrize("shape", [(), (6,), (2, 4)])
def test_the_nearest_row_is_one_for_each_row_of_margins(name, shape):
    """A code that is not written out, by the formula ``argmin_r sum_s l(M(r, s) f_s)``."""
    margins, loss, code = torch.randn(*shape, 5, generator=generator()), as_margin_loss(name), one_vs_all(5)
    expected = loss.value(margins.double().unsqueeze(-2) * code).sum(-1).argmin(-1)
    for given in (code, as_coding(code), OneVsAll(5)):
        found = nearest(margins, given, loss)
        assert torch.equal(found, expected)


@pytest.mark.parametrize("full", [False, True])
def test_what_the_columns_of_a_label_say(full):
    """``M(y, s) f_s``, and 0 where a column does not ask about the label, whatever stands there."""
    code = torch.tensor([[1, -1, 1], [-1, 1, 1], [-1, -1, -1]] if full else [[1, 0, 1], [-1, 1, 0], [0, -1, -1]])
    margins, labels = torch.tensor([[2.0, math.nan, 0.5], [4.0, -8.0, math.inf]]), torch.tensor([0, 1])
    if full:
        margins = margins.nan_to_num(3.0)
    found, asked = as_coding(code).of_label(margins, labels)
    expected = torch.where(code[labels] == 0, 0.0, code[labels] * margins)
    assert torch.equal(found, expected)
    assert asked is None or torch.equal(asked, code[labels] != 0)


def test_scores_that_rounding_may_have_ordered():
    eps, inf = torch.finfo(torch.float32).eps, math.inf
    rows = torch.tensor([[1.0, 1.0, 0.0], [1.0, 1 - 16 * eps, 0.0], [1.0, 0.9, 0.0], [0.0, -inf, -inf], [-inf] * 3])
    assert coded._close(rows, 4).tolist() == [True, True, False, False, True]
    assert coded._close(torch.tensor([[1000.0, 1000 - 1e-3]]), 4).tolist() == [True]
    assert coded._close(torch.tensor([[1.0, 1 - 1e-3]]), 4).tolist() == [False]


def test_the_label_is_raised_to_the_next_number_above():
    scores = torch.tensor([[1.0, 3.0, 2.0], [5.0, 0.0, 0.0], [-math.inf, -math.inf, -math.inf]], requires_grad=True)
    made = coded.raised(scores, torch.tensor([2, 0, 1]))
    found = made.detach()
    above = torch.nextafter(torch.tensor(3.0), torch.tensor(4.0))
    assert found.argmax(1).tolist() == [2, 0, 1]
    assert float(found[0, 2]) <= 3 * (1 + 2 * torch.finfo(torch.float32).eps)
    assert float(found[0, 2]) >= float(above)
    assert torch.equal(found[:2, :2], scores.detach()[:2, :2])
    assert torch.equal(torch.autograd.grad(made[:2].sum(), scores)[0][:2], torch.ones(2, 3))


@pytest.mark.parametrize("k", [3, 5, 40])
def test_votes_are_counted_by_hand(k):
    for code in (one_vs_one(k), one_vs_all(k)):
        margins = torch.randn(4, code.shape[1], generator=generator())
        margins[0, 0] = 0.0
        terms = (1 + (code.T[None] * margins[..., None]).sign()) / 2 * (code.T != 0)
        torch.testing.assert_close(coded.votes(margins, code), terms.sum(1))


@pytest.mark.parametrize("k", [3, 40])
def test_sums_over_pairs_and_their_gradients(k):
    first, second = torch.triu_indices(k, k, 1)
    parts = [torch.randn(2, k * (k - 1) // 2, generator=generator(), dtype=torch.float64) for _ in range(2)]
    agree, against = (part.requires_grad_() for part in parts)
    weights = torch.randn(2, k, generator=generator(), dtype=torch.float64)
    for sums in (pairs.pair_sums(agree, against, k), pairs.PairSums.apply(agree, against, k)):
        wanted = torch.zeros(2, k, dtype=torch.float64)
        for column, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
            wanted[:, a] += agree[:, column].detach()
            wanted[:, b] += against[:, column].detach()
        torch.testing.assert_close(sums, wanted)
        found = torch.autograd.grad((sums * weights).sum(), [agree, against])
        assert torch.equal(found[0], weights[:, first])
        assert torch.equal(found[1], weights[:, second])
