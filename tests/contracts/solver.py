"""The suite that every solver of labelled rows passes.

A test class names a solver and how to make one that is exact enough to compare, and inherits everything else::

    class TestMySolver(SolverContract):
        solver, options = tm.solvers.MySolver, {"tol": 1e-9}
"""

import copy
import math
import pickle
import re
import signal
import sys
import warnings

import pytest
import torch

from torch_multiclass.scorers.base import Scorer
from torch_multiclass.solvers import Certificate, Fit, Interrupted, Report, Solver


class SolverContract:
    solver: type
    options: dict = {}
    """What makes fits exact enough to be compared."""
    long: dict = {}
    """What makes a fit of more than a few passes."""
    few = 4
    """Passes that are not enough for it."""
    binary = False
    at_zero = 1.0
    """The loss of a row with the scores 0."""
    certified = True
    after = "1 (passes|rounds)"
    """Where the suite interrupts a fit, as the warning says it."""
    constant = "C"
    """The name of a constant that has to be positive."""
    close = 1e-4
    """How far apart the scores of equal problems may be."""

    # ------------------------------------------------------------------ material
    def make(self, **options):
        return self.solver(**{**self.options, **options})

    def data(self, rows=36, device="cpu", dtype=torch.float64, seed=0):
        generator = torch.Generator().manual_seed(seed)
        target = torch.arange(rows) % (2 if self.binary else 3)
        features = torch.randn(rows, 4, generator=generator).double()
        features[:, :3] += torch.eye(3).double()[target]
        return features.to(device, dtype), target.to(device)

    def same(self, one, other, features):
        torch.testing.assert_close(one.scorer(features), other.scorer(features), rtol=self.close, atol=self.close)
        assert self.reached(one.report) == pytest.approx(self.reached(other.report), rel=self.close)

    def reached(self, report):
        """The number that a fit comes to."""
        return report.primal

    # ------------------------------------------------------------------ what comes back
    def test_gives_a_scorer_and_a_report(self):
        x, y = self.data()
        fit = self.make().fit(x, y)
        scorer, report = fit
        assert isinstance(fit, Fit)
        assert isinstance(scorer, Scorer)
        assert isinstance(report, Report)
        assert isinstance(report, Certificate) == self.certified
        assert (fit.scorer, fit.report) == (scorer, report)
        scores = scorer(x)
        assert scores.shape == (36, 1 if self.binary else 3)
        guess = (scores[:, 0] > 0).long() if self.binary else scores.argmax(1)
        assert float((guess == y).double().mean()) > 0.6
        assert not report.interrupted
        assert report.iterations > 0
        assert 0 <= report.seconds < 60

    def test_is_a_solver_that_shows_itself(self):
        solver = self.make()
        assert isinstance(solver, Solver)
        assert repr(solver).startswith(f"{self.solver.__name__}(")
        x, y = self.data()
        for twin in (copy.deepcopy(solver), pickle.loads(pickle.dumps(solver))):
            assert torch.equal(twin.fit(x, y).scorer(x), solver.fit(x, y).scorer(x))

    def test_copies_of_a_fit(self):
        x, y = self.data()
        fit = self.make().fit(x, y)
        for twin in (copy.deepcopy(fit), pickle.loads(pickle.dumps(fit))):
            assert type(twin) is Fit
            assert torch.equal(twin.scorer(x), fit.scorer(x))
            assert self.reached(twin.report) == self.reached(fit.report)

    def test_the_scorer_can_be_trained_on(self):
        x, y = self.data()
        with torch.no_grad():
            scorer = self.make().fit(x, y).scorer
        scorer(x).sum().backward()
        assert all(p.grad is not None for p in scorer.parameters())

    def test_the_scorer_saves_and_loads(self):
        x, y = self.data()
        first, second = (self.make().fit(x, y).scorer for _ in range(2))
        second.load_state_dict(first.state_dict(), strict=True)
        assert torch.equal(first(x), second(x))

    # ------------------------------------------------------------------ repeats
    def test_fits_repeat_and_leave_the_global_generator_alone(self):
        x, y = self.data()
        state = torch.get_rng_state()
        first = self.make().fit(x, y)
        assert torch.equal(torch.get_rng_state(), state)
        torch.manual_seed(1)
        solver = self.make()
        for _ in range(2):
            assert torch.equal(solver.fit(x, y).scorer(x), first.scorer(x))

    def test_inputs_stay_as_they_are(self):
        x, y = self.data()
        x.requires_grad_()
        weight = torch.rand(36) + 0.5
        before = x.detach().clone(), y.clone(), weight.clone()
        self.make().fit(x, y, weight=weight)
        assert all(torch.equal(a.detach(), b) for a, b in zip((x, y, weight), before, strict=True))
        assert x.requires_grad
        assert x.grad is None

    def test_strides_and_integer_types_do_not_matter(self):
        x, y = self.data()
        first = self.make().fit(x, y)
        for kind in (torch.int8, torch.int32):
            assert torch.equal(self.make().fit(x, y.to(kind)).scorer(x), first.scorer(x))
        self.same(self.make().fit(x.mT.contiguous().mT, y), first, x)

    # ------------------------------------------------------------------ row weights
    def test_a_weight_of_two_is_the_row_twice(self):
        x, y = self.data()
        weight = torch.ones(36).index_fill(0, torch.arange(0, 36, 3), 2)
        twice = torch.cat([x, x[::3]]), torch.cat([y, y[::3]])
        self.same(self.make().fit(x, y, weight=weight), self.make().fit(*twice), x)

    def test_any_whole_weight_is_as_many_rows(self):
        x, y = self.data()
        weight = torch.arange(36) % 4
        many = x.repeat_interleave(weight, 0), y.repeat_interleave(weight)
        self.same(self.make().fit(x, y, weight=weight), self.make().fit(*many), x)

    def test_a_weight_of_zero_leaves_the_row_out(self):
        x, y = self.data()
        weight = torch.ones(36)
        weight[30:] = 0
        x[33] = math.nan
        assert torch.equal(
            self.make().fit(x, y, weight=weight).scorer(x[:9]), self.make().fit(x[:30], y[:30]).scorer(x[:9])
        )

    def test_weights_of_one_are_none(self):
        x, y = self.data()
        expected = self.make().fit(x, y).scorer(x)
        for weight in ([1.0] * 36, [1] * 36, torch.ones(36).half(), torch.ones(36, dtype=torch.long), x.new_ones(36)):
            assert torch.equal(self.make().fit(x, y, weight=weight).scorer(x), expected)

    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            ([-1.0] + [1.0] * 35, "weight: has the entry -1; accepted are 0 and numbers"),
            ([math.nan] + [1.0] * 35, "weight: has the entry nan"),
            ([math.inf] + [1.0] * 35, "weight: has the entry inf"),
            ([1.0] * 35, r"weight: got shape \(35,\); accepted is \(36,\), one number for each row"),
            (torch.ones(36, 1), r"weight: got shape \(36, 1\)"),
            ("balanced", "weight: got 'balanced'; accepted is one number >= 0 for each row"),
            (2.0, r"weight: got 2\.0"),
            (torch.ones(36, dtype=torch.bool), r"weight: got dtype torch\.bool"),
            (torch.ones(36, device="meta"), "weight: is on meta"),
            ([0.0] * 36, "features: there are no rows"),
        ],
    )
    def test_weights_that_are_none_are_named(self, weight, message):
        x, y = self.data()
        with pytest.raises((TypeError, ValueError), match=message):
            self.make().fit(x, y, weight=weight)

    # ------------------------------------------------------------------ rows without a label
    def test_rows_without_a_label_are_left_out(self):
        x, y = self.data()
        marked = torch.cat([torch.full((3,), -100), y, torch.full((2,), -100)])
        wide = torch.cat([torch.full((3, 4), math.nan).double(), x, torch.full((2, 4), 9.0).double()])
        weight = torch.cat([torch.full((3,), math.nan), torch.ones(38)])
        expected = self.make().fit(x, y)
        for given in (None, weight):
            fit = self.make().fit(wide, marked, weight=given)
            assert torch.equal(fit.scorer(x), expected.scorer(x))
            if self.certified:
                assert torch.equal(fit.report.support, expected.report.support + 3)

    # ------------------------------------------------------------------ dtypes and devices
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
    def test_the_scorer_has_the_dtype_of_the_features(self, dtype, device):
        x, y = self.data(device=device, dtype=dtype)
        options = {"tol": 1e-3} if self.certified else {}
        scorer = self.make(**options).fit(x, y).scorer
        scores = scorer(x)
        assert scores.dtype == torch.promote_types(dtype, torch.float32)
        assert scores.device.type == torch.device(device).type
        assert bool(scores.isfinite().all())

    # ------------------------------------------------------------------ bias
    def test_a_bias_is_a_constant_feature(self):
        x, y = self.data()
        constant = torch.cat([x, torch.ones(36, 1).double()], 1)
        fit, explicit = self.make(bias=True).fit(x, y), self.make().fit(constant, y)
        assert fit.scorer.bias is not None
        assert explicit.scorer.bias is None
        torch.testing.assert_close(fit.scorer(x), explicit.scorer(constant), rtol=self.close, atol=self.close)

    # ------------------------------------------------------------------ endings
    def stopped(self, monkeypatch, after):
        """Ctrl-C, by a signal, as soon as so many passes are done."""
        steps = self.solver.steps

        def interrupted(solver, problem, monitor):
            for number, _ in enumerate(steps(solver, problem, monitor)):
                if number == after:
                    signal.raise_signal(signal.SIGINT)
                yield

        monkeypatch.setattr(self.solver, "steps", interrupted)

    def test_an_interrupted_fit_keeps_what_it_has(self, monkeypatch):
        x, y = self.data(300)
        self.stopped(monkeypatch, 1)
        words = f"{self.solver.__name__}: ended from the keyboard after {self.after}"
        line = sys._getframe().f_lineno + 2
        with pytest.warns(Interrupted, match=words) as seen:
            scorer, report = self.make(**self.long).fit(x, y)
        assert (seen[0].filename, seen[0].lineno) == (__file__, line)
        assert "\n" not in str(seen[0].message)
        assert report.interrupted
        assert report.iterations > 0
        assert float(scorer(x).detach().abs().max()) > 0
        if self.certified:
            assert report.converged == (report.gap <= self.make(**self.long).tol)
            assert report.dual <= report.primal < math.inf

    def test_a_loop_can_end_with_an_interrupted_fit(self, monkeypatch):
        x, y = self.data(300)
        self.stopped(monkeypatch, 1)
        done = []

        def loop():
            for _ in range(3):
                done.append(self.make(**self.long).fit(x, y))

        with warnings.catch_warnings():
            warnings.simplefilter("error", Interrupted)
            with pytest.raises(Interrupted):
                loop()
        assert not done

    def test_a_second_interrupt_propagates(self, monkeypatch):
        x, y = self.data(300)
        self.stopped(monkeypatch, 1)
        monkeypatch.setattr(self.solver, "report", lambda *_: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            self.make(**self.long).fit(x, y)

    def test_progress_is_silent_unless_asked_for(self, capsys):
        x, y = self.data()
        self.make().fit(x, y)
        self.make(progress=False).fit(x, y)
        assert capsys.readouterr() == ("", "")
        self.make(progress=True).fit(x, y)
        out, err = capsys.readouterr()
        assert out == ""
        assert re.match(rf"{self.solver.__name__}: \d+ s, pass \d+", err.splitlines()[-1])

    def test_progress_on_a_terminal_is_for_long_fits(self, capsys, monkeypatch):
        x, y = self.data()
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        self.make().fit(x, y)
        assert capsys.readouterr().err == ""
        monkeypatch.setattr("torch_multiclass.solvers.monitor._PATIENCE", 0.0)
        self.make(progress=False).fit(x, y)
        assert capsys.readouterr().err == ""
        self.make().fit(x, y)
        line = capsys.readouterr().err
        assert line.count("\n") == 1
        assert line.count("\r") >= 1

    # ------------------------------------------------------------------ bad input
    def test_rows_that_are_none(self):
        x, y = self.data()
        for rows, labels in ((x[:0], y[:0]), (x, torch.full_like(y, -100))):
            with pytest.raises(ValueError, match="features: there are no rows"):
                self.make().fit(rows, labels)

    def test_one_class(self):
        x, y = self.data()
        with pytest.raises(ValueError, match="target: every row has the label 1; accepted are at least two classes"):
            self.make().fit(x, torch.ones_like(y))

    @pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
    def test_sparse_features_fit_as_dense_ones_or_are_refused_by_layout(self):
        x, y = self.data()
        try:
            scorer = self.make().fit(x.to_sparse(), y).scorer
        except (TypeError, ValueError) as error:
            assert str(error).startswith("features: got a tensor of layout torch.sparse_coo")  # noqa: PT017
        else:
            assert all(part.isfinite().all() for part in scorer.parameters())

    def test_features_that_are_none(self):
        x, y = self.data()
        for bad, message in (
            (x[:, 0], r"features: got shape \(36,\); accepted is \(N, D\)"),
            (x[None], r"features: got shape \(1, 36, 4\)"),
            (x[:, :0], r"features: got shape \(36, 0\)"),
            (x.long(), r"features: got dtype torch\.int64"),
            (x.to(torch.complex64), r"features: got dtype torch\.complex64"),
            (x.numpy(), "features: got ndarray; accepted is a torch.Tensor"),
            (x.to("meta"), r"(features|target): (are|is) on"),
        ):
            with pytest.raises((TypeError, ValueError), match=message):
                self.make().fit(bad, y)
        with pytest.raises(ValueError, match="features: are on the meta device"):
            self.make().fit(x.to("meta"), y.to("meta"))

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_features_that_are_not_finite_are_named_by_their_row(self, bad):
        x, y = self.data()
        x[7, 1] = bad
        y[2] = -100
        with pytest.raises(ValueError, match="features: row 7 has an entry that is not finite"):
            self.make().fit(x, y)

    def test_targets_that_are_none(self):
        x, y = self.data()
        for bad, message in (
            (y.double(), r"target: got dtype torch\.float64"),
            (y > 0, r"target: got dtype torch\.bool"),
            (y[1:], r"target: got shape \(35,\); accepted is \(36,\), one label a row"),
            (y[:, None], r"target: got shape \(36, 1\)"),
            (y.tolist(), "target: got list; accepted is a torch.Tensor"),
            (y - 3, "target: (label -3|has the labels)"),
        ):
            with pytest.raises((TypeError, ValueError), match=message):
                self.make().fit(x, bad)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"C": 0}, "C: got 0"),
            ({"C": math.nan}, "C: got nan"),
            ({"C": "1"}, "C: got '1'"),
            ({"bias": "yes"}, "bias: got 'yes'"),
            ({"bias": 1}, "bias: got 1"),
            ({"progress": "yes"}, "progress: got 'yes'; accepted is None, True or False"),
        ],
    )
    def test_options_that_are_none(self, options, message):
        if self.constant != "C" and "C" in options:
            options, message = {self.constant: options["C"]}, message.replace("C:", f"{self.constant}:")
        with pytest.raises((TypeError, ValueError), match=message):
            self.make(**options)


class CertifiedContract(SolverContract):
    """What comes on top where a gap proves the answer."""

    def test_the_history_tells_of_the_best(self):
        x, y = self.data(100)
        report = self.make().fit(x, y).report
        steps = report.history
        assert [s.iteration for s in steps] == sorted(s.iteration for s in steps)
        assert [s.seconds for s in steps] == sorted(s.seconds for s in steps)
        assert steps[-1].iteration <= report.iterations
        assert report.primal == pytest.approx(min(s.primal for s in steps), rel=1e-6)
        assert report.dual == pytest.approx(max(s.dual for s in steps), rel=1e-6)

    @pytest.mark.parametrize("C", [1e-30, 1e-9, 1e-4, 0.1, 1.0])
    @pytest.mark.parametrize("scale", [1e-2, 1.0])
    def test_never_worse_than_the_zero_scorer(self, C, scale):
        x, y = self.data(6)
        for tol in (1e-3, 1e-6):
            report = self.make(C=C, tol=tol).fit(scale * x.float(), y).report
            assert report.primal <= 6 * C * self.at_zero * (1 + 1e-9)

    @pytest.mark.parametrize("C", [1e-2, 1e-4, 1e-8, 1e-15])
    @pytest.mark.parametrize("scale", [0.1, 1.0])
    def test_weak_losses_are_minimised_too(self, C, scale):
        """Where all objectives are below the tolerance, it is relative to that of the zero scorer."""
        x, y = scale * torch.eye(2), torch.tensor([0, 1])
        scorer, report = self.make(C=C, tol=1e-3).fit(x, y)
        scores = scorer(x)
        guess = (scores[:, 0] > 0).long() if self.binary else scores.argmax(1)
        assert torch.equal(guess, y)
        assert report.primal - report.dual <= 1e-3 * report.history[0].primal

    def test_rows_that_nothing_tells_apart(self):
        """The zero scorer is the optimum, and nothing is said about it."""
        for x in (torch.ones(6, 2), torch.zeros(6, 2)):
            scorer, report = self.make(tol=1e-3).fit(x, torch.arange(6) % 2)
            assert report.primal == pytest.approx(6 * self.at_zero if self.binary else 6)
            assert float(scorer(x).detach().abs().max()) < 1e-3

    def test_running_out_of_passes_is_said_of_the_line_that_called(self):
        x, y = self.data(300)
        line = sys._getframe().f_lineno + 2
        with pytest.warns(UserWarning, match=r"the gap is .* after \d passes, above tol=1e-12") as seen:
            scorer, report = self.make(**{**self.long, "tol": 1e-12, "max_passes": self.few}).fit(x, y)
        assert (seen[0].filename, seen[0].lineno) == (__file__, line)
        assert "\n" not in str(seen[0].message)
        assert not report.converged
        assert bool(scorer(x).any())

    def test_a_warm_start(self):
        x, y = self.data(100)
        solver = self.make()
        first = solver.fit(x, y)
        for start in (first, first.report):
            again = solver.fit(x, y, warm_start=start)
            assert again.report.iterations == 0
            assert again.report.primal <= first.report.primal * (1 + 1e-9)
        marked = torch.cat([x[:1], x]), torch.cat([torch.tensor([-100]), y])
        with pytest.raises(ValueError, match=r"warm_start: is of 100 rows and . outputs, but this fit has 101"):
            solver.fit(*marked, warm_start=first)
        with pytest.raises(TypeError, match=r"warm_start: got float; accepted is a Fit or its Report"):
            solver.fit(x, y, warm_start=0.5)

    def test_multipliers_belong_to_the_rows_given(self):
        """``sum_i alpha_i x_i`` over the support is the linear machine's weight at the optimum."""
        x, y = self.data()
        y[5] = -100
        scorer, report = self.make(tol=1e-10).fit(x, y)
        assert 5 not in report.support.tolist()
        torch.testing.assert_close(report.alpha.mT @ x[report.support], scorer.weight.detach(), rtol=1e-3, atol=1e-3)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"tol": 0}, "tol: got 0"),
            ({"tol": math.nan}, "tol: got nan"),
            ({"max_passes": 0}, "max_passes: got 0"),
            ({"memory_limit": -1}, "memory_limit: got -1"),
            ({"on_step": 3}, "on_step: got 3"),
            ({"kernel": "rbf"}, "kernel: got 'rbf'"),
        ],
    )
    def test_options_of_certified_solvers(self, options, message):
        with pytest.raises((TypeError, ValueError), match=message):
            self.make(**options)
