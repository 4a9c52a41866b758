"""What the monitor of a gap does between the passes, each part against its formula."""

import math

import pytest
import torch

from torch_multiclass.ops.margins import as_margin_loss
from torch_multiclass.solvers import BinaryLogistic
from torch_multiclass.solvers.binary import MarginLosses
from torch_multiclass.solvers.gap import GapMonitor
from torch_multiclass.solvers.space import Constant, LinearSpace
from torch_multiclass.solvers.svm.duals import BinaryHinge

ROWS = 8


def rows(seed=0):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(ROWS, 3, generator=draw, dtype=torch.float64)
    return x, torch.where(x[:, 0] + 0.3 * x[:, 1] > 0, 1.0, -1.0).double()


def watched(C=0.5, tol=1e-3, kind="logistic", constant=0.0, free=False, dtype=torch.float64):
    x, signs = rows()
    space = LinearSpace(x, dtype, Constant(constant, free=free))
    losses = [
        MarginLosses(as_margin_loss(kind), signs.to(d), torch.full((ROWS, 1), C, dtype=d)) for d in (dtype, x.dtype)
    ]
    return GapMonitor(space, losses[0], tol, exact=losses[1])


def logistic(margins, C=0.5):
    return C * (-2 * margins).exp().log1p().sum()


@pytest.mark.parametrize(("C", "at_zero"), [(0.5, 4 * math.log(2)), (0.01, 0.08 * math.log(2))])
def test_a_gap_counts_beside_one_the_primal_and_the_weight_zero(C, at_zero):
    monitor = watched(C, tol=1e-2)
    least = min(1.0, at_zero)
    assert monitor.at_most == pytest.approx(at_zero)
    for primal, dual in ((0.5, 0.25), (3.0, 1.0), (8.0, -2.0)):
        scale = max(1.0, primal) * least
        assert monitor.relative(primal, dual) == pytest.approx((primal - dual) / scale)
        monitor.primal, monitor.dual = primal, dual
        assert monitor.gap == pytest.approx((primal - dual) / scale)
        assert monitor.allowed == pytest.approx(1e-2 * (max(1.0, primal) if at_zero >= 1 else at_zero))


@pytest.mark.parametrize("constant", [0.0, 2.0])
def test_primal_and_dual_of_a_weight(constant):
    """The dual of the slopes, ``½ |w|^2`` less their entropies, is below every primal and touches the least."""
    monitor = watched(constant=constant)
    x, signs = rows()
    x = torch.cat([x, x.new_full((ROWS, 1), constant)], 1) if constant else x
    weight = torch.linspace(-0.5, 0.5, x.shape[1], dtype=torch.float64)[None]
    margins = signs * (x @ weight[0])
    beta = 2 * torch.sigmoid(-2 * margins)[:, None]
    monitor.try_weight(weight, beta)
    u = beta[:, 0] / 2
    entropy = -(u * u.log() + (1 - u) * (1 - u).log())
    image = 0.5 * (beta[:, 0] * signs) @ x
    assert monitor.primal == pytest.approx(float(0.5 * weight.square().sum() + logistic(margins)))
    assert monitor.dual == pytest.approx(float(0.5 * entropy.sum() - 0.5 * image.square().sum()))
    assert monitor.certify(weight) == pytest.approx((monitor.primal, monitor.dual))
    assert monitor.history[-1][2:] == (monitor.primal, monitor.dual)


def test_a_free_bias_is_measured_at_a_balanced_dual_point():
    monitor = watched(constant=1.0, free=True)
    x, signs = rows()
    value = monitor.space.constant.value
    weight = torch.tensor([[0.5, -0.25, 0.1, 0.3]], dtype=torch.float64)
    beta = torch.linspace(0.1, 1.9, ROWS, dtype=torch.float64)[:, None]
    monitor.try_weight(weight, beta)
    alpha = monitor.losses.alpha(monitor.beta)
    assert abs(float(alpha.sum())) < 1e-12
    up = signs > 0
    totals = float(beta[up].sum()), float(beta[~up].sum())
    scaled = up if totals[0] > totals[1] else ~up
    torch.testing.assert_close(monitor.beta[~scaled], beta[~scaled])
    torch.testing.assert_close(monitor.beta[scaled], beta[scaled] * min(totals) / max(totals))
    u = monitor.beta[:, 0] / 2
    entropy = -(u * u.log() + (1 - u) * (1 - u).log())
    assert monitor.dual == pytest.approx(float(0.5 * entropy.sum() - 0.5 * (alpha.T @ x).square().sum()))
    margins = signs * (x @ weight[0, :3] + 0.3 * value)
    assert monitor.primal == pytest.approx(float(0.5 * weight[0, :3].square().sum() + logistic(margins)))


@pytest.mark.parametrize("short", [0.1, 0.3, 0.45, 0.6])
def test_a_weight_of_separable_rows_is_made_longer(short):
    """With the largest loss ``xi < ½`` the best of ``1/(1 - part xi)`` times it, ``part`` from an eighth to one."""
    x, signs = rows()
    x = x + 3 * signs[:, None] * torch.tensor([1.0, 0, 0])
    losses = BinaryHinge(signs, torch.full((ROWS, 1), 50.0, dtype=torch.float64))
    monitor = GapMonitor(LinearSpace(x), losses, 1e-6)
    weight = torch.tensor([[1.0, 0.3, 0.0]], dtype=torch.float64)
    weight *= (1 - short) / float((signs * (x @ weight[0])).min())  # the loss of the worst row
    primal = monitor.objective(weight, losses.margins(x @ weight.mT))
    hinge = 50 * (1 - signs * (x @ weight[0])).clamp(min=0)
    assert primal == pytest.approx(float(0.5 * weight.square().sum() + hinge.sum()))
    values = [(primal, 1.0)]
    for part in (1 / 8, 1 / 4, 1 / 2, 3 / 4, 1.0) if short < 0.5 else ():
        longer = weight / (1 - part * short)
        hinge = 50 * (1 - signs * (x @ longer[0])).clamp(min=0)
        values.append((float(0.5 * longer.square().sum() + hinge.sum()), 1 / (1 - part * short)))
    best, factor = min(values)
    found, own = monitor._stretched(primal, weight, losses.margins(x @ weight.mT))
    assert found == pytest.approx(best)
    torch.testing.assert_close(own, factor * weight)


@pytest.mark.parametrize("C", [1.0, 2.0, 4.0, 8.0, 20.0])
def test_instead_of_nothing_a_part_of_the_dual_point_s_weight(C):
    """The first of 1, ¼, 1/16 ... times it that is no worse than 0."""
    monitor = watched(C)
    x, signs = rows()
    beta = torch.full((ROWS, 1), 1.0, dtype=torch.float64)
    monitor.begin()
    monitor._latest = beta
    image = C * signs @ x
    wanted = next(
        part
        for part in 4.0 ** -torch.arange(12.0)
        if 0.5 * (part * image).square().sum() + logistic(part * signs * (x @ image), C) <= 8 * C * math.log(2)
    )
    assert wanted < 1
    monitor._leave_zero()
    torch.testing.assert_close(monitor.weight[0], wanted * image)


def test_rounding_that_misleads_asks_for_half_as_much(monkeypatch):
    monitor = watched(tol=1e-3, dtype=torch.float32)
    monitor.begin()
    monkeypatch.setattr(monitor, "certify", lambda *_: (2.0, 1.0))
    for count, target in ((1, 5e-4), (2, 2.5e-4)):
        assert not monitor._proved()
        assert (monitor._refuted, monitor._target) == (count, target)
        assert monitor.misled == (count > 1)
    monkeypatch.setattr(monitor, "certify", lambda *_: (2.0, 1.999))
    assert monitor._proved()
    assert monitor._target == 2.5e-4


@pytest.mark.parametrize(
    ("computed", "tol", "dtype"), [(0.0, 1e-3, 32), (0.02, 1e-3, 64), (0.02, 0.1, 32), (0.02, 0.0, 32)]
)
def test_a_weight_is_rounded_where_its_scores_keep_the_tolerance(computed, tol, dtype, monkeypatch):
    """Else it stays in float64, where that keeps it."""
    x, signs = rows()
    losses = MarginLosses(as_margin_loss("logistic"), signs, torch.full((ROWS, 1), 0.5, dtype=torch.float64))
    monitor = GapMonitor(LinearSpace(x.float(), torch.float64), losses, tol)
    best = BinaryLogistic(0.5, tol=1e-12).fit(x.float(), (signs > 0).long())
    scores = x.float().double() @ best.report.weight.double().mT
    monitor.try_weight(best.report.weight.double(), 2 * torch.sigmoid(-2 * signs[:, None] * scores))
    monkeypatch.setattr(monitor.space, "evaluated", lambda weight: scores - computed * signs[:, None])
    assert monitor.settle().dtype == (torch.float32 if dtype == 32 else torch.float64)
    assert monitor.primal == pytest.approx(best.report.primal, rel=1e-6)
