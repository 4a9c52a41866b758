"""Violated preferences against a count by hand and scikit-learn's ranking loss."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import label_ranking_loss

from tests.references import online as naive
from torch_multiclass import preferences
from torch_multiclass.metrics import ViolatedPreferences


def value(scores, target, **options):
    metric = ViolatedPreferences(**options)
    metric.update(scores, target)
    return float(metric.compute())


def drawn(rows=30, classes=5):
    g = torch.Generator().manual_seed(0)
    scores = torch.randn(rows, classes, generator=g).round(decimals=1)
    signs = torch.where(torch.rand(rows, classes, generator=g) < 0.4, 1, -1)
    return scores, signs, torch.rand(rows, classes, generator=g).argsort(1)


def by_hand(scores, lists, per_example=False):
    violated = [[scores[i, a] <= scores[i, b] for a, b in row] for i, row in enumerate(lists)]
    if per_example:
        return float(np.mean([np.mean(row) for row in violated if row]))
    return float(np.mean([entry for row in violated for entry in row]))


@pytest.mark.parametrize("per_example", [False, True])
def test_every_kind_of_target(per_example):
    scores, signs, order = drawn()
    y = order[:, 0]
    for target, lists in (
        (y, [naive.of_class(label, 5) for label in y.tolist()]),
        (signs, [naive.of_signs(row) for row in signs.tolist()]),
        (preferences.ranking(order), [naive.of_ranking(row) for row in order.tolist()]),
        (preferences.ranking(order, closure=True), [naive.of_ranking(row, True) for row in order.tolist()]),
        (preferences.ordinal(y, 5), [naive.of_ordinal(label, 5) for label in y.tolist()]),
    ):
        found = value(scores, target, per_example=per_example)
        assert found == pytest.approx(by_hand(scores, lists, per_example), abs=1e-6)


def test_is_the_ranking_loss():
    scores, signs, _ = drawn()
    both = ((signs == 1).any(1) & (signs == -1).any(1)).numpy()
    expected = label_ranking_loss(signs.numpy()[both] > 0, scores.numpy()[both])
    assert value(scores, signs, per_example=True) == pytest.approx(expected, abs=1e-6)


def test_ties_are_violations_and_nan_is_not_swallowed():
    pairs = torch.tensor([[[0, 1], [1, 2]]])
    assert value(torch.tensor([[1.0, 1.0, 0.0]]), pairs) == 0.5
    assert math.isnan(value(torch.tensor([[1.0, math.nan, 0.0]]), pairs))
    assert value(torch.tensor([[1.0, 0.0, math.nan]]), pairs[:, :1]) == 0.0  # which is not compared


def test_what_is_not_asked_does_not_count():
    scores = torch.tensor([[3.0, 1, 2], [1, 2, 3]])
    pairs = torch.tensor([[[0, 1], [1, 2]], [[-100, -100], [-100, -100]]])
    assert value(scores, pairs) == 0.5
    few = torch.tensor([[[0, 1], [1, 2]], [[0, 1], [-100, -100]]])
    assert value(scores, few, per_example=True) == (0.5 + 1.0) / 2
    assert value(scores, torch.tensor([[1, -1, -100], [-100, -100, -100]])) == 0.0
    assert value(scores, torch.tensor([-100, -100])) == 0.0
    assert value(scores, torch.tensor([-1, 2]), ignore_index=-1) == 0.0


def test_bad_input():
    scores = torch.zeros(2, 3)
    for target, message in (
        (torch.tensor([[[0, 1], [1, 0]]] * 2), "target: row 0 has preferences in a circle"),
        (torch.tensor([[[0, 3]]] * 2), r"target: label 3 is outside 0\.\.2"),
        (torch.tensor([[[0, 1]]]), r"target: got shape \(1, 1, 2\); accepted is \(2, 1, 2\)"),
        (torch.tensor([[1, 0, -1]] * 2), "target: row 0 has 0 for class 1; accepted are 1, -1 and -100"),
        (torch.tensor([[1, -1]] * 2), r"target: got shape \(2, 2\); accepted is \(2, 3\)"),
        (torch.tensor([0.0, 1.0]), r"target: got dtype torch\.float32"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            value(scores, target)
    with pytest.raises(TypeError, match="per_example: got 1"):
        ViolatedPreferences(per_example=1)
