"""Sums over the labels of one row, whatever stands before it."""

import math

import pytest
import torch

from torch_multiclass.ops.flat import best_class, best_of_rivals, best_rival, log_sum_exp, power_of


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


@pytest.mark.parametrize("classes", [3, 256, 257, 271, 300])
def test_the_best_of_few_classes_and_of_many(classes):
    """Of equal ones the lowest; in the last, shorter chunk too."""
    scores = torch.randn(2, 50, classes, generator=torch.Generator().manual_seed(classes)).round(decimals=1)
    for k in range(50):  # a best one somewhere, and its rival not far
        scores[0, k, -1 - k % 3], scores[0, k, k % classes] = 9.0 + k % 2, 9.5
    label = scores.argmax(-1, keepdim=True)
    label[:, ::3] = (label[:, ::3] + 1) % classes
    for found, wanted in (
        (best_class(scores), scores.max(-1, keepdim=True)),
        (best_of_rivals(scores, label), scores.scatter(-1, label, -math.inf).max(-1, keepdim=True)),
    ):
        assert torch.equal(found[0], wanted.values)
        assert torch.equal(found[1], wanted.indices)
    none = torch.full((1, classes), -math.inf)
    for own, rival in ((0, 1), (classes - 1, 0)):
        assert best_rival(none, torch.tensor([[own]])).tolist() == [[rival]]
