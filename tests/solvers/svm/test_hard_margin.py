"""Hard margins: against the quadratic program, certified, and refused where there are none."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from torch_multiclass.kernels import Gaussian
from torch_multiclass.solvers import BinaryLogistic, DualSVM


def problem(classes, rows=18):
    generator = torch.Generator().manual_seed(1)
    y = torch.arange(rows) % classes
    return 0.2 * torch.randn(rows, 3, generator=generator, dtype=torch.float64) + torch.eye(3).double()[y], y


def naive_multiclass(x, y, classes):
    """``min ½ |W|^2`` with ``(w_y - w_l) · x >= 1``, by a general solver."""
    x, y = x.numpy(), y.numpy()
    pairs = [(i, label) for i in range(len(y)) for label in range(classes) if label != y[i]]
    effects = np.zeros((len(pairs), classes, x.shape[1]))
    for row, (i, label) in enumerate(pairs):
        effects[row, y[i]], effects[row, label] = x[i], -x[i]
    effects = effects.reshape(len(pairs), -1)
    limits = {"type": "ineq", "fun": lambda w: effects @ w - 1, "jac": lambda w: effects}
    start = np.eye(classes, x.shape[1]).ravel() * 5
    return minimize(lambda w: w @ w / 2, start, jac=lambda w: w, constraints=limits, options={"ftol": 1e-12}).fun


@pytest.mark.parametrize("loss", ["crammer_singer", "weston_watkins"])
def test_the_quadratic_program(loss):
    x, y = problem(3)
    expected = naive_multiclass(x, y, 3)
    scorer, report = DualSVM(math.inf, tol=1e-6, loss=loss).fit(x, y)
    assert report.converged
    assert math.isinf(report.C)
    assert report.dual <= expected + 1e-6
    assert abs(report.primal - expected) <= 2e-6 * max(1, expected)
    scores = scorer(x)
    others = scores.scatter(1, y[:, None], -torch.inf).amax(1)
    assert bool((scores.gather(1, y[:, None]).squeeze(1) - others >= 1 - 1e-12).all())


@pytest.mark.parametrize("options", [{}, {"bias": True}, {"kernel": Gaussian(0.5)}, {"p": 1.5}])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_soft_margins_come_to(options, dtype):
    x, y = problem(2)
    x = x.to(dtype)
    binary = "p" not in options
    scorer, report = DualSVM(math.inf, tol=1e-5, binary=binary, **options).fit(x, y)
    soft = DualSVM(1e4, tol=1e-6, binary=binary, **options).fit(x, y).report
    assert report.converged
    assert report.primal >= soft.dual - 1e-6
    assert abs(report.primal - soft.primal) <= 3e-5 * max(1, report.primal)
    assert bool(scorer(x).isfinite().all())


def test_dual_is_that_of_the_multipliers():
    x, y = problem(2)
    _, report = DualSVM(math.inf, tol=1e-6, binary=True).fit(x, y)
    image = report.alpha.mT @ x[report.support]
    assert abs(float(report.alpha.abs().sum() - image.square().sum() / 2) - report.dual) <= 1e-9 * report.dual


def test_rows_that_are_not_separable():
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(40, 2, generator=generator), torch.arange(40) % 2
    with pytest.raises(ValueError, match="C: is inf, but no weight was found that separates the rows"):
        DualSVM(math.inf, binary=True).fit(x, y)
    with pytest.raises(ValueError, match="C: is inf"):
        DualSVM(math.inf, binary=True, bias=True).fit(torch.ones(2, 2), torch.tensor([0, 1]))


def test_rows_of_another_length_take_as_many_strengths(monkeypatch):
    """No weight separates the rows by a margin above a share of their length; at the optimum half the multipliers
    are the dual value, however small."""
    asked, steps = [], DualSVM.steps
    monkeypatch.setattr(DualSVM, "steps", lambda *of: asked.append(of[0].C) or steps(*of))
    x = torch.randn(10, 2, generator=torch.Generator().manual_seed(0)).double()
    strengths = []
    for length in (2.0**-6, 2.0**3):
        asked.clear()
        with pytest.raises(ValueError, match="C: is inf"):
            DualSVM(math.inf, binary=True).fit(length * x, torch.arange(10) % 2)
        strengths.append([C * length**2 for C in asked])
    assert strengths[1] == pytest.approx(strengths[0])
    right = (x @ torch.tensor([1.0, -0.5]).double() > 0).long()
    report = DualSVM(math.inf, binary=True, tol=1e-6).fit(length * x, right).report
    assert float(report.alpha.abs().sum()) / 2 == pytest.approx(report.dual, rel=1e-6)


def test_only_where_the_loss_ends():
    with pytest.raises(ValueError, match="C"):
        BinaryLogistic(math.inf)
    with pytest.raises(ValueError, match="C"):
        DualSVM(-math.inf)


@pytest.mark.parametrize("bias", [False, "free"])
@pytest.mark.parametrize("kernel", ["linear", Gaussian(0.5)], ids=repr)
def test_a_path_ends_at_infinity_and_fits_begin_there(bias, kernel):
    x, y = problem(3, 60)
    solver = DualSVM(1.0, kernel, 1e-6, bias=bias)
    fits = list(solver.path(x, y, [1.0, 100.0, math.inf, 10.0]))
    cold = DualSVM(math.inf, kernel, 1e-6, bias=bias).fit(x, y).report
    assert [report.C for _, report in fits] == [1.0, 100.0, math.inf, 10.0]
    assert all(report.converged for _, report in fits)
    assert abs(fits[2].report.primal - cold.primal) <= 2e-6 * max(1, cold.primal)
    again = DualSVM(math.inf, kernel, 1e-6, bias=bias).fit(x, y, warm_start=cold).report
    assert again.converged
    assert again.iterations <= cold.iterations // 2
    soft = DualSVM(10.0, kernel, 1e-6, bias=bias).fit(x, y).report
    assert fits[3].report.primal >= soft.dual
    assert fits[3].report.dual <= soft.primal
