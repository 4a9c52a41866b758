"""Forests: who saw what, how trees vote, and that neither threads nor the library change a tree."""

import itertools
import math
import threading

import numpy as np
import pytest
import torch

from torch_multiclass.ops import _native
from torch_multiclass.solvers import Bagging, DecisionTree, RandomForest, RandomTrees
from torch_multiclass.solvers.trees.forest import Trees

FORESTS = [Bagging, RandomForest, RandomTrees]


def drawn(rows=120, width=5, classes=3, seed=0):
    draw = torch.Generator().manual_seed(seed)
    y = torch.arange(rows) % classes
    x = torch.randn(rows, width, generator=draw)
    x[:, :classes] += torch.eye(classes)[y]
    return x, y


@pytest.fixture(scope="module")
def digits():
    x, y = pytest.importorskip("sklearn.datasets").load_digits(return_X_y=True)
    return x[::2], y[::2], x[1::2], y[1::2]


def by_tree(scorer, x):
    """The values of each tree, ``(T, N, K)``, and its questions' features."""
    return scorer.values[scorer.leaves(x)].transpose(0, 1)


@pytest.mark.parametrize("kind", FORESTS)
def test_the_scores_are_the_mean_over_the_trees(kind):
    x, y = drawn()
    for vote in ("average", "majority"):
        scorer = kind(trees=7, vote=vote).fit(x, y).scorer
        values = by_tree(scorer, x)
        assert len(values) == 7
        assert torch.allclose(scorer(x), values.mean(0), atol=1e-6)
        assert torch.allclose(scorer(x).sum(1), torch.ones(len(x)), atol=1e-5)
        if vote == "majority":
            assert set(values.unique().tolist()) == {0.0, 1.0}
    average = kind(trees=7, vote="average", min_leaf=10).fit(x, y).scorer
    majority = kind(trees=7, vote="majority", min_leaf=10).fit(x, y).scorer
    assert len(by_tree(average, x).unique()) > 2
    votes = torch.nn.functional.one_hot(by_tree(average, x).argmax(2), 3)
    assert torch.equal(by_tree(majority, x), votes.float())


@pytest.mark.parametrize("kind", [Bagging, RandomForest])
def test_out_of_bag_error_is_that_of_the_trees_that_did_not_see_a_row(kind):
    x, y = drawn()
    weight = torch.rand(len(y), generator=torch.Generator().manual_seed(3)) + 0.5
    scorer, report = kind(trees=6).fit(x, y, weight=weight)
    assert report.in_bag.shape == (6, len(y))
    assert report.in_bag.sum(1).tolist() == [len(y)] * 6
    votes = torch.zeros(len(y), 3)
    for tree, guess in enumerate(by_tree(scorer, x).argmax(2)):
        out = report.in_bag[tree] == 0
        votes[out, guess[out]] += 1
    some = votes.sum(1) > 0
    assert report.oob_rows == int(some.sum()) < len(y)
    wrong = (votes.argmax(1) != y) & some
    assert report.oob_error == pytest.approx(float(weight[wrong].sum() / weight[some].sum()), rel=1e-6)


def test_rows_that_every_tree_saw_are_left_out_and_counted():
    x, y = drawn()
    report = RandomForest(trees=3, replace=False).fit(x, y).report
    assert report.oob_rows == 0
    assert math.isnan(report.oob_error)
    half = RandomForest(trees=3, sample=0.5, replace=False).fit(x, y).report
    assert half.in_bag.max() == 1
    assert half.in_bag.sum(1).tolist() == [60] * 3
    assert 60 <= half.oob_rows < 120


def test_a_tree_of_all_rows_and_features_is_a_decision_tree():
    x, y = drawn()
    forest = Bagging(trees=1, replace=False).fit(x, y).scorer
    assert torch.equal(forest(x), DecisionTree().fit(x, y).scorer(x))
    few = Bagging(trees=1, replace=False, max_leaves=5, impurity="entropy").fit(x, y).scorer
    assert torch.equal(few(x), DecisionTree("entropy", max_leaves=5).fit(x, y).scorer(x))


@pytest.mark.parametrize("kind", FORESTS)
def test_threads_do_not_change_the_forest(kind):
    x, y = drawn()
    fits = [kind(trees=9, jobs=jobs).fit(x, y) for jobs in (1, 2, 5)]
    for scorer, report in fits[1:]:
        assert torch.equal(scorer(x), fits[0].scorer(x))
        assert torch.equal(report.in_bag, fits[0].report.in_bag)


@pytest.mark.parametrize("jobs", [2, None])
def test_trees_are_grown_at_a_time(jobs, monkeypatch):
    """Each but the first, which is grown alone, waits until another is under way."""
    x, y = drawn()
    grow, begun, two = Trees.member, itertools.count(), threading.Barrier(2, timeout=60)

    def together(*given):
        if next(begun):
            two.wait()
        return grow(*given)

    monkeypatch.setattr(Trees, "member", together)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert RandomForest(trees=7, jobs=jobs).fit(x, y).report.trees == 7


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_with_and_without_the_library_it_is_the_same(kind, holes, monkeypatch):
    if _native.library() is None:
        pytest.skip(_native.backends()["native"])
    x, y = drawn(300)
    x = (x * 20).round()
    x[torch.rand(x.shape, generator=torch.Generator().manual_seed(2)) < holes] = torch.nan
    one = kind(trees=4).fit(x, y)
    monkeypatch.setattr(_native, "library", lambda: None)
    other = kind(trees=4).fit(x, y)
    assert torch.equal(one.scorer.feature, other.scorer.feature)
    assert torch.equal(one.scorer.threshold, other.scorer.threshold)
    assert torch.equal(one.scorer.missing, other.scorer.missing)
    assert torch.allclose(one.scorer(x), other.scorer(x), rtol=0, atol=1e-6)
    assert one.report.oob_error == other.report.oob_error or kind is RandomTrees


class TestFeaturesTried:
    def test_drawn_for_a_tree(self):
        x, y = drawn(width=9)
        scorer = RandomForest(trees=20, per="tree").fit(x, y).scorer
        inner = len(scorer.feature) - scorer.num_leaves
        owners = torch.bucketize(torch.arange(inner), scorer.roots, right=True)
        used = [set(scorer.feature[:inner][owners == tree].tolist()) for tree in range(1, 21)]
        assert all(len(features) <= 3 for features in used)
        assert set().union(*used) == set(range(9))

    def test_drawn_for_a_split(self):
        """About every feature is asked first in some tree, though only one tells anything."""
        x, y = drawn(width=9)
        scorer = RandomForest(trees=60, features=1).fit(x, y).scorer
        first = scorer.feature[scorer.roots].bincount(minlength=9)
        assert int(first.min()) > 0
        assert int(first.max()) < 20

    def test_more_are_tried_where_none_has_a_question(self):
        x, y = drawn(width=9)
        x[:, :8] = 1.0
        scorer = RandomForest(trees=5, features=1).fit(x, y).scorer
        assert set(scorer.feature[scorer.roots].tolist()) == {8}

    @pytest.mark.parametrize(("given", "count"), [("sqrt", 3), (4, 4), (100, 9), (0.5, 4), (0.01, 1), (None, 9)])
    def test_how_many(self, given, count):
        from torch_multiclass.solvers.trees.options import tried

        assert tried(given, 9) == count


class TestRandomTrees:
    def test_questions_do_not_depend_on_labels(self):
        x, y = drawn()
        z = y[torch.randperm(len(y), generator=torch.Generator().manual_seed(0))]
        first, second = (RandomTrees(trees=5, max_depth=2).fit(x, labels).scorer for labels in (y, z))
        assert torch.equal(first.feature, second.feature)
        assert torch.equal(first.threshold, second.threshold)
        assert not torch.equal(first.values, second.values)

    def test_thresholds_are_uniform_between_the_ends(self):
        x = torch.tensor([0.0, 0.01, 0.02, 1.0])[:, None]
        scorer = RandomTrees(trees=400, max_depth=1).fit(x, torch.tensor([0, 1, 0, 1])).scorer
        drawn = scorer.threshold[scorer.roots]
        assert bool(((drawn >= 0) & (drawn < 1)).all())
        assert float(drawn.mean()) == pytest.approx(0.5, abs=0.06)
        assert float(drawn.std()) == pytest.approx(math.sqrt(1 / 12), abs=0.03)

    def test_every_leaf_is_pure_in_the_end(self):
        x, y = drawn()
        assert torch.equal(RandomTrees(trees=3).fit(x, y).scorer(x).argmax(1), y)


def test_errors_are_those_of_scikit_learn(digits):
    from sklearn.ensemble import RandomForestClassifier

    x, y, test, truth = digits
    peer = RandomForestClassifier(100, random_state=0).fit(x, y)
    theirs = float((peer.predict(test) != truth).mean())
    for vote in ("average", "majority"):
        scorer, report = RandomForest(vote=vote).fit(torch.tensor(x), torch.tensor(y))
        ours = float((scorer(torch.tensor(test)).argmax(1).numpy() != truth).mean())
        assert abs(ours - theirs) < 0.015
        assert abs(report.oob_error - ours) < 0.03


def test_the_mean_over_forests_does_not_tell_a_weight_from_rows():
    x, y = drawn(60)
    weight = torch.where(y == 0, 3.0, 1.0)
    many = torch.cat([x, x[y == 0], x[y == 0]]), torch.cat([y, y[y == 0], y[y == 0]])
    weighted = RandomForest(trees=300, max_leaves=2).fit(x, y, weight=weight).scorer(x)
    repeated = RandomForest(trees=300, max_leaves=2).fit(*many).scorer(x)
    assert float((weighted - repeated).abs().max()) < 0.12


def test_a_forest_in_bins_with_holes(digits):
    x, y, test, truth = digits
    x = x.copy()
    x[np.random.default_rng(0).random(x.shape) < 0.1] = np.nan
    scorer = RandomForest(bins=8).fit(torch.tensor(x), torch.tensor(y)).scorer
    assert float((scorer(torch.tensor(test)).argmax(1).numpy() != truth).mean()) < 0.1


@pytest.mark.parametrize("kind", [Bagging, RandomForest, RandomTrees])
def test_a_misspelt_option_is_named_with_those_there_are(kind):
    with pytest.raises(
        TypeError, match=rf"max_leafs: is no argument of {kind.__name__}; accepted are trees, .*max_leaves"
    ):
        kind(max_leafs=3)


def test_how_many_features_is_a_number():
    for given in (torch.zeros(2), np.zeros(2), np.zeros(0)):
        with pytest.raises(ValueError, match=r"features: got .*; accepted are None, 'sqrt'"):
            RandomForest(features=given)
