"""Sums over the labels of one row, whatever stands before it."""

import math

import pytest
import torch

from torch_multiclass.ops.flat import log_sum_exp, power_of


@pytest.mark.parametrize("shape", [(3,), (4, 3), (2, 4, 3), (0, 3)])
@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (1.0, 1e4), (1.0, -1e4), (1e4, 0.0)])
def test_log_sum_exp_is_torch_s(shape, scale, shift):
    scores = (scale * torch.randn(shape, dtype=torch.float64) + shift).requires_grad_()
    other = scores.detach().clone().requires_grad_()
    value, wanted = log_sum_exp(scores), torch.logsumexp(other, -1)
    torch.testing.assert_close(value, wanted)
    value.sum().backward()
    wanted.sum().backward()
    torch.testing.assert_close(scores.grad, other.grad)


def test_where_no_label_is_possible_nothing_has_a_gradient():
    scores = torch.tensor([[-math.inf] * 3, [0.0, -math.inf, 0.0]], requires_grad=True)
    value = log_sum_exp(scores)
    value[1].backward(retain_graph=True)
    assert value.tolist() == [-math.inf, pytest.approx(math.log(2))]
    assert torch.autograd.grad(value[0], scores)[0].tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize("power", [1, 1.5, 2, 3])
def test_powers_of_a_hinge(power):
    hinge = torch.tensor([0.5, 2.0, 3.0], requires_grad=True)
    torch.testing.assert_close(power_of(hinge, power), hinge**power)
