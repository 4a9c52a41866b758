"""Cuts of rows that carry numbers in channels, and the trees made of them, against trying everything."""

import numpy as np
import pytest

from tests.references.stumps import best_cut, purity, summed
from torch_multiclass.ops.splits.codes import encode, midpoint
from torch_multiclass.ops.splits.dense import EDGE, NORMALISER, DenseSearch
from torch_multiclass.ops.splits.hamming import hamming_tree

pytestmark = pytest.mark.usefixtures("computed_by")


def drawn(seed, criterion):
    """Features with ties and holes, and channels of small fractions, which add up exactly, or of any numbers."""
    draw = np.random.default_rng(seed)
    rows, width, labels = draw.integers(1, 60), draw.integers(1, 5), draw.integers(1, 12)
    features = draw.integers(0, draw.integers(1, 40), (rows, width)).astype(float)
    if seed % 2:
        features[draw.random((rows, width)) < 0.3] = np.nan
    channels = draw.integers(-3, 4, (rows, labels)) / 16
    return features, channels * draw.random((rows, 1)) if seed % 5 == 0 else channels, draw


def the_same(found, expected):
    if expected is None:
        assert found is None
        return
    feature, threshold, missing, gain, sums = expected
    assert (found.feature, found.threshold, found.missing) == (feature, threshold, missing)
    assert found.gain == pytest.approx(gain, abs=1e-9)
    np.testing.assert_allclose(found.sums, sums, atol=1e-12)


@pytest.mark.parametrize("criterion", [EDGE, NORMALISER])
@pytest.mark.parametrize("seed", range(60))
def test_the_best_cut_is_that_of_trying_all(seed, criterion):
    features, channels, draw = drawn(seed, criterion)
    search = DenseSearch(encode(features))
    the_same(search.best(channels, criterion), best_cut(features, channels, criterion))
    some = np.sort(draw.choice(len(features), draw.integers(1, len(features) + 1), replace=False))
    the_same(search.best(channels, criterion, some), best_cut(features[some], channels[some], criterion))


@pytest.mark.parametrize("criterion", [EDGE, NORMALISER])
@pytest.mark.parametrize("seed", range(12))
def test_the_best_of_features_that_few_digits_do_not_tell_apart(seed, criterion):
    """Rows of next to no weight decide, or the lowest feature where nothing does; of all rows and of some."""
    draw = np.random.default_rng(seed)
    rows, labels = 400, int(draw.integers(2, 20))
    signs = np.where(np.eye(labels)[draw.integers(0, labels, rows)] > 0, 1.0, -1.0)
    weight = draw.random((rows, 1)) ** 4
    weight[::7] = 10.0 ** -draw.integers(4, 8)
    first = draw.integers(0, 5, rows).astype(float)
    features = np.stack([first] * 9 + [draw.integers(0, 6, rows), draw.integers(0, 300, rows)], 1).astype(float)
    for number in range(2, 9):  # each errs on a few of the rows that hardly count
        light = draw.permutation(np.arange(0, rows, 7))[: 3 * number]
        features[light, number] = draw.integers(0, 5, len(light))
    features = features[:, draw.permutation(11)]
    if seed % 3 == 0:
        features[draw.random(rows) < 0.2, :4] = np.nan
    channels = weight * signs
    channels /= np.abs(channels).sum()
    search = DenseSearch(encode(features))
    the_same(search.best(channels, criterion), best_cut(features, channels, criterion))
    for share in (0.1, 0.5):
        some = np.flatnonzero(draw.random(rows) < share)
        the_same(search.best(channels, criterion, some), best_cut(features[some], channels[some], criterion))


@pytest.mark.parametrize("criterion", [EDGE, NORMALISER])
def test_sums_of_many_rows_in_one_code_are_not_trusted_too_far(criterion):
    """Forty thousand equal numbers, added in few digits, are off by more than what tells the two features apart."""
    rows = 40_000
    channels = np.full((rows, 3), 1 / 3)
    channels[1::2] *= -0.999
    features = np.zeros((rows, 4))
    features[1::2] = 1
    features[:40, 0] = 1 - features[:40, 0]
    features[:20, 1] = 1 - features[:20, 1]
    features[:21, 2] = 1 - features[:21, 2]
    features[:23, 3] = 1 - features[:23, 3]
    channels /= np.abs(channels).sum()
    assert DenseSearch(encode(features)).best(channels, criterion).feature == 1
    assert DenseSearch(encode(features)).best(channels, criterion, np.arange(rows)[::-1][::-1]).feature == 1


@pytest.mark.parametrize("rows", [300, 5000])
def test_many_values(rows):
    """More codes than one digit of the sort tells apart."""
    draw = np.random.default_rng(0)
    features, channels = draw.standard_normal((rows, 2)).round(3), draw.standard_normal((rows, 3))
    search, some = DenseSearch(encode(features)), np.arange(0, rows, 2)
    the_same(search.best(channels, EDGE), best_cut(features, channels, EDGE))
    the_same(search.best(channels, EDGE, some), best_cut(features[some], channels[some], EDGE))


def test_the_cut_sends_rows_where_its_question_does():
    features, channels, _ = drawn(7, EDGE)
    search = DenseSearch(encode(features))
    cut = search.best(channels, EDGE)
    column = features[:, cut.feature]
    expected = np.where(np.isnan(column), cut.missing, column <= cut.threshold)
    assert (search.yes(cut) == expected).all()
    assert (search.yes(cut, np.array([2, 5])) == expected[[2, 5]]).all()


def test_bins_are_exact_where_every_value_has_one():
    features, channels, _ = drawn(9, EDGE)
    the_same(DenseSearch(encode(features, bins=64)).best(channels, EDGE), best_cut(features, channels, EDGE))


def test_bins_have_equal_weight_and_a_weight_of_two_is_the_row_twice():
    draw = np.random.default_rng(0)
    column = draw.standard_normal((10_000, 1))
    codes = encode(column, bins=16)
    assert codes.counts.tolist() == [16]
    assert np.abs(np.bincount(codes.codes[0]) - 625).max() <= 1
    weight = np.where(column[:, 0] > 0, 2.0, 1.0)
    twice = encode(np.concatenate([column, column[weight == 2]]), bins=16)
    weighted = encode(column, bins=16, weight=weight)
    assert (weighted.upper[0] == twice.upper[0]).all()
    assert (weighted.lower[0] == twice.lower[0]).all()


@pytest.mark.parametrize("criterion", [EDGE, NORMALISER])
@pytest.mark.parametrize("leaves", [1, 2, 3, 8])
def test_a_tree_grows_by_what_lowers_most(leaves, criterion):
    features, channels, _ = drawn(2, criterion)
    part = hamming_tree(DenseSearch(encode(features)), channels, criterion, leaves)
    owned, expected = [np.arange(len(features))], []
    while len(owned) < leaves:
        cuts = [best_cut(features[rows], channels[rows], criterion) for rows in owned]
        gains = [-np.inf if cut is None else cut[3] for cut in cuts]
        at = next(i for i, gain in enumerate(gains) if gain >= max(gains) - 1e-12)
        if gains[at] == -np.inf:
            break
        column = features[owned[at], cuts[at][0]]
        expected.append(cuts[at][3])
        yes, rows = column <= cuts[at][1], owned.pop(at)
        owned += [rows[yes], rows[~yes]]
    np.testing.assert_allclose(part.gains, expected, atol=1e-12)
    assert part.tree.leaves == len(part.gains) + 1
    assert sorted(map(tuple, owned)) == sorted(tuple(np.flatnonzero(part.leaf == i)) for i in np.unique(part.leaf))
    for node in range(part.tree.nodes):
        if part.tree.feature[node] < 0:
            np.testing.assert_allclose(
                part.tree.values[node], summed(channels[part.leaf == node], criterion), atol=1e-12
            )
    ends = [purity(part.tree.values[i], criterion) for i in np.unique(part.leaf)]
    assert purity(summed(channels, criterion), criterion) - sum(ends) == pytest.approx(part.gains.sum(), abs=1e-12)


def test_where_no_question_is_possible_there_is_the_constant():
    for features in (np.ones((5, 2)), np.full((5, 1), np.nan)):
        part = hamming_tree(DenseSearch(encode(features)), np.ones((5, 3)), EDGE)
        assert part.tree.leaves == 1
        assert part.tree.values.tolist() == [[5, 5, 5]]


def test_exclusive_or_is_split_by_questions_that_lower_nothing():
    features = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    channels = np.array([[1.0], [-1], [-1], [1]]) / 4
    part = hamming_tree(DenseSearch(encode(features)), channels, EDGE, 4)
    assert part.tree.leaves == 4
    assert np.abs(part.tree.values[part.tree.is_leaf]).tolist() == [[0.25]] * 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_midpoints_send_both_values_where_they_belong(dtype):
    kind = np.dtype(dtype)
    for low in (0.0, 1.0, -1.0, 3e7, -3e7, np.finfo(dtype).tiny, np.finfo(dtype).smallest_subnormal):
        low = dtype(low)
        high = np.nextafter(low, dtype(np.inf))
        assert low <= midpoint(low, high, kind) < high
    most = np.finfo(dtype).max
    assert midpoint(-most, most, kind) == 0
    assert midpoint(most / 2, most, kind) == 0.75 * most
