"""What a report says is true of the scorer that comes with it, whatever the precision, the problem and the ending."""

import copy
import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

import torch_multiclass as tm
from tests.references import svm as naive
from torch_multiclass import kernels
from torch_multiclass.solvers import BinaryLeastSquares, BinaryLogistic, DualSVM
from torch_multiclass.solvers.certified import check_weak_duality
from torch_multiclass.solvers.kernel_space import KernelSpace
from torch_multiclass.solvers.report import relative_gap

GAUSSIAN = kernels.Gaussian(0.4)


def problem(rows=40, classes=3, dimensions=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    target = torch.arange(rows) % classes
    features = torch.randn(rows, dimensions, generator=generator)
    features[:, 0] += target
    return features, target


def stored(scorer, x):
    """In float64, the scores and class norms of what the scorer holds."""
    x = x.double()
    if isinstance(scorer, tm.KernelScorer):
        bias = 0.0 if scorer.bias is None else scorer.bias.double()
        points, coefficients = scorer.support.double(), scorer.coefficients.double()
        scores = scorer.kernel(x, points) @ coefficients
        squares = (coefficients * (scorer.kernel(points, points) @ coefficients)).sum(0) + bias * bias
        return (scores + bias).detach(), squares.detach().clamp_min(0).sqrt()
    linear = scorer.linear if isinstance(scorer, tm.NystromScorer) else scorer
    if linear is not scorer:
        x = copy.deepcopy(scorer.features).double()(x)
    weight = linear.weight.double()
    if linear.bias is not None:
        weight, x = torch.cat([weight, linear.bias.double()[:, None]], 1), torch.cat([x, torch.ones(len(x), 1)], 1)
    return (x @ weight.mT).detach(), weight.norm(dim=1).detach()


def primal_of(scorer, x, target, C, loss=naive.crammer_singer, p=2.0, cost=None, weight=None):
    """The objective of the scorer as it is stored, written out."""
    scores, norms = stored(scorer, x)
    classes = scores.shape[1]
    cost = 1 - np.eye(classes) if cost is None else cost
    total = 0.5 * naive.group_norm(norms.tolist(), p) ** 2
    for row, label in zip(scores.tolist(), target.tolist(), strict=True):
        total += C * (1.0 if weight is None else weight[label]) * loss(row, label, cost[label])
    return total


def rounding_of(scorer, x, C, p):
    """What float64 may hide of the objective of an expansion whose terms cancel each other: ``eps`` times the sum of
    their lengths, squared, in each norm, and times a row's length in each loss. The class weights are at most 1.5."""
    if not isinstance(scorer, tm.KernelScorer):
        return 0.0
    summed = scorer.kernel.diagonal(scorer.support.double()).sqrt() @ scorer.coefficients.detach().double().abs()
    norms, eps = stored(scorer, x)[1], torch.finfo(torch.float64).eps
    upper = naive.group_norm((norms.square() + eps * summed.square()).sqrt().tolist(), p)
    losses = 3 * C * eps * float(scorer.kernel.diagonal(x.double()).sqrt().sum() * summed.max()) * len(summed)
    return 0.5 * (upper**2 - naive.group_norm(norms.tolist(), p) ** 2) + losses


DEPENDENT = {
    "seed": 0,
    "rows": 2,
    "classes": 4,
    "dimensions": 1,
    "C": 100.0,
    "scale": 1.0,
    "kernel": kernels.Polynomial(2, 0.1),
    "p": 1.0,
    "dtype": torch.float16,
    "own_cost": False,
    "weighted": False,
    "passes": 300,
}
"""A problem of four rows of which each depends on the others: coefficients may grow without an end."""
HALVES = [torch.float16, torch.bfloat16]


class TestAsStored:
    @pytest.mark.parametrize("dtype", [*HALVES, torch.float32, torch.float64])
    @pytest.mark.parametrize(("kernel", "landmarks"), [("linear", None), (GAUSSIAN, None), (GAUSSIAN, 15)])
    @pytest.mark.parametrize("bias", [False, True])
    def test_every_precision(self, dtype, kernel, landmarks, bias):
        x, y = problem()
        x = x.to(dtype)
        scorer, report = DualSVM(2.0, kernel, 1e-3, landmarks=landmarks, bias=bias).fit(x, y)
        # the landmarks' map is evaluated in its own precision, which its inverse root amplifies
        rel = 1e-4 if landmarks else 1e-12
        assert primal_of(scorer, x, y, 2.0) == pytest.approx(report.primal, rel=rel)
        assert report.converged
        assert scorer(x).dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
        torch.testing.assert_close(scorer(x).detach().double(), stored(scorer, x)[0], rtol=0, atol=2e-3)

    @pytest.mark.parametrize("learner", [BinaryLogistic, BinaryLeastSquares])
    @pytest.mark.parametrize("kernel", ["linear", GAUSSIAN], ids=str)
    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
    @pytest.mark.parametrize("bias", [False, True])
    def test_binary_learners(self, learner, kernel, dtype, bias):
        x, y = problem(classes=2)
        x = x.to(dtype)
        for tol in (1e-3, 1e-9):
            scorer, report = learner(0.7, kernel, tol, bias=bias).fit(x, y)
            scores, norms = stored(scorer, x)
            margins = scores.squeeze(1) * (2 * y - 1)
            losses = (1 - margins) ** 2 if learner is BinaryLeastSquares else (-2 * margins).exp().log1p()
            assert 0.5 * float(norms.square()) + 0.7 * float(losses.sum()) == pytest.approx(report.primal, rel=1e-12)
            assert report.gap == relative_gap(report.primal, report.dual) <= tol
            assert scorer(x).shape == (40, 1)

    @pytest.mark.parametrize("kernel", ["linear", GAUSSIAN], ids=str)
    def test_a_tolerance_that_single_precision_does_not_hold(self, kernel):
        """Rounding the weights to the features' dtype would lose it, so they stay in double precision."""
        x, y = problem(60)
        scorer, report = DualSVM(50.0, kernel, 1e-10).fit(x, y)
        assert report.gap <= 1e-10
        assert scorer(x).dtype == torch.float64  # features of single precision are taken as they are
        assert primal_of(scorer, x, y, 50.0) == pytest.approx(report.primal, rel=1e-13)
        loose = DualSVM(50.0, kernel, 1e-3).fit(x, y).scorer
        assert loose(x).dtype == torch.float32

    def test_a_function_is_called_in_the_features_dtype(self):
        x, y = problem()
        held = torch.rand(4) + 0.5
        seen = set()

        def weighted(a, b):
            seen.update({a.dtype, b.dtype})
            return (a * held) @ b.mT

        for dtype in (torch.float32, torch.bfloat16):
            for landmarks in (None, 10):
                scorer, report = DualSVM(kernel=weighted, tol=1e-6, landmarks=landmarks, max_passes=300).fit(
                    x.to(dtype), y
                )
                assert report.converged
                assert scorer(x.to(dtype)).shape == (40, 3)
        report = BinaryLogistic(kernel=weighted, tol=1e-6).fit(x, y.clamp_max(1)).report
        assert report.converged
        assert seen == {torch.float32}

    def test_a_learned_width_is_the_scorer_s_own(self):
        x, y = problem()
        kernel = kernels.Gaussian(0.4, learn=True)
        scorer, report = DualSVM(kernel=kernel).fit(x, y)
        with torch.no_grad():
            kernel.log_gamma.add_(1.0)
        assert primal_of(scorer, x, y, 1.0) == pytest.approx(report.primal, rel=1e-6)
        scorer(x).sum().backward()
        assert scorer.kernel.log_gamma.grad is not None
        assert kernel.log_gamma.grad is None

    def test_features_far_from_the_origin(self):
        """The certificate is of the features given, not of a rounding of them."""
        x, y = problem()
        x = x.double() + 1e5
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scorer, report = DualSVM(1e-3, max_passes=200).fit(x, y)
        assert primal_of(scorer, x, y, 1e-3) == pytest.approx(report.primal, rel=1e-9)
        assert report.gap >= 0


class TestHardProblems:
    """Each of these once stood still for thousands of passes."""

    @pytest.mark.parametrize("tol", [1e-3, 1e-5, 1e-7])
    def test_more_rows_than_the_features_can_tell_apart(self, tol):
        torch.manual_seed(3)
        y, x = torch.arange(60) % 3, torch.randn(60, 4).double()
        report = DualSVM(10.0, tol=tol, loss="weston_watkins", max_passes=120).fit(x, y).report
        assert report.converged

    @pytest.mark.parametrize("scale", [1e3, 1e6])
    @pytest.mark.parametrize("loss", ["crammer_singer", "weston_watkins"])
    def test_features_of_any_scale(self, scale, loss):
        x, y = problem(60)
        assert DualSVM(loss=loss, max_passes=150).fit(scale * x, y).report.converged

    @pytest.mark.parametrize("C", [1e4, 1e8])
    @pytest.mark.parametrize("kernel", ["linear", GAUSSIAN], ids=str)
    def test_strong_losses(self, C, kernel):
        x, y = problem(60, 2)
        assert DualSVM(C, kernel, binary=True, max_passes=150).fit(x, y).report.converged

    @pytest.mark.parametrize("C", [1.0, 10.0, 100.0])
    def test_a_polynomial_kernel(self, C):
        x, y = problem(80)
        scorer, report = DualSVM(C, kernels.Polynomial(3), max_passes=250).fit(x, y)
        assert report.converged
        assert primal_of(scorer, x, y, C) == pytest.approx(report.primal, rel=1e-9)

    @pytest.mark.parametrize("p", [1.0, 1.5, 3.0, math.inf])
    @pytest.mark.parametrize("tol", [1e-3, 1e-6])
    def test_group_norms(self, p, tol):
        x, y = problem(60)
        report = DualSVM(p=p, tol=tol, max_passes=60).fit(x, y).report
        assert report.converged

    def test_single_precision_hands_over_to_double(self, monkeypatch):
        """As for a large problem: single precision first, double where that stalls."""
        monkeypatch.setattr("torch_multiclass.solvers.svm.machine._SMALL", 0)
        monkeypatch.setattr("torch_multiclass.solvers.svm.machine._STRONG", 1e12)
        x, y = problem(60)
        for kernel in ("linear", GAUSSIAN):
            scorer, report = DualSVM(1e5, kernel, max_passes=400).fit(x, y)
            assert report.converged
            assert primal_of(scorer, x, y, 1e5) == pytest.approx(report.primal, rel=1e-9)


@pytest.mark.filterwarnings("ignore:.*ended from the keyboard:torch_multiclass.solvers.Interrupted")
class TestEndings:
    @pytest.mark.parametrize("learner", [BinaryLogistic, BinaryLeastSquares])
    def test_a_binary_learner_stopped_before_it_measured(self, learner, monkeypatch):
        x, y = problem(classes=2)

        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(type(learner().loss), "slope", interrupt)
        scorer, report = learner(0.5).fit(x, y)
        assert report.interrupted
        assert not report.converged
        assert report.dual == 0
        assert report.primal == pytest.approx(0.5 * 40 * (math.log(2) if learner is BinaryLogistic else 1))
        assert report.gap == pytest.approx(1)
        assert not bool(scorer.weight.any())

    def test_a_machine_stopped_at_its_first_measurement(self):
        x, y = problem()

        def interrupt(_):
            raise KeyboardInterrupt

        scorer, report = DualSVM(kernel=GAUSSIAN, on_step=interrupt).fit(x, y)
        assert report.interrupted
        assert report.primal == pytest.approx(40)
        assert report.gap == pytest.approx(1)
        assert not bool(scorer(x).any())

    def test_a_path_stops_where_it_is_stopped(self):
        x, y = problem(200)
        seen = []

        def interrupt(step):
            seen.append(step)
            if len(seen) == 4:
                raise KeyboardInterrupt

        fits = list(DualSVM(tol=1e-9, on_step=interrupt).path(x, y, [0.1, 1.0, 10.0]))
        assert len(fits) == 1
        assert fits[0].report.interrupted
        assert math.isfinite(fits[0].report.gap)

    @pytest.mark.parametrize("kernel", ["linear", GAUSSIAN], ids=str)
    @pytest.mark.parametrize("p", [2.0, 1.5])
    def test_a_refit_is_no_worse_and_at_once(self, kernel, p):
        x, y = problem(100, 4)
        solver = DualSVM(2.0, kernel, 1e-2, p=p)
        first = solver.fit(x, y)
        for start in (first, first.report):
            again = solver.fit(x, y, warm_start=start).report
            assert again.primal <= first.report.primal
            assert again.dual >= first.report.dual * (1 - 1e-6)
            assert again.iterations == 0
        with pytest.raises(TypeError, match="warm_start: got float; accepted is a Fit or its Report"):
            solver.fit(x, y, warm_start=0.5)

    def test_a_gram_matrix_in_double_precision_that_would_not_fit(self, monkeypatch):
        """What single precision reached is returned, and that it is not enough is said."""
        monkeypatch.setattr("torch_multiclass.solvers.svm.machine._SMALL", 0)
        monkeypatch.setattr("torch_multiclass.solvers.svm.machine._STRONG", 1e12)
        x, y = problem(60)
        solver = DualSVM(1e8, kernels.Polynomial(3), memory_limit=60 * 60 * 4)
        with pytest.warns(UserWarning, match="the gap is"):
            scorer, report = solver.fit(x, y)
        assert primal_of(scorer, x, y, 1e8) == pytest.approx(report.primal, rel=1e-9)

    def test_a_dual_above_the_primal_is_a_kernel_that_is_none(self):
        x, _ = problem()
        own = KernelSpace(kernels.Function(lambda a, b: a @ b.T), x)
        with pytest.raises(ValueError, match=r"not positive semi-definite \(the dual objective 1\.1 exceeds"):
            check_weak_duality(own, 1.0, 1.1)
        check_weak_duality(own, 1.0, 1.0 + 1e-9)
        check_weak_duality(KernelSpace(GAUSSIAN, x), 1.0, 1.1)  # rounding: these are kernels for sure


class TestArguments:
    def test_constants_out_of_range(self):
        for bad in (1e-300, 1e300):
            for make in (DualSVM, BinaryLogistic, tm.solvers.Pegasos):
                with pytest.raises(ValueError, match=r"C: got .*; accepted is a number between 1e-30 and 1e\+30"):
                    make(bad)
        x, y = problem()
        for C in (1e-30, 1e-12, 1e12):
            report = DualSVM(C).fit(x, y).report
            assert math.isfinite(report.primal)
            assert report.converged

    def test_values_of_a_path(self):
        x, y = problem()
        for Cs in (torch.tensor([0.5, 1.0]), np.array([0.5, 1.0]), [torch.tensor(0.5), 1]):
            assert [fit.report.C for fit in DualSVM().path(x, y, Cs)] == [0.5, 1.0]
        with pytest.raises(TypeError, match=r"Cs: got 1\.0; accepted are several numbers"):
            DualSVM().path(x, y, 1.0)
        with pytest.raises(ValueError, match="Cs: got -1"):
            DualSVM().path(x, y, [1.0, -1.0])

    def test_one_class(self):
        x, y = problem()
        for learner in (DualSVM(), tm.solvers.Pegasos()):
            with pytest.raises(ValueError, match="target: every row has the label 0; accepted are at least two"):
                learner.fit(x, torch.zeros_like(y))

    def test_no_features(self):
        _, y = problem()
        for bias in (False, True):
            with pytest.raises(ValueError, match=r"features: got shape \(40, 0\); accepted is \(N, D\), at least one"):
                DualSVM(bias=bias).fit(torch.zeros(40, 0), y)

    def test_memory(self):
        x, y = problem()
        with pytest.raises(MemoryError, match=r"takes 6\.2 KiB and 1000 bytes may be used"):
            DualSVM(kernel=GAUSSIAN, memory_limit=1000).fit(x, y)
        for make in (DualSVM, BinaryLogistic):
            with pytest.raises(ValueError, match="memory_limit: got -1"):
                make(memory_limit=-1)

    def test_streams(self):
        x, y = problem()
        learner = tm.solvers.Pegasos(regularisation=0.1)
        with pytest.raises(ValueError, match="batches: none had a labelled row"):
            learner.fit_stream([], 4, 3)
        with pytest.raises(ValueError, match=r"batches: batch 1 has features of shape \(40, 3\); accepted is \(B, 4\)"):
            learner.fit_stream([(x, y), (x[:, :3], y)], 4, 3)
        with pytest.raises(ValueError, match=r"batches: batch 0: target: label 2 is outside 0\.\.1"):
            learner.fit_stream([(x, y)], 4, 2)
        empty = x[:0], y[:0]
        whole = learner.fit_stream([empty, (x, y), empty], 4, 3)
        assert whole.report.iterations == 1
        assert torch.equal(whole.scorer.weight, learner.fit_stream([(x, y)], 4, 3).scorer.weight)

    def test_a_base_class_of_learners_is_abstract(self):
        with pytest.raises(TypeError, match="abstract"):
            tm.solvers.Solver()


@pytest.mark.parametrize("bias", [False, True, "free"])
def test_multipliers_of_two_classes_are_signed(bias):
    """As `Certificate` says of ``binary=True``."""
    x, y = problem(classes=2)
    x, y = x.double(), 2 * y - 1
    report = DualSVM(C=0.3, binary=True, bias=bias).fit(x, y).report
    rows, alpha = torch.cat([x, torch.ones(len(x), 1)], 1) if bias is True else x, report.alpha[:, 0]
    signed, v = alpha * y[report.support], alpha @ rows[report.support]
    assert report.alpha.shape == (report.support_vectors, 1)
    assert 0 <= signed.min() <= signed.max() <= 0.3 + 1e-12
    assert float(signed.sum() - 0.5 * v @ v) == pytest.approx(report.dual, abs=1e-9)
    assert bias != "free" or abs(float(alpha.sum())) < 1e-9


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("loss", ["crammer_singer", "weston_watkins"])
@pytest.mark.parametrize("C", [10.0, 100.0, 1000.0])
def test_rows_that_depend_on_one_another_prove_nothing_false(C, loss, dtype):
    """Four rows of rank three: coefficients that make nothing grew until rounding hid what the others make."""
    x = torch.tensor([[1.541], [-0.2935], [-2.1797], [0.5684]], dtype=torch.float16).to(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it may take more passes
        scorer, report = DualSVM(C, kernels.Polynomial(2, 0.1), loss=loss, p=1.0, max_passes=300).fit(
            x, torch.arange(4)
        )
    feature_map = torch.cat([0.1 * x.double() ** 2, 0.2**0.5 * x.double(), torch.ones(4, 1)], 1)
    weight = scorer.coefficients.detach().double().mT @ feature_map
    scores = feature_map @ weight.mT
    slack = (1 + scores - scores.diagonal()[:, None]).fill_diagonal_(0).clamp_min(0)
    losses = slack.amax(1) if loss == "crammer_singer" else slack.sum(1)
    primal = 0.5 * float(weight.norm(dim=1).sum()) ** 2 + C * float(losses.sum())
    assert report.primal == pytest.approx(primal, rel=1e-5)
    assert report.dual <= primal * (1 + 1e-6)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(2, 24),
    classes=st.integers(2, 5),
    dimensions=st.integers(1, 6),
    C=st.floats(-4, 4).map(lambda v: 10**v),
    scale=st.sampled_from([1e-3, 1.0, 100.0]),
    kernel=st.sampled_from(["linear", "linear", GAUSSIAN, kernels.Polynomial(2, 0.1), kernels.Laplacian(0.5)]),
    loss=st.sampled_from(["crammer_singer", "weston_watkins"]),
    p=st.sampled_from([2.0, 2.0, 1.0, 1.5, 4.0, math.inf]),
    dtype=st.sampled_from([torch.float16, torch.float32, torch.float64]),
    own_cost=st.booleans(),
    weighted=st.booleans(),
    bias=st.booleans(),
    passes=st.sampled_from([1, 300]),
)
@example(
    seed=0,
    rows=2,
    classes=3,
    dimensions=1,
    C=1000.0,
    scale=100.0,
    kernel=kernels.Polynomial(2, 0.1),
    loss="crammer_singer",
    p=1.0,
    dtype=torch.float16,
    own_cost=False,
    weighted=False,
    bias=False,
    passes=300,
)
@example(**DEPENDENT, loss="weston_watkins", bias=False)
@example(**DEPENDENT, loss="weston_watkins", bias=True)
@example(**DEPENDENT, loss="crammer_singer", bias=False)
def test_reports_are_true(
    seed, rows, classes, dimensions, C, scale, kernel, loss, p, dtype, own_cost, weighted, bias, passes
):
    generator = torch.Generator().manual_seed(seed)
    rows = max(rows, classes)
    x = (scale * torch.randn(rows, dimensions, generator=generator)).to(dtype)
    y = torch.arange(rows) % classes
    cost = torch.rand(classes, classes, generator=generator).fill_diagonal_(0) if own_cost else None
    weight = (torch.rand(classes, generator=generator) + 0.5).tolist() if weighted else None
    options = {"loss": loss, "p": p, "bias": bias, "weight": weight, "max_passes": passes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # one pass is not enough
        scorer, report = DualSVM(C, kernel, cost="zero_one" if cost is None else cost, **options).fit(x, y)
    oracle = naive.crammer_singer if loss == "crammer_singer" else naive.weston_watkins
    own = primal_of(scorer, x, y, C, oracle, p, None if cost is None else cost.tolist(), weight)
    rounding = rounding_of(scorer, x, C, p)
    assert rounding <= 1e-4 * own + 1e-9
    assert own == pytest.approx(report.primal, rel=1e-8, abs=1e-9 + rounding)
    for step in report.history:
        assert math.isfinite(step.primal)
        assert math.isfinite(step.dual)
    assert report.gap >= -1e-9
    assert passes == 1 or report.converged
