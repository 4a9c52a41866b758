"""What the way of training proves, against formulas written out: rounds of boosting, mistakes of an online learner."""

import math

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass.solvers import AdaBoost, AdaBoostMO, BalancedWinnow, CodedReduction, PassiveAggressive, Perceptron

P6 = torch.tensor([[1.0, 0, 1], [0, 1, 1], [-1, -1, 1], [2, -1, 1], [-1, 2, 1], [-2, -1, 1]])
Y6 = torch.tensor([0, 1, 2, 0, 1, 2])
FULL, TERNARY = [[1, 1, -1], [-1, 1, 1], [1, -1, 1]], [[1, 1, -1, 0], [-1, 1, 1, 1], [1, -1, 1, -1]]
MO, SIX = "AdaBoost.MO, (L/ρ)(q + (1 − q) Π Z)", "Theorem 6 of Allwein, Schapire and Singer"


def bounds_of(fit, data, **options):
    """Values and terms by name, and the gaps."""
    found = tm.report(fit, data, **{"held_out": False, **options})
    return {one["name"]: one for one in found.as_dict()["bounds"]["bounds"]}, found.gaps


def skewed(rows=200):
    """Rows of which most are of class 0."""
    g = torch.Generator().manual_seed(0)
    y = torch.multinomial(torch.tensor([0.9, 0.06, 0.04]), rows, replacement=True, generator=g)
    return torch.randn(rows, 3, generator=g) + 0.7 * torch.eye(3)[y], y


# ---------------------------------------------------------------------- online learners
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("rule", ["perceptron", "conservative", "all", "uniform"])
def test_the_updates_are_bounded_by_the_margin_of_the_weights(rule, bias):
    learner = Perceptron(bias=bias) if rule == "perceptron" else tm.solvers.ConstraintClassifier(rule, bias=bias)
    fit = learner.fit(P6, Y6)
    found, gaps = bounds_of(fit, (P6, Y6))
    x = torch.cat([P6, torch.ones(6, int(bias))], 1).double()
    weight = fit.scorer.weight.detach().double()
    if bias:
        weight = torch.cat([weight, fit.scorer.bias.detach().double()[:, None]], 1)
    f = x @ weight.mT
    rivals = f.scatter(1, Y6[:, None], -math.inf).amax(1)
    margin = float((f[range(6), Y6] - rivals).min()) / math.sqrt(2 * float(weight.square().sum()))
    square = float(x.square().sum(1).max()) / margin**2
    one = found["mistakes, K R²/(2 γ²)" if rule == "all" else "mistakes, R²/γ²"]
    assert one["value"] == pytest.approx(square * (3 / 2 if rule == "all" else 1), rel=1e-5)
    made = fit.report.preference_updates if rule == "all" else fit.report.updates
    assert one["terms"]["(made)"] == made <= one["value"]
    assert one["terms"]["margin"] == pytest.approx(margin, rel=1e-5)
    assert not any("mistakes" in name for name in gaps)
    assert any("satisfy every preference" in text for text in one["assumptions"])


def test_steps_of_rows_that_weigh_alike_are_equal():
    weighed = Perceptron().fit(P6, Y6, weight=torch.full((6,), 2.5))
    assert weighed.report.equal_steps
    assert "mistakes, R²/γ²" in bounds_of(weighed, (P6, Y6))[0]
    learner = Perceptron()
    learner.partial_fit(P6[:3], Y6[:3])
    assert learner.partial_fit(P6[3:], Y6[3:]).report.equal_steps
    assert not learner.partial_fit(P6[:1], Y6[:1], weight=torch.tensor([2.0])).report.equal_steps


@pytest.mark.filterwarnings("ignore:.*updates in the last")
def test_where_mistakes_are_not_bounded_it_says_why():
    fit = Perceptron().fit(P6, Y6)
    steps, tags = torch.randn(3, 4, 2, generator=torch.Generator().manual_seed(0)), torch.tensor([[0, 1, 1, 0]] * 3)
    near = "the smallest margin on these rows is −"
    for model, data, options, said in (
        (fit, (P6, Y6), {"held_out": True}, "it is of the rows that were taught, which these are not"),
        (Perceptron(max_passes=1).fit(P6, (Y6 + torch.arange(6)) % 3), (P6, Y6), {}, near),
        (fit, (P6[:, [1, 0, 2]], Y6), {}, near),
        (Perceptron().fit(P6, Y6, weight=torch.arange(1.0, 7)), (P6, Y6), {}, "the rows have steps of different"),
        (PassiveAggressive().fit(P6, Y6), (P6, Y6), {}, "what is proved of the passive-aggressive rule"),
        (BalancedWinnow(2.0).fit(P6, Y6), (P6, Y6), {}, "what is proved of multiplicative updates"),
        (Perceptron().fit(steps, tags), (steps, tags), {}, "it needs the margin over all labellings"),
        (fit, (tm.FlatScores(fit.scorer(P6)), Y6), {}, "the margins of the rows, or their lengths, are not known"),
    ):
        found, gaps = bounds_of(model, data, **options)
        assert not any("mistakes" in name for name in found)
        assert next(why for name, why in gaps.items() if "mistakes" in name).startswith(said)


def test_what_a_product_of_normalisers_bounds_is_said():
    x, y = skewed()
    for solver, said in (
        (tm.solvers.AdaBoostMH(rounds=40, real=True, leaves=8), ["the wrong class", "share of wrong labels"]),
        (tm.solvers.AdaBoostMR(rounds=4), ["the wrong class", "share of violated pairs"]),
        (tm.solvers.AdaBoostAveraged(rounds=4), ["a label sum of at most 0"]),
    ):
        found = tm.report(solver.fit(x, y), (x, y), held_out=False)
        of = [one["of"] for one in found.as_dict()["bounds"]["bounds"]]
        assert len(of) == len(said)
        assert all(
            one.startswith("on the training rows, ") and words in one for one, words in zip(of, said, strict=True)
        )
    small = tm.solvers.AdaBoostMH(rounds=200, real=True, leaves=8).fit(x, y)
    assert "e−" in tm.report(small, (x, y), held_out=False).markdown().split("says anything")[1].split("factor")[0]


# ---------------------------------------------------------------------- boosting of a code
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("rounds", [1, 3, 20])
def test_theorem_6_with_the_share_that_it_bounds(rounds, single):
    x, y = skewed()
    fit = AdaBoostMO(FULL, rounds).fit(x, y)
    shown = CodedReduction(FULL, AdaBoost(rounds), call="single").fit(x, y) if single else fit
    found, gaps = bounds_of(shown, (x, y), batch_size=33)
    margins, total = AdaBoostMO.margins(fit.scorer(x), y, fit.report), sum(fit.report.alphas)
    for theta in (0.0, 0.1):
        one = found[f"{SIX}, θ = {theta:.4g}"]
        share = float((margins <= theta).double().mean())
        assert one["value"] == pytest.approx(3 / 2 * math.exp(total * theta) * math.prod(fit.report.Z), rel=1e-6)
        assert one["terms"]["(share here)"] == pytest.approx(share, abs=1e-9)
        assert share <= one["value"] + 1e-12
    assert found[MO]["value"] == pytest.approx(3 / 2 * math.prod(fit.report.Z), rel=1e-6)
    assert SIX not in gaps
    assert "(share here)" not in bounds_of(shown, (x, y), held_out=True)[0][f"{SIX}, θ = 0"]["terms"]


def test_theorem_6_at_a_margin_that_is_asked_for():
    x, y = skewed()
    fit = AdaBoostMO(FULL, 5).fit(x, y)
    total = sum(fit.report.alphas)
    found, _ = bounds_of(fit, (x, y), margin=total)  # half of which is theta
    assert found[f"{SIX}, θ = 0.5"]["value"] == pytest.approx(
        3 / 2 * math.exp(total / 2) * math.prod(fit.report.Z), rel=1e-6
    )
    assert f"{SIX}, θ = 0" not in found
    assert "margin: got 1.5; accepted" in bounds_of(fit, (x, y), margin=3 * total)[1][f"{SIX}, θ = 1.5"]


def test_zeros_are_counted_at_the_worst_shares_of_the_classes():
    x, y = skewed()
    fit = AdaBoostMO(TERNARY, 30).fit(x, y)
    found, gaps = bounds_of(fit, (x, y))
    product = math.prod(fit.report.Z)
    rho = tm.codes.min_row_distance(torch.tensor(TERNARY))
    assert found[MO]["value"] == pytest.approx(4 / rho * (0.25 + 0.75 * product), rel=1e-6)
    of_these = 4 / rho * ((y == 0).double().mean() / 4 + (1 - (y == 0).double().mean() / 4) * product)
    assert found[MO]["value"] >= float(of_these)  # class 0, which a column ignores, is most of the rows
    assert gaps[f"{SIX}, θ = 0"] == "code: has zeros; accepted are codes of -1 and +1."


@pytest.mark.filterwarnings("ignore:target")
def test_where_a_boosted_code_has_no_bound_it_says_why():
    x, y = skewed()
    real = AdaBoostMO(FULL, 5, real=True).fit(x, y)
    found, gaps = bounds_of(real, (x, y))
    assert gaps[SIX].startswith("the base classifiers' votes are real numbers")
    assert found[MO]["value"] == pytest.approx(3 / 2 * math.prod(real.report.Z), rel=1e-6)
    _, gaps = bounds_of(AdaBoostMO(FULL, 5).fit(x, y), (x, y), decoder=tm.HammingDecoder())
    assert gaps[MO].startswith("it is of loss-based decoding by the exponential loss")
    two = y < 2
    idle = CodedReduction(tm.codes.one_vs_all(3), AdaBoost(5), call="single").fit(x[two], y[two])
    found, gaps = bounds_of(idle, (x[two], y[two]))
    product = math.prod(idle.report.columns[0].Z)
    assert found[MO]["value"] == pytest.approx(3 / 2 * (1 / 3 + 2 / 3 * product), rel=1e-6)
    assert gaps[SIX] == "1 columns have rows of one sign, or none; it is of columns that vote."
    several = CodedReduction(FULL, AdaBoost(5)).fit(x, y)  # an ensemble for each column
    assert MO not in bounds_of(several, (x, y))[0]
