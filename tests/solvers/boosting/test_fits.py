"""Boosting: going on, ending early, missing values, what is refused, and the contract of solvers."""

import math
import signal

import numpy as np
import pytest
import torch

import torch_multiclass as tm
from tests.contracts.solver import SolverContract
from torch_multiclass.solvers import (
    AdaBoost,
    AdaBoostAveraged,
    AdaBoostMH,
    AdaBoostMO,
    AdaBoostMR,
    Fit,
    Interrupted,
    Rounds,
)

CODE = tm.codes.one_vs_one(3)
MAKERS = {
    "mh": lambda rounds, **options: AdaBoostMH(rounds, **options),
    "real": lambda rounds, **options: AdaBoostMH(rounds, real=True, **options),
    "mr": lambda rounds, **options: AdaBoostMR(rounds, **options),
    "averaged": lambda rounds, **options: AdaBoostAveraged(rounds, **options),
    "mo": lambda rounds, **options: AdaBoostMO(CODE, rounds, **options),
    "mo real": lambda rounds, **options: AdaBoostMO(CODE, rounds, real=True, **options),
}
every = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


def data(rows=60, width=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(rows) % 3
    x = torch.randn(rows, width, generator=generator)
    return x + 1.2 * torch.eye(3, width)[y], y


def target_for(make, y):
    """Classes; sets of labels for the averaged objective, which -1 for most classes satisfies at once."""
    if not isinstance(make(1), AdaBoostAveraged):
        return y
    draws = torch.rand(len(y), 3, generator=torch.Generator().manual_seed(len(y)))
    return torch.where(torch.nn.functional.one_hot(y, 3) + (draws < 0.4) > 0, 1, -1)


def scores(fit, x):
    found = fit.scorer(x)
    return found.margins if hasattr(found, "margins") else found


def decided(fit, x, target):
    """Classes, or signs where the target has them."""
    found = fit.scorer(x)
    if hasattr(found, "margins"):
        return tm.LossBasedDecoder("exponential")(found)
    return found.argmax(1) if target.dim() == 1 else torch.where(found > 0, 1, -1)


class Boosted(SolverContract):
    """Without a bias; NaN is a value that is missing."""

    options, certified, constant, long = {"rounds": 40}, False, "rounds", {"rounds": 100}

    def reached(self, report):
        return report.bound[-1]

    def test_a_bias_is_a_constant_feature(self):
        """There is none: a threshold does not need it."""

    def test_the_scorer_can_be_trained_on(self):
        """It has no parameters."""
        x, y = self.data()
        assert list(self.make().fit(x, y).scorer.parameters()) == []

    def test_targets_that_are_none(self):
        x, y = self.data()
        for bad, message in (
            (y.double(), r"target: got dtype torch\.float64"),
            (y > 0, r"target: got dtype torch\.bool"),
            (y[1:], r"target: got shape \(35,\); accepted is \(36,\), one label a row"),
            (y[:, None], "target: row 0 has the entry 0; accepted are -1 and"),
            (y.tolist(), "target: got list; accepted is a torch.Tensor"),
            (y - 3, "target: (label -3|has the labels)"),
        ):
            with pytest.raises((TypeError, ValueError), match=message):
                self.make().fit(x, bad)

    def test_options_that_are_none(self, options=None, message=None):
        for bad, words in (({"rounds": 0}, "rounds: got 0"), ({"progress": "yes"}, "progress: got 'yes'")):
            with pytest.raises((TypeError, ValueError), match=words):
                self.make(**bad)

    def test_every_round_is_told(self):
        x, y = self.data()
        steps = []
        report = self.make(on_step=steps.append).fit(x, y).report
        assert [step.iteration for step in steps] == list(range(1, report.rounds + 1))
        assert [step.primal for step in steps] == pytest.approx(report.bound)
        assert [step.seconds for step in steps] == sorted(step.seconds for step in steps)
        with pytest.raises(TypeError, match="on_step: got 3"):
            self.make(on_step=3)

    def test_features_that_are_not_finite_are_named_by_their_row(self, bad=math.inf):
        x, y = self.data()
        for bad in (math.inf, -math.inf):
            x[7, 1] = bad
            y[2] = -100
            with pytest.raises(ValueError, match="features: row 7 has an entry that is not finite"):
                self.make().fit(x, y)


class TestAdaBoost(Boosted):
    solver, binary = AdaBoost, True


class TestRealAdaBoost(Boosted):
    solver, options, binary = AdaBoost, {"rounds": 40, "real": True, "leaves": 3}, True


class TestMH(Boosted):
    solver = AdaBoostMH


class TestRealMH(Boosted):
    solver, options = AdaBoostMH, {"rounds": 20, "real": True, "leaves": 4}


class TestMR(Boosted):
    solver = AdaBoostMR


class TestAveraged(Boosted):
    solver = AdaBoostAveraged


@every
def test_missing_values_go_to_the_side_that_suits(make):
    x, y = data(90)
    y = target_for(make, y)
    holes = x.clone()
    holes[torch.rand(90, 4, generator=torch.Generator().manual_seed(0)) < 0.2] = math.nan
    fit = make(30).fit(holes, y)
    assert float((decided(fit, holes, y) == y).double().mean()) > 0.7
    again = make(30).fit(holes, y, resume=make(7).fit(holes, y))
    assert torch.equal(scores(again, holes), scores(fit, holes))


@pytest.mark.parametrize("real", [False, True])
def test_sets_of_labels(real):
    x, y = data(80)
    signs = torch.where(torch.nn.functional.one_hot(y, 3) + torch.nn.functional.one_hot((y + 1) % 3, 3) > 0, 1, -1)
    fit = AdaBoostMH(60, real=real).fit(x, signs)
    assert float((fit.scorer(x).sign() == signs).double().mean()) > 0.9
    assert tm.SignDecoder()(tm.MultilabelScores(fit.scorer(x))).shape == (80, 3)
    hidden = signs.clone()
    hidden[::4] = -100
    rest = AdaBoostMH(60, real=real).fit(x[hidden[:, 0] != -100], hidden[hidden[:, 0] != -100])
    assert torch.equal(AdaBoostMH(60, real=real).fit(x, hidden).scorer(x), rest.scorer(x))


def test_a_set_with_every_label_has_no_pairs():
    x, y = data(30)
    signs = torch.where(torch.nn.functional.one_hot(y, 3) > 0, 1, -1)
    more = torch.cat([signs, torch.ones(1, 3, dtype=torch.long)])
    wide = torch.cat([x, x[:1]])
    assert torch.equal(AdaBoostMR(9).fit(wide, more).scorer(x), AdaBoostMR(9).fit(x, signs).scorer(x))
    with pytest.raises(ValueError, match="target: no row has a label that holds and one that does not"):
        AdaBoostMR(9).fit(x, torch.ones(30, 3, dtype=torch.long))


def test_trees_of_more_leaves_learn_faster():
    x, y = data(200)
    reached = [AdaBoostMH(20, real=True, leaves=leaves).fit(x, y).report.bound[-1] for leaves in (2, 4, 8)]
    assert reached == sorted(reached, reverse=True)
    assert reached[2] < 0.5 * reached[0]


def test_constant_features_and_no_better_than_chance_at_once():
    with pytest.warns(UserWarning, match="AdaBoost: no base classifier is better than chance; all scores are 0"):
        scorer, report = AdaBoost(5).fit(torch.ones(4, 2), torch.tensor([-1, 1, -1, 1]))
    assert (report.rounds, report.bound, report.ending) == (0, [], "no better than chance")
    assert not scorer(torch.ones(3, 2)).any()


@pytest.mark.parametrize("kind", [AdaBoost, AdaBoostMH, AdaBoostMR, lambda t: AdaBoostMO(tm.codes.one_vs_all(2), t)])
def test_features_that_say_nothing_and_rounds_that_have_said_everything(kind):
    """At chance is no better than chance, exactly and up to rounding."""
    with pytest.warns(UserWarning, match="no base classifier is better than chance"):
        report = kind(30).fit(torch.tensor([[0.0], [1], [0], [1]]), torch.tensor([0, 0, 1, 1])).report
    assert (report.rounds, report.ending) == (0, "no better than chance")
    x = torch.tensor([0.0, 0, 1, 0, 1, 1, 0])[:, None]
    report = kind(30).fit(x, torch.tensor([0, 0, 1, 1, 0, 1, 1])).report
    assert 1 <= report.rounds < 30
    assert report.ending == "no better than chance"


def test_a_class_without_rows_is_never_preferred():
    x, y = data(60)
    with pytest.warns(UserWarning, match="target: no row has the label 3"):
        scorer = AdaBoostMH(20).fit(x, y, num_classes=4).scorer
    assert scorer(x).shape == (60, 4)
    assert int(scorer(x).argmax(1).max()) < 3


@every
def test_the_keyboard_keeps_the_rounds_done(make, monkeypatch):
    x, y = data()
    y = target_for(make, y)
    booster = make(50)
    steps = type(booster).steps

    def interrupted(solver, problem, monitor):
        for number, _ in enumerate(steps(solver, problem, monitor)):
            if number == 20:
                signal.raise_signal(signal.SIGINT)
            yield

    monkeypatch.setattr(type(booster), "steps", interrupted)
    with pytest.warns(Interrupted, match="ended from the keyboard after 20 rounds"):
        fit = booster.fit(x, y)
    monkeypatch.undo()
    assert fit.report.ending == "interrupted"
    assert torch.equal(scores(fit, x), scores(make(20).fit(x, y), x))


def test_the_scorer_of_a_code_feeds_every_decoder():
    x, y = data(90)
    scorer, _ = AdaBoostMO(CODE, 40).fit(x, y)
    coded = scorer(x)
    assert isinstance(coded, tm.CodedScores)
    by_loss = tm.LossBasedDecoder("exponential")
    for decoder in (by_loss, tm.HammingDecoder(), tm.VotingDecoder(), tm.TournamentDecoder()):
        assert float((decoder(coded) == y).double().mean()) > 0.8
    twin = tm.CodedScorer(tm.EnsembleScorer(AdaBoostMO(CODE, 1).fit(x, y).report.trees), CODE)
    twin.load_state_dict(scorer.state_dict())
    assert torch.equal(twin(x).margins, coded.margins)


def test_bins_give_about_the_same():
    x, y = data(600)
    exact, binned = (AdaBoostMH(50, bins=bins).fit(x, y) for bins in (None, 32))
    assert abs(exact.report.bound[-1] - binned.report.bound[-1]) < 0.05
    asked = {(int(tree.feature[0]), float(tree.threshold[0])) for tree in binned.report.trees}
    few = {(int(tree.feature[0]), float(tree.threshold[0])) for tree in AdaBoostMH(50, bins=3).fit(x, y).report.trees}
    assert len(few) <= 4 * 2 < len(asked)  # of four features


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, y: AdaBoostMH(0), "rounds: got 0"),
        (lambda x, y: AdaBoostMH(5, leaves=0), "leaves: got 0"),
        (lambda x, y: AdaBoostMH(5, leaves=1), "leaves: got 1; accepted is a whole number >= 2"),
        (lambda x, y: AdaBoostMH(5, bins=1), "bins: got 1"),
        (lambda x, y: AdaBoostMH(5, patience=0), "patience: got 0"),
        (lambda x, y: AdaBoostMH(5, real="yes"), "real: got 'yes'"),
        (lambda x, y: AdaBoostMH(5, patience=2).fit(x, y), "patience: needs other rows"),
        (lambda x, y: AdaBoostMH(5).fit(x, y, validation=x), "validation: got"),
        (lambda x, y: AdaBoostMH(5).fit(x, y, validation=(x[:, :2], y)), "validation: has 2 features; accepted are 4"),
        (lambda x, y: AdaBoostMH(5).fit(x, y, resume=AdaBoostMH(9).fit(x, y)), "resume: has 9 rounds"),
        (lambda x, y: AdaBoostMH(5).fit(x, y, resume=AdaBoostMH(2).fit(x[:, :2], y)), "resume: is of 2 features"),
        (
            lambda x, y: AdaBoostMH(5).fit(x, y, resume=AdaBoostMH(2).fit(x, y % 2)),
            "resume: is of 4 features and 2",
        ),
        (
            lambda x, y: AdaBoostMH(5).fit(x, y, resume=AdaBoostMR(2).fit(x, y)),
            "resume: is of AdaBoostMR; accepted",
        ),
        (lambda x, y: AdaBoostMH(5).fit(x, y, resume=AdaBoostMH(2, real=True).fit(x, y)), "with real votes; accepted"),
        (lambda x, y: AdaBoostMH(5).fit(x, y, resume=AdaBoostMH(2).fit(x + 1, y)), "resume: is of other rows, labels"),
        (lambda x, y: AdaBoostMH(5).fit(x, y, resume=AdaBoostMH(2).fit(x, y.flip(0))), "resume: is of other rows"),
        (lambda x, y: AdaBoostMH(5).fit(x, y, resume=3), "resume: got int; accepted is a Fit of boosting"),
        (lambda x, y: AdaBoostMH(5).fit(x, y.reshape(-1, 1) * 0), "target: row 0 has the entry 0; accepted are -1 and"),
        (lambda x, y: AdaBoostMH(5).fit(x, torch.full((60, 3), 2)), "target: row 0 has the entry 2"),
        (lambda x, y: AdaBoostMH(5).fit(x, y, num_classes=2), r"target: label 2 is outside 0\.\.1"),
        (lambda x, y: AdaBoost(5).fit(x, y), "target: has the labels"),
        (lambda x, y: AdaBoost(5).fit(x, y % 2, num_classes=3), "num_classes: got 3"),
        (lambda x, y: AdaBoostMO(CODE, 5).fit(x, y, num_classes=4), "num_classes: got 4"),
        (lambda x, y: AdaBoostMO(CODE, 5).fit(x, y + 1), r"target: label 3 is outside 0\.\.2"),
        (lambda x, y: AdaBoostMO([[1], [1]], 5), "code: "),
    ],
)
def test_what_is_refused(call, message):
    x, y = data()
    with pytest.raises((TypeError, ValueError), match=message):
        call(x, y)


def test_a_report_is_a_plain_record():
    x, y = data()
    fit = AdaBoostMH(3).fit(x, y)
    assert isinstance(fit, Fit)
    assert isinstance(fit.report, Rounds)
    assert fit.report.bound == pytest.approx(np.cumprod(fit.report.Z).tolist())


@pytest.mark.parametrize("kind", [AdaBoost, AdaBoostMH, lambda **options: AdaBoostMO(CODE, **options)])
def test_a_misspelt_option_is_named_with_those_there_are(kind):
    with pytest.raises(TypeError, match=r"leafs: is no argument of AdaBoost.*; accepted are .*rounds, real, leaves"):
        kind(leafs=3)


def test_other_rows_are_named():
    x, y = torch.arange(6.0)[:, None], torch.arange(6) % 3
    for others, words in [
        ((x, y + 1), "validation: target: label 3 is outside"),
        ((x[:, 0], y), r"validation: features: got shape \(6,\)"),
        ((x, y[:4]), "validation: target: got shape"),
    ]:
        with pytest.raises(ValueError, match=words):
            AdaBoostMH(3).fit(x, y, validation=others)


@pytest.mark.parametrize("solver", [AdaBoost(3), AdaBoostMH(3), AdaBoostMR(3), AdaBoostAveraged(3)])
def test_what_is_wrong_is_named(solver):
    x, y = torch.arange(6.0)[:, None], torch.arange(6) % 2
    for features in (x[None], x[:, 0], torch.zeros(2, 6, 1)):
        for target in (y, torch.zeros(2, 6, dtype=torch.long)):
            with pytest.raises(ValueError, match=r"features: got shape .*; accepted is \(N, D\)"):
                solver.fit(features, target)
    with pytest.raises(ValueError, match="accepted are finite features, and NaN where one is missing"):
        solver.fit(x / 0, y)
    with pytest.raises(ValueError, match=r"num_classes: got .*; accepted"):
        solver.fit(x, y, num_classes=torch.zeros(2))
    with pytest.raises(ValueError, match="target: is on the meta device"):
        solver.fit(x, torch.zeros(6, 2, dtype=torch.long, device="meta"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_largest_numbers_are_features(dtype):
    """Without a warning that something overflows."""
    most = torch.finfo(dtype).max
    x, y = torch.tensor([[-most], [-most / 2], [0.0], [most / 2], [most]], dtype=dtype), torch.tensor([0, 0, 1, 1, 1])
    for bins in (None, 2):
        assert AdaBoostMH(3, bins=bins).fit(x, y).scorer(x).argmax(1).tolist() == y.tolist()


@pytest.mark.parametrize("solver", [AdaBoostMH(4, leaves=3), AdaBoostMO(CODE, 4)])
def test_a_state_is_enough_for_the_scorer(solver):
    x, y = torch.randn(40, 3, generator=torch.Generator().manual_seed(0)).double(), torch.arange(40) % 3
    scorer = solver.fit(x, y).scorer
    state, coded = scorer.state_dict(), isinstance(scorer, tm.CodedScorer)
    again = tm.EnsembleScorer.from_state_dict(state, "margins." if coded else "")
    assert torch.equal(again(x), scorer(x).margins if coded else scorer(x))
    assert again.extra_repr() == (scorer.margins if coded else scorer).extra_repr()
    with pytest.raises(ValueError, match=r"state: is without other\.feature"):
        tm.EnsembleScorer.from_state_dict(state, "other.")
    with pytest.raises(ValueError, match="state: is without"):
        tm.TreeScorer.from_state_dict(tm.LinearScorer(2, 3).state_dict())
    with pytest.raises(TypeError, match="state: got None"):
        tm.TreeScorer.from_state_dict(None)
