"""What holds of every round, of fits that go on or end early, and of rows that tell little."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from scipy.special import softmax

import torch_multiclass as tm
from tests.solvers.boosting.test_fits import CODE, MAKERS, data, every, scores, target_for
from torch_multiclass.ops.boosting import Averaged, Confidence, Discrete, Ranking
from torch_multiclass.ops.boosting.averaged import line_search
from torch_multiclass.ops.splits.codes import encode
from torch_multiclass.ops.splits.dense import DenseSearch
from torch_multiclass.ops.splits.hamming import hamming_tree
from torch_multiclass.solvers import AdaBoost, AdaBoostAveraged, AdaBoostMH, AdaBoostMO, AdaBoostMR


def mass(objective):
    """Of all weights: of pairs with a sign, of pairs of labels, or of rows."""
    if isinstance(objective, Ranking):
        over, under = objective.factors
        return float((over.sum(1) * under.sum(1)).sum())
    channels = np.abs(objective.channels).sum()
    return float(channels)


@pytest.mark.parametrize("kind", [Discrete, Confidence, Ranking, Averaged])
@pytest.mark.parametrize("leaves", [2, 4])
def test_weights_are_a_distribution_at_every_round(kind, leaves):
    x, y = data(40)
    signs = target_for(MAKERS["averaged"], y).double().numpy()
    weight = np.random.default_rng(0).random(40) + 0.2
    objective = kind(signs, weight)
    search = DenseSearch(encode(x.numpy()), weight, objective.layout)
    for rounds in range(100):
        assert mass(objective) == pytest.approx(1, abs=1e-9)
        part = hamming_tree(search, objective.channels, objective.criterion, leaves)
        found = objective.weigh(part)
        if found is None or found.last:
            assert rounds > 2
            return
        objective.add(part.leaf, found)


@every
def test_ten_thousand_rounds_stay_finite(make, backend):
    """On rows that no number of votes gets right: of two that are equal each has its own class."""
    x, y = data(12, width=2)
    x = torch.cat([x, x[:3]])
    y = torch.cat([y, (y[:3] + 1) % 3])
    fit = make(10_000 if backend == "native" else 1_000).fit(x, target_for(make, y))
    report = fit.report
    assert report.ending in ("rounds", "no better than chance")
    assert report.rounds > 20
    assert np.isfinite([report.errors, report.alphas, report.Z, report.bound]).all()
    assert max(report.Z) < 1
    assert report.bound == sorted(report.bound, reverse=True)
    assert bool(scores(fit, x).isfinite().all())


def test_ten_thousand_rounds_on_rows_that_are_told_apart_stay_finite(backend):
    if backend == "torch":
        return  # which takes a minute for them
    x, y = data(30)
    report = AdaBoostMH(10_000, real=True).fit(x, y).report
    assert report.rounds == 10_000
    assert np.isfinite([report.errors, report.Z, report.bound]).all()
    assert 0 < report.bound[-1] < 1e-100


@every
def test_going_on_is_a_longer_fit(make):
    x, y = data(90)
    y = target_for(make, y)
    weight = torch.rand(90, generator=torch.Generator().manual_seed(0)) + 0.5
    whole = make(50).fit(x, y, weight=weight)
    for rounds in (1, 20, 50):
        first = make(rounds).fit(x, y, weight=weight)
        for earlier in (first, first.report):
            more = make(50).fit(x, y, weight=weight, resume=earlier)
            assert torch.equal(scores(more, x), scores(whole, x))
            for name in ("errors", "alphas", "Z", "bound", "ending"):
                assert getattr(more.report, name) == getattr(whole.report, name)


def test_two_hundred_rounds_and_three_hundred_more_are_five_hundred():
    x, y = data(90)
    parts = AdaBoostMH(500).fit(x, y, resume=AdaBoostMH(200).fit(x, y))
    whole = AdaBoostMH(500).fit(x, y)
    assert parts.report.rounds == whole.report.rounds == 500
    assert parts.report.bound == whole.report.bound
    assert torch.equal(parts.scorer(x), whole.scorer(x))


def test_nothing_follows_a_perfect_round():
    x, y = torch.arange(4.0)[:, None], torch.tensor([0, 0, 1, 1])
    first = AdaBoostMH(1).fit(x, y)
    assert first.report.ending == "perfect"
    more = AdaBoostMH(9).fit(x, y, resume=first).report
    assert (more.rounds, more.ending, more.smoothed) == (1, "perfect", True)


@every
def test_the_rounds_up_to_the_first_best_on_other_rows_are_kept(make):
    x, y = data(60)
    others, truth = data(40, seed=1)
    y, truth = target_for(make, y), target_for(make, truth)
    found = make(60).fit(x, y, validation=(others, truth))
    errors = found.report.validation_errors
    assert found.report.rounds == errors.index(min(errors)) + 1
    assert torch.equal(scores(found, x), scores(make(found.report.rounds).fit(x, y), x))
    patient = make(60, patience=4).fit(x, y, validation=(others, truth)).report
    assert patient.validation_errors == errors[: len(patient.validation_errors)]
    if patient.ending == "validation":
        seen = patient.validation_errors
        assert len(seen) == seen.index(min(seen)) + 5


@every
def test_patience_ends_the_fit_so_many_rounds_after_the_best(make):
    x, y = data(60)
    others, truth = data(40, seed=1)
    y, truth = (
        target_for(make, y),
        target_for(make, truth)[torch.randperm(40, generator=torch.Generator().manual_seed(0))],
    )
    report = make(200, patience=4).fit(x, y, validation=(others, truth)).report
    errors = report.validation_errors
    assert report.ending == "validation"
    assert report.iterations == len(errors) == errors.index(min(errors)) + 5 < 200


def test_labels_in_order_are_not_yet_all_in_order():
    """No pair is out of order after the first stump, but some are tied: the fit goes on, with a smoothed weight."""
    x, y = torch.arange(3.0)[:, None], torch.tensor([0, 1, 2])
    report = AdaBoostMR(20).fit(x, y).report
    assert report.smoothed
    assert report.rounds > 1
    scorer = AdaBoostMR(20).fit(x, y).scorer
    assert scorer(x).argmax(1).tolist() == [0, 1, 2]
    first = AdaBoostMR(1).fit(x, y).report
    assert first.alphas[0] == pytest.approx(0.5 * math.log((2 / 3 + 1 / 6) / (1 / 6)))
    assert first.Z[0] == pytest.approx(1 / 3 + 2 / 3 * math.exp(-first.alphas[0]))


def test_an_averaged_step_without_an_end_is_smoothed():
    """All ``u_i > 0`` of a perfect stump: ``alpha = ½ ln((1 + s)/s)``, and the fit ends."""
    x, y = torch.arange(4.0)[:, None], torch.tensor([0, 0, 1, 1])
    report = AdaBoostAveraged(5).fit(x, y).report
    assert (report.rounds, report.smoothed, report.ending) == (1, True, "perfect")
    assert report.alphas[0] == pytest.approx(0.5 * math.log((1 + 1 / 4) / (1 / 4)))


def test_an_averaged_step_is_where_the_weights_are_least():
    """``D`` is proportional to ``w exp(-(1/K) sum_l y_l f_l)``, however large the scores."""
    draw = np.random.default_rng(0)
    objective = Averaged(draw.choice([-1.0, 1.0], (9, 3)), draw.random(9) + 0.1)
    for size in (1.0, 1e4):
        objective.scores = size * (1 + 1e-3 * draw.standard_normal((9, 3))) * objective.labels
        logits = np.log(objective.weight) - (objective.labels * objective.scores).sum(1)
        assert objective.weights == pytest.approx(softmax(logits))
    for seed in range(20):
        draw = np.random.default_rng(seed)
        weights, u = softmax(draw.standard_normal(7)), draw.choice([-1.0, -1 / 3, 1 / 3, 1.0], 7)
        u[:2] = 1.0, -1 / 3
        slope = lambda alpha, D=weights, u=u: float((D * u) @ np.exp(-alpha * u))  # noqa: E731
        if slope(0.0) > 0:
            assert line_search(weights, u) == pytest.approx(brentq(slope, 0, 50, xtol=1e-14), rel=1e-9)


BINARY = (AdaBoost(8), AdaBoost(8, real=True, leaves=3))


@pytest.mark.parametrize("solver", [*[make(8) for make in MAKERS.values()], *BINARY], ids=repr)
class TestRowsThatTellLittle:
    def target(self, solver, rows):
        y = torch.arange(rows) % (2 if type(solver) is AdaBoost else 3)
        return target_for(lambda _: solver, y)

    @pytest.mark.filterwarnings("ignore:.*no base classifier is better than chance")
    def test_features_that_are_constant_or_missing(self, solver):
        y = self.target(solver, 12)
        for x in (torch.ones(12, 2), torch.full((12, 2), math.nan)):
            fit = solver.fit(x, y)
            found = scores(fit, torch.cat([x, torch.randn(2, 2)]))
            assert bool(found.isfinite().all())
            assert torch.equal(found, found[:1].expand_as(found))
            assert fit.report.ending in ("no better than chance", "rounds")

    def test_a_column_without_values_is_none(self, solver):
        x, _ = data(24, width=3)
        y = self.target(solver, 24)
        holes = torch.cat([torch.full((24, 1), math.nan), x], 1)
        with_it, without = solver.fit(holes, y), solver.fit(x, y)
        assert torch.equal(scores(with_it, holes), scores(without, x))
        holes[:, 0] = 3.0  # a value where none was seen
        assert torch.equal(scores(with_it, holes), scores(without, x))

    def test_weights_that_are_all_zero_leave_no_rows(self, solver):
        x, _ = data(12)
        with pytest.raises(ValueError, match="features: there are no rows with a label and a weight above 0"):
            solver.fit(x, self.target(solver, 12), weight=torch.zeros(12))

    def test_one_class(self, solver):
        if isinstance(solver, AdaBoostAveraged):
            return  # sets of labels may be alike
        with pytest.raises(ValueError, match="target: every row has the label 1; accepted are at least two classes"):
            solver.fit(torch.randn(5, 2), torch.ones(5, dtype=torch.long))


@pytest.mark.filterwarnings("ignore:target. no row has the label")
def test_fewer_rows_than_classes():
    x, y = torch.tensor([[0.0], [1.0]]), torch.tensor([0, 4])
    for solver in (AdaBoostMH(5), AdaBoostMH(5, real=True), AdaBoostMR(5), AdaBoostAveraged(5)):
        scorer = solver.fit(x, y, num_classes=6).scorer
        assert scorer(x).shape == (2, 6)
        if not isinstance(solver, AdaBoostAveraged):  # which votes against all
            assert scorer(x).argmax(1).tolist() == [0, 4]
    code = tm.codes.one_vs_one(6)
    coded = AdaBoostMO(code, 5).fit(x, y).scorer(x)
    assert tm.LossBasedDecoder("exponential")(coded).tolist() == [0, 4]


@pytest.mark.parametrize("entry", [0, 2])
def test_signs_with_other_numbers_among_them(entry):
    x, signs = torch.randn(6, 2), torch.ones(6, 3, dtype=torch.long)
    signs[:, 0] = -1
    signs[4, 1] = entry
    for solver in (AdaBoostMH(3), AdaBoostMR(3), AdaBoostAveraged(3)):
        with pytest.raises(ValueError, match=rf"target: row 4 has the entry {entry}; accepted are -1 and \+1"):
            solver.fit(x, signs)
    with pytest.raises(ValueError, match="target: has the labels"):
        AdaBoost(3).fit(x, torch.tensor([-1, 1, 0, 1, -1, 1]))


def test_a_resumed_ensemble_of_other_classes():
    x, y = data(30)
    for first, then in ((AdaBoostMH(2).fit(x, y % 2), AdaBoostMH(5)), (AdaBoostMO(CODE, 2).fit(x, y), AdaBoostMH(5))):
        with pytest.raises(ValueError, match="resume: is of"):
            then.fit(x, y, resume=first)
