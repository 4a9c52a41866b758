"""Rows with the columns that they have a sign for only, against all columns with zeros."""

import numpy as np
import pytest

from tests.ops.splits.test_dense import the_same
from tests.references.stumps import best_cut, summed
from torch_multiclass.codes import one_vs_one
from torch_multiclass.ops.boosting import Confidence, Discrete, Round
from torch_multiclass.ops.splits.codes import encode
from torch_multiclass.ops.splits.dense import EDGE, NORMALISER, DenseSearch
from torch_multiclass.ops.splits.hamming import hamming_tree
from torch_multiclass.ops.splits.layout import Layout

pytestmark = pytest.mark.usefixtures("computed_by")


def drawn(seed, rows=90):
    """Signs of few patterns, one of them shorter than the others, features with ties and holes, and weights."""
    draw = np.random.default_rng(seed)
    columns = int(draw.integers(5, 40))
    narrow = int(draw.integers(1, columns // 2 + 1))
    code = np.zeros((4, columns))
    for row in code:
        row[draw.choice(columns, narrow, replace=False)] = draw.choice([-1.0, 1.0], narrow)
    code[0, code[0].nonzero()[0][1:]] = 0
    features = draw.integers(0, 7, (rows, 3)).astype(float)
    features[draw.random(features.shape) < 0.1 * (seed % 2)] = np.nan
    return code[draw.integers(0, 4, rows)], features, draw


def test_only_what_is_mostly_empty_is_narrow():
    assert Layout.of(np.ones((50, 6))) == Layout(6)
    few = np.eye(6)[np.arange(60) % 6]
    assert (Layout.of(few).narrow, Layout.of(few).patterns) == (1, 6)
    assert Layout.of(few[:12]) == Layout(6)  # hardly more rows than patterns
    assert Layout.of(1 - few) == Layout(6)  # mostly full


@pytest.mark.parametrize("seed", range(20))
def test_narrow_rows_are_the_same_numbers(seed):
    signs, _, draw = drawn(seed)
    layout = Layout.of(signs)
    assert layout.pattern is not None
    narrow, numbers = layout.of_rows(signs), draw.random(signs.shape) * signs
    assert narrow.shape == (len(signs), np.abs(signs).sum(1).max())
    assert (layout.wide(narrow) == signs).all()
    assert (layout.wide(layout.table(layout.of_rows(numbers))) == numbers).all()
    for criterion in (EDGE, NORMALISER):
        assert np.allclose(layout.total(layout.of_rows(numbers), criterion), summed(numbers, criterion), atol=1e-12)
    at_nodes, node = draw.random((3, signs.shape[1])), draw.integers(0, 3, len(signs))
    of_rows = layout.of_nodes(at_nodes)[layout.places(node)]
    assert (layout.wide(np.where(narrow == 0, 0, of_rows)) == np.where(signs == 0, 0, at_nodes[node])).all()


@pytest.mark.parametrize("criterion", [EDGE, NORMALISER])
@pytest.mark.parametrize("seed", range(30))
def test_the_best_cut_is_that_of_trying_all(seed, criterion):
    signs, features, draw = drawn(seed)
    layout = Layout.of(signs)
    numbers = signs * draw.integers(1, 4, signs.shape) / 16
    search = DenseSearch(encode(features), layout=layout)
    narrow = layout.of_rows(numbers)
    the_same(search.best(narrow, criterion), best_cut(features, numbers, criterion))
    some = np.sort(draw.choice(len(features), draw.integers(1, len(features) + 1), replace=False))
    the_same(search.best(narrow, criterion, some), best_cut(features[some], numbers[some], criterion))
    assert search.best(narrow, criterion, some[:0]) is None


@pytest.mark.parametrize("kind", [Discrete, Confidence])
@pytest.mark.parametrize("code", ["narrow", "wide"])
def test_a_round_goes_on_to_the_weights_of_its_formula(kind, code):
    """``D(i, s)`` proportional to ``w_i exp(-Y(i, s) F(i, s))`` over the pairs that have a sign."""
    draw = np.random.default_rng(3)
    labels = draw.integers(0, 5, 80)
    signs = one_vs_one(5).double().numpy()[labels] if code == "narrow" else 2 * np.eye(3)[labels % 3] - 1
    features, weight = draw.integers(0, 9, (80, 2)).astype(float), draw.random(80) + 0.1
    objective = kind(signs, weight)
    assert (objective.layout.pattern is not None) == (code == "narrow")
    search = DenseSearch(encode(features), weight, objective.layout)
    total = np.zeros(signs.shape)
    for number in range(70):
        part = hamming_tree(search, objective.channels, objective.criterion, 2 + number % 3)
        found = objective.weigh(part)
        if found is None:
            break
        objective.add(part.leaf, found)
        total += found.alpha * found.votes[part.leaf]
        expected = np.where(signs == 0, 0, weight[:, None] * np.exp(-signs * total))
        expected *= signs / expected.sum()
        np.testing.assert_allclose(objective.layout.wide(objective.channels), expected, rtol=1e-9, atol=1e-300)
    assert number > 2


def test_a_classifier_that_is_never_wrong_is_known_in_narrow_rows():
    labels = np.arange(60) % 5
    signs = one_vs_one(5).double().numpy()[labels]
    objective = Discrete(signs, np.ones(60))
    part = hamming_tree(
        DenseSearch(encode(labels[:, None] * 1.0), layout=objective.layout), objective.channels, EDGE, 5
    )
    found = objective.weigh(part)
    assert isinstance(found, Round)
    assert (found.error, found.smoothed, found.last) == (0.0, True, True)
