"""Bagging of any solver: who saw what, how the scorers vote, and what a draw has to hold."""

import warnings

import pytest
import torch

import torch_multiclass as tm
from tests.solvers.trees.test_contract import GrownContract
from tests.solvers.trees.test_forest import drawn
from torch_multiclass.solvers import (
    AdaBoostMH,
    AdaBoostMO,
    Bagging,
    BinaryLeastSquares,
    CodedReduction,
    DecisionTree,
    DualSVM,
    Interrupted,
    Perceptron,
)

CODE = tm.codes.one_vs_one(3)
BASES = {
    "machine": (DualSVM(), None),
    "boosting": (AdaBoostMH(4), None),
    "tree": (DecisionTree(max_leaves=4), None),
    "reduction": (CodedReduction(CODE, BinaryLeastSquares()), tm.LossBasedDecoder("squared")),
    "boosted code": (AdaBoostMO(CODE, 4), tm.LossBasedDecoder("exponential")),
}


class TestBaggedMachines(GrownContract):
    solver, options, long = Bagging, {"trees": 3, "base": DualSVM(tol=1e-6)}, {"trees": 50}

    def make(self, **options):
        tree = {"impurity", "max_leaves", "max_depth", "min_leaf", "min_decrease", "bins"} & set(options)
        return Bagging(**options) if tree else super().make(**options)

    def test_a_missing_value_is_one(self):
        """Where the base says so; a support vector machine refuses it."""
        x, y = self.data()
        x[7, 1] = torch.nan
        y[2] = -100
        with pytest.raises(ValueError, match="features: row 7 has an entry that is not finite"):
            self.make().fit(x, y)

    def test_features_that_tell_nothing(self):
        """Which is for the base to say."""

    def test_a_weight_of_two_is_the_row_twice(self):
        """Rows are drawn; `test_weights_and_draws_are_multiplied`."""

    test_any_whole_weight_is_as_many_rows = test_a_weight_of_two_is_the_row_twice

    def test_the_scorer_can_be_trained_on(self):
        x, y = self.data()
        scorer = self.make().fit(x, y).scorer
        tm.CrammerSingerLoss()(scorer(x), y).backward()
        assert all(bool(part.grad.any()) for part in scorer.parameters())


@pytest.mark.parametrize(("base", "decide"), BASES.values(), ids=BASES.keys())
def test_each_scorer_is_what_the_base_makes_of_its_draw(base, decide):
    x, y = drawn(90)
    scorer, report = Bagging(4, base, decide=decide).fit(x, y)
    parts = [base.fit(x, y, weight=count, num_classes=3).scorer(x) for count in report.in_bag.double()]
    margins = [part if isinstance(part, torch.Tensor) else part.margins for part in parts]
    found = scorer(x)
    torch.testing.assert_close(getattr(found, "margins", found), torch.stack(margins).mean(0), rtol=1e-4, atol=1e-4)
    votes = torch.zeros(90, 3)
    for part, seen in zip(parts, report.in_bag, strict=True):
        out = torch.nonzero(seen == 0).squeeze(1)
        votes[out, (part.argmax(1) if decide is None else decide(part))[out]] += 1
    some = votes.any(1)
    assert report.oob_rows == int(some.sum())
    assert report.oob_error == pytest.approx(float((votes.argmax(1) != y)[some].double().mean()))


@pytest.mark.parametrize("signs", [True, False])
def test_two_classes_of_either_kind_and_votes(signs):
    x, y = drawn(80, classes=2)
    y = 2 * y - 1 if signs else y
    average, report = Bagging(5, BinaryLeastSquares()).fit(x, y)
    assert average(x).shape == (80, 1)
    low = int(y.min())
    assert float((torch.where(average(x)[:, 0] > 0, 1, low) == y).double().mean()) > 0.6
    assert 0 < report.oob_error < 0.5
    majority = Bagging(5, BinaryLeastSquares(), vote="majority").fit(x, y).scorer
    torch.testing.assert_close(majority(x), torch.stack([part(x).sign() for part in majority.scorers]).mean(0))


def test_weights_and_draws_are_multiplied():
    x, y = drawn(60)
    y[5], weight = -100, torch.arange(60.0)
    scorer, report = Bagging(2, DualSVM(tol=1e-6)).fit(x, y, weight=weight)
    counts = torch.zeros(2, 60, dtype=torch.float64)
    counts[:, (y != -100) & (weight > 0)] = report.in_bag.double()
    parts = [DualSVM(tol=1e-6).fit(x, y, weight=weight * count).scorer(x) for count in counts]
    torch.testing.assert_close(scorer(x), torch.stack(parts).mean(0), rtol=1e-4, atol=1e-4)


def test_a_draw_of_one_class_is_drawn_again_and_absent_classes_are_no_news():
    x, y = torch.arange(30.0)[:, None], (torch.arange(30) == 29).long()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = Bagging(20, BinaryLeastSquares()).fit(x, y).report
        assert int(report.in_bag[:, 29].min()) > 0
        y[0] = 2
        scorer = Bagging(9, DecisionTree()).fit(x, y).scorer
    assert scorer(x).shape == (30, 3)
    with pytest.raises(ValueError, match="sample: 100 draws of 1 of 30 rows had one class each; accepted is a larger"):
        Bagging(3, BinaryLeastSquares(), sample=0.01).fit(x, y.clamp(max=1))


def test_the_keyboard_keeps_the_scorers_that_are_done(monkeypatch):
    x, y = drawn(60)
    fit, fits = DualSVM.fit, []

    def until(self, *args, **options):
        fits.append(1)
        if len(fits) == 4:
            raise KeyboardInterrupt
        return fit(self, *args, **options)

    monkeypatch.setattr(DualSVM, "fit", until)
    with pytest.warns(Interrupted, match="Bagging: ended from the keyboard after 3 passes"):
        scorer, report = Bagging(9, DualSVM()).fit(x, y)
    assert report.interrupted
    assert report.trees == len(scorer.scorers) == 3


def test_a_base_that_was_interrupted_is_the_last(monkeypatch):
    x, y = drawn(60)
    steps, passes = AdaBoostMH.steps, []

    def until(self, problem, monitor):
        for _ in steps(self, problem, monitor):
            passes.append(1)
            if len(passes) == 8:
                raise KeyboardInterrupt
            yield

    monkeypatch.setattr(AdaBoostMH, "steps", until)
    with pytest.warns(Interrupted, match="Bagging: ended from the keyboard after 2 passes") as caught:
        scorer, report = Bagging(9, AdaBoostMH(5)).fit(x, y)
    assert len(caught) == 1
    assert report.trees == 2
    assert [len(part.roots) for part in scorer.scorers] == [5, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, y: Bagging(3, DecisionTree), "base: got .*DecisionTree.*; accepted is None, for trees, or a solver"),
        (lambda x, y: Bagging(3, Perceptron(), impurity="gini"), "impurity: is for trees, not for a base; accepted"),
        (lambda x, y: Bagging(3, Perceptron(), jobs=2), "jobs: is for trees, not for a base"),
        (lambda x, y: Bagging(3, Perceptron(), decide=3), "decide: got 3; accepted is None or a function of scores"),
        (lambda x, y: Bagging(3, decide=torch.sign), "decide: is for a base"),
        (lambda x, y: Bagging(3, Perceptron(), vote="most"), "vote: got 'most'"),
        (lambda x, y: Bagging(3, BASES["reduction"][0]).fit(x, y), "decide: got None, but the scores are CodedScores"),
        (
            lambda x, y: Bagging(3, *BASES["reduction"][:1], decide=BASES["reduction"][1], vote="majority").fit(x, y),
            "vote: got 'majority', but the base has margins of a code",
        ),
        (lambda x, y: Bagging(3, BinaryLeastSquares()).fit(x, y), "target: has the labels"),
        (lambda x, y: Bagging(3, Perceptron()).fit(x, y * 0), "target: every row has the label 0"),
    ],
)
def test_what_is_refused(call, message):
    x, y = drawn(30)
    with pytest.raises((TypeError, ValueError), match=message):
        call(x, y)
