"""Boosting: known answers, and naive references."""

import math

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import torch_multiclass as tm
from tests.references.boosting import adaboost_mh, rank_boost
from torch_multiclass.ops.boosting import Discrete, Ranking, Round
from torch_multiclass.solvers import AdaBoost, AdaBoostAveraged, AdaBoostMH, AdaBoostMO, AdaBoostMR

X = torch.tensor(
    [
        *[(3, 4, 5), (8, 1, 3), (5, 9, 1), (10, 5, 2), (1, 7, 0), (4, 3, 9)],
        *[(2, 10, 6), (0, 2, 8), (7, 0, 7), (9, 8, 4), (6, 6, 10)],
    ],
    dtype=torch.float64,
)
Y = torch.tensor([0, 0, 1, 2, 2, 2, 2, 1, 1, 0, 1])
TERNARY = torch.tensor([[1, 1, -1, 0], [-1, 1, 1, 1], [1, -1, 1, -1]])
SIGNED = torch.tensor([[1, 1, -1], [-1, 1, 1], [1, -1, 1]])


def questions(report):
    return [(int(tree.feature[0]), float(tree.threshold[0])) for tree in report.trees]


def near(given, wanted, digits=2e-6):
    assert list(given) == pytest.approx(wanted, abs=digits)


def test_adaboost():
    target = (Y == 0).long()
    scorer, report = AdaBoost(3).fit(X, target)
    assert questions(report) == [(0, 7.5), (1, 4.5), (2, 5.5)]
    near(report.errors, [0.181818, 0.222222, 0.232143])
    near(report.alphas, [0.752039, 0.626381, 0.598125])
    assert report.bound[-1] == pytest.approx(0.541593, abs=1e-6)
    wrong = [
        float(((AdaBoost(t).fit(X, target).scorer(X)[:, 0] > 0) != (target > 0)).float().mean()) for t in (1, 2, 3)
    ]
    near(wrong, [2 / 11, 2 / 11, 1 / 11])
    assert scorer(X).shape == (11, 1)


def test_three_given_classifiers():
    """Each is wrong on its own three of ten examples; what remains is the update of the weights."""
    labels = np.ones((10, 1))
    objective = Discrete(labels, np.ones(10))
    seen = []
    for t in range(3):
        votes = np.ones((10, 1))
        votes[3 * t : 3 * t + 3] = -1
        error = float(np.abs(objective.channels)[votes != labels].sum())
        alpha = 0.5 * math.log((1 - error) / error)
        z = 2 * math.sqrt(error * (1 - error))
        objective.add(np.arange(10), Round(votes, alpha, error, z))
        seen.append((error, alpha, z))
    near([one[0] for one in seen], [3 / 10, 3 / 14, 3 / 22], 1e-12)
    near([one[1] for one in seen], [0.423649, 0.649641, 0.922913])
    assert math.prod(one[2] for one in seen) == pytest.approx(0.516230, abs=1e-6)


def test_mh():
    scorer, report = AdaBoostMH(3).fit(X, Y)
    assert questions(report) == [(2, 6.5), (0, 4.5), (1, 4.5)]
    near(report.errors, [0.272727, 0.319444, 0.294809])
    near(report.alphas, [0.490415, 0.378163, 0.436070])
    assert report.bound[-1] == pytest.approx(0.757454, abs=1e-6)
    near(scorer(X[0]).tolist(), [-0.43251, -1.30465, -0.54832], 1e-5)
    signs = torch.where(torch.nn.functional.one_hot(Y, 3) > 0, 1.0, -1.0)
    hamming = [float((AdaBoostMH(t).fit(X, Y).scorer(X) * signs <= 0).float().mean()) for t in (1, 2, 3)]
    near(hamming, [0.272727, 0.272727, 0.212121])


def test_mh_real_valued():
    scorer, report = AdaBoostMH(3, real=True).fit(X, Y)
    assert questions(report) == [(2, 6.5), (2, 2.5), (2, 5.5)]
    near(report.Z, [0.842470, 0.917862, 0.895633])
    assert report.alphas == [1.0, 1.0, 1.0]
    near(scorer(X[0]).tolist(), [0.28188, -1.00406, -0.61828], 1e-5)


def test_mr():
    scorer, report = AdaBoostMR(3).fit(X, Y)
    assert questions(report) == [(2, 6.5), (0, 4.5), (2, 2.5)]
    near(report.alphas, [0.693147, 0.693147, 0.752039])
    assert report.bound[-1] == pytest.approx(0.612967, abs=1e-6)
    near(scorer(X[0]).tolist(), [0.75204, -2.13833, 0.63426], 1e-5)
    signs = np.where(np.eye(3)[Y.numpy()] > 0, 1.0, -1.0)
    objective, shares = Ranking(signs, np.ones(11)), []
    for tree, alpha, error, z in zip(report.trees, report.alphas, report.errors, report.Z, strict=True):
        leaf = np.where(X.numpy()[:, tree.feature[0]] <= tree.threshold[0], tree.yes[0], tree.no[0])
        shares.append(objective.shares(tree.values[leaf]))
        objective.add(leaf, Round(tree.values, alpha, error, z))
    near([one[0] for one in shares], [0.545455, 0.631579, 0.5625])
    near([one[2] for one in shares], [0.136364, 0.157895, 0.125])
    losses = []
    for rounds in (1, 2, 3):
        scores = AdaBoostMR(rounds).fit(X, Y).scorer(X)
        own = scores.gather(1, Y[:, None])
        others = torch.ones_like(scores, dtype=torch.bool).scatter(1, Y[:, None], False)
        losses.append(float((own <= scores)[others].float().mean()))
    near(losses, [0.454545, 0.318182, 0.227273])


def test_averaged():
    _, report = AdaBoostAveraged(3).fit(X, Y)
    near(report.alphas, [3.139605, 3.006170, 1.703344])
    near(report.bound, [0.494158, 0.163414, 0.090879])


def test_mo_over_a_ternary_code():
    scorer, report = AdaBoostMO(TERNARY, 3).fit(X, Y)
    near(report.errors, [0.268293, 0.290909, 0.304955])
    near(report.alphas, [0.501651, 0.445486, 0.411907])
    assert report.bound[-1] == pytest.approx(0.741168, abs=1e-6)
    scores = scorer(X)
    near(scores.margins[0].tolist(), [1.35904, -0.35574, 0.53523, -1.35904], 1e-5)
    assert float(AdaBoostMO.margins(scores, Y, report)[0]) == pytest.approx(-0.328170, abs=1e-5)
    assert float((TERNARY[Y] == 0).float().mean()) == pytest.approx(0.068182, abs=1e-6)


def test_mo_over_a_code_of_signs():
    scorer, report = AdaBoostMO(SIGNED, 3).fit(X, Y)
    near(report.errors, AdaBoostMH(3).fit(X, Y).report.errors)
    margins = AdaBoostMO.margins(scorer(X), Y, report)
    near(margins[:4].tolist(), [0.039599, 0.293700, -0.035297, 0.035297], 1e-5)
    for theta, bound, share in ((0.0, 1.136181, 0.272727), (0.1, 1.294517, 0.636364)):
        given = {"margin": theta, "total_weight": sum(report.alphas)}
        assert tm.bounds.code_margin(report.bound[-1], SIGNED, **given).value == pytest.approx(bound, abs=1e-6)
        assert float((margins <= theta).float().mean()) == pytest.approx(share, abs=1e-6)


@pytest.mark.filterwarnings("ignore:code")
def test_a_perfect_stump():
    x, y = torch.arange(4.0)[:, None], torch.tensor([0, 0, 1, 1])
    scorer, report = AdaBoostMO([[1, 1, -1], [-1, 1, 1]], 5).fit(x, y)
    assert (report.errors, report.smoothed, report.ending) == ([0.0], True, "perfect")
    near(report.alphas, [0.5 * math.log(13)])
    near(AdaBoostMO.margins(scorer(x), y, report).tolist(), [0.85663] * 4, 1e-5)


def test_a_perfect_weak_learner():
    _, report = AdaBoostMH(9, leaves=3).fit(torch.arange(3.0)[:, None], torch.arange(3))
    assert (report.rounds, report.smoothed, report.ending) == (1, True, "perfect")
    near(report.alphas, [0.5 * math.log(10)])


def test_no_better_than_chance():
    x = torch.ones(4, 2)
    report = AdaBoostMH(2).fit(x, torch.tensor([0, 0, 1, 2])).report
    near(report.errors, [1 / 3, 3 / 8], 1e-12)
    near(report.alphas, [0.5 * math.log(2), 0.5 * math.log(5 / 3)], 1e-12)
    assert [tree.values[0].tolist() for tree in report.trees] == [[-1, -1, -1], [1, -1, -1]]
    scorer, report = AdaBoostMH(500).fit(x, torch.tensor([0, 0, 1, 2]))
    assert report.ending == "no better than chance"
    near(scorer(x)[0].tolist(), [0, -0.5 * math.log(3), -0.5 * math.log(3)], 1e-6)


problems = st.tuples(st.integers(0, 2**32 - 1), st.integers(4, 12), st.integers(1, 3), st.integers(2, 4))


def drawn(problem):
    seed, rows, width, classes = problem
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(6, (rows, width), generator=generator).double()
    signs = torch.randint(2, (rows, classes), generator=generator) * 2 - 1
    signs[0], signs[1] = 1, -1
    signs[0, 0], signs[1, 1] = -1, 1
    return x, signs


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problems)
@pytest.mark.filterwarnings("ignore:.*no base classifier is better than chance")
def test_mh_is_figure_nine_one(problem):
    x, signs = drawn(problem)
    found, scores = adaboost_mh(x.tolist(), signs.tolist(), 6)
    scorer, report = AdaBoostMH(max(len(found), 1)).fit(x, signs)
    if not found:
        assert report.ending in ("perfect", "no better than chance")
        return
    near(report.errors, [one[1] for one in found], 1e-9)
    near(report.alphas, [one[2] for one in found], 1e-8)
    near(report.Z, [one[3] for one in found], 1e-9)
    torch.testing.assert_close(scorer(x), torch.tensor(scores, dtype=torch.float64), rtol=0, atol=1e-7)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problems)
def test_mr_is_rank_boost(problem):
    x, signs = drawn(problem)
    found, scores = rank_boost(x.tolist(), signs.tolist(), 6)
    if not found:
        return
    scorer, report = AdaBoostMR(len(found)).fit(x, signs)
    near(report.alphas, [one[3] for one in found], 1e-8)
    near(report.Z, [one[4] for one in found], 1e-9)
    torch.testing.assert_close(scorer(x), torch.tensor(scores, dtype=torch.float64), rtol=0, atol=1e-7)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problems)
@pytest.mark.filterwarnings("ignore:.*no base classifier is better than chance")
def test_what_the_normalisers_bound_holds_at_every_round(problem):
    x, signs = drawn(problem)
    held = signs > 0
    pairs = held[:, :, None] & ~held[:, None, :]
    errors = {
        AdaBoostMH: lambda f: float((f * signs <= 0).double().mean()),
        AdaBoostMR: lambda f: float((f[:, :, None] <= f[:, None, :])[pairs].double().mean()),
        AdaBoostAveraged: lambda f: float(((f * signs).sum(1) <= 0).double().mean()),
    }
    for solver, error in errors.items():
        for options in ({}, {"real": True}) if solver is AdaBoostMH else ({},):
            report = solver(8, **options).fit(x, signs).report if error else None
            for rounds in range(1, report.rounds + 1):
                part = solver(rounds, **options).fit(x, signs)
                assert error(part.scorer(x)) <= part.report.bound[-1] + 1e-9
                near(part.report.bound, report.bound[:rounds], 1e-12)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problems)
@pytest.mark.filterwarnings("ignore:.*no base classifier is better than chance")
def test_jensen_between_the_objectives(problem):
    """The averaged exponential is below the mean of exponentials, at the same scores."""
    x, signs = drawn(problem)
    for solver in (AdaBoostMH(5), AdaBoostAveraged(5)):
        f = solver.fit(x, signs).scorer(x) * signs
        assert float((-f.mean(1)).exp().mean()) <= float((-f).exp().mean()) * (1 + 1e-9)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_theorem_six_holds_at_every_round(seed, theta):
    generator = torch.Generator().manual_seed(seed)
    x, y = torch.randint(8, (20, 2), generator=generator).double(), torch.randint(3, (20,), generator=generator)
    y[:3] = torch.arange(3)
    for rounds in range(1, 7):
        scorer, report = AdaBoostMO(SIGNED, rounds).fit(x, y)
        if report.ending == "no better than chance":
            return
        share = float((AdaBoostMO.margins(scorer(x), y, report) <= theta - 1e-9).double().mean())
        bound = tm.bounds.code_margin(report.bound[-1], SIGNED, margin=theta, total_weight=sum(report.alphas))
        assert share <= bound.value + 1e-9


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_the_training_error_over_a_ternary_code_is_bounded_at_every_round(seed, real):
    generator = torch.Generator().manual_seed(seed)
    x, y = torch.randint(8, (20, 2), generator=generator).double(), torch.randint(3, (20,), generator=generator)
    y[:3] = torch.arange(3)
    ignored = float((TERNARY[y] == 0).double().mean())
    for rounds in range(1, 7):
        scorer, report = AdaBoostMO(TERNARY, rounds, real=real).fit(x, y)
        if report.rounds < rounds:
            return
        wrong = float((tm.LossBasedDecoder("exponential")(scorer(x)) != y).double().mean())
        bound = tm.bounds.coded_error(report.bound[-1], TERNARY, "exponential", ignored=ignored)
        assert wrong <= bound.value + 1e-9
