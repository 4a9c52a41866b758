"""The certified SVM against independent solvers, and its certificate against weak duality."""

import copy
import importlib
import itertools
import math
import pickle
import signal
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC, LinearSVC

import torch_multiclass as tm
from tests.references import svm as naive
from torch_multiclass import kernels
from torch_multiclass.ops import _native
from torch_multiclass.solvers import DualSVM, Interrupted
from torch_multiclass.solvers.svm.duals import BinaryHinge

ZERO_ONE = 1 - np.eye(3)
GAUSSIAN = kernels.Gaussian(0.3)


def problem(rows=40, classes=3, dimensions=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    target = torch.arange(rows) % classes
    features = torch.randn(rows, dimensions, generator=generator)
    features[:, :classes] += torch.eye(classes)[target]
    return features, target


def naive_primal(scorer, features, target, C, *, cost=None, weight=None, loss=naive.crammer_singer, p=2.0):
    rows = scorer.weight.shape[0]
    cost = (1 - np.eye(rows)) if cost is None else np.asarray(cost)
    uppers = [C * (1.0 if weight is None else float(weight[y])) for y in target.tolist()]
    matrix = scorer.weight.double().tolist()
    return naive.primal(matrix, features.double().tolist(), target.tolist(), uppers, cost[target.tolist()], loss, p)


def digits():
    x, y = load_digits(return_X_y=True)
    return x / 16, y


class TestAgainstIndependentSolvers:
    def test_digits_and_liblinear(self):
        """The known optimum of all digits, and liblinear's on a split; a dual value proves both."""
        x, y = digits()
        train, _, labels, _ = train_test_split(x, y, test_size=0.25, stratify=y, random_state=0)
        peer = LinearSVC(multi_class="crammer_singer", fit_intercept=False, tol=1e-6, max_iter=100_000, random_state=0)
        with warnings.catch_warnings():  # scikit-learn 1.7 takes what stands in uninitialised memory for its iterations
            warnings.simplefilter("ignore", ConvergenceWarning)
            peer.fit(train, labels)
        fit = DualSVM(C=1.0, tol=1e-5).fit(torch.tensor(train), torch.tensor(labels))
        theirs = tm.LinearScorer(64, 10, bias=False, dtype=torch.float64)
        theirs.weight.data = torch.tensor(peer.coef_)
        best = naive_primal(theirs, torch.tensor(train), torch.tensor(labels), 1.0)
        assert fit.report.converged
        assert fit.report.dual <= best
        assert fit.report.primal == pytest.approx(best, rel=1.1e-5)
        assert best == pytest.approx(93.196, abs=2e-3)
        agree = (fit.scorer(torch.tensor(x)).argmax(1).numpy() == peer.predict(x)).mean()
        assert agree > 0.995

    @pytest.mark.parametrize("kernel", [kernels.Linear(), kernels.Gaussian(0.3), kernels.Polynomial(2)], ids=repr)
    @pytest.mark.parametrize("cost", [ZERO_ONE, np.array([[0, 1, 4], [0.5, 0, 1], [2, 3, 0]])], ids=["01", "matrix"])
    def test_a_quadratic_program(self, kernel, cost):
        x, y = problem(rows=12)
        optimum = naive.dual_by_quadratic_program(
            kernel(x.double(), x.double()).numpy(), y.tolist(), 3, 0.7, cost[y.tolist()]
        )
        report = DualSVM(0.7, kernel, 1e-6, cost=torch.tensor(cost)).fit(x, y).report
        assert report.dual <= optimum + 1e-6
        assert report.primal >= optimum - 1e-6
        assert report.gap <= 1e-6

    @pytest.mark.parametrize("C", [0.1, 10.0])
    def test_binary_against_scikit_learn(self, C):
        x, y = problem(60, 2)
        kernel = kernels.Gaussian(0.5)
        fit = DualSVM(C, kernel, 1e-7, binary=True).fit(x, 2 * y - 1)
        peer = SVC(C=C, gamma=0.5, tol=1e-7).fit(x.numpy(), y.numpy())
        # the peer's bias is not regularised: compare through the certificate of ours, at its own bias-free problem
        alpha = torch.zeros(60, dtype=torch.float64)
        alpha[fit.report.support] = fit.report.alpha[:, 0]
        matrix = kernel(x.double(), x.double())
        dual = float(alpha.abs().sum() - 0.5 * alpha @ matrix @ alpha)
        assert dual == pytest.approx(fit.report.dual, rel=1e-9)
        assert bool((alpha * (2 * y - 1) >= -1e-12).all())
        assert bool((alpha.abs() <= C + 1e-12).all())
        assert -peer.dual_coef_.sum() == pytest.approx(0, abs=1e-6)

    def test_binary_is_liblinear_with_its_regularised_bias(self):
        x, y = problem(60, 2)
        peer = LinearSVC(loss="hinge", C=0.5, tol=1e-8, max_iter=1_000_000, random_state=0).fit(x.numpy(), y.numpy())
        fit = DualSVM(0.5, binary=True, bias=True, tol=1e-8).fit(x.double(), y)
        np.testing.assert_allclose(fit.scorer.weight.detach(), peer.coef_, atol=1e-3)
        np.testing.assert_allclose(fit.scorer.bias.detach(), peer.intercept_, atol=1e-3)

    def test_two_classes_are_the_binary_machine(self):
        """Crammer-Singer with two classes: ``w_1 = -w_0``, so ``P(C) = P_binary`` with margins ``2 w_1 · x``."""
        x, y = problem(50, 2)
        multi = DualSVM(0.8, tol=1e-7).fit(x, y).report
        binary = DualSVM(2 * 0.8, tol=1e-7, binary=True).fit(x, 2 * y - 1).report
        assert 2 * multi.primal == pytest.approx(binary.primal, rel=1e-5)
        direct = DualSVM(0.8, tol=1e-7, loss="weston_watkins").fit(x, y).report
        assert direct.primal == pytest.approx(multi.primal, rel=1e-6)

    def test_the_primal_reported_is_the_loss_written_out(self):
        x, y = problem()
        weight, cost = torch.tensor([1.0, 2.0, 0.5]), [[0, 1, 4], [0.5, 0, 1], [2, 3, 0]]
        for loss, oracle in (("crammer_singer", naive.crammer_singer), ("weston_watkins", naive.weston_watkins)):
            scorer, report = DualSVM(0.7, tol=1e-5, loss=loss, weight=weight, cost=cost).fit(x.double(), y)
            assert report.converged
            assert naive_primal(scorer, x, y, 0.7, cost=cost, weight=weight, loss=oracle) == pytest.approx(
                report.primal, rel=1e-9
            )

    def test_weston_watkins_by_the_library_s_own_loss(self):
        """Gradient descent on the primal comes down to the certified value and not below the dual."""
        x, y = problem()
        report = DualSVM(0.5, loss="weston_watkins", tol=1e-6).fit(x, y).report
        w = torch.zeros(3, 4, requires_grad=True)
        loss = tm.WestonWatkinsLoss(reduction="sum")
        optimiser = torch.optim.LBFGS([w], max_iter=60, line_search_fn="strong_wolfe", tolerance_change=1e-12)

        def closure():
            optimiser.zero_grad()
            value = 0.5 * w.square().sum() + 0.5 * loss(x @ w.T, y)
            value.backward()
            return value

        optimiser.step(closure)
        reached = float(closure().detach())
        assert report.dual <= reached + 1e-5
        assert reached == pytest.approx(report.primal, rel=0.05)


def noisy_prototypes(rows, dimensions, generator):
    """Ten classes, three prototypes each, so faint that no class ever has the majority: the zero scorer is nearly the
    best."""
    kept = torch.rand(30, dimensions, generator=generator) < 0.25
    prototypes = torch.rand(30, dimensions, generator=generator) * kept
    target = torch.arange(rows) % 10
    chosen = target + 10 * torch.randint(3, (rows,), generator=generator)
    noise = torch.randn(rows, dimensions, generator=generator)
    return (0.35 * prototypes[chosen] + noise).clamp_min(0) / 5, target


class TestHardProblems:
    @pytest.mark.parametrize("computed_by", ["library", "torch"])
    def test_noisy_prototypes_are_certified(self, monkeypatch, computed_by):
        if computed_by == "torch":
            monkeypatch.setattr(_native, "library", lambda: None)
        x, y = noisy_prototypes(4000, 36, torch.Generator().manual_seed(0))
        scorer, report = DualSVM(tol=1e-3, max_passes=300).fit(x, y)
        assert report.converged
        assert 0 <= report.gap <= 1e-3
        assert report.primal <= 4000 * (1 + 1e-9)  # the zero scorer's
        assert naive_primal(scorer, x[:500], y[:500], 1.0) <= 500 * 1.05

    def test_separable_rows_end_with_a_longer_weight(self):
        """The weight of the dual point, cut down by a tenth, misses every margin by as much: what is missing is its
        length alone, and is put right."""
        from torch_multiclass.solvers.gap import GapMonitor
        from torch_multiclass.solvers.space import LinearSpace
        from torch_multiclass.solvers.svm.duals import CrammerSinger

        x, y = naive.mixture(3, 60, 4, 8.0, torch.Generator().manual_seed(0))
        x = x.double()
        best = DualSVM(1e4, tol=1e-9).fit(x, y)
        hinge = CrammerSinger(y, 3, torch.full((60, 1), 1e4, dtype=torch.float64), None)
        monitor = GapMonitor(LinearSpace(x), hinge, 1e-6)
        monitor.begin()
        monitor.try_weight(0.9 * best.scorer.weight.detach(), hinge.start())
        assert monitor.primal == pytest.approx(best.report.primal, rel=1e-6)
        assert monitor.objective(monitor.weight, hinge.margins(x @ monitor.weight.mT)) == pytest.approx(monitor.primal)

    @pytest.mark.parametrize("name", ["gaussian", "laplacian"])
    def test_the_name_of_a_kernel_is_the_kernel(self, name):
        x, y = problem()
        kernel = {"gaussian": kernels.Gaussian(), "laplacian": kernels.Laplacian()}[name]
        named, made = (DualSVM(kernel=k).fit(x, y).scorer(x) for k in (name, kernel))
        assert torch.equal(named, made)

    @pytest.mark.parametrize("kernel", ["linear", GAUSSIAN], ids=str)
    @pytest.mark.parametrize("options", [{}, {"loss": "weston_watkins"}, {"binary": True}, {"cost": "matrix"}])
    def test_the_library_and_torch_agree(self, monkeypatch, kernel, options):
        x, y = problem(120, 3, 5)
        options = {**options, **({"cost": [[0, 1, 4], [0.5, 0, 1], [2, 3, 0]]} if "cost" in options else {})}
        y = (y > 0).long() if options.get("binary") else y
        solver = DualSVM(2.0, kernel, 1e-8, **options)
        ours = solver.fit(x.double(), y)
        monkeypatch.setattr(_native, "library", lambda: None)
        theirs = solver.fit(x.double(), y)
        assert max(ours.report.dual, theirs.report.dual) <= min(ours.report.primal, theirs.report.primal)
        torch.testing.assert_close(ours.scorer(x.double()), theirs.scorer(x.double()), rtol=1e-3, atol=2e-3)


class TestCertificate:
    @settings(max_examples=15)
    @given(
        seed=st.integers(0, 10_000),
        rows=st.integers(3, 16),
        classes=st.integers(2, 5),
        C=st.sampled_from([1e-3, 0.1, 1.0, 30.0]),
        scale=st.sampled_from([1e-2, 1.0, 30.0]),
        kernel=st.sampled_from(["linear", kernels.Gaussian(0.5), kernels.Polynomial(2, 0.1)]),
        loss=st.sampled_from(["crammer_singer", "weston_watkins"]),
        p=st.sampled_from([2.0, 2.0, 1.0, 1.5, math.inf]),
    )
    @example(
        seed=2,
        rows=3,
        classes=5,
        C=0.1,
        scale=0.01,
        kernel=kernels.Polynomial(2, 0.1),
        loss="crammer_singer",
        p=2.0,
    )
    def test_the_gap_is_never_negative(self, seed, rows, classes, C, scale, kernel, loss, p):
        x, y = problem(max(rows, classes), classes, 5, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not every problem is solved in so few passes
            report = DualSVM(C, kernel, 1e-5, loss=loss, p=p, max_passes=80).fit(scale * x, y).report
        assert all(step.primal - step.dual >= -1e-9 * max(1, abs(step.primal)) for step in report.history)
        best_dual = max(step.dual for step in report.history)
        assert all(step.primal >= best_dual - 1e-9 * max(1, abs(step.primal)) for step in report.history)
        assert report.gap >= -1e-10
        assert report.primal <= C * len(x) * (1 if loss == "crammer_singer" else classes - 1) + 1e-6  # W = 0
        assert report.dual >= -1e-9 * max(1, report.primal)  # alpha = 0

    @pytest.mark.parametrize("kernel", ["linear", kernels.Gaussian(0.5)], ids=str)
    def test_single_precision_work_is_certified_in_double(self, kernel):
        x, y = problem(200, 4, 6)
        report = DualSVM(2.0, kernel, 1e-3).fit(x, y).report
        assert report.converged
        assert 0 <= report.gap <= 1e-3
        assert report.alpha.dtype == torch.float64

    def test_multipliers_are_feasible_and_attain_the_dual(self):
        x, y = problem(30)
        kernel = kernels.Gaussian(0.4)
        report = DualSVM(1.5, kernel, 1e-6).fit(x, y).report
        alpha = torch.zeros(30, 3, dtype=torch.float64)
        alpha[report.support] = report.alpha
        onehot = torch.nn.functional.one_hot(y, 3)
        assert report.support_vectors == len(report.support) < 30 * 1.01
        assert float(alpha.sum(1).abs().amax()) < 1e-12
        assert bool((alpha <= 1.5 * onehot + 1e-12).all())
        matrix = kernel(x.double(), x.double())
        dual = float(-(alpha * (1 - onehot)).sum() - 0.5 * (alpha * (matrix @ alpha)).sum())
        assert dual == pytest.approx(report.dual, rel=1e-9)

    def test_the_scorer_returned_attains_the_primal(self):
        x, y = problem(60)
        for kernel, landmarks in (("linear", None), (kernels.Gaussian(0.4), None), (kernels.Gaussian(0.4), 20)):
            for bias in (False, True):
                scorer, report = DualSVM(1.5, kernel, 1e-6, bias=bias, landmarks=landmarks).fit(x.double(), y)
                losses = tm.functional.crammer_singer_loss(scorer(x.double()), y, reduction="sum")
                squares = 2 * (report.primal - 1.5 * float(losses.detach()))
                if kernel == "linear":
                    own = scorer.weight.square().sum() + (scorer.bias.square().sum() if bias else 0)
                elif landmarks:
                    own = scorer.linear.weight.square().sum() + (scorer.linear.bias.square().sum() if bias else 0)
                else:
                    own = scorer.class_norms().square().sum() + (scorer.bias.square().sum() if bias else 0)
                assert squares == pytest.approx(float(own.detach()), rel=1e-5)


class TestUse:
    def test_kernel_support_is_compacted(self):
        x, y = problem(200)
        x[:, :3] += 3 * torch.eye(3)[y]
        scorer, report = DualSVM(1.0, kernels.Gaussian(0.1)).fit(x, y)
        assert isinstance(scorer, tm.KernelScorer)
        assert report.support_vectors < 150
        assert len(scorer.support) < 200

    def test_warm_start_and_path(self):
        x, y = problem(150, 4, 6)
        solver = DualSVM(kernel=kernels.Gaussian(0.3))
        values = [0.5, 1.0, 2.0]
        warm = [report for _, report in solver.path(x, y, values)]
        for C, report in zip(values, warm, strict=True):
            cold = DualSVM(C, kernels.Gaussian(0.3)).fit(x, y).report
            assert report.C == C
            assert report.converged
            assert max(report.dual, cold.dual) <= min(report.primal, cold.primal)
        again = DualSVM(2.0, kernels.Gaussian(0.3)).fit(x, y, warm_start=warm[-1]).report
        assert again.iterations < warm[0].iterations
        with pytest.raises(ValueError, match="warm_start: is of 150 rows and 4 outputs"):
            solver.fit(x[:10], y[:10], warm_start=warm[0])

    def test_a_fit_is_a_pair_with_names(self):
        x, y = problem()
        fit = DualSVM().fit(x, y)
        scorer, report = fit
        assert (scorer, report) == (fit.scorer, fit.report) == (fit[0], fit[1])
        for twin in (copy.deepcopy(fit), pickle.loads(pickle.dumps(fit))):
            assert type(twin) is type(fit)
            assert twin.report.gap == report.gap
            assert torch.equal(twin.scorer.weight, scorer.weight)
        assert repr(fit).startswith("Fit(scorer=LinearScorer(")

    @pytest.mark.parametrize("kernel", ["linear", GAUSSIAN], ids=str)
    def test_eight_threads_at_once(self, kernel):
        x, y = problem(300)
        solver = DualSVM(kernel=kernel, progress=False)
        alone = solver.fit(x, y).scorer(x)
        with ThreadPoolExecutor(8) as pool:
            for fit in pool.map(lambda _: solver.fit(x, y), range(16)):
                assert torch.equal(fit.scorer(x), alone)

    def test_fits_repeat(self):
        x, y = problem()
        assert torch.equal(DualSVM().fit(x, y).scorer.weight, DualSVM().fit(x, y).scorer.weight)

    def test_ignored_rows_and_integer_types(self):
        x, y = problem()
        marked = torch.cat([y, torch.full((5,), -100)]).to(torch.int32)
        wide = torch.cat([x, torch.full((5, 4), 9.0)])
        assert torch.equal(DualSVM().fit(wide, marked).scorer.weight, DualSVM().fit(x, y).scorer.weight)

    def test_class_weights_count_examples(self):
        x, y = problem()
        doubled = torch.cat([x, x[y == 1]]), torch.cat([y, y[y == 1]])
        weighted = DualSVM(tol=1e-6, weight=[1.0, 2.0, 1.0]).fit(x, y).report
        assert weighted.primal == pytest.approx(DualSVM(tol=1e-6).fit(*doubled).report.primal, rel=3e-6)

    def test_weights_of_classes_and_of_rows_multiply(self):
        x, y = problem()
        classes, rows = torch.tensor([1.0, 2.0, 0.5]), torch.rand(40) + 0.5
        both = DualSVM(tol=1e-8, weight=classes).fit(x.double(), y, weight=rows)
        alone = DualSVM(tol=1e-8).fit(x.double(), y, weight=classes[y] * rows)
        torch.testing.assert_close(both.scorer.weight, alone.scorer.weight, rtol=1e-4, atol=1e-5)
        binary = DualSVM(tol=1e-8, binary=True, weight=[1.0, 3.0]).fit(x.double(), (y > 0).int(), weight=rows)
        alone = DualSVM(tol=1e-8, binary=True).fit(x.double(), (y > 0).int(), weight=rows * (1 + 2 * (y > 0)))
        torch.testing.assert_close(binary.scorer.weight, alone.scorer.weight, rtol=1e-4, atol=1e-5)
        path = [fit.report.primal for fit in DualSVM(tol=1e-8).path(x.double(), y, [0.5, 1.0], weight=2 * rows)]
        twice = [DualSVM(C, tol=1e-8).fit(x.double(), y, weight=rows).report.primal for C in (1.0, 2.0)]
        assert path == pytest.approx(twice, rel=1e-6)
        with pytest.raises(ValueError, match="C times weight: got"):
            DualSVM(2.0, weight=[1e10] * 3).fit(x, y, weight=[1e25] * 40)

    @pytest.mark.parametrize("bias", [False, True])
    @pytest.mark.parametrize(("kernel", "landmarks"), [("linear", None), (GAUSSIAN, None), (GAUSSIAN, 20)])
    @pytest.mark.parametrize("p", [2.0, 1.5])
    def test_a_row_of_weight_two_in_every_space(self, kernel, landmarks, bias, p):
        x, y = problem()
        x, weight = x.double(), 1.0 + (torch.arange(40) % 5 == 0)
        solver = DualSVM(0.7, kernel, 1e-7, landmarks=landmarks, bias=bias, p=p)
        weighted = solver.fit(x, y, weight=weight).report
        twice = solver.fit(x.repeat_interleave(weight.long(), 0), y.repeat_interleave(weight.long())).report
        if landmarks is None:  # else landmarks are drawn among other rows
            assert weighted.primal == pytest.approx(twice.primal, rel=1e-6)
        assert weighted.converged

    def test_inputs_stay_as_they_are(self):
        x, y = problem()
        x.requires_grad_()
        before = x.detach().clone()
        scorer, _ = DualSVM(kernel=kernels.Gaussian(0.2)).fit(x, y)
        assert torch.equal(x.detach(), before)
        assert x.requires_grad
        assert scorer(x).requires_grad
        assert torch.equal(pickle.loads(pickle.dumps(scorer))(x), scorer(x))

    def test_device(self, device):
        x, y = problem()
        scorer, report = DualSVM(kernel=kernels.Gaussian(0.2)).fit(x.to(device), y.to(device))
        assert report.converged
        assert scorer(x.to(device)).device.type == device.type

    def test_more_classes_than_rows_of_some(self):
        x, y = problem()
        with pytest.warns(UserWarning, match="no row has the label 3, 4"):
            scorer, _ = DualSVM().fit(x, y, num_classes=5)
        assert scorer(x).shape == (40, 5)

    def test_features_of_zeros(self):
        _, y = problem()
        report = DualSVM().fit(torch.zeros(40, 2), y).report
        assert report.primal == pytest.approx(40)
        assert report.gap <= 1e-3


class TestInterrupts:
    def stop(self, monkeypatch, name, calls):
        """Ctrl-C, by a signal, at a call of a function of the package."""
        module, _, function = name.rpartition(".")
        original, count = getattr(importlib.import_module(module), function), itertools.count(1)

        def interrupted(*args, **kwargs):
            if next(count) == calls:
                signal.raise_signal(signal.SIGINT)
            return original(*args, **kwargs)

        monkeypatch.setattr(name, interrupted)

    def test_while_the_gram_matrix_is_computed_there_is_no_best(self, monkeypatch):
        x, y = problem()
        self.stop(monkeypatch, "torch_multiclass.solvers.kernel_space.gram", 1)
        with pytest.raises(KeyboardInterrupt):
            DualSVM(kernel=GAUSSIAN).fit(x, y)

    @pytest.mark.parametrize("calls", [1, 3, 7, 20])
    @pytest.mark.parametrize("computed_by", ["library", "torch"])
    def test_within_a_pass_what_has_been_reached_is_measured(self, monkeypatch, calls, computed_by):
        x, y = naive.mixture(3, 2000, 4, 1.5, torch.Generator().manual_seed(0))
        if computed_by == "torch":
            monkeypatch.setattr(_native, "library", lambda: None)
            self.stop(monkeypatch, "torch_multiclass.solvers.svm.duals.project_simplex", calls)
        elif _native.library() is None:
            pytest.skip(_native.backends()["native"])
        else:  # 50 rows a call
            monkeypatch.setattr("torch_multiclass.ops.ascent._WORK", 50 * 4 * 3)
            self.stop(monkeypatch, "torch_multiclass.ops.ascent._pack", calls)
        with pytest.warns(Interrupted, match=r"after \d passes with the gap"):
            scorer, report = DualSVM(0.01, tol=1e-6).fit(x, y)
        assert len(report.history) == 2  # 0, and where the interrupt came
        if calls > 1:
            assert report.history[1].dual > 0
            assert bool(scorer(x).any())
        assert naive_primal(scorer, x, y, 0.01) == pytest.approx(report.primal, rel=1e-6)

    def test_while_it_goes_over_to_double_precision(self, monkeypatch):
        monkeypatch.setattr("torch_multiclass.solvers.svm.machine._STRONG", 1e12)
        x, y = problem(60)
        self.stop(monkeypatch, "torch_multiclass.solvers.kernel_space.gram", 2)
        with pytest.warns(Interrupted):
            scorer, report = DualSVM(1e5, GAUSSIAN).fit(x, y)
        assert report.gap > 0
        assert bool(scorer(x).any())

    def test_a_path_ends_with_it(self, monkeypatch):
        x, y = problem(60)
        self.stop(monkeypatch, "torch_multiclass.solvers.svm.machine.dual_ascent", 2)
        with pytest.warns(Interrupted):
            fits = list(DualSVM(tol=1e-6).path(x, y, [0.1, 1.0, 10.0]))
        assert [fit.report.interrupted for fit in fits] == [False, True]


class TestGroupNorms:
    @pytest.mark.parametrize("p", [1.0, 1.5, 3.0, math.inf])
    @pytest.mark.parametrize("kernel", ["linear", kernels.Gaussian(0.5)], ids=str)
    def test_converges_and_its_primal_is_the_formula(self, p, kernel):
        x, y = problem(20)
        scorer, report = DualSVM(0.5, kernel, 1e-3, p=p).fit(x.double(), y)
        assert report.converged
        norms = scorer.weight.norm(dim=1) if kernel == "linear" else scorer.class_norms()
        losses = tm.functional.crammer_singer_loss(scorer(x.double()), y, reduction="sum")
        expected = 0.5 * naive.group_norm(norms.tolist(), p) ** 2 + 0.5 * float(losses.detach())
        assert expected == pytest.approx(report.primal, rel=1e-5)

    @pytest.mark.parametrize("p", [1.001, 1000.0])
    @pytest.mark.parametrize("kernel", ["linear", kernels.Gaussian(0.5)], ids=str)
    def test_extreme_exponents_are_nearly_their_limits(self, p, kernel):
        """``|w|_inf <= |w|_p <= K^{1/p} |w|_inf`` and ``|w|_p <= |w|_1 <= K^{1 - 1/p} |w|_p``."""
        x, y = problem(60)
        extreme, limit = (DualSVM(0.5, kernel, 1e-3, p=q).fit(x, y).report for q in (p, 1.0 if p < 2 else math.inf))
        assert extreme.converged
        assert limit.converged
        slack = 3 ** (2 * (1 - 1 / p if p < 2 else 1 / p))
        assert limit.dual <= extreme.primal * slack
        assert extreme.dual <= limit.primal * slack

    @pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
    @pytest.mark.parametrize("tied", [False, True])
    def test_the_weight_of_an_image_is_a_slope_of_the_dual_regulariser(self, p, tied):
        """``<w, v> = |v|_q^2 = |w|_p^2``, where several classes share the largest norm too."""
        from torch_multiclass.solvers.gap import GapMonitor
        from torch_multiclass.solvers.space import LinearSpace
        from torch_multiclass.solvers.svm.duals import CrammerSinger

        x, y = problem()
        losses = CrammerSinger(y, 3, torch.full((len(y), 1), 0.5, dtype=torch.float64), None)
        monitor = GapMonitor(LinearSpace(x.double()), losses, 1e-5, p=p)
        image = torch.randn(
            monitor.space.zero(3).shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
        )
        if tied:
            by_class = int(image.shape[0] != 3)
            image.select(by_class, 2).copy_(-image.select(by_class, 0))
            image.select(by_class, 1).mul_(0.1)
        weight = monitor._of_image(image)
        largest = 2 * monitor.regulariser(monitor.space.class_squares(image), monitor.q)
        assert float((weight * image).sum()) == pytest.approx(largest)
        assert 2 * monitor.regulariser(monitor.space.class_squares(weight), p) == pytest.approx(largest)

    def test_p_two_is_the_ordinary_machine(self):
        from torch_multiclass.solvers.gap import GapMonitor
        from torch_multiclass.solvers.space import LinearSpace
        from torch_multiclass.solvers.svm.duals import CrammerSinger
        from torch_multiclass.solvers.svm.group_norm import method_of_multipliers

        x, y = problem()
        monitor = GapMonitor(
            LinearSpace(x.double()), CrammerSinger(y, 3, torch.full((40, 1), 0.5, dtype=torch.float64), None), 1e-5
        )
        monitor.begin()
        monitor.run(method_of_multipliers(monitor))
        assert monitor.done
        report = DualSVM(0.5, tol=1e-6).fit(x, y).report
        assert monitor.certify(monitor.weight)[0] == pytest.approx(report.primal, rel=2e-5)


class TestBadInput:
    def test_arguments(self):
        for bad in (0, -1.0, -math.inf, math.nan):
            with pytest.raises(ValueError, match="C: got"):
                DualSVM(bad)
        with pytest.raises(ValueError, match="tol: got 0"):
            DualSVM(tol=0)
        with pytest.raises(ValueError, match="loss: got 'hinge'"):
            DualSVM(loss="hinge")
        with pytest.raises(ValueError, match=r"p: got 0\.5"):
            DualSVM(p=0.5)
        with pytest.raises(ValueError, match="cost: got a matrix with binary=True"):
            DualSVM(binary=True, cost=[[0, 1], [2, 0]])

    def test_rows(self):
        x, y = problem()
        with pytest.raises(ValueError, match="features: there are no rows"):
            DualSVM().fit(x[:0], y[:0])
        with pytest.raises(ValueError, match="features: there are no rows"):
            DualSVM().fit(x, torch.full_like(y, -100))
        with pytest.raises(ValueError, match="target: every row has the label 1"):
            DualSVM().fit(x, torch.ones_like(y))
        with pytest.raises(ValueError, match="target: every row has the label 1"):
            DualSVM(binary=True).fit(x, torch.ones_like(y))
        x[3, 1] = math.nan
        with pytest.raises(ValueError, match=r"features: row 3 has an entry that is not finite"):
            DualSVM().fit(x, y)
        with pytest.raises(ValueError, match=r"target: label -1 is outside 0\.\.2"):
            DualSVM().fit(torch.zeros(40, 2), y.where(y != 0, -1))
        with pytest.raises(ValueError, match="target: has the labels"):
            DualSVM(binary=True).fit(torch.zeros(40, 2), y)
        with pytest.raises(TypeError, match=r"target: got dtype torch\.float32"):
            DualSVM().fit(torch.zeros(40, 2), y.float())
        with pytest.raises(ValueError, match=r"target: got shape \(39,\)"):
            DualSVM().fit(torch.zeros(40, 2), y[1:])
        with pytest.raises(ValueError, match=r"weight: got shape \(2,\)"):
            DualSVM(weight=[1.0, 2.0]).fit(torch.zeros(40, 2), y)

    def test_a_kernel_that_is_not_definite(self):
        x, y = problem()
        with pytest.raises(ValueError, match="not positive semi-definite"):
            DualSVM(kernel=lambda a, b: torch.tanh(2 * a @ b.T - 3)).fit(x, y)

    def test_a_gram_matrix_that_would_not_fit(self):
        x, y = problem()
        with pytest.raises(
            MemoryError,
            match=r"40 x 40 Gram matrix takes .*or a linear machine on NystromFeatures",
        ):
            DualSVM(kernel=kernels.Gaussian(1.0), memory_limit=1000).fit(x, y)

    @pytest.mark.filterwarnings("ignore:.*ended from the keyboard:torch_multiclass.solvers.Interrupted")
    def test_an_interrupted_fit_returns_the_best_so_far_with_its_gap(self):
        x, y = problem(300, 5, 8)
        seen = []

        def interrupt(step):
            seen.append(step)
            if step.iteration >= 10:
                raise KeyboardInterrupt

        scorer, report = DualSVM(10.0, tol=1e-9, on_step=interrupt).fit(x.double(), y)
        assert report.interrupted
        assert not report.converged
        assert len(report.history) == len(seen)
        assert report.primal == pytest.approx(min(step.primal for step in seen), rel=1e-9)
        assert report.dual == pytest.approx(max(step.dual for step in seen), rel=1e-9)
        assert report.gap > 0
        assert naive_primal(scorer, x, y, 10.0) == pytest.approx(report.primal, rel=1e-6)

    def test_running_out_of_passes_is_said(self):
        x, y = problem(300, 5, 8)
        with pytest.warns(UserWarning, match=r"DualSVM: the gap is .* after 5 passes, above tol=1e-09"):
            assert not DualSVM(10.0, tol=1e-9, max_passes=5).fit(x, y).report.converged


def test_a_growing_path_reaches_the_hard_margin():
    x, y = naive.mixture(3, 60, 4, 8.0, torch.Generator().manual_seed(0))
    solver = DualSVM(tol=1e-5, max_passes=300)
    reports = [report for _, report in solver.path(x, y, [1.0, 1e2, 1e4, 1e6, 1e8])]
    assert all(report.converged for report in reports)
    assert [report.primal for report in reports] == pytest.approx([reports[0].primal] * 5, abs=2e-5)
    assert reports[1].iterations <= 5  # the multipliers of separable rows stay where they are


def test_a_binary_hinge_by_hand():
    hinge = BinaryHinge(torch.tensor([1.0, -1.0, 1.0]), torch.tensor([[1.0], [2.0], [0.5]]))
    beta = torch.tensor([[1.5], [1.0], [-1.0]])
    assert hinge.project(beta).tolist() == [[1.0], [1.0], [0.0]]
    free = hinge.free(hinge.project(beta))
    assert free.tolist() == [[0.0], [1.0], [0.0]]
    assert hinge.project_direction(torch.tensor([[3.0], [4.0], [5.0]]), free).tolist() == [[0.0], [4.0], [0.0]]
    scores = torch.tensor([[0.25], [0.5], [3.0]])
    assert hinge.margins(scores).tolist() == [[0.75], [1.5], [-2.0]]
    assert hinge.loss(hinge.margins(scores)).tolist() == [0.75, 3.0, 0.0]
    assert hinge.adjoint(beta).tolist() == [[-1.5], [1.0], [1.0]]


def test_a_wrong_strength_is_told_of_the_hard_margin():
    with pytest.raises(ValueError, match=r"^C: got 0; accepted is a finite number > 0, or math.inf: a hard margin$"):
        DualSVM(C=0)


def test_an_array_of_one_number_is_no_path():
    with pytest.raises(TypeError, match=r"^Cs: got array\(0.5\); accepted are several numbers > 0"):
        list(DualSVM().path(*problem(20), np.array(0.5)))
