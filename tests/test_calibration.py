"""Temperature and Platt scaling against maximum likelihood and scikit-learn."""

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

import torch_multiclass as tm


def generator():
    return torch.Generator().manual_seed(0)


def test_temperature_is_the_maximum_likelihood_one():
    true = 3.0
    scores = 4 * torch.randn(4000, 5, generator=generator(), dtype=torch.float64)
    target = torch.multinomial((scores / true).softmax(-1), 1, generator=generator()).squeeze(-1)
    scaling = tm.TemperatureScaling(dtype=torch.float64).fit(scores, target)
    assert float(scaling.temperature) == pytest.approx(true, rel=0.1)
    beta = (1 / scaling.temperature).requires_grad_()
    nn.functional.cross_entropy(beta * scores, target).backward()
    assert abs(float(beta.grad)) < 1e-6
    torch.testing.assert_close(scaling(scores), (scores / scaling.temperature).softmax(-1))


def test_platt_scaling_is_logistic_regression_of_each_column():
    """On so many examples that Platt's targets are nearly 0 and 1, against scikit-learn without a penalty."""
    g = generator()
    code = torch.tensor([[1, 1], [-1, 0], [1, -1]])
    target = torch.arange(6000) % 3
    bits = code[target]
    margins = 0.8 * bits + torch.randn(6000, 2, generator=g) + torch.tensor([0.5, -0.2])
    scores = tm.CodedScores(margins.double(), code)
    platt = tm.PlattScaling(2, dtype=torch.float64).fit(scores, target)
    for s in range(2):
        asked = bits[:, s] != 0
        fitted = LogisticRegression(C=1e10, tol=1e-10).fit(margins[asked, s, None].numpy(), bits[asked, s].numpy())
        assert 2 * float(platt.slope[s]) == pytest.approx(fitted.coef_[0, 0], abs=0.02)
        assert 2 * float(platt.offset[s]) == pytest.approx(fitted.intercept_[0], abs=0.02)
    line = torch.stack([platt.slope, platt.offset]).requires_grad_()
    positive = (bits > 0).double()
    goal = torch.where(bits > 0, (positive.sum(0) + 1) / (positive.sum(0) + 2), 1 / ((bits < 0).double().sum(0) + 2))
    u = 2 * (line[0] * margins.double() + line[1])
    loss = ((nn.functional.softplus(u) - goal * u) * (bits != 0)).sum(0)
    gradient = torch.autograd.grad(loss.sum(), line)[0]
    assert float(gradient.abs().max()) / 6000 < 1e-7


def test_platt_leaves_columns_alone_that_it_cannot_fit():
    scores = tm.CodedScores(torch.tensor([[1.0, 2.0], [2.0, 3.0]]), torch.tensor([[1, 1], [1, -1]]))
    platt = tm.PlattScaling(2).fit(scores, torch.tensor([0, 1]))
    assert platt.slope[0] == 1
    assert platt.offset[0] == 0
    separated = tm.CodedScores(torch.tensor([[-2.0], [3.0], [-1.0]]), torch.tensor([[1], [-1]]))
    line = tm.PlattScaling(1).fit(separated, torch.tensor([1, 0, 1]))
    assert bool(line.slope.isfinite().all())
    assert float(line.slope) > 0
