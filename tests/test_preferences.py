"""Preferences: what each kind of target asks for, and what asks for too much."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.references import online as naive
from torch_multiclass import preferences


def lists(found):
    return [[tuple(pair) for pair in row if pair[0] != -100] for row in found.tolist()]


@pytest.mark.parametrize("classes", [2, 3, 5, 8])
def test_ordinal(classes):
    y = torch.tensor([*range(classes), -100])
    found = preferences.ordinal(y, classes)
    assert found.shape == (classes + 1, classes - 1, 2)
    assert lists(found) == [*(naive.of_ordinal(label, classes) for label in range(classes)), []]
    assert preferences.ordinal(y[:0], classes).shape == (0, classes - 1, 2)


@pytest.mark.parametrize("closure", [False, True])
def test_ranking(closure):
    orders = torch.tensor(list(itertools.permutations(range(4))))
    found = preferences.ranking(orders, closure=closure)
    assert lists(found) == [naive.of_ranking(order, closure) for order in orders.tolist()]
    top = preferences.ranking(torch.tensor([[3, 1, -100], [2, -100, -100]]), closure=closure)
    assert lists(top) == [[(3, 1)], []]
    assert preferences.ranking(torch.zeros(2, 0, dtype=torch.int32), closure=closure).shape[0] == 2


@given(st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=7), min_size=1, max_size=4))
def test_pairs_are_refused_if_and_only_if_no_order_keeps_them(rows):
    given_pairs = torch.full((len(rows), 7, 2), -100)
    for i, row in enumerate(rows):
        given_pairs[i, : len(row)] = torch.tensor(row, dtype=torch.long).view(-1, 2)
    kept = [any(all(order[a] > order[b] for a, b in row) for order in itertools.permutations(range(6))) for row in rows]
    if all(kept):
        assert torch.equal(preferences.pairs(given_pairs), given_pairs)
    else:
        with pytest.raises(ValueError, match=rf"preferred: row {kept.index(False)} has preferences in a circle"):
            preferences.pairs(given_pairs)


def test_bad_input():
    for call, message in (
        (lambda: preferences.ranking(torch.tensor([[0, 1, 2], [0, 2, 2]])), "order: row 1 ranks class 2 twice"),
        (lambda: preferences.ranking(torch.tensor([0, 1])), r"order: got shape \(2,\); accepted is \(N, R\)"),
        (lambda: preferences.ranking(torch.tensor([[0.0]])), r"order: got dtype torch\.float32"),
        (lambda: preferences.ranking(torch.tensor([[0, -1]])), "order: holds -1; accepted are classes 0, 1"),
        (lambda: preferences.ranking(torch.tensor([[0]]), closure=1), "closure: got 1"),
        (lambda: preferences.ranking(torch.zeros(1, 2, device="meta").long()), "order: is on meta"),
        (lambda: preferences.pairs(torch.tensor([[0, 1]])), r"preferred: got shape \(1, 2\); accepted is \(N, P, 2\)"),
        (lambda: preferences.pairs(torch.tensor([[[0, -100]]])), "preferred: row 0 has a pair of a class and -100"),
        (
            lambda: preferences.pairs(torch.tensor([[[1, 1]]])),
            "preferred: row 0 has preferences in a circle, over class 1",
        ),
        (lambda: preferences.pairs(torch.tensor([[[0, 4]]]), num_classes=3), r"preferred: label 4 is outside 0\.\.2"),
        (lambda: preferences.ordinal(torch.tensor([3]), 3), r"target: label 3 is outside 0\.\.2"),
        (lambda: preferences.ordinal(torch.tensor([[0]]), 3), r"target: got shape \(1, 1\); accepted is \(N\)"),
        (lambda: preferences.ordinal(torch.tensor([0]), 1), "num_classes: got 1"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            call()


@pytest.mark.parametrize("closure", [False, True])
def test_a_hole_in_a_ranking_joins_its_neighbours(closure):
    holes, closed = torch.tensor([[0, -100, 2], [-100, 1, 0]]), torch.tensor([[0, 2, -100], [1, 0, -100]])
    assert torch.equal(preferences.ranking(holes, closure=closure), preferences.ranking(closed, closure=closure))
    assert preferences.ranking(holes, closure=closure)[:, 0].tolist() == [[0, 2], [1, 0]]
