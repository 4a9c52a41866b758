"""What the recursions are built of."""

import math

import pytest
import torch

from torch_multiclass.ops.algebra import log_product, scaled


@pytest.mark.parametrize("factor", [3.0, torch.tensor(3.0, requires_grad=True)])
def test_scores_times_a_factor(factor):
    scores = torch.tensor([2.0, -math.inf, -0.5], requires_grad=True)
    found = scaled(factor)(scores)
    assert found.tolist() == [6.0, -math.inf, -1.5]
    found[[0, 2]].sum().backward()
    assert scores.grad.tolist() == [3.0, 0.0, 3.0]
    if isinstance(factor, torch.Tensor):
        assert float(factor.grad) == 1.5  # no NaN of 0 * inf


def products(spread, forbid):
    """Factors of a product large enough for exponentials, and the product itself."""
    generator = torch.Generator().manual_seed(0)
    a, w = (torch.randn(*shape, generator=generator, dtype=torch.float64) * spread for shape in ((40, 24), (24, 20)))
    if forbid:
        a[:, 3], w[:, 5] = -math.inf, -math.inf
    wanted = (a.unsqueeze(-1) + w.unsqueeze(-3)).logsumexp(-2)
    return a.requires_grad_(), w.requires_grad_(), wanted


@pytest.mark.parametrize("spread", [1.0, 400.0])  # the second underflows, and is added term by term
@pytest.mark.parametrize("forbid", [False, True])
def test_a_product_in_log_space(spread, forbid):
    a, w, wanted = products(spread, forbid)
    found = log_product(a, w)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)
    weight = torch.rand(found.shape, dtype=torch.float64)
    finite = torch.where(wanted.isfinite(), found, 0.0)
    gradients = torch.autograd.grad((weight * finite).sum(), (a, w))
    share = (a.unsqueeze(-1) + w.unsqueeze(-3) - wanted.clamp(min=-1e300).unsqueeze(-2)).exp()
    share = share * torch.where(wanted.isfinite(), weight, 0.0).unsqueeze(-2)
    for own, part in zip(gradients, (share.sum(-1), share.sum(-3)), strict=True):
        torch.testing.assert_close(own, part.detach(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("spread", [1.0, 400.0])
def test_a_product_in_log_space_has_second_derivatives(spread):
    a, w, _ = products(spread, False)
    along = torch.randn(a.shape, dtype=torch.float64)
    plain = lambda a: (a.unsqueeze(-1) + w.detach().unsqueeze(-3)).logsumexp(-2).square().sum()  # noqa: E731
    (first,) = torch.autograd.grad(log_product(a, w).square().sum(), a, create_graph=True)
    (found,) = torch.autograd.grad((first * along).sum(), a)
    _, wanted = torch.autograd.functional.hvp(plain, a.detach(), along)
    torch.testing.assert_close(found, wanted, rtol=1e-8, atol=1e-8)
