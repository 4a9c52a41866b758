"""Trees and forests under the contract of solvers; what is missing is theirs alone."""

import copy
import math
import pickle

import pytest
import torch

from tests.contracts.solver import SolverContract
from torch_multiclass.solvers import Bagging, DecisionTree, RandomForest, RandomTrees


class GrownContract(SolverContract):
    certified = False

    def same(self, one, other, features):
        torch.testing.assert_close(one.scorer(features), other.scorer(features), rtol=1e-9, atol=1e-9)

    def test_copies_of_a_fit(self):
        x, y = self.data()
        fit = self.make().fit(x, y)
        for twin in (copy.deepcopy(fit), pickle.loads(pickle.dumps(fit))):
            assert torch.equal(twin.scorer(x), fit.scorer(x))
            assert twin.report.iterations == fit.report.iterations

    def test_the_scorer_can_be_trained_on(self):
        """It has no parameters."""
        x, y = self.data()
        assert not list(self.make().fit(x, y).scorer.parameters())

    def test_a_bias_is_a_constant_feature(self):
        """Which no question could be about."""

    def test_every_pass_is_told(self):
        x, y = self.data()
        steps = []
        report = self.make(on_step=steps.append).fit(x, y).report
        assert [step.iteration for step in steps] == list(range(1, report.iterations + 1))
        assert all(math.isnan(step.primal) for step in steps)

    @pytest.mark.parametrize("bad", [math.inf, -math.inf])
    def test_features_that_are_not_finite_are_named_by_their_row(self, bad):
        super().test_features_that_are_not_finite_are_named_by_their_row(bad)

    def test_a_missing_value_is_one(self):
        x, y = self.data(60)
        x[torch.rand(60, 4, generator=torch.Generator().manual_seed(1)) < 0.2] = math.nan
        scorer = self.make().fit(x, y).scorer
        assert scorer(x).isfinite().all()
        assert scorer(torch.full((2, 4), math.nan).double()).isfinite().all()

    def test_features_that_tell_nothing(self):
        y = torch.tensor([0, 1, 1])
        for x in (torch.ones(3, 2), torch.full((3, 2), math.nan)):
            scorer = self.make().fit(x, y).scorer
            assert scorer.depth == 0
            assert torch.equal(scorer(x)[0], scorer(x)[2])

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"impurity": "giny"}, "impurity: got 'giny'; accepted are 'gini', 'entropy', 'misclassification'"),
            ({"max_leaves": 0}, "max_leaves: got 0"),
            ({"max_depth": -1}, "max_depth: got -1; accepted is a whole number >= 0"),
            ({"min_leaf": 0}, "min_leaf: got 0"),
            ({"min_decrease": -0.1}, "min_decrease: got -0.1"),
            ({"bins": 1}, "bins: got 1"),
            ({"progress": "yes"}, "progress: got 'yes'"),
            ({"generator": 3}, "generator: got 3"),
        ],
    )
    def test_options_that_are_none(self, options, message):
        with pytest.raises((TypeError, ValueError), match=message):
            self.make(**options)


@pytest.mark.usefixtures("computed_by")
class TestTree(GrownContract):
    solver, long = DecisionTree, {"prune": "cv"}

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"look_ahead": 3}, "look_ahead: got 3; accepted are 1 and 2"),
            ({"look_ahead": True}, "look_ahead: got True"),
            ({"questions": "threshold"}, "questions: got 'threshold'; accepted is a sequence of some of"),
            ({"questions": ("threshold", "cube")}, "questions: got 'cube'"),
            ({"questions": ()}, r"questions: got \(\)"),
            ({"categorical": 0}, "categorical: got 0; accepted is a sequence of features"),
            ({"categorical": [-1]}, "categorical: got -1"),
            ({"categorical": [0], "questions": ["threshold"]}, "categorical: is given, but questions have no 'subset'"),
            ({"draws": 0}, "draws: got 0"),
            ({"prune": -1}, "prune: got -1; accepted are None, 'cv' and numbers >= 0"),
            ({"prune": "cross"}, "prune: got 'cross'"),
            ({"prune": math.nan}, "prune: got nan"),
            ({"prune_impurity": "cart"}, "prune_impurity: got 'cart'"),
            ({"folds": 1}, "folds: got 1"),
            ({"loss": "hinge"}, "loss: got 'hinge'; accepted are 'squared', 'logistic', 'exponential'"),
            ({"weighted": "yes"}, "weighted: got 'yes'"),
        ],
    )
    def test_options_of_a_tree(self, options, message):
        with pytest.raises((TypeError, ValueError), match=message):
            self.make(**options)

    def test_categories_that_are_none(self):
        x, y = self.data()
        with pytest.raises(ValueError, match=r"categorical: holds 4; accepted are features in 0\.\.3"):
            self.make(categorical=[4]).fit(x, y)
        for bad in (-1.0, 0.5, 2.0**20):
            x[:, 1] = 0
            x[3, 1] = bad
            with pytest.raises(ValueError, match="features: feature 1 is categorical and holds"):
                self.make(categorical=[1]).fit(x, y)


class TestBinnedTree(GrownContract):
    solver, options, long = DecisionTree, {"bins": 8, "impurity": "entropy"}, {"prune": "cv"}


class TestMarginTree(GrownContract):
    solver, options, long, binary = DecisionTree, {"loss": "logistic"}, {"prune": "cv"}, True


class TestTreeOfAllQuestions(GrownContract):
    solver, long = DecisionTree, {"prune": "cv"}
    options = {"questions": ("threshold", "subset", "hyperplane", "sphere")}

    def test_a_weight_of_two_is_the_row_twice(self):
        """Rows that are twice there are drawn for centres twice as often; see `TestTree` for thresholds."""

    test_any_whole_weight_is_as_many_rows = test_a_weight_of_two_is_the_row_twice


class TestTreeThatLooksAhead(GrownContract):
    solver, options, long = DecisionTree, {"look_ahead": 2, "bins": 8}, {"prune": "cv"}

    @pytest.mark.usefixtures("computed_by")
    def test_gives_a_scorer_and_a_report(self):
        super().test_gives_a_scorer_and_a_report()

    def data(self, rows=36, **given):
        return super().data(min(rows, 60), **given)


class ForestContract(GrownContract):
    long = {"trees": 50}

    def test_a_weight_of_two_is_the_row_twice(self):
        """Rows are drawn, so that this holds for the mean of many forests."""

    test_any_whole_weight_is_as_many_rows = test_a_weight_of_two_is_the_row_twice

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"trees": 0}, "trees: got 0"),
            ({"sample": 0}, "sample: got 0"),
            ({"sample": 1.5}, "sample: got 1.5; accepted is a number above 0 and at most 1"),
            ({"replace": 1}, "replace: got 1"),
            ({"vote": "mean"}, "vote: got 'mean'; accepted are 'average', 'majority'"),
            ({"jobs": 0}, "jobs: got 0"),
        ],
    )
    def test_options_of_a_forest(self, options, message):
        with pytest.raises((TypeError, ValueError), match=message):
            self.make(**options)


@pytest.mark.usefixtures("computed_by")
class TestForest(ForestContract):
    solver, options = RandomForest, {"trees": 5}

    @pytest.mark.parametrize("features", [0, 1.5, True, "log2", -1])
    def test_numbers_of_features_that_are_none(self, features):
        with pytest.raises(ValueError, match=r"features: got .*; accepted are None, 'sqrt'"):
            RandomForest(features=features)

    def test_a_draw_that_is_none(self):
        with pytest.raises(ValueError, match="per: got 'node'; accepted are 'split', 'tree'"):
            RandomForest(per="node")


class TestForestOfVotes(ForestContract):
    solver, options = RandomForest, {"trees": 5, "vote": "majority", "per": "tree", "sample": 0.5, "replace": False}


class TestBagging(ForestContract):
    solver, options = Bagging, {"trees": 5, "jobs": 2}


class TestRandomTrees(ForestContract):
    solver, options = RandomTrees, {"trees": 10}
