"""Decision trees against a naive one, scikit-learn, and what must hold of any."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.references.trees import Naive
from torch_multiclass.ops.splits import levels
from torch_multiclass.solvers import DecisionTree, Interrupted

KINDS = ["gini", "entropy", "misclassification", "kearns_mansour"]


def drawn(seed, rows=24, width=3, classes=3, values=8, holes=0.0):
    draw = np.random.default_rng(seed)
    x = draw.integers(0, values, (rows, width)).astype(float)
    x[draw.random(x.shape) < holes] = np.nan
    return x, np.append(np.arange(classes), draw.integers(0, classes, rows - classes)), draw


def fit(x, y, weight=None, **options):
    weight = None if weight is None else torch.as_tensor(weight)
    return DecisionTree(**options).fit(torch.as_tensor(x), torch.as_tensor(y), weight=weight)


def agrees(report, naive, exact=True):
    assert len(report.splits) == len(naive.splits)
    found = [(s.node, s.feature, s.threshold, s.missing) for s in report.splits]
    assert found == [
        (n, f, t if exact else s.threshold, m) for (n, f, t, _, m), s in zip(naive.splits, report.splits, strict=True)
    ]
    assert [s.decrease for s in report.splits] == pytest.approx([s[3] for s in naive.splits], abs=1e-9)
    assert report.leaves == len(naive.splits) + 1


def nests(report, naive, kind=None):
    path = naive.path(kind)
    assert [p.leaves for p in report.path] == [leaves for _, leaves in path]
    assert [p.strength for p in report.path] == pytest.approx([s for s, _ in path], abs=1e-9)


@pytest.mark.usefixtures("computed_by")
class TestAgainstTryingEverything:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("seed", range(6))
    def test_splits_and_path(self, seed, kind):
        x, y, _ = drawn(seed, classes=2 + seed % 3)
        naive = Naive(x, y, kind=kind)
        report = fit(x, y, impurity=kind).report
        agrees(report, naive)
        nests(report, naive)

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("seed", range(6))
    def test_missing_values_and_weights(self, seed, kind):
        x, y, draw = drawn(seed, holes=0.25)
        weight = draw.integers(1, 4, len(y)) if seed % 2 else draw.random(len(y)) + 0.1
        naive = Naive(x, y, weight, kind)
        agrees(fit(x, y, weight, impurity=kind).report, naive)

    @pytest.mark.parametrize(
        "limits",
        [{"min_leaf": 3}, {"min_leaf": 2.5}, {"min_decrease": 0.02}, {"max_leaves": 4}, {"weighted": False}],
    )
    @pytest.mark.parametrize("seed", range(4))
    def test_limits(self, seed, limits):
        x, y, _ = drawn(seed, rows=40)
        agrees(fit(x, y, **limits).report, Naive(x, y, **limits))
        limits["min_decrease"] = limits.get("min_decrease", 0.05)
        agrees(fit(x, y, weighted=False, **{k: v for k, v in limits.items() if k != "weighted"}).report,
               Naive(x, y, **{**limits, "weighted": False}))  # fmt: skip

    @pytest.mark.parametrize("seed", range(4))
    def test_looking_ahead(self, seed):
        x, y, _ = drawn(seed, rows=14, width=2, values=5, holes=0.1 * (seed % 2))
        agrees(fit(x, y, look_ahead=2).report, Naive(x, y, look_ahead=2))

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("classes", [2, 3])
    def test_subsets(self, classes, kind):
        x, y, _ = drawn(3, classes=classes, values=5, holes=0.1)
        naive, report = Naive(x, y, kind=kind, categorical=[0, 2]), fit(x, y, impurity=kind, categorical=[0, 2]).report
        if naive.unique:
            agrees(report, naive, exact=False)
        else:
            assert report.splits[0].decrease == pytest.approx(naive.splits[0][3], abs=1e-9)

    @pytest.mark.parametrize("kind", KINDS)
    def test_pruned_by_another_impurity(self, kind):
        x, y, _ = drawn(5)
        nests(fit(x, y, prune_impurity=kind).report, Naive(x, y), kind)

    @pytest.mark.parametrize("rows", [3000])
    def test_many_rows_in_bins_and_not(self, rows):
        """Where every value has a bin of its own, bins are exact; the root has more rows than bins, leaves fewer."""
        x, y, _ = drawn(0, rows=rows, values=30)
        exact, binned = fit(x, y).report, fit(x, y, bins=30).report
        assert exact.splits == binned.splits
        assert fit(x, y, bins=5).report.leaves < exact.leaves


@pytest.mark.parametrize(
    "options", [{}, {"impurity": "entropy", "bins": 16}, {"impurity": "kearns_mansour", "min_leaf": 4}]
)
@pytest.mark.parametrize("holes", [0.0, 0.1])
def test_with_and_without_the_library_the_tree_is_the_same(options, holes, monkeypatch):
    if levels._native.library() is None:
        pytest.skip(levels._native.backends()["native"])
    for seed in range(3):
        x, y, draw = drawn(seed, rows=600, width=4, values=60, holes=holes)
        weight = (None, draw.integers(1, 5, 600), draw.random(600) + 0.01)[seed]
        one = fit(x, y, weight, **options)
        with monkeypatch.context() as without:
            without.setattr(levels._native, "library", lambda: None)
            other = fit(x, y, weight, **options)
            scores = other.scorer(torch.tensor(x))
        assert [s[:2] for s in one.report.splits] == [s[:2] for s in other.report.splits]
        assert [s[3:5] for s in one.report.splits] == [s[3:5] for s in other.report.splits]
        assert torch.allclose(one.scorer(torch.tensor(x)), scores, rtol=0, atol=1e-12)


class TestAgainstScikitLearn:
    @pytest.mark.parametrize(("kind", "theirs"), [("gini", "gini"), ("entropy", "entropy")])
    @pytest.mark.parametrize("seed", range(8))
    def test_decreases_and_path_where_every_best_question_is_unique(self, seed, kind, theirs):
        tree = pytest.importorskip("sklearn.tree")
        draw = np.random.default_rng(seed)
        x, y = draw.standard_normal((40, 3)), draw.integers(0, 3, 40)
        weight = draw.random(40) + 0.5
        if not Naive(x, y, weight, kind).unique:
            return  # it draws which of equal partitions it takes
        report = fit(x, y, weight, impurity=kind).report
        peer = tree.DecisionTreeClassifier(criterion=theirs, random_state=0).fit(x, y, sample_weight=weight)
        mass, own = peer.tree_.weighted_n_node_samples, peer.tree_.impurity
        inner = np.flatnonzero((peer.tree_.children_left >= 0) & (own > 1e-12))  # rounding makes it split pure nodes
        sides = peer.tree_.children_left[inner], peer.tree_.children_right[inner]
        decrease = own[inner] - sum(mass[side] * own[side] for side in sides) / mass[inner]
        assert sorted(s.decrease for s in report.splits) == pytest.approx(sorted(decrease), abs=1e-9)
        path = peer.cost_complexity_pruning_path(x, y, sample_weight=weight)
        alphas = path.ccp_alphas * weight.sum()
        distinct = alphas[np.append(True, np.diff(alphas) > 1e-9)]
        assert [p.strength for p in report.path] == pytest.approx(distinct, abs=1e-9)

    def test_predictions(self):
        datasets = pytest.importorskip("sklearn.datasets")
        from sklearn.tree import DecisionTreeClassifier

        x, y = datasets.load_digits(return_X_y=True)
        ours = fit(x[::2], y[::2])
        peer = DecisionTreeClassifier(random_state=0).fit(x[::2], y[::2])
        wrong = float((ours.scorer(torch.tensor(x[1::2])).argmax(1).numpy() != y[1::2]).mean())
        assert abs(wrong - (peer.predict(x[1::2]) != y[1::2]).mean()) < 0.04


tables = st.integers(2, 6).flatmap(
    lambda classes: st.lists(st.floats(0, 100), min_size=classes, max_size=classes).filter(lambda c: sum(c) > 1e-3)
)


class TestProperties:
    @given(tables)
    def test_misclassification_is_under_gini_is_under_entropy(self, counts):
        from torch_multiclass.ops.splits.impurity import impurity

        counts = np.array(counts)
        lowest, middle, highest = (impurity(counts, counts.sum(), k) for k in ("misclassification", "gini", "entropy"))
        assert lowest <= middle + 1e-9
        assert middle <= highest + 1e-9

    @given(st.integers(0, 10**6), st.sampled_from(KINDS))
    def test_more_leaves_err_less_on_the_training_data(self, seed, kind):
        x, y, _ = drawn(seed, rows=30)
        report = fit(x, y, impurity=kind).report
        errors = []
        for leaves in range(1, report.leaves + 1):
            part = fit(x, y, impurity=kind, max_leaves=leaves)
            assert part.report.leaves == leaves
            assert [s[:4] for s in part.report.splits] == [s[:4] for s in report.splits[: leaves - 1]]
            errors.append(float((part.scorer(torch.tensor(x)).argmax(1).numpy() != y).mean()))
        assert errors == sorted(errors, reverse=True)

    @given(st.integers(0, 10**6), st.sampled_from(KINDS))
    def test_pruned_trees_are_nested(self, seed, kind):
        x, y, _ = drawn(seed, rows=40)
        path = fit(x, y, prune_impurity=kind).report.path
        assert [p.leaves for p in path] == sorted({p.leaves for p in path}, reverse=True)
        assert [p.strength for p in path] == sorted({p.strength for p in path})
        assert path[-1].leaves == 1
        whole, inside = fit(x, y, prune_impurity=kind).scorer, None
        for strength, leaves in path:
            pruned = fit(x, y, prune=strength, prune_impurity=kind)
            assert pruned.report.leaves == leaves
            groups = {}  # each leaf is a union of leaves of the tree before
            for low, high in zip(whole.leaves(torch.tensor(x)).ravel().tolist(),
                                 pruned.scorer.leaves(torch.tensor(x)).ravel().tolist(), strict=True):  # fmt: skip
                groups.setdefault(low, set()).add(high)
            assert all(len(group) == 1 for group in groups.values())
            inside = leaves if inside is None else min(inside, leaves)

    @given(st.integers(0, 10**6))
    def test_shares_are_those_of_the_rows_at_the_leaf(self, seed):
        x, y, draw = drawn(seed, rows=40, holes=0.1)
        weight = draw.random(40) + 0.1
        scorer = fit(x, y, weight, max_leaves=5).scorer
        leaf, shares = scorer.leaves(torch.tensor(x)).ravel(), scorer(torch.tensor(x))
        assert torch.allclose(shares.sum(1), torch.ones(40, dtype=shares.dtype))
        for number in leaf.unique():
            own = (leaf == number).numpy()
            expected = np.bincount(y[own], weight[own], minlength=3) / weight[own].sum()
            assert np.allclose(shares[own].numpy(), expected)


class TestQuestionsOfSeveralFeatures:
    def test_a_sphere_is_one_question(self):
        x = torch.randn(300, 2, generator=torch.Generator().manual_seed(0))
        x[0] = 0
        y = (x.norm(dim=1) > 1).long()
        found = DecisionTree(questions=["sphere"], draws=300, max_leaves=2).fit(x, y)
        assert torch.equal(found.scorer(x).argmax(1), y)
        assert found.report.splits[0].question.startswith("|x - (0, 0)| <= ")

    def test_a_plane_is_one_question(self):
        x = torch.randn(300, 3, generator=torch.Generator().manual_seed(0)).double()
        y = torch.arange(300) % 2
        x += 4 * torch.tensor([1.0, 2.0, -1.0]) * (2 * y[:, None] - 1)
        found = DecisionTree(questions=["hyperplane"], max_leaves=2).fit(x, y)
        assert torch.equal(found.scorer(x).argmax(1), y)
        assert found.report.splits[0].feature >= 3

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    @pytest.mark.parametrize("kinds", [["hyperplane"], ["sphere"], ["threshold", "subset", "hyperplane", "sphere"]])
    def test_a_whole_tree_knows_its_rows(self, kinds, dtype):
        """What the scorer computes falls on the side that growing saw, batch by batch."""
        x = (torch.randn(200, 4, generator=torch.Generator().manual_seed(0)) * 100).round().to(dtype)
        y = torch.arange(200) % 3
        found = DecisionTree(questions=kinds).fit(x, y)
        assert torch.equal(found.scorer(x).argmax(1), y)
        assert torch.equal(torch.stack([found.scorer(row) for row in x]).argmax(1), y)

    def test_ties_go_to_the_kind_that_comes_first(self):
        x, y = torch.tensor([[0.0, 0.0], [1.0, 1.0]]), torch.tensor([0, 1])
        report = DecisionTree(questions=["sphere", "hyperplane", "threshold"]).fit(x, y).report
        assert report.splits[0].question == "x0 <= 0.5"

    def test_what_is_missing_is_missing_of_the_whole_row(self):
        x = torch.tensor([[math.nan, 0.0], [1.0, math.nan], [0.0, 0.0], [0.1, 0.2]])
        found = DecisionTree(questions=["hyperplane"]).fit(x, torch.tensor([1, 1, 0, 0]))
        assert found.scorer(x).argmax(1).tolist() == [1, 1, 0, 0]


class TestCategories:
    def test_unknown_ones_go_with_the_heavier_side(self):
        x = torch.tensor([0.0, 0, 0, 2, 2, 5])[:, None]
        found = DecisionTree(categorical=[0], max_leaves=2).fit(x, torch.tensor([0, 0, 0, 1, 1, 1]))
        assert found.report.splits[0].question == "x0 in {0, 1, 3, 4}"
        for seen, unseen in ((1.0, 4.0), (7.0, 1e9), (0.5, -1.0), (math.nan, math.inf)):
            scores = found.scorer(torch.tensor([[seen], [unseen]]))
            assert torch.equal(scores, torch.tensor([[1.0, 0.0], [1.0, 0.0]]))

    @pytest.mark.parametrize("classes", [2, 4])
    def test_many_of_them(self, classes):
        draw = np.random.default_rng(0)
        of = draw.integers(0, classes, 40)
        x = np.append(np.arange(40), draw.integers(0, 40, 400)).astype(float)
        found = fit(x[:, None], of[x.astype(int)], categorical=[0])
        assert (found.scorer(torch.tensor(x)[:, None]).argmax(1).numpy() == of[x.astype(int)]).all()
        assert found.report.leaves <= 2 * classes

    def test_no_threshold_is_asked_of_them(self):
        x, y, _ = drawn(0, values=4)
        report = fit(x, y, categorical=[0, 1, 2]).report
        assert all(" in {" in split.question for split in report.splits)
        assert fit(x, y, categorical=range(3), max_depth=0).report.leaves == 1


class TestMargins:
    x, y = torch.tensor([0.0, 0, 0, 1, 1, 1])[:, None], torch.tensor([-1, -1, 1, 1, 1, 1])

    def test_squared(self):
        scores = DecisionTree(loss="squared").fit(self.x, self.y).scorer(self.x)
        assert torch.allclose(scores[:, 0], torch.tensor([-1 / 3] * 3 + [1.0] * 3))

    @pytest.mark.parametrize("loss", ["logistic", "exponential"])
    def test_logarithms(self, loss):
        scores = DecisionTree(loss=loss).fit(self.x, (self.y + 1) // 2).scorer(self.x)
        expected = [0.5 * math.log(1.5 / 2.5)] * 3 + [0.5 * math.log(3.5 / 0.5)] * 3
        assert torch.allclose(scores[:, 0], torch.tensor(expected))


class TestPruning:
    def test_cross_validation_finds_a_small_tree_for_noise(self):
        x, y, _ = drawn(0, rows=300, values=50)
        y = np.where(np.random.default_rng(1).random(300) < 0.2, y, (x[:, 0] > 25).astype(int))
        found = fit(x, y, prune="cv", folds=5)
        report = found.report
        assert 1 < report.leaves < len(report.unpruned.tree.feature) / 8
        strengths = [p.strength for p in report.path]
        between = [math.sqrt(a * b) for a, b in pairwise(strengths)] + [math.inf]
        assert [s for s, _ in report.validation] == pytest.approx(between)
        least = min(error for _, error in report.validation)
        assert report.strength == max(s for s, error in report.validation if error <= least + 1e-12)

    def test_the_error_of_a_strength_is_that_of_trees_of_the_other_folds(self):
        x, y, _ = drawn(0, rows=90, values=30)
        found, draws = fit(x, y, prune="cv", folds=4).report, torch.Generator().manual_seed(0)
        torch.randint(2**62, (), generator=draws)  # for the tree of all rows
        fold = torch.randperm(90, generator=draws).numpy() % 4
        for strength, error in found.validation:
            wrong = 0
            for number in range(4):
                seen = fold != number
                part = fit(x[seen], y[seen], prune=strength * seen.mean()).scorer
                wrong += int((part(torch.tensor(x[~seen])).argmax(1).numpy() != y[~seen]).sum())
            assert error == pytest.approx(wrong / 90)
        assert len({error for _, error in found.validation}) > 3

    def test_more_folds_than_rows(self):
        x, y, _ = drawn(0, rows=6)
        assert fit(x, y, prune="cv", folds=50).report.leaves >= 1


class TestReport:
    def test_text(self):
        x, y = torch.tensor([[0.0, 5.0], [1.0, 5.0], [2.0, math.nan]]), torch.tensor([0, 1, 1])
        report = DecisionTree().fit(x, y).report
        assert report.text(["width", "height"], ["cat", "dog"]) == (
            "width <= 0.5 (3 rows, decrease 0.4444, missing: no)\n"
            "├─ yes: cat (100 % of 1 rows)\n"
            "└─ no: dog (100 % of 2 rows)"
        )
        assert report.depth == 1
        with pytest.raises(ValueError, match="names: got 1; accepted is one for each feature, 2"):
            report.text(["width"])
        with pytest.raises(ValueError, match="labels: got 1; accepted is one for each class, 2"):
            report.text(labels=["cat"])

    def test_whether_a_value_is_known_is_a_question(self):
        x, y = torch.tensor([[1.0], [1.0], [math.nan]]), torch.tensor([0, 0, 1])
        found = DecisionTree().fit(x, y)
        assert found.report.splits[0].question == "x0 is known"
        assert found.scorer(x).argmax(1).tolist() == [0, 0, 1]
        assert found.scorer(torch.tensor([[math.inf], [-math.inf]])).argmax(1).tolist() == [0, 0]


def test_fewer_rows_than_classes_and_no_depth():
    with pytest.warns(UserWarning, match="target: no row has the label 2, 3"):
        found = DecisionTree(max_depth=0).fit(torch.randn(2, 3), torch.tensor([0, 1]), num_classes=4)
    assert found.scorer(torch.randn(5, 3)).tolist() == [[0.5, 0.5, 0, 0]] * 5
    assert found.report.path == [(0.0, 1)]


def test_an_interrupt_keeps_the_levels_that_are_done(monkeypatch):
    monkeypatch.setattr(levels, "BUDGET", 1)
    x, y, _ = drawn(0, rows=200)
    whole, steps = fit(x, y), DecisionTree.steps

    def interrupted(solver, problem, monitor):
        for number, _ in enumerate(steps(solver, problem, monitor)):
            if number == 2:
                raise KeyboardInterrupt
            yield

    monkeypatch.setattr(DecisionTree, "steps", interrupted)
    with pytest.warns(Interrupted, match="after 2 passes"):
        found = fit(x, y)
    assert found.report.depth == 2
    assert found.report.splits[0] == whole.report.splits[0]


def test_half_precision_and_other_devices(device):
    x, y, _ = drawn(0, rows=60)
    plain = fit(x, y).scorer
    found = DecisionTree().fit(torch.tensor(x, device=device).bfloat16(), torch.tensor(y, device=device)).scorer
    assert found.threshold.dtype == torch.float32
    assert found.threshold.device.type == device.type
    assert torch.equal(found(torch.tensor(x, device=device).float()).argmax(1).cpu(), plain(torch.tensor(x)).argmax(1))


def test_scores_feed_decoders_calibration_and_codes():
    import torch_multiclass as tm

    x, y, _ = drawn(0, rows=90)
    x, y = torch.tensor(x), torch.tensor(y)
    scorer = DecisionTree(max_leaves=6).fit(x, y).scorer
    assert torch.equal(tm.ArgmaxDecoder()(scorer(x)), scorer(x).argmax(1))
    tm.TemperatureScaling().fit(scorer(x), y)
    assert tm.CodedScorer(scorer, tm.codes.one_vs_all(3))(x).margins.shape == (90, 3)
