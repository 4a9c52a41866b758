"""Identities and bounds that hold for all scores, labels and costs."""

import torch
from hypothesis import given
from hypothesis import strategies as st

import torch_multiclass as tm
from torch_multiclass import functional as F

EPS = 1e-9


@st.composite
def labelled_scores(draw):
    num_classes, rows = draw(st.integers(1, 7)), draw(st.integers(1, 8))
    spread = draw(st.sampled_from([0.1, 1.0, 10.0]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    scores = torch.randn(rows, num_classes, dtype=torch.float64, generator=generator) * spread
    if draw(st.booleans()):
        scores = scores.round()  # ties
    return scores, torch.randint(num_classes, (rows,), generator=generator)


@st.composite
def with_cost(draw):
    scores, y = draw(labelled_scores())
    num_classes = scores.shape[-1]
    entries = draw(st.lists(st.integers(0, 5), min_size=num_classes**2, max_size=num_classes**2))
    cost = torch.tensor(entries, dtype=torch.float64).reshape(num_classes, num_classes)
    return scores, y, cost.fill_diagonal_(0)


def each(function, scores, y, **kwargs):
    return function(scores, y, reduction="none", **kwargs)


@given(labelled_scores())
def test_with_zero_one_cost_all_margins_agree(case):
    crammer_singer = each(F.crammer_singer_loss, *case)
    torch.testing.assert_close(each(F.m3n_loss, *case), crammer_singer)
    torch.testing.assert_close(each(F.svmstruct_loss, *case), crammer_singer)


@given(labelled_scores())
def test_crf_is_cross_entropy(case):
    torch.testing.assert_close(each(F.crf_loss, *case), each(torch.nn.functional.cross_entropy, *case))


@given(with_cost(), st.sampled_from([0.1, 0.5, 1.0, 3.0]))
def test_the_soft_max_bounds_the_max(case, temperature):
    scores, y, cost = case
    m3n = each(F.m3n_loss, scores, y, cost=cost)
    crf = each(F.crf_loss, scores, y, cost=cost, temperature=temperature)
    assert (crf >= m3n - EPS).all()
    slack = temperature * torch.tensor(float(scores.shape[-1])).log()
    assert (crf <= m3n + slack + EPS).all()  # so that it tends to it with the temperature


@given(with_cost())
def test_every_max_margin_loss_bounds_the_cost_of_its_prediction(case):
    scores, y, cost = case
    suffered = cost[y, tm.ArgmaxDecoder()(scores)]
    m3n = each(F.m3n_loss, scores, y, cost=cost)
    assert (suffered <= m3n + EPS).all()
    assert (m3n <= each(F.crf_loss, scores, y, cost=cost) + EPS).all()
    assert (suffered <= each(F.svmstruct_loss, scores, y, cost=cost) + EPS).all()


LOSSES = [F.crammer_singer_loss, F.weston_watkins_loss, F.m3n_loss, F.svmstruct_loss, F.crf_loss,
          F.structured_perceptron_loss]  # fmt: skip


@given(labelled_scores(), st.sampled_from(LOSSES), st.floats(-1e3, 1e3))
def test_a_constant_changes_nothing_and_no_loss_is_negative(case, loss, constant):
    scores, y = case
    value = each(loss, scores, y)
    assert (value >= -EPS).all()
    torch.testing.assert_close(each(loss, scores + constant, y), value, rtol=1e-9, atol=1e-9)


@given(labelled_scores())
def test_the_order_of_the_hinges(case):
    """0/1 error <= Crammer-Singer <= Weston-Watkins <= (K - 1) Crammer-Singer; ramp <= 1[margin < rho]."""
    scores, y = case
    rho = F.margin(scores, y)
    crammer_singer, weston_watkins = each(F.crammer_singer_loss, *case), each(F.weston_watkins_loss, *case)
    assert ((rho <= 0) <= crammer_singer + EPS).all()
    assert (crammer_singer <= weston_watkins + EPS).all()
    assert (weston_watkins <= (scores.shape[-1] - 1) * crammer_singer + EPS).all()
    for width in (0.5, 1.0, 4.0):
        ramp = each(F.margin_ramp_loss, *case, rho=width)
        assert (ramp <= (rho <= width).double()).all()
        assert (ramp >= (rho <= 0).double()).all()
        assert (ramp <= 1).all()
        assert (ramp.mean() <= (rho <= width).double().mean() + EPS).all()


@given(labelled_scores())
def test_the_bounds_of_the_exponential_losses(case):
    scores, y = case
    num_classes = scores.shape[-1]
    signs = torch.where(torch.nn.functional.one_hot(y, num_classes).bool(), 1.0, -1.0).double()
    mh, averaged = each(F.adaboost_loss, *case), each(F.adaboost_loss, *case, variant="averaged")
    assert (averaged <= mh / num_classes + EPS).all()  # Jensen
    assert ((signs * scores <= 0).sum(-1) <= mh + EPS).all()  # Hamming error
    assert ((F.margin(scores, y) <= 0) <= each(F.adaboost_loss, *case, variant="mr") + EPS).all()  # 0/1 error
    assert (((signs * scores).sum(-1) <= 0) <= averaged + EPS).all()
    torch.testing.assert_close(each(F.adaboost_loss, scores, signs), mh)


def test_the_averaged_loss_bounds_neither_error():
    """Where every bound claimed of it fails: y.f = (-1, 10); and f = (0, 0, -100) with label 0."""
    y = torch.tensor([[1, 1]])
    f = torch.tensor([[-1.0, 10.0]])
    assert F.adaboost_loss(f, y, variant="averaged") < 1 / 2  # one of two labels is wrong
    f, label = torch.tensor([[0.0, 0.0, -100.0]]), torch.tensor([0])
    assert F.margin(f, label) <= 0
    assert F.adaboost_loss(f, label, variant="averaged") < 1e-6


@given(labelled_scores())
def test_permuting_the_classes_changes_nothing(case):
    scores, y = case
    order = torch.randperm(scores.shape[-1])
    inverse = order.argsort()
    for loss in LOSSES:
        torch.testing.assert_close(each(loss, scores[:, order], inverse[y]), each(loss, scores, y))
