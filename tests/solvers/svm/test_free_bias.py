"""A bias that the norm does not charge: libsvm's machine, quadratic programs, and a dual point that is feasible."""

import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import torch_multiclass as tm
from tests.references import svm as naive
from torch_multiclass import kernels
from torch_multiclass.ops import _native
from torch_multiclass.solvers import BinaryLeastSquares, BinaryLogistic, CodedReduction, CuttingPlane, DualSVM, Pegasos
from torch_multiclass.solvers.space import Constant

GAUSSIAN = kernels.Gaussian(0.3)
MATRIX = np.array([[0, 1, 4], [0.5, 0, 1], [2, 3, 0]])


def problem(rows=40, classes=3, dimensions=4, seed=0, offset=0.0):
    generator = torch.Generator().manual_seed(seed)
    target = torch.arange(rows) % classes
    features = torch.randn(rows, dimensions, generator=generator, dtype=torch.float64)
    features[:, :classes] += torch.eye(classes, dtype=torch.float64)[target]
    return features + offset, target


def peer_of(x, y, C, kernel, weight=None, tol=1e-8):
    """libsvm's decision values."""
    matrix = kernel(x, x).numpy()
    peer = SVC(C=C, kernel="precomputed", tol=tol).fit(matrix, y.numpy(), sample_weight=weight)
    return torch.tensor(peer.decision_function(matrix)), peer


class TestAgainstLibsvm:
    @pytest.mark.parametrize("C", [0.1, 1.0, 50.0])
    @pytest.mark.parametrize("kernel", [kernels.Linear(), GAUSSIAN, kernels.Polynomial(2, 0.2, 1.0)], ids=repr)
    @pytest.mark.parametrize("offset", [0.0, 1.0])
    def test_decision_values(self, C, kernel, offset):
        x, y = problem(60, 2, offset=offset)
        scorer, report = DualSVM(C, kernel, 1e-9, binary=True, bias="free").fit(x, y)
        expected, peer = peer_of(x, y, C, kernel)
        torch.testing.assert_close(scorer(x).squeeze(1).detach(), expected, rtol=0, atol=1e-3)
        assert abs(scorer.bias.item() - peer.intercept_[0]) <= 1e-3
        assert report.converged

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_one_against_all_others_on_digits(self, dtype):
        x, y = (torch.tensor(part[:600]) for part in load_digits(return_X_y=True))
        x = x / 16
        kernel = kernels.Gaussian(0.05)
        for label in range(3):
            fit = DualSVM(1.0, kernel, 1e-9, binary=True, bias="free").fit(x.to(dtype), (y == label).long())
            expected, _ = peer_of(x, (y == label).long(), 1.0, kernel)
            got = fit.scorer(x.to(fit.scorer.coefficients.dtype)).squeeze(1).detach().double()
            torch.testing.assert_close(got, expected, rtol=0, atol=1e-3)

    def test_through_a_code(self):
        """One machine a class behind a code is scikit-learn's one against all others."""
        x, y = problem(60, 3)
        learner = DualSVM(1.0, GAUSSIAN, 1e-9, binary=True, bias="free")
        scorer = CodedReduction(tm.codes.one_vs_all(3), learner).fit(x, y).scorer
        margins = scorer(x).margins.detach()
        for label in range(3):
            expected, _ = peer_of(x, (y == label).long(), 1.0, GAUSSIAN)
            torch.testing.assert_close(margins[:, label].double(), expected, rtol=0, atol=1e-3)

    def test_weights_of_rows_and_classes(self):
        x, y = problem(60, 2, seed=3)
        rows = torch.rand(60, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 2
        rows[::7] = 0
        fit = DualSVM(2.0, GAUSSIAN, 1e-10, binary=True, bias="free", weight=[1.0, 3.0]).fit(x, y, weight=rows)
        kept = rows > 0
        both = rows * torch.tensor([1.0, 3.0])[y]
        expected, _ = peer_of(x[kept], y[kept], 2.0, GAUSSIAN, both[kept].numpy())
        torch.testing.assert_close(fit.scorer(x[kept]).squeeze(1).detach(), expected, rtol=0, atol=1e-3)

    @pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
    @pytest.mark.parametrize("name", ["one positive", "zero", "same", "small", "far"])
    def test_awkward_rows(self, name, C):
        """No primal of libsvm's, at whatever bias is best for its weights, is below the dual, nor ours much above."""
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(60, 3, generator=generator, dtype=torch.float64)
        y = (x[:, 0] > 0.4).long()
        if name == "one positive":
            y = (torch.arange(60) == 7).long()
        x = {"zero": 0 * x, "same": 0 * x + 1, "small": 1e-4 * x, "far": x + 100}.get(name, x)
        report = DualSVM(C, tol=1e-5, binary=True, bias="free").fit(x, y).report
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peer = SVC(C=C, kernel="linear", tol=1e-6, max_iter=200_000).fit(x.numpy(), y.numpy())
        w, signs = torch.tensor(peer.coef_[0]), 2 * y - 1
        biases = torch.cat([signs - x @ w, torch.tensor(peer.intercept_)])
        best = min(float(w @ w / 2 + C * (1 - signs * (x @ w + b)).clamp_min(0).sum()) for b in biases)
        assert report.converged
        assert report.dual <= best + 1e-9
        assert report.primal <= best + 2e-5 * max(1, best)


class TestAgainstQuadraticPrograms:
    @pytest.mark.parametrize("kernel", [kernels.Linear(), GAUSSIAN, kernels.Polynomial(2)], ids=repr)
    @pytest.mark.parametrize("cost", [1 - np.eye(3), MATRIX], ids=["01", "matrix"])
    def test_the_dual(self, kernel, cost):
        x, y = problem(12)
        y[:2] = 1  # classes of different sizes
        gram = kernel(x, x).numpy()
        optimum = naive.dual_by_quadratic_program(gram, y.tolist(), 3, 0.7, cost[y.tolist()], free=True)
        charged = naive.dual_by_quadratic_program(gram, y.tolist(), 3, 0.7, cost[y.tolist()])
        report = DualSVM(0.7, kernel, 1e-6, cost=torch.tensor(cost), bias="free").fit(x, y).report
        assert report.converged
        assert report.dual <= optimum + 1e-6
        assert report.primal >= optimum - 1e-6
        assert report.primal < charged  # which has no bias

    @pytest.mark.parametrize("loss", ["crammer_singer", "weston_watkins"])
    @pytest.mark.parametrize("cost", [1 - np.eye(3), MATRIX], ids=["01", "matrix"])
    @pytest.mark.parametrize("offset", [0.0, 3.0])
    def test_the_primal(self, loss, cost, offset):
        x, y = problem(12, offset=offset)
        y[:2] = 1
        weight = torch.linspace(0.5, 2, 12, dtype=torch.float64)
        optimum = naive.primal_by_quadratic_program(
            x.tolist(), y.tolist(), 3, (0.7 * weight).tolist(), cost[y.tolist()], loss == "weston_watkins"
        )
        solver = DualSVM(0.7, tol=1e-6, cost=torch.tensor(cost), loss=loss, bias="free")
        report = solver.fit(x, y, weight=weight).report
        assert report.converged
        assert report.dual <= optimum * (1 + 1e-6)
        assert report.primal == pytest.approx(optimum, rel=3e-6)

    @pytest.mark.parametrize("kernel", [kernels.Linear(), GAUSSIAN], ids=repr)
    def test_hard_margin(self, kernel):
        x, y = problem(30, 2, seed=2)
        x[:, 0] += 6 * y
        scorer, report = DualSVM(math.inf, kernel, 1e-8, binary=True, bias="free").fit(x, y)
        expected, _ = peer_of(x, y, 1e8, kernel)
        assert report.converged
        assert float(report.alpha.sum(0).abs().max()) <= 1e-9 * float(report.alpha.abs().sum())
        torch.testing.assert_close(scorer(x).squeeze(1).detach(), expected, rtol=0, atol=2e-3)
        assert bool(((2 * y - 1) * scorer(x).squeeze(1) >= 1 - 1e-12).all())

    def test_hard_margin_of_rows_that_no_hyperplane_through_0_separates(self):
        x, y = torch.tensor([[1.0], [2.0], [5.0], [6.0]]), torch.tensor([0, 0, 1, 1])
        with pytest.raises(ValueError, match="C: is inf"):
            DualSVM(math.inf, binary=True).fit(x, y)
        scorer, report = DualSVM(math.inf, tol=1e-8, binary=True, bias="free").fit(x, y)
        assert report.primal == pytest.approx(0.5 * (2 / 3) ** 2, abs=1e-8)
        torch.testing.assert_close(
            scorer(x).squeeze(1).detach(), torch.tensor([-5 / 3, -1, 1, 5 / 3]), atol=1e-4, rtol=0, check_dtype=False
        )
        three = torch.tensor([[1.0], [2.0], [5.0], [6.0], [9.0], [9.5]])
        fit = DualSVM(math.inf, tol=1e-6, bias="free").fit(three, torch.arange(6) // 2)
        assert fit.report.converged
        assert fit.scorer(three).argmax(1).tolist() == [0, 0, 1, 1, 2, 2]


class TestCertificate:
    @given(
        rows=st.integers(6, 30),
        classes=st.integers(2, 4),
        strength=st.floats(-4, 4),
        seed=st.integers(0, 1000),
        scale=st.sampled_from([1e-2, 1.0, 1e2]),
        loss=st.sampled_from(["crammer_singer", "weston_watkins"]),
        kernel=st.sampled_from([kernels.Linear(), GAUSSIAN]),
    )
    @settings(deadline=None, max_examples=40)
    def test_is_of_this_problem(self, rows, classes, strength, seed, scale, loss, kernel):
        """The multipliers of every class and of every row sum to 0, their dual value is the one reported, and the
        primal is the scorer's, written out, without its bias."""
        x, y = problem(rows, classes, 4, seed)
        x, C = scale * x, 10.0**strength
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scorer, report = DualSVM(C, kernel, 1e-5, loss=loss, bias="free", max_passes=300).fit(x, y)
        alpha = torch.zeros(rows, classes, dtype=torch.float64)
        alpha[report.support] = report.alpha
        size = C * rows
        assert float(alpha.sum(0).abs().max()) <= 1e-12 * size
        assert float(alpha.sum(1).abs().max()) <= 1e-12 * size
        own = alpha.gather(1, y[:, None])
        assert float(alpha.scatter(1, y[:, None], -1.0).max()) <= 1e-12 * C
        most = C * (1 if loss == "crammer_singer" else classes - 1)
        assert float(own.max()) <= most * (1 + 1e-9)
        matrix = kernel(x, x)
        dual = float(own.sum() - 0.5 * (alpha * (matrix @ alpha)).sum())
        assert report.dual == pytest.approx(dual, rel=1e-9, abs=1e-9 * size)
        scores = scorer(x).detach()
        short = (1 + scores - scores.gather(1, y[:, None])).scatter(1, y[:, None], 0.0)
        losses = short.amax(1) if loss == "crammer_singer" else short.clamp_min(0).sum(1)
        square = scorer.class_norms().square().sum().item()
        assert report.primal == pytest.approx(0.5 * square + C * float(losses.sum()), rel=1e-7, abs=1e-9)
        assert report.dual <= report.primal + 1e-9 * max(1, size)

    def test_is_below_the_machine_with_a_regularised_bias(self):
        x, y = problem(60, 3, offset=5.0)
        free = DualSVM(1.0, tol=1e-6, bias="free").fit(x, y).report
        assert free.primal < DualSVM(1.0, tol=1e-6, bias=True).fit(x, y).report.dual

    def test_shifted_features_change_the_bias_alone(self):
        x, y = problem(60, 3)
        one, other = (DualSVM(1.0, tol=1e-9, bias="free").fit(x + by, y).scorer for by in (0.0, 10.0))
        torch.testing.assert_close(one.weight.detach(), other.weight.detach(), rtol=0, atol=1e-3)
        torch.testing.assert_close(one(x), other(x + 10), rtol=0, atol=1e-3)

    @pytest.mark.parametrize("kernel", ["linear", GAUSSIAN], ids=repr)
    def test_an_early_end_is_certified(self, kernel):
        x, y = problem(200, 3)
        with pytest.warns(UserWarning, match="the gap is"):
            report = DualSVM(10.0, kernel, 1e-9, bias="free", max_passes=3).fit(x, y).report
        best = DualSVM(10.0, kernel, 1e-6, bias="free").fit(x, y).report
        assert report.dual <= best.primal
        assert report.primal >= best.dual
        assert float(report.alpha.sum(0).abs().max()) <= 1e-9


class TestWays:
    """What rows may be like, and where a fit may begin."""

    @pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
    def test_sparse_rows(self):
        x, y = problem(80, 3, 6)
        x = x * (torch.rand(80, 6, generator=torch.Generator().manual_seed(4)) < 0.5)
        for options in ({}, {"binary": True}):
            target = (y == 1).long() if options else y
            one, other = (
                DualSVM(1.0, tol=1e-9, bias="free", **options).fit(rows, target) for rows in (x, x.to_sparse_csr())
            )
            torch.testing.assert_close(one.scorer.weight, other.scorer.weight, rtol=0, atol=1e-3)
            torch.testing.assert_close(one.scorer.bias, other.scorer.bias, rtol=0, atol=1e-3)

    def test_precomputed_rows_and_all_rows_as_landmarks(self):
        x, y = problem(50, 3)
        one = DualSVM(1.0, GAUSSIAN, 1e-9, bias="free").fit(x, y).scorer
        gram = GAUSSIAN(x, x)
        other = DualSVM(1.0, "precomputed", 1e-9, bias="free").fit(gram, y).scorer
        mapped = DualSVM(1.0, GAUSSIAN, 1e-9, bias="free", landmarks=50).fit(x, y).scorer
        torch.testing.assert_close(one(x), other(gram), rtol=0, atol=1e-3)
        torch.testing.assert_close(one(x), mapped(x), rtol=0, atol=1e-3)

    @pytest.mark.parametrize("kernel", ["linear", GAUSSIAN], ids=repr)
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_warm_start_and_path(self, kernel, dtype):
        x, y = problem(120, 3, offset=2.0)
        x = x.to(dtype)
        solver = DualSVM(3.0, kernel, 1e-4, bias="free")
        cold = solver.fit(x, y)
        again = solver.fit(x, y, warm_start=cold)
        assert again.report.iterations <= 1
        assert again.report.primal <= cold.report.primal * (1 + 1e-6)
        near = DualSVM(3.3, kernel, 1e-4, bias="free")
        assert near.fit(x, y, warm_start=cold).report.iterations < near.fit(x, y).report.iterations
        for C, fit in zip((0.1, 1.0, 10.0), solver.path(x, y, [0.1, 1.0, 10.0]), strict=True):
            alone = DualSVM(C, kernel, 1e-6, bias="free").fit(x, y).report
            assert fit.report.converged
            assert fit.report.dual <= alone.primal + 1e-9
            assert fit.report.primal >= alone.dual

    @pytest.mark.parametrize("kernel", ["linear", GAUSSIAN], ids=repr)
    def test_without_the_library(self, kernel, monkeypatch):
        x, y = problem(100, 3, offset=1.0)
        one = DualSVM(1.0, kernel, 1e-8, bias="free").fit(x, y)
        monkeypatch.setattr(_native, "library", lambda: None)
        other = DualSVM(1.0, kernel, 1e-8, bias="free").fit(x, y)
        assert one.report.primal == pytest.approx(other.report.primal, rel=2e-8)
        torch.testing.assert_close(one.scorer(x), other.scorer(x), rtol=0, atol=2e-3)

    def test_logistic_regression_is_scikit_learns(self):
        x, y = problem(80, 2, offset=3.0)
        for kernel in ("linear", kernels.Linear()):
            scorer, report = BinaryLogistic(0.5, kernel, 1e-10, bias="free").fit(x, y)
            peer = LogisticRegression(C=4 * 0.5, tol=1e-10, max_iter=10_000).fit(x.numpy(), y.numpy())
            expected = torch.tensor(peer.decision_function(x.numpy())) / 2
            torch.testing.assert_close(scorer(x).squeeze(1).detach(), expected, rtol=0, atol=1e-4)
            assert report.converged
            assert float(report.alpha.sum().abs()) <= 1e-9

    def test_least_squares_is_the_closed_form(self):
        x, y = problem(30, 2, offset=3.0)
        signs = (2 * y - 1).double()
        scorer, report = BinaryLeastSquares(0.5, tol=1e-12, bias="free").fit(x, y)
        wide = torch.cat([x, torch.ones(30, 1)], 1)
        matrix = wide.mT @ wide + torch.diag(torch.tensor([1.0, 1, 1, 1, 0], dtype=torch.float64))  # 2C = 1
        expected = torch.linalg.solve(matrix, wide.mT @ signs)
        torch.testing.assert_close(scorer.weight.detach()[0], expected[:4], rtol=0, atol=1e-5)
        torch.testing.assert_close(scorer.bias.item(), float(expected[4]), rtol=0, atol=1e-5)
        assert report.converged


class TestErrors:
    def test_are_named(self):
        with pytest.raises(TypeError, match="bias: got 'Free'; accepted is True, False or 'free'"):
            DualSVM(bias="Free")
        with pytest.raises(ValueError, match=r"bias: got 'free' with p=1\.5; accepted with it is p=2"):
            DualSVM(p=1.5, bias="free")
        for solver in (CuttingPlane, Pegasos):
            with pytest.raises(TypeError, match="bias: got 'free'; accepted is True or False"):
                solver(bias="free")

    def test_a_class_without_rows(self):
        x, y = problem(30, 3)
        words = "target: no row has the label 3; accepted with bias='free' are all labels"
        with pytest.warns(UserWarning, match="no row has the label 3"), pytest.raises(ValueError, match=words):
            DualSVM(bias="free").fit(x, y, num_classes=5)


@pytest.mark.parametrize(("squares", "value"), [([16.0], 4.0), ([3.0, 5.0], 2.0), ([0.0], 1.0), ([math.inf], 1.0)])
def test_a_free_constant_is_about_as_long_as_the_rows(squares, value):
    assert Constant(1.0, free=True).beside(lambda: torch.tensor(squares)).value == value
    assert Constant(7.0).beside(lambda: torch.tensor(squares)).value == 7.0
