"""The verbs of one label, against enumeration."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import torch_multiclass as tm
from torch_multiclass import costs

F64 = torch.float64


def case(device, rows=7, num_classes=5):
    return (
        torch.randn(rows, num_classes, dtype=F64, device=device, requires_grad=True),
        torch.randint(num_classes, (rows,), device=device),
    )


def test_relative_augment_scale(device):
    values, y = case(device)
    scores = tm.scores.FlatScores(values)
    gold = values.gather(-1, y[:, None])
    d = scores.relative_to(y)
    torch.testing.assert_close(d.tensor, values - gold)
    assert (d.score(y) == 0).all()
    augmented = d.augment(costs.ZeroOne(), y)
    expected = values - gold + 1 - torch.nn.functional.one_hot(y, 5)
    torch.testing.assert_close(augmented.tensor, expected)
    torch.testing.assert_close(augmented.scale(0.5).tensor, expected / 2)
    torch.testing.assert_close(augmented.augment(costs.ZeroOne(), y).score(y), torch.zeros_like(y, dtype=F64))


@pytest.mark.parametrize("form", ["plain", "relative", "augmented"])
def test_every_verb_sees_the_same_scores(form, device):
    """However scores are kept (reference and costs apart), each verb answers as on the plain tensor."""
    values, y = case(device)
    scores = tm.scores.FlatScores(values)
    if form != "plain":
        scores = scores.relative_to(y)
    if form == "augmented":
        scores = scores.augment(costs.ZeroOne(), y)
    plain = tm.FlatScores(scores.tensor)
    p = torch.softmax(plain.tensor, -1)
    torch.testing.assert_close(scores.max_score(), plain.tensor.amax(-1))
    torch.testing.assert_close(scores.log_partition(), torch.logsumexp(plain.tensor, -1))
    torch.testing.assert_close(scores.marginals(), p)
    torch.testing.assert_close(scores.entropy(), torch.distributions.Categorical(p).entropy())
    assert torch.equal(scores.decode().labels, plain.tensor.argmax(-1))
    torch.testing.assert_close(scores.decode().score, plain.tensor.amax(-1))
    best = scores.top(3)
    torch.testing.assert_close(best.score, plain.tensor.topk(3).values)
    assert torch.equal(best.labels, plain.tensor.topk(3).indices)
    torch.testing.assert_close(scores.slack_max(costs.ZeroOne(), y), plain.slack_max(costs.ZeroOne(), y))
    for verb in ("max_score", "log_partition", "entropy"):
        assert torch.autograd.gradcheck(lambda v, verb=verb: getattr(rebuild(form, v, y), verb)(), (values,))
        assert torch.autograd.gradgradcheck(lambda v, verb=verb: getattr(rebuild(form, v, y), verb)(), (values,))


def rebuild(form, values, y):
    scores = tm.scores.FlatScores(values)
    scores = scores if form == "plain" else scores.relative_to(y)
    return scores.augment(costs.ZeroOne(), y) if form == "augmented" else scores


def test_an_unknown_label_is_neutral(device):
    values, y = case(device)
    y[2] = -100
    d = tm.scores.FlatScores(values).relative_to(y)
    assert (d.tensor[2] == 0).all()
    assert tm.scores.FlatScores(values).labelled(y).tolist() == [1, 1, 0, 1, 1, 1, 1]
    assert (d.augment(costs.ZeroOne(), y).tensor[2] == 0).all()


def test_several_batch_dimensions(device):
    values, y = case(device, rows=6)
    y[4] = -100
    flat, scores = tm.FlatScores(values), tm.FlatScores(values.view(1, 2, 3, 5))
    for one, many in ((flat, scores), (flat.relative_to(y), scores.relative_to(y.view(1, 2, 3)))):
        assert torch.equal(many.tensor.view(6, 5), one.tensor)
        assert torch.equal(many.decode().labels.flatten(), one.decode().labels)
        torch.testing.assert_close(many.entropy().flatten(), one.entropy())


def test_scores_relative_to_a_forbidden_label(device):
    """Infinitely better, whatever the others are, and without a gradient."""
    values = torch.tensor([[-math.inf, 2.0, -3.0], [1.0, 2.0, 4.0]], device=device, requires_grad=True)
    d = tm.FlatScores(values).relative_to(torch.tensor([0, 1], device=device)).tensor
    assert d.tolist() == [[math.inf] * 3, [-1.0, 0.0, 2.0]]
    (gradient,) = torch.autograd.grad(d[1].sum() + d[0].sum(), values)
    assert gradient.tolist() == [[0, 0, 0], [1, -2, 1]]


@pytest.mark.parametrize("level", [[1e6, 1e6 + 1, 1e6 + 2], [0.0, 1.0, 2.0, -1e8], [0.0, 1.0, 2.0, -math.inf]])
def test_the_entropy_loses_no_digits_far_from_zero(level, device):
    expected = tm.FlatScores(torch.tensor([0.0, 1.0, 2.0], dtype=F64)).entropy()
    found = tm.FlatScores(torch.tensor(level, device=device)).entropy()
    torch.testing.assert_close(found.cpu().double(), expected, rtol=1e-6, atol=0)


def test_top_pads_where_fewer_exist(device):
    best = tm.FlatScores(torch.tensor([[0.0, -math.inf, 1.0], [2.0, 2.0, 2.0]], device=device)).top(4)
    assert best.labels.tolist() == [[2, 0, -100, -100], [0, 1, 2, -100]]  # ties in order of the classes
    assert best.score.tolist() == [[1, 0, -math.inf, -math.inf], [2, 2, 2, -math.inf]]


def test_sampling_matches_the_marginals(device):
    generator = torch.Generator(device).manual_seed(3)
    scores = tm.FlatScores(torch.tensor([[0.0, 1.0, -math.inf, 0.5]], device=device))
    draws = scores.sample(20_000, generator=generator)
    assert draws.shape == (1, 20_000)
    seen = torch.bincount(draws[0], minlength=4).double()
    expected = scores.marginals()[0].double() * 20_000
    assert seen[2] == 0
    chi_square = ((seen - expected)[[0, 1, 3]] ** 2 / expected[[0, 1, 3]]).sum()
    assert chi_square < 13.8  # 2 degrees of freedom, p = 0.001
    assert tm.FlatScores(torch.zeros(0, 3, device=device)).sample(2).shape == (0, 2)


def test_no_legal_class(device):
    values = torch.full((2, 3), -math.inf, device=device, requires_grad=True)
    scores = tm.scores.FlatScores(values)
    log_z = scores.log_partition()
    assert (log_z == -math.inf).all()
    log_z.sum().backward()
    assert (values.grad == 0).all()
    assert (scores.marginals() == 0).all()


@given(st.integers(1, 6), st.floats(-1e4, 1e4), st.integers(0, 2**31))
def test_log_partition_at_any_level(num_classes, level, seed):
    values = torch.randn(3, num_classes, generator=torch.Generator().manual_seed(seed)) * 10 + level
    expected = torch.logsumexp(values.double(), -1)
    torch.testing.assert_close(tm.scores.FlatScores(values).log_partition().double(), expected, rtol=1e-6, atol=1e-5)


def test_scores_cross_module_borders(device):
    """They are pytrees: vmap, export and compile take them apart and put them together."""
    from torch.utils import _pytree as pytree

    scores = tm.FlatScores(torch.randn(4, 3, device=device)).relative_to(
        torch.zeros(4, dtype=torch.long, device=device)
    )
    leaves, spec = pytree.tree_flatten(scores)
    again = pytree.tree_unflatten(leaves, spec)
    assert torch.equal(again.tensor, scores.tensor)
    torch.testing.assert_close(torch.func.vmap(lambda s: s.log_partition())(scores), scores.log_partition())


def test_bad_input(device):
    scores = tm.FlatScores(torch.randn(4, 3, device=device))
    with pytest.raises(ValueError, match="k: got 0"):
        scores.top(0)
    with pytest.raises(ValueError, match="n: got -1"):
        scores.sample(-1)
    with pytest.raises(ValueError, match=r"class_dim: got 1 with FlatScores"):
        tm.CRFLoss(class_dim=1)(scores, torch.zeros(4, dtype=torch.long, device=device))


def test_a_factor_for_each_score():
    scores = tm.FlatScores(torch.tensor([[2.0, -1.0], [0.5, 4.0]]))
    assert scores.scale(torch.tensor([[2.0], [0.5]])).tensor.tolist() == [[4.0, -2.0], [0.25, 2.0]]
    with pytest.raises(ValueError, match=r"factor: got shape \(3,\); accepted are those that broadcast to \(2, 2\)"):
        scores.scale(torch.ones(3))
    with pytest.raises(TypeError, match=r"factor: got dtype torch\.int64"):
        scores.scale(torch.ones(2, dtype=torch.long))


def test_nothing_is_drawn_where_there_is_no_distribution():
    """-100 where every class is forbidden, as for the best classes; NaN is named."""
    values = torch.tensor([[-math.inf, -math.inf], [0.0, -math.inf], [-math.inf, 0.0]])
    drawn = tm.scores.FlatScores(values).sample(3)
    assert drawn.tolist() == [[-100] * 3, [0] * 3, [1] * 3]
    assert tm.scores.FlatScores(values[0]).sample(2).tolist() == [-100, -100]
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError, match=r"values: hold NaN or \+inf; accepted are scores"):
            tm.scores.FlatScores(torch.tensor([[0.0, bad], [0.0, 1.0]])).sample()
