"""The binary learners: any smooth margin loss, certified, against scikit-learn and descent."""

import inspect

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from torch_multiclass import kernels
from torch_multiclass.ops.margins import MarginLoss, as_margin_loss
from torch_multiclass.solvers import BinaryLearner, BinaryLeastSquares, BinaryLogistic, DualSVM, binary
from torch_multiclass.solvers.binary import MarginLosses, measure
from torch_multiclass.solvers.gap import GapMonitor
from torch_multiclass.solvers.space import LinearSpace


def problem(rows=60, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, 3, generator=generator).double()
    y = torch.where(x[:, 0] + 0.5 * torch.randn(rows, generator=generator) > 0, 1, -1)
    y[:2] = torch.tensor([-1, 1])
    return x, y


def test_logistic_against_scikit_learn():
    """Their loss is ``log(1 + exp(-y g))``: ``g = 2 f`` makes ``½|w|^2 = ⅛|v|^2``, so their C is four times ours."""
    x, y = problem()
    peer = LogisticRegression(C=4 * 0.7, fit_intercept=False, tol=1e-12, max_iter=1000).fit(x.numpy(), y.numpy())
    scorer, report = BinaryLogistic(0.7, tol=1e-10).fit(x, y)
    np.testing.assert_allclose(2 * scorer.weight.detach(), peer.coef_, rtol=1e-4)
    proba = torch.sigmoid(2 * scorer(x)).detach().squeeze(1)
    np.testing.assert_allclose(proba, peer.predict_proba(x.numpy())[:, 1], atol=1e-4)
    assert report.converged


def test_least_squares_against_scikit_learn():
    """``½|w|^2 + C sum (y - f)^2`` is ridge regression on signs with strength ``1/(2C)``."""
    x, y = problem()
    scorer, _ = BinaryLeastSquares(0.7, tol=1e-12).fit(x, y)
    peer = Ridge(alpha=1 / 1.4, fit_intercept=False).fit(x.numpy(), y.numpy())
    np.testing.assert_allclose(scorer.weight.detach()[0], peer.coef_, rtol=1e-6)
    scorer, _ = BinaryLeastSquares(0.7, kernels.Gaussian(0.5), tol=1e-12).fit(x, y)
    peer = KernelRidge(alpha=1 / 1.4, kernel="rbf", gamma=0.5).fit(x.numpy(), y.numpy())
    np.testing.assert_allclose(scorer(x).detach().squeeze(1), peer.predict(x.numpy()), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("learner", [BinaryLogistic, BinaryLeastSquares])
@pytest.mark.parametrize("bias", [False, True])
def test_a_linear_kernel_is_the_linear_machine(learner, bias):
    x, y = problem()
    explicit = learner(0.7, tol=1e-9, bias=bias).fit(x, y)
    expansion = learner(0.7, lambda a, b: a @ b.T, tol=1e-9, bias=bias).fit(x, y)
    torch.testing.assert_close(explicit.scorer(x), expansion.scorer(x), rtol=1e-4, atol=1e-4)
    assert explicit.report.primal == pytest.approx(expansion.report.primal, rel=1e-8)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 1000),
    rows=st.integers(2, 20),
    C=st.sampled_from([1e-3, 1.0, 100.0]),
    scale=st.sampled_from([1e-2, 1.0, 30.0]),
    learner=st.sampled_from([BinaryLogistic, BinaryLeastSquares]),
    kernel=st.sampled_from(["linear", kernels.Gaussian(0.3)]),
)
def test_the_gap_is_never_negative_and_closes(seed, rows, C, scale, learner, kernel):
    x, y = problem(rows, seed)
    report = learner(C, kernel, tol=1e-6).fit(scale * x, y).report
    assert report.converged
    assert report.gap >= -1e-12
    assert all(step.primal - step.dual >= -1e-9 * max(1, abs(step.primal)) for step in report.history)


def test_targets_are_signs_or_bits():
    x, y = problem()
    assert torch.equal(BinaryLogistic().fit(x, y).scorer.weight, BinaryLogistic().fit(x, (y + 1) // 2).scorer.weight)
    for learner in (BinaryLogistic(), BinaryLeastSquares(), DualSVM(binary=True)):
        with pytest.raises(ValueError, match="target: has the labels"):
            learner.fit(x, torch.arange(60) % 3)
        with pytest.raises(ValueError, match="target: every row has the label 1"):
            learner.fit(x, torch.ones(60, dtype=torch.long))
        with pytest.raises(ValueError, match="no rows"):
            learner.fit(x[:0], y[:0])
        assert learner.fit(x, y).scorer(x).shape == (60, 1)


class ModifiedHuber(MarginLoss):
    """``[1 - z]_+^2``, but linear from ``z = -1`` down."""

    name, at_zero = "huber", 1.0

    def value(self, z):
        return torch.where(z < -1, -4 * z, (1 - z).clamp(min=0).square())

    def slope(self, z):
        return torch.where(z < -1, -4.0, -2 * (1 - z).clamp(min=0))

    def curvature(self, z):
        return torch.where((z > -1) & (z < 1), 2.0, torch.zeros_like(z))

    def conjugate(self, u):
        return torch.where((u >= -4) & (u <= 0), u + u.square() / 4, torch.inf)


class TwiceTheConjugate(ModifiedHuber):
    name = "twice the conjugate"

    def conjugate(self, u):
        return 2 * super().conjugate(u)


@pytest.mark.parametrize("kernel", ["linear", kernels.Gaussian(0.5)], ids=str)
def test_a_conjugate_of_another_loss_proves_nothing(kernel):
    """The dual comes out above the primal: that is no gap within the tolerance."""
    x, y = problem(80)
    with pytest.warns(UserWarning, match="the dual exceeds the primal .* a loss .* with the conjugate and the slope"):
        report = BinaryLearner(TwiceTheConjugate(), 1.0, kernel).fit(x, y).report
    assert report.gap < 0
    assert not report.converged


class TestAnyLoss:
    @pytest.mark.parametrize("kernel", ["linear", kernels.Gaussian(0.5)], ids=str)
    @pytest.mark.parametrize("loss", [ModifiedHuber(), "squared_hinge", "exponential", "logistic", "squared"], ids=str)
    @pytest.mark.parametrize("C", [0.1, 10.0])
    def test_is_certified(self, loss, kernel, C):
        """The primal written out, at the scorer, and no point of a descent below the dual."""
        x, y = problem(80)
        weight = torch.rand(80).double() + 0.5
        scorer, report = BinaryLearner(loss, C, kernel, tol=1e-8).fit(x, y, weight=weight)
        assert report.converged
        kind = as_margin_loss(loss)
        margins = y * scorer(x).detach().squeeze(1)
        square = float(scorer.class_norms().detach().square())
        assert 0.5 * square + C * float((weight * kind.value(margins)).sum()) == pytest.approx(report.primal, rel=1e-6)
        if kernel == "linear":
            w = torch.zeros(3, dtype=torch.float64, requires_grad=True)
            optimiser = torch.optim.LBFGS([w], max_iter=200, line_search_fn="strong_wolfe", tolerance_change=1e-14)

            def closure():
                optimiser.zero_grad()
                value = 0.5 * w.square().sum() + C * (weight * kind.value(y * (x @ w))).sum()
                value.backward()
                return value

            optimiser.step(closure)
            assert report.dual - 1e-9 <= float(closure().detach()) == pytest.approx(report.primal, rel=1e-5)

    def test_squared_hinge_against_liblinear(self):
        x, y = problem()
        peer = LinearSVC(loss="squared_hinge", C=0.7, fit_intercept=False, tol=1e-12, max_iter=100_000)
        peer.fit(x.numpy(), y.numpy())
        scorer = BinaryLearner("squared_hinge", 0.7, tol=1e-12).fit(x, y).scorer
        np.testing.assert_allclose(scorer.weight.detach(), peer.coef_, rtol=1e-4)

    def test_a_loss_without_a_proof_is_refused(self):
        for loss in ("hinge", "sigmoid", "zero_one"):
            with pytest.raises(ValueError, match=f"loss: '{loss}' is not smooth and convex; accepted are"):
                BinaryLearner(loss)
        with pytest.raises(ValueError, match="loss: got 'huber'"):
            BinaryLearner("huber")

    def test_a_misspelled_option_is_an_error_and_a_typed_one(self):
        with pytest.raises(TypeError, match="tolerance"):
            BinaryLogistic(tolerance=1)
        assert inspect.signature(BinaryLogistic).parameters["options"].kind is inspect.Parameter.VAR_KEYWORD


def test_out_of_passes():
    x, y = problem()
    with pytest.warns(UserWarning, match="BinaryLogistic: the gap is"):
        BinaryLogistic(100.0, tol=1e-12, max_passes=1).fit(x, y)
    with pytest.raises(ValueError, match="C: got 0"):
        BinaryLogistic(0)


# ------------------------------------------------------------------------------------------------------ Newton's steps


def at_a_point(features, kind="logistic", strength=0.7):
    """A monitor, a point of a random weight, the gradient there, and the Hessian of the objective by autograd."""
    x, y = problem(6)
    x = torch.cat([x, x.square(), x[:, :1] * x[:, 1:]], 1)[:, :features]
    weight = torch.linspace(-0.4, 0.6, features, dtype=torch.float64)[None]
    loss = as_margin_loss(kind)

    def objective(w):
        return 0.5 * w.square().sum() + strength * loss.value(y * (x @ w)).sum()

    monitor = GapMonitor(LinearSpace(x), MarginLosses(loss, y.double(), torch.full((6, 1), strength).double()), 1e-3)
    point = measure(monitor, weight)
    torch.testing.assert_close(point.weight - point.image, torch.func.grad(objective)(weight[0])[None])
    assert point.primal == pytest.approx(float(objective(weight[0])))
    return monitor, point, point.weight - point.image, torch.func.hessian(objective)(weight[0]), objective


@pytest.mark.parametrize("features", [3, 6, 8])
@pytest.mark.parametrize("kind", ["logistic", "squared_hinge"])
def test_a_newton_step_solves_the_system_of_the_hessian(features, kind):
    """By the features where they are fewer than the rows, else by the rows."""
    monitor, point, gradient, hessian, _ = at_a_point(features, kind)
    found = binary._newton(monitor.space, gradient, point.curvature)
    torch.testing.assert_close(found[0], -torch.linalg.solve(hessian, gradient[0]))


@pytest.mark.parametrize("stretch", [0.5, 1.9, 2.1, 7.0, 60.0])
def test_the_first_half_that_lowers_the_primal_enough_is_taken(stretch):
    monitor, point, gradient, _, objective = at_a_point(3)
    way = -stretch * gradient
    lengths = [0.5**n for n in range(40)]
    slope = float((gradient * way).sum())
    wanted = next(
        length
        for length in lengths
        if objective((point.weight + length * way)[0]) <= point.primal + 1e-4 * length * slope
    )
    found = binary._search(monitor, point, gradient, way)
    torch.testing.assert_close(found, point.weight + wanted * way)


def test_a_step_that_is_hardly_lower_is_halved():
    """Along a step of which the primal falls, but by less than a ten-thousandth of what its slope promises."""
    monitor, point, gradient, _, objective = at_a_point(3)
    low, high = 0.0, 1e3
    for _ in range(200):  # where the primal is as high again
        middle = (low + high) / 2
        low, high = (middle, high) if objective((point.weight - middle * gradient)[0]) < point.primal else (low, middle)
    square = float(gradient.square().sum())
    for part, halved in ((1e-6, True), (1e-2, False)):
        stretch = high * (1 - part)
        fall = point.primal - float(objective((point.weight - stretch * gradient)[0]))
        assert fall > 0
        assert (fall < 1e-4 * stretch * square) == halved
        found = binary._search(monitor, point, gradient, -stretch * gradient)
        torch.testing.assert_close(found, point.weight - (0.5 if halved else 1.0) * stretch * gradient)
