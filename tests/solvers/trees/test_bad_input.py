"""Rows that tell little, and what is refused: of trees and forests."""

import math

import pytest
import torch

from torch_multiclass.solvers import Bagging, DecisionTree, RandomForest, RandomTrees

SOLVERS = [DecisionTree(), DecisionTree(bins=4), RandomForest(5), Bagging(5), RandomTrees(5)]


def drawn(rows=40, width=3):
    y = torch.arange(rows) % 3
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(0)) + 2 * torch.eye(3, width)[y], y


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
class TestRowsThatTellLittle:
    def test_a_column_without_values_is_never_asked_for(self, solver):
        x, y = drawn()
        holes = torch.cat([x, torch.full((40, 1), math.nan)], 1)
        scorer = solver.fit(holes, y).scorer
        inner = len(scorer.feature) - scorer.num_leaves
        assert int(scorer.feature[:inner].max()) < 3
        seen = scorer(holes)
        holes[:, 3] = 7.0  # a value where none was seen
        assert torch.equal(scorer(holes), seen)

    def test_weights_that_are_all_zero_leave_no_rows(self, solver):
        x, y = drawn()
        with pytest.raises(ValueError, match="features: there are no rows with a label and a weight above 0"):
            solver.fit(x, y, weight=torch.zeros(40))

    def test_one_class(self, solver):
        x, y = drawn()
        with pytest.raises(ValueError, match="target: every row has the label 0; accepted are at least two classes"):
            solver.fit(x, y * 0)

    @pytest.mark.filterwarnings("ignore:target. no row has the label")
    def test_fewer_rows_than_classes(self, solver):
        scores = solver.fit(torch.tensor([[0.0], [1.0]]), torch.tensor([0, 4]), num_classes=6).scorer(torch.zeros(1, 1))
        assert scores.shape == (1, 6)
        assert float(scores.sum()) == pytest.approx(1)
        assert not scores[0, [1, 2, 3, 5]].any()


def test_a_class_without_rows_is_never_preferred():
    x = torch.arange(6.0)[:, None]
    for solver in SOLVERS:
        with pytest.warns(UserWarning, match="target: no row has the label 1"):
            scorer = solver.fit(x, torch.tensor([0, 0, 0, 2, 2, 2]), num_classes=3).scorer
        assert 1 not in scorer(torch.linspace(-5, 10, 50)[:, None]).argmax(1).tolist()


@pytest.mark.parametrize("kind", [DecisionTree, RandomForest, Bagging, RandomTrees])
def test_no_depth_leaves_the_shares(kind):
    x, y = drawn()
    options = {} if kind is DecisionTree else {"replace": False, "trees": 3}
    scorer = kind(max_depth=0, **options).fit(x, y).scorer
    torch.testing.assert_close(scorer(x), (y.bincount() / 40).expand(40, 3))
