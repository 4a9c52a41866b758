"""What the recursions are built of."""

import math

import pytest
import torch

from torch_multiclass.ops.algebra import scaled


@pytest.mark.parametrize("factor", [3.0, torch.tensor(3.0, requires_grad=True)])
def test_scores_times_a_factor(factor):
    scores = torch.tensor([2.0, -math.inf, -0.5], requires_grad=True)
    found = scaled(factor)(scores)
    assert found.tolist() == [6.0, -math.inf, -1.5]
    found[[0, 2]].sum().backward()
    assert scores.grad.tolist() == [3.0, 0.0, 3.0]
    if isinstance(factor, torch.Tensor):
        assert float(factor.grad) == 1.5  # no NaN of 0 * inf
