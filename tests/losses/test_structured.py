"""The structured losses on sequences: against enumeration, their properties, and pytorch-crf."""

from __future__ import annotations

import math
from unittest import mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import torch_multiclass as tm
from tests.references.drawn import chains, close, draw_chain, draw_target, leaves, rows, seeds
from torch_multiclass import functional as F
from torch_multiclass.ops.chain import slack

INF = math.inf


@pytest.fixture(params=["dynamic program", "search first"])
def either_way(request, monkeypatch):
    """Slack rescaling with the search that skips hopeless costs, and without."""
    monkeypatch.setattr(slack, "_SEARCH_FROM", 0 if request.param == "search first" else INF)


def whole_costs(seed: int, k: int) -> torch.Tensor:
    g = torch.Generator().manual_seed(seed)
    return torch.randint(0, 4, (k, k), generator=g, dtype=torch.float64).fill_diagonal_(0)


def each(function, scores, target, **kwargs):
    return function(scores, target, reduction="none", **kwargs)


def expected(scores, target, value):
    """``value(enumeration, target)`` of every sequence: 0 without a label, +inf for a forbidden gold."""
    out = []
    for e, y in zip(rows(scores), target.reshape(scores.batch_shape.numel(), target.shape[-1]), strict=True):
        if not any(int(y[t]) != -100 for t in e.where):
            out.append(torch.zeros((), dtype=torch.float64))
        elif e.gold(y) == -INF:
            out.append(torch.tensor(INF, dtype=torch.float64))
        else:
            out.append(torch.as_tensor(value(e, y), dtype=torch.float64))
    return out


@given(chains, seeds, st.booleans())
def test_m3n(scores, seed, normalize):
    target = draw_target(scores, seed)
    matrix = whole_costs(seed, scores.num_classes)
    close(each(F.m3n_loss, scores, target), expected(scores, target, lambda e, y: e.m3n(y)))
    ours = each(F.m3n_loss, scores, target, cost=tm.costs.Matrix(matrix * 0.3, normalize=normalize))
    close(ours, expected(scores, target, lambda e, y: e.m3n(y, matrix=matrix * 0.3, normalize=normalize)))


@given(chains, seeds, st.booleans())
def test_svmstruct(either_way, scores, seed, normalize):
    target = draw_target(scores, seed)
    matrix = whole_costs(seed, scores.num_classes)
    close(each(F.svmstruct_loss, scores, target), expected(scores, target, lambda e, y: e.slack(y)))
    cost = tm.costs.Matrix(matrix * 0.7, normalize=normalize)
    exact = expected(scores, target, lambda e, y: e.slack(y, matrix=matrix * 0.7, normalize=normalize))
    close(each(F.svmstruct_loss, scores, target, cost=cost), exact)


@given(chains, seeds)
def test_svmstruct_bounds(scores, seed):
    target = draw_target(scores, seed)
    matrix = whole_costs(seed, scores.num_classes) * torch.rand(1, dtype=torch.float64) + 0.1 * math.pi
    cost = tm.costs.Matrix(matrix.fill_diagonal_(0))
    exact = expected(scores, target, lambda e, y: e.slack(y, matrix=cost.matrix))
    lower, upper = each(F.svmstruct_bounds, scores, target, cost=cost)
    inexact = each(F.svmstruct_loss, scores, target, cost=cost, exact=False)
    torch.testing.assert_close(inexact, lower, rtol=1e-9, atol=1e-9)
    truth = torch.stack(exact).view(lower.shape) if exact else lower
    room = 1e-9 + 1e-9 * truth.nan_to_num(posinf=0).abs()
    assert bool(((lower <= truth + room) & (truth <= upper + room)).all())


@given(chains, seeds)
def test_slack_curve(scores, seed):
    target = draw_target(scores, seed, 0.0)
    matrix = whole_costs(seed, scores.num_classes)
    costs, best = scores.slack_curve(tm.costs.Matrix(matrix), target)
    n = scores.batch_shape.numel()
    flat = zip(rows(scores), target.view(n, -1) if target.numel() else target.new_zeros(n, 0), strict=True)
    for (e, y), c, v in zip(flat, costs.view(n, costs.shape[-1]), best.view(n, best.shape[-1]), strict=True):
        curve = e.slack_curve(y, matrix=matrix) if e.gold(y) > -INF else None
        for cost, value in zip(c.tolist(), v.tolist(), strict=True):
            if curve is None:
                assert value in (INF, -INF)
            else:
                assert value == pytest.approx(curve.get(round(cost, 6), -INF), abs=1e-9)


@given(chains, seeds, st.sampled_from([0.25, 1.0, 3.0]))
def test_crf_and_soft_margin(scores, seed, temperature):
    target = draw_target(scores, seed)
    plain = each(F.crf_loss, scores, target, temperature=temperature)
    close(plain, expected(scores, target, lambda e, y: e.crf(y, temperature)))
    soft = each(F.crf_loss, scores, target, cost="hamming", temperature=temperature)
    close(soft, expected(scores, target, lambda e, y: e.crf(y, temperature, e.costs(y))))


@given(chains, seeds)
def test_structured_perceptron(scores, seed):
    target = draw_target(scores, seed)
    ours = each(F.structured_perceptron_loss, scores, target)
    close(ours, expected(scores, target, lambda e, y: e.best()[1] - e.gold(y)))


@given(chains, seeds)
def test_order_of_the_losses(scores, seed):
    """L(y*, argmax s) <= M3N <= CRF with the cost, L(y*, argmax s) <= SVMStruct, and all are >= 0."""
    target = draw_target(scores, seed, 0.0)
    m3n, slack_ = each(F.m3n_loss, scores, target), each(F.svmstruct_loss, scores, target)
    soft = each(F.crf_loss, scores, target, cost="hamming")
    mistakes = ((scores.decode().labels != target) & scores.positions).sum(-1)
    room = 1e-9 * (1 + m3n.nan_to_num(posinf=0).abs())
    assert bool((mistakes <= m3n + room).all())
    assert bool((m3n <= soft + room).all())
    assert bool((mistakes <= slack_ + room).all())
    nll, perceptron = each(F.crf_loss, scores, target), each(F.structured_perceptron_loss, scores, target)
    for loss in (m3n, slack_, soft, nll, perceptron):
        assert bool((loss >= -room).all())


@given(chains, seeds)
def test_low_temperature_tends_to_the_max_margin_loss(scores, seed):
    target = draw_target(scores, seed, 0.0)
    m3n = each(F.m3n_loss, scores, target)
    cold = each(F.crf_loss, scores, target, cost="hamming", temperature=1e-3)
    torch.testing.assert_close(cold, m3n, rtol=1e-9, atol=1e-3 * math.log(81) + 1e-9)


@given(chains, seeds, st.floats(-50, 50))
def test_a_constant_added_to_all_scores_changes_nothing(scores, seed, constant):
    target = draw_target(scores, seed)
    moved = tm.ChainScores(
        scores.emissions + constant,
        scores.transitions,
        start=scores.start,
        end=scores.end,
        mask=scores.mask,
        lengths=scores.lengths,
    )
    for function in (F.m3n_loss, F.svmstruct_loss, F.crf_loss, F.structured_perceptron_loss):
        torch.testing.assert_close(each(function, moved, target), each(function, scores, target), rtol=1e-9, atol=1e-8)


LOSSES = {
    "crf": F.crf_loss,
    "m3n": F.m3n_loss,
    "svmstruct": F.svmstruct_loss,
    "perceptron": F.structured_perceptron_loss,
    "soft margin": lambda s, y, **k: F.crf_loss(s, y, cost="hamming", **k),
}


@pytest.mark.parametrize("name", LOSSES)
def test_one_position_equals_the_flat_case(name):
    scores = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([0, 1, 2, 3, -100, 1])
    chain = tm.ChainScores(scores.unsqueeze(1), torch.randn(4, 4, dtype=torch.float64))
    for reduction in ("none", "mean", "sum", "token_mean"):
        flat = LOSSES[name](scores, target, reduction=reduction)
        ours = LOSSES[name](chain, target.unsqueeze(1), reduction=reduction)
        torch.testing.assert_close(ours, flat)
        g = [torch.autograd.grad(loss.sum(), scores)[0] for loss in (flat, ours)]
        torch.testing.assert_close(g[1], g[0])


@pytest.mark.parametrize("name", LOSSES)
def test_reductions_count_sequences_and_positions(name):
    scores = draw_chain(3, (4,), 5, 3, masking="holes")
    target = draw_target(scores, 3)
    target[0] = -100  # nothing is labelled there
    losses = LOSSES[name](scores, target, reduction="none")
    labelled = ((target != -100) & scores.positions).sum(-1)
    assert losses[0] == 0
    torch.testing.assert_close(LOSSES[name](scores, target), losses.sum() / (labelled > 0).sum())
    torch.testing.assert_close(LOSSES[name](scores, target, reduction="token_mean"), losses.sum() / labelled.sum())
    own = torch.where(target == -100, 9, target)
    torch.testing.assert_close(LOSSES[name](scores, own, ignore_index=9), losses.sum() / (labelled > 0).sum())


@pytest.mark.parametrize("name", LOSSES)
def test_a_forbidden_target_costs_infinity_with_zero_gradient(name):
    moves = torch.tensor([[0.0, -INF], [1.0, 0.5]], requires_grad=True)
    emissions = torch.randn(2, 3, 2, requires_grad=True)
    target = torch.tensor([[0, 1, 1], [1, 1, 0]])
    losses = LOSSES[name](tm.ChainScores(emissions, moves), target, reduction="none")
    assert losses[0] == INF
    assert math.isfinite(losses[1].item())
    emission_grad, move_grad = torch.autograd.grad(losses[0], (emissions, moves), retain_graph=True)
    assert not emission_grad.any()
    assert not move_grad.any()
    for grad in torch.autograd.grad(losses[1], (emissions, moves)):
        assert bool(grad.isfinite().all())


def test_slack_gradient_is_that_of_the_winning_labelling(either_way):
    scores, (emissions, *_) = leaves(draw_chain(9, (3,), 7, 4, masking="holes"))
    target = draw_target(scores, 9)
    losses = each(F.svmstruct_loss, scores, target)
    (grad,) = torch.autograd.grad(losses.sum(), emissions)
    step = torch.randn_like(grad).where(scores.positions.unsqueeze(-1), 0.0) * 1e-6
    moved = tm.ChainScores(
        emissions.detach() + step, scores.transitions, start=scores.start, end=scores.end, mask=scores.mask
    )
    change = each(F.svmstruct_loss, moved, target).sum() - losses.sum()
    torch.testing.assert_close(change, (grad * step).sum(), rtol=1e-4, atol=1e-10)


def test_a_long_sequence_is_searched_first_and_the_value_is_the_same():
    scores = draw_chain(4, (3,), 120, 5, dtype=torch.float32, masking="lengths")
    target = draw_target(scores, 4)
    plain = each(F.svmstruct_loss, scores, target)
    with mock.patch.object(slack, "_SEARCH_FROM", 0):
        searched = each(F.svmstruct_loss, scores, target)
    torch.testing.assert_close(searched, plain, rtol=1e-5, atol=1e-4)
    lower, upper = each(F.svmstruct_bounds, scores, target)
    assert bool((lower <= plain * 1.00001 + 1e-3).all() and (plain <= upper * 1.00001 + 1e-3).all())


def test_a_winning_cost_that_the_search_never_visits(monkeypatch):
    """The best labelling lies under the hull, and the best corner of the hull costs 0."""
    arguments = {"batch": (3,), "steps": 3, "k": 2, "masking": "lengths", "ends": "rows"}
    scores = draw_chain(367801, **arguments)
    target = draw_target(scores, 3685)
    monkeypatch.setattr(slack, "_SEARCH_FROM", 0)
    close(each(F.svmstruct_loss, scores, target), expected(scores, target, lambda e, y: e.slack(y)))


def test_bad_costs_are_named():
    scores = tm.ChainScores(torch.zeros(1, 2, 2), torch.zeros(2, 2))
    y = torch.zeros(1, 2, dtype=torch.long)
    odd = [[0.0, 1.0], [math.pi, 0.0]]
    with pytest.raises(ValueError, match=r"not whole multiples of one unit.*exact=False"):
        tm.SVMStructLoss(cost=odd)(scores, y)
    assert math.isfinite(tm.SVMStructLoss(cost=odd, exact=False)(scores, y))
    assert "exact=False" in repr(tm.SVMStructLoss(exact=False))
    with pytest.raises(ValueError, match="cost: is 2 x 2, but the scores have 3 classes"):
        tm.M3NLoss(cost=odd)(tm.ChainScores(torch.zeros(1, 2, 3), torch.zeros(3, 3)), y)


def test_a_cost_matrix_for_each_sequence():
    scores = draw_chain(2, (2,), 3, 3)
    target = draw_target(scores, 2)
    matrices = torch.stack([whole_costs(1, 3), whole_costs(2, 3)])
    for function, value in ((F.m3n_loss, "m3n"), (F.svmstruct_loss, "slack")):
        ours = each(function, scores, target, cost=matrices)
        truth = [getattr(e, value)(y, matrix=m) for e, y, m in zip(rows(scores), target, matrices, strict=True)]
        torch.testing.assert_close(ours, torch.tensor([float(v) for v in truth], dtype=torch.float64))


def test_equals_pytorch_crf(dtype):
    torchcrf = pytest.importorskip("torchcrf")
    torch.manual_seed(0)
    theirs = torchcrf.CRF(5, batch_first=True).to(dtype)
    e = torch.randn(3, 6, 5, dtype=dtype, requires_grad=True)
    y = torch.randint(5, (3, 6))
    lengths = torch.tensor([6, 3, 1])
    mask = torch.arange(6) < lengths.unsqueeze(1)
    parts = (e, theirs.transitions, theirs.start_transitions, theirs.end_transitions)
    ours = tm.ChainScores(parts[0], parts[1], start=parts[2], end=parts[3], lengths=lengths)
    expected_ = -theirs(e, y, mask=mask, reduction="sum")
    loss = F.crf_loss(ours, y, reduction="sum")
    torch.testing.assert_close(loss, expected_)
    for a, b in zip(torch.autograd.grad(loss, parts), torch.autograd.grad(expected_, parts), strict=True):
        torch.testing.assert_close(a, b)
    decoded = ours.decode().labels
    assert [row[row >= 0].tolist() for row in decoded] == theirs.decode(e, mask=mask)
