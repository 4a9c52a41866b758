"""Boosting the confidence."""

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass.solvers import AdaBoost, AdaBoostMO, DecisionTree, Perceptron, boost_confidence


def data(rows=120):
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(rows) % 3
    return torch.randn(rows, 3, generator=generator) + 2 * torch.eye(3)[y], y


def test_as_many_runs_as_the_formula_says_and_the_best_is_kept():
    x, y = data()
    scorer, report = boost_confidence(DecisionTree(max_leaves=4), x, y, delta=0.05, success=0.3)
    assert len(report.errors) == tm.bounds.confidence_runs(0.05, 0.3) == 13
    assert report.chosen == report.errors.index(min(report.errors))
    assert len(set(report.errors)) > 1
    held = torch.randperm(120, generator=torch.Generator().manual_seed(0))[:30]
    assert float((scorer(x[held]).argmax(1) != y[held]).double().mean()) == min(report.errors)


def test_the_rows_held_out_are_never_trained_on():
    x, y = data(40)
    seen = []

    class Spy(Perceptron):
        def fit(self, features, target):
            seen.append(features)
            return super().fit(features, target)

    boost_confidence(Spy(), x, y, delta=0.5, success=0.5, held_out=0.5)
    rows = {tuple(row) for sample in seen for row in sample.tolist()}
    assert len(seen) == 3
    assert len(rows) <= 20
    assert all(len(sample) == 20 for sample in seen)


def test_signs_codes_and_rows_without_a_label():
    x, y = data()
    for target in (torch.where(y == 0, 1, -1), (y == 0).long()):
        target[:7] = -100
        report = boost_confidence(AdaBoost(10), x, target, delta=0.5, success=0.5).report
        assert min(report.errors) < 0.3
    booster, by_loss = AdaBoostMO(tm.codes.one_vs_one(3), 10), tm.LossBasedDecoder("exponential")
    assert min(boost_confidence(booster, x, y, delta=0.5, success=0.5, decide=by_loss).report.errors) < 0.3
    with pytest.raises(TypeError, match="decide: got None, but the scores are CodedScores"):
        boost_confidence(booster, x, y, delta=0.5, success=0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 0}, "delta: got 0"),
        ({"success": 2.0}, "success: got 2.0"),
        ({"held_out": 1.0}, "held_out: got 1.0"),
        ({"decide": 3}, "decide: got 3"),
        ({"solver": None}, "solver: got NoneType"),
        ({"target": torch.full((120,), -100)}, "target: got 0 rows with a label"),
    ],
)
def test_what_is_refused(options, message):
    x, y = data()
    given = {"solver": Perceptron(), "features": x, "target": y, "delta": 0.1, "success": 0.5, **options}
    with pytest.raises((TypeError, ValueError), match=message):
        boost_confidence(**given)
