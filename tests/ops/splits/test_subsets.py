"""Sets of categories and impurities, against all sets and the formulas."""

import itertools

import numpy as np
import pytest

from torch_multiclass.ops.splits.impurity import IMPURITIES, impurity
from torch_multiclass.ops.splits.subsets import tables


def weights(categories, classes, seed=0):
    return np.random.default_rng(seed).random((categories, classes)) ** 3 + 0.01


def every(categories):
    """All sets with the first category but not with all of them."""
    return {(True, *rest) for rest in itertools.product([False, True], repeat=categories - 1) if not all(rest)}


def sides(found):
    assert found.dtype == np.bool_
    return [tuple(row) for row in found.tolist()]


@pytest.mark.parametrize("categories", [0, 1, 2, 3, 6, 10])
def test_all_sets_of_few_categories_are_tried(categories):
    found = tables(weights(categories, 3))
    assert found.shape[1] == categories
    assert len(found) == len(set(sides(found)))
    assert set(sides(found)) == (every(categories) if categories else set())


@pytest.mark.parametrize("kind", IMPURITIES)
@pytest.mark.parametrize("categories", [2, 3, 7])
def test_the_best_set_for_two_classes_is_among_those_of_the_lowest_shares(categories, kind):
    sums = np.insert(weights(categories, 2), 1, 0.0, axis=1)  # a class that is not there

    def left(side):
        parts = np.array([sums[list(side)].sum(0), sums[~np.array(side)].sum(0)])
        return float(impurity(parts, parts.sum(1), kind).sum())

    found = sides(tables(sums))
    assert len(found) == categories - 1
    assert set(found) <= every(categories)
    assert min(map(left, found)) == pytest.approx(min(map(left, every(categories))))


@pytest.mark.parametrize("categories", [11, 14])
def test_of_many_categories_those_in_the_order_of_the_first_principal_component(categories):
    sums = weights(categories, 3)
    mass = sums.sum(1)
    centred = sums / mass[:, None] - sums.sum(0) / sums.sum()
    first = np.linalg.svd(np.sqrt(mass)[:, None] * centred)[2][0]
    order = np.argsort(centred @ first)
    wanted = [np.isin(np.arange(categories), order[:size]) for size in range(1, categories)] + list(np.eye(categories))
    wanted = {tuple(bool(one) == bool(side[0]) for one in side) for side in wanted}
    assert set(sides(tables(sums))) == wanted


FORMULAS = {
    "gini": lambda p: 1 - (p**2).sum(),
    "entropy": lambda p: -sum(one * np.log2(one) for one in p if one > 0),
    "misclassification": lambda p: 1 - p.max(),
    "kearns_mansour": lambda p: 2 * np.sqrt(p[0] * p[1]) if len(p) == 2 else np.sqrt(p * (1 - p)).sum(),
}


@pytest.mark.parametrize("kind", IMPURITIES)
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_impurities_are_their_formulas_times_the_weight(kind, classes):
    sums = weights(4, classes) * 10
    sums[1, 1:] = sums[2, 0] = sums[3] = 0
    total = sums.sum(1)
    wanted = [n * FORMULAS[kind](part / n) if n else 0.0 for part, n in zip(sums, total, strict=True)]
    np.testing.assert_allclose(impurity(sums, total, kind), wanted, atol=1e-12)
