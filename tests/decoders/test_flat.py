"""The decoders of one label."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import torch_multiclass as tm


def test_the_decoder_takes_the_lowest_class_of_a_tie(device):
    decode = tm.ArgmaxDecoder()
    assert decode(torch.tensor([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]], device=device)).tolist() == [1, 0]
    images = torch.randn(2, 3, 4, 5, device=device)
    assert torch.equal(tm.ArgmaxDecoder(class_dim=1)(images), images.argmax(1))
    with torch.inference_mode():
        assert decode(torch.zeros(3, device=device)) == 0


def expected_costs(scores, cost):
    """By enumeration: what each answer costs, weighted by the probability of each truth."""
    weights = [math.exp(score - max(scores)) for score in scores]
    classes = range(len(scores))
    return [sum(weights[y] / sum(weights) * cost[y][answer] for y in classes) for answer in classes]


@given(st.integers(1, 5), st.integers(0, 10_000))
def test_the_expected_cost_of_each_answer(k, seed):
    g = torch.Generator().manual_seed(seed)
    scores = 3 * torch.randn(3, k, generator=g, dtype=torch.float64)
    costs = torch.rand(3, k, k, generator=g, dtype=torch.float64) * (1 - torch.eye(k))
    for row, cost in itertools.product(range(3), range(3)):
        expected = expected_costs(scores[row].tolist(), costs[cost].tolist())
        decoder = tm.ExpectedCostDecoder(costs[cost])
        assert decoder.class_scores(scores[row]).neg().tolist() == pytest.approx(expected)
        assert int(decoder(scores[row])) == min(range(k), key=expected.__getitem__)
    one_each = tm.ExpectedCostDecoder(costs)
    alone = torch.stack([tm.ExpectedCostDecoder(costs[i]).class_scores(scores[i]) for i in range(3)])
    torch.testing.assert_close(one_each.class_scores(scores), alone)


def test_equal_costs_go_to_the_lowest_class():
    for k in range(1, 40):
        assert int(tm.ExpectedCostDecoder(3 * (1 - torch.eye(k)))(torch.zeros(k))) == 0


def test_expected_costs_of_a_dimension_in_the_middle_and_of_classes_left_out():
    cost = torch.tensor([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]])
    images = torch.randn(2, 3, 4, 5)
    found = tm.ExpectedCostDecoder(cost, class_dim=1)(images)
    assert torch.equal(found, tm.ExpectedCostDecoder(cost)(images.movedim(1, -1)))
    two = torch.tensor([0.0, -math.inf, 0.1])  # the class between the two would be the cheapest
    assert tm.ExpectedCostDecoder(cost)(torch.tensor([0.0, -9.0, 0.1])) == 1
    assert tm.ExpectedCostDecoder(cost)(two) == 2
    assert tm.ExpectedCostDecoder(cost).class_scores(two)[1] == -math.inf


def test_a_head_gives_it_calibrated_scores():
    torch.manual_seed(0)
    decoder = tm.ExpectedCostDecoder([[0, 1, 1], [1, 0, 1], [9, 9, 0]])
    head = tm.MulticlassHead(4, 3, decoder=decoder)
    x, y = torch.randn(300, 4), torch.randint(3, (300,))
    scores = 9 * head(x)
    assert torch.equal(head.predict(scores), decoder(scores))
    before = head.predict(scores)
    head.calibrate(scores, y)
    probabilities = head.predict_proba(scores)
    assert torch.equal(head.predict(scores), decoder(probabilities.log()))
    assert torch.equal(head.predict(tm.FlatScores(scores)), head.predict(scores))
    torch.testing.assert_close(head.class_scores(scores), decoder.class_scores(probabilities.log()))
    assert not torch.equal(head.predict(scores), before)


@pytest.mark.parametrize(
    ("cost", "error", "words"),
    [
        ([[0, 1], [1, 0]], ValueError, "cost: is 2 x 2, but the scores have 3 classes"),
        ([[1, 1], [1, 0]], ValueError, "cost: has 1 on the diagonal"),
        (torch.zeros(4, 3, 3), ValueError, "cost: has one matrix for each of"),
        ("squared", ValueError, "cost: got 'squared'; accepted are"),
        (None, TypeError, "cost: got NoneType"),
    ],
)
def test_costs_that_do_not_fit_are_named(cost, error, words):
    with pytest.raises(error, match=words):
        tm.ExpectedCostDecoder(cost)(torch.zeros(2, 3))
