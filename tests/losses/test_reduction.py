"""What becomes of the losses of examples, by hand."""

import math

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass.functional._reduction import reduce

LOSSES, LABELLED = torch.tensor([1.0, 2.0, 4.0, math.nan]), torch.tensor([1, 3, 2, 0])  # positions with a label


@pytest.mark.parametrize(
    ("weight", "reduction", "wanted"),
    [
        (None, "mean", 7 / 3),
        (None, "sum", 7.0),
        (None, "token_mean", 7 / 6),
        (None, "none", [1.0, 2.0, 4.0, 0.0]),
        ([1.0, 2.0, 0.5, 9.0], "mean", (1 + 4 + 2) / 3.5),
        ([1.0, 2.0, 0.5, 9.0], "sum", 7.0),
        ([1.0, 2.0, 0.5, 9.0], "token_mean", 7 / 6),
        ([1.0, 2.0, 0.5, 9.0], "none", [1.0, 4.0, 2.0, 0.0]),
        ([0.0, 0.0, 0.0, 9.0], "mean", 0.0),
        ([1e-44, 3e-44, 0.0, 1.0], "mean", (1 + 3 * 2) / 4),
    ],
)
def test_losses_by_hand(weight, reduction, wanted):
    weights = None if weight is None else torch.tensor(weight)
    tolerance = 0.1 if weight is not None and weight[0] == 1e-44 else 1e-6  # the smallest numbers have few digits
    found = reduce(LOSSES, LABELLED, reduction, weights)
    torch.testing.assert_close(found, torch.tensor(wanted), rtol=tolerance, atol=0)


def test_weights_below_the_numbers_of_the_losses():
    weights = torch.tensor([1e-60, 3e-60, 0.0, 1.0], dtype=torch.float64)
    assert float(reduce(LOSSES, LABELLED, "mean", weights)) == pytest.approx((1 + 3 * 2) / 4)


def test_what_an_example_counts_beside_its_weight():
    each = torch.tensor([2.0, 0.5, 1.0, 7.0])
    assert float(reduce(LOSSES, LABELLED, "mean", None, each)) == pytest.approx(7 / 3.5)
    weights = torch.tensor([1.0, 2.0, 4.0, 8.0])
    found = reduce(LOSSES, LABELLED, "mean", weights, each)
    assert float(found) == pytest.approx((1 + 4 + 16) / (2 + 1 + 4))
    assert float(reduce(LOSSES, LABELLED, "sum", None, each)) == 7.0


def test_a_loss_of_ones_own_that_leaves_out_init():
    class Incomplete(tm.Loss):
        def __init__(self, slope=1.0):
            self.slope = slope

        def forward(self, scores, target):
            return self.slope * scores.sum()

    class Complete(Incomplete):
        def __init__(self):
            tm.Loss.__init__(self)
            super().__init__(2.0)

    with pytest.raises(TypeError, match=r"Incomplete: its __init__ does not call .* accepted is one with super\(\)"):
        Incomplete()
    with pytest.raises(TypeError, match=r"accepted is Incomplete\(\), by name also slope"):
        Incomplete(power=2)
    assert Complete()(torch.ones(2), torch.ones(2)) == 4
