"""Known answers: every one by hand or by a naive script."""

import math

import numpy as np
import pytest
import torch

from torch_multiclass.ops.splits.impurity import impurity
from torch_multiclass.solvers import DecisionTree

pytestmark = pytest.mark.usefixtures("computed_by")

POINTS = [
    *[(8, 4, 3), (6, 8, 1), (3, 7, 7), (5, 9, 0), (7, 2, 8), (1, 10, 5)],
    *[(0, 6, 4), (9, 5, 11), (11, 11, 6), (4, 0, 2), (10, 3, 9), (2, 1, 10)],
]
LABELS = [2, 2, 0, 1, 0, 2, 2, 1, 0, 1, 0, 1]


def fit(x, y, **options):
    x = torch.as_tensor(x, dtype=torch.float64)
    return DecisionTree(**options).fit(x[:, None] if x.ndim == 1 else x, torch.tensor(y)).report


def asked(report):
    return [(split.node, split.feature, split.threshold, split.decrease) for split in report.splits]


def close(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, abs=1e-6)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [((3, 1), (0.25, 0.375, 0.811278)), ((5, 3, 2), (0.5, 0.62, 1.485475)), ((0, 7, 1), (0.125, 0.21875, 0.543564))],
)
def test_impurities(counts, expected):
    counts = np.array(counts, dtype=float)
    found = [impurity(counts, counts.sum(), kind) / counts.sum() for kind in ("misclassification", "gini", "entropy")]
    assert found == pytest.approx(expected, abs=1e-6)


def test_the_impurity_of_kearns_and_mansour():
    for counts, expected in (((3, 1), math.sqrt(3) / 2), ((1, 1), 1.0), ((1, 1, 2), 2 * math.sqrt(3) / 4 + 0.5)):
        counts = np.array(counts, dtype=float)
        assert impurity(counts, counts.sum(), "kearns_mansour") / counts.sum() == pytest.approx(expected)


class TestWithoutTies:
    def test_gini(self):
        report = fit(POINTS, LABELS)
        close(asked(report), [(0, 2, 5.5, 2 / 9), (2, 2, 9.5, 4 / 9), (1, 2, 2.5, 2 / 9), (5, 0, 5.5, 4 / 9)])
        close(report.path, [(0, 5), (4 / 3, 3), (8 / 3, 1)])

    def test_entropy(self):
        close(fit(POINTS, LABELS, impurity="entropy").path, [(0, 5), (2.754888, 3), (5.509775, 2), (8, 1)])

    def test_pruned_by_misclassification(self):
        report = fit(POINTS, LABELS, prune_impurity="misclassification")
        close(report.path, [(0, 5), (1, 3), (2, 2), (4, 1)])

    def test_pruned_trees(self):
        for strength, leaves in ((0, 5), (1.3, 5), (4 / 3, 3), (2.6, 3), (8 / 3, 1), (1e9, 1)):
            report = fit(POINTS, LABELS, prune=strength)
            assert report.leaves == leaves
            assert report.path[0].leaves == 5


def test_weighted_or_as_printed():
    y = [0, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 2]
    for weighted in (True, False):
        first, second = asked(fit(torch.arange(12.0), y, weighted=weighted))[:2]
        assert first == pytest.approx((0, 0, 7.5, 0.270833), abs=1e-6)
        assert second == pytest.approx((2, 0, 10.5, 0.375), abs=1e-6)
    # by its share the second lowers by 0.125, so that more may not be asked for
    assert fit(torch.arange(12.0), y, min_decrease=0.12).leaves == 3
    assert fit(torch.arange(12.0), y, min_decrease=0.13).leaves == 2
    assert fit(torch.arange(12.0), y, min_decrease=0.13, weighted=False).leaves > 2


@pytest.mark.parametrize(
    ("kind", "threshold", "decrease"),
    [("misclassification", 0.5, 0), ("gini", 2.5, 0.075), ("entropy", 2.5, 0.204434)],
)
def test_nothing_decreases_misclassification(kind, threshold, decrease):
    first = fit(torch.arange(8.0), [0, 0, 0, 1, 0, 1, 0, 0], impurity=kind).splits[0]
    assert first[:3] == pytest.approx((0, threshold, decrease), abs=1e-6)


def test_exclusive_or():
    x = torch.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    fitted = DecisionTree().fit(x, torch.tensor([0, 1, 1, 0]))
    assert fitted.scorer(x).argmax(1).tolist() == [0, 1, 1, 0]
    close(fitted.report.path, [(0, 4), (2 / 3, 1)])


class TestLookAhead:
    x = torch.tensor([(0, 0, 0), (0, 1, 0), (1, 0, 1), (1, 1, 0), (0, 0, 1), (1, 1, 1), (0, 1, 1), (1, 0, 1)]).double()
    y = [0, 1, 1, 0, 0, 0, 1, 1]

    def test_greedy(self):
        assert asked(fit(self.x, self.y))[0] == pytest.approx((0, 2, 0.5, 0.033333), abs=1e-6)

    def test_looking_ahead(self):
        report = fit(self.x, self.y, look_ahead=2)
        assert asked(report)[0] == pytest.approx((0, 0, 0.5, 0), abs=1e-12)
        assert report.leaves == 4
        for feature, rank in enumerate((0.5, 0.5, 0.083333)):
            # what is left of the root's impurity two questions later, when the first is about this feature
            sides = [self.x[:, feature] == v for v in (0, 1)]
            left = sum(
                float(side.sum()) / 8 * self.best_below(self.x[side], torch.tensor(self.y)[side]) for side in sides
            )
            assert 0.5 - left == pytest.approx(rank, abs=1e-6)

    def best_below(self, x, y):
        """The impurity after the best question."""
        counts = y.bincount(minlength=2).double().numpy()
        own = float(impurity(counts, counts.sum(), "gini") / counts.sum())
        if min(counts) == 0:
            return own
        report = fit(x, y.tolist(), max_leaves=2)
        return own - report.splits[0].decrease


def test_missing():
    report = fit([1, 2, math.nan, 4, math.nan, 6, 7, 8], [0, 0, 0, 1, 1, 1, 1, 1])
    first = report.splits[0]
    assert first[:3] == pytest.approx((0, 3.0, 0.28125))
    assert first.missing


@pytest.mark.parametrize(("kind", "decrease"), [("gini", 0.243333), ("entropy", 0.695462), ("misclassification", 0.3)])
def test_subset(kind, decrease):
    x = [0, 0, 1, 1, 2, 2, 3, 3, 3, 1]
    first = fit(x, [0, 0, 1, 1, 0, 2, 1, 1, 2, 2], impurity=kind, categorical=[0]).splits[0]
    assert first.decrease == pytest.approx(decrease, abs=1e-6)
    assert first.question == "x0 in {0, 2}"


def test_equal_weakest_links():
    report = fit(torch.arange(12.0), [0, 1, 0, 0, 0, 0, 2, 2, 2, 2, 1, 2])
    close(report.path, [(0, 6), (0.833333, 2), (4.166667, 1)])
