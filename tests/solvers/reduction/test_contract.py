"""What every solver promises, of reductions."""

import pytest
import torch

import torch_multiclass as tm
from tests.contracts.solver import SolverContract
from torch_multiclass.solvers import BinaryLogistic, CodedReduction

CODE = tm.codes.one_vs_one(3)


class ReductionContract(SolverContract):
    """The scorer gives the margins of a code; there is no bias but the learner's."""

    solver, certified, after = CodedReduction, False, "1 columns"

    def data(self, rows=36, device="cpu", dtype=torch.float64, seed=0):
        x, y = super().data(rows, device, dtype, seed)
        x[:, :3] += 2 * torch.eye(3, device=x.device, dtype=x.dtype)[y]
        return x, y

    def make(self, **options):
        return _Classes(**{**self.options, **options})

    def reached(self, report):
        """The columns that are done."""
        return report.iterations

    def test_a_bias_is_a_constant_feature(self):
        """It is the learner's."""

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
    def test_the_scorer_has_the_dtype_of_the_features(self, dtype, device):
        x, y = self.data(device=device, dtype=dtype)
        scores = self.make(learner=BinaryLogistic(tol=1e-3)).fit(x, y).scorer(x)
        assert scores.dtype == torch.promote_types(dtype, torch.float32)
        assert bool(scores.isfinite().all())

    def test_options_that_are_none(self):
        for bad, words in (({"jobs": 0}, "jobs: got 0"), ({"progress": "yes"}, "progress: got 'yes'")):
            with pytest.raises((TypeError, ValueError), match=words):
                self.make(**bad)


class _Classes(CodedReduction):
    """Its scorers give the scores of classes, which the suite asks for."""

    def scorer(self, problem, monitor):
        return _Decoded(super().scorer(problem, monitor), self.decoder)


class _Decoded(tm.scorers.Scorer):
    def __init__(self, scorer, decoder):
        super().__init__()
        self.coded, self.decoder = scorer, decoder
        self.in_features, self.num_classes = scorer.in_features, scorer.num_classes

    def forward(self, features):
        return self.decoder.class_scores(self.coded(features))

    def reset_parameters(self):
        super().reset_parameters()


_Classes.__name__ = "CodedReduction"


class TestMulti(ReductionContract):
    options = {"code": CODE, "learner": BinaryLogistic(tol=1e-9)}


class TestSingle(ReductionContract):
    options = {"code": CODE, "learner": BinaryLogistic(tol=1e-9), "call": "single", "interaction": True}

    def test_an_interrupted_fit_keeps_what_it_has(self):
        """It is the learner that is interrupted; see `test_an_unfinished_single_call_is_kept_but_not_resumed`."""

    test_a_loop_can_end_with_an_interrupted_fit = test_an_interrupted_fit_keeps_what_it_has
    test_a_second_interrupt_propagates = test_an_interrupted_fit_keeps_what_it_has

    def test_progress_is_silent_unless_asked_for(self, capsys):
        x, y = self.data()
        self.make().fit(x, y)
        self.make(progress=False).fit(x, y)
        assert capsys.readouterr() == ("", "")
        self.make(progress=True).fit(x, y)
        size, *lines = capsys.readouterr().err.splitlines()
        assert size.startswith("CodedReduction: a single call makes 72 rows of 12 features, 6912 bytes")
        assert all(line.startswith("BinaryLogistic: 0 s, pass") for line in lines)


class TestThreads(ReductionContract):
    options = {"code": CODE, "learner": BinaryLogistic(tol=1e-9), "jobs": 2}
    after = "[123] columns"
