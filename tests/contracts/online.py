"""The suite that every online learner passes, on top of that of all solvers."""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
import torch

from tests.contracts.solver import SolverContract
from torch_multiclass.solvers import Mistakes

OUT_OF_PASSES = "ignore:.* updates in the last of .* passes:UserWarning"


def compressed(x):
    """Of torch and of SciPy."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR")
        return x.to_sparse_csr(), scipy.sparse.csr_matrix(x.numpy())


class OnlineContract(SolverContract):
    certified = False
    close = 1e-9
    averages = True

    def reached(self, report):
        return report.updates

    def make(self, **options):
        return super().make(**{"max_passes": 20, **options})

    def rows(self, rows=36):
        """Rows with zeros among them, and a row of nothing else."""
        x, y = self.data(rows)
        x = torch.where(x.abs() < 0.5, 0, x)
        x[4] = 0
        return x, y

    # ------------------------------------------------------------------ the report
    def test_the_report_counts(self):
        x, y = self.data()
        report = self.make().fit(x, y).report
        assert isinstance(report, Mistakes)
        assert report.updates == sum(report.mistakes) <= report.preference_updates
        assert report.passes == report.iterations == len(report.mistakes)
        assert report.converged == (report.mistakes[-1] == 0)

    def test_rows_that_nothing_separates_end_with_max_passes_and_a_warning(self):
        x, y = torch.ones(6, 2), torch.arange(6) % 2
        name = self.solver.__name__
        with pytest.warns(UserWarning, match=rf"{name}: \d updates in the last of 7 passes \(max_passes\)"):
            report = self.make(max_passes=7).fit(x, y).report
        assert report.passes == 7
        assert not report.converged
        without_limit = self.solver(**{key: value for key, value in self.options.items() if key != "max_passes"})
        with pytest.warns(UserWarning, match=rf"{name}: \d updates in the last of 100 passes"):
            without_limit.fit(x, y)

    def test_rows_that_are_separated_end_with_a_pass_that_changes_nothing(self):
        x, y = torch.eye(3).repeat(4, 1), torch.arange(12) % 3 % (2 if self.binary else 3)  # two rows of class 0, then
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            report = self.make().fit(x, y).report
        assert report.converged
        assert report.mistakes[-1] == 0
        assert report.passes < 10

    # ------------------------------------------------------------------ row weights
    def test_a_weight_of_two_is_the_row_twice(self):
        """Not here, where the row would be looked at in between: it is a step twice as long."""

    def test_any_whole_weight_is_as_many_rows(self):
        """Likewise."""

    # ------------------------------------------------------------------ features
    def test_compressed_features_are_as_good_as_dense_ones(self):
        x, y = self.rows()
        weight = torch.rand(36, generator=torch.Generator().manual_seed(0))
        weight[3] = 0
        y[7] = -100
        for bias in (False, True):
            dense = self.make(bias=bias).fit(x, y, weight=weight)
            for given in compressed(x):
                fit = self.make(bias=bias).fit(given, y, weight=weight)
                torch.testing.assert_close(fit.scorer.weight, dense.scorer.weight, rtol=1e-12, atol=1e-12)
                assert fit.report.mistakes == dense.report.mistakes

    def test_compressed_features_of_every_kind(self):
        x, y = self.rows()
        dense = self.make().fit(x.float(), y).scorer
        of_torch, of_scipy = compressed(x.float())
        parts = of_torch.crow_indices().int(), of_torch.col_indices().int(), of_torch.values()
        narrow = torch.sparse_csr_tensor(*parts, x.shape, check_invariants=True)
        array = scipy.sparse.csr_array(x.float().numpy())
        array.indices, array.indptr = array.indices.astype(np.int64), array.indptr.astype(np.int64)
        ends = of_scipy.indptr[-1] - of_scipy.indptr[::-1]
        shuffled = scipy.sparse.csr_matrix(  # columns in descending order, each entry as the sum of two
            (np.repeat(of_scipy.data[::-1] / 2, 2), np.repeat(of_scipy.indices[::-1], 2), 2 * ends), of_scipy.shape
        )  # fmt: skip
        halves = scipy.sparse.csr_matrix(
            (np.repeat(of_scipy.data / 2, 2), np.repeat(of_scipy.indices, 2), 2 * of_scipy.indptr), of_scipy.shape
        )
        for given in (of_torch, narrow, array, shuffled[::-1], halves):
            scorer = self.make().fit(given, y).scorer
            assert scorer.weight.dtype == torch.float32
            torch.testing.assert_close(scorer.weight, dense.weight)

    def test_a_single_compressed_feature(self):
        x, y = torch.tensor([[1.0], [-2.0], [0.0]]), torch.tensor([0, 1, 0])
        dense = self.make(bias=True).fit(x, y).scorer
        for given in compressed(x):
            torch.testing.assert_close(self.make(bias=True).fit(given, y).scorer.weight, dense.weight)

    def test_compressed_features_that_are_none(self):
        x, y = self.rows()
        of_torch, of_scipy = compressed(x)
        bad = of_scipy.copy()
        bad.data[bad.indptr[7]] = math.nan
        with pytest.raises(ValueError, match="features: row 7 has an entry that is not finite"):
            self.make().fit(bad, y)
        y[7] = -100
        self.make().fit(bad, y)
        torn = of_scipy.copy()
        torn.indptr = torn.indptr[::-1].copy()
        wide = of_scipy.copy()
        wide.indices = wide.indices + 1
        below = of_scipy.copy()
        below.indices = below.indices - 1
        for given, message in (
            (torn, "features: have offsets of rows that do not ascend from 0 to"),
            (wide, r"features: have a column outside 0\.\.3; accepted are"),
            (below, r"features: have a column outside 0\.\.3; accepted are"),
            (of_scipy.astype(int), r"features: got dtype torch\.int64"),
            (of_scipy.tocsc(), r"features: got csc_matrix; accepted is a torch\.Tensor"),
            (of_scipy[:, :0], r"features: got shape \(36, 0\); accepted is \(N, D\), at least one feature"),
            (of_scipy[:35], r"target: got shape \(36,\); accepted is \(35,\)"),
            (of_torch.cfloat(), r"features: got dtype torch\.complex"),
        ):
            with pytest.raises((TypeError, ValueError), match=message):
                self.make().fit(given, y)

    def test_a_zero_row_is_never_updated(self):
        x, y = self.rows()
        without = torch.arange(36) != 4
        learner = self.make(shuffle=False, **({"averaged": False} if self.averages else {}))
        fit, expected = learner.fit(x, y), learner.fit(x[without], y[without])
        assert torch.equal(fit.scorer.weight, expected.scorer.weight)
        assert fit.report.mistakes == expected.report.mistakes

    # ------------------------------------------------------------------ streams
    def test_a_pass_in_pieces_is_a_pass(self):
        x, y = self.rows()
        weight = torch.rand(36, generator=torch.Generator().manual_seed(0))
        options = {"max_passes": 1, "shuffle": False, "bias": True}
        whole = self.make(**options).fit(x, y, weight=weight)
        for sizes in ([36], [1, 35], [10] * 3 + [6], [1] * 36):
            learner = self.make(**options)
            for rows in torch.arange(36).split(sizes):
                fit = learner.partial_fit(x[rows], y[rows], weight=weight[rows], **self.classes(3))
            assert torch.equal(fit.scorer.weight, whole.scorer.weight)
            assert torch.equal(fit.scorer.bias, whole.scorer.bias)
            assert fit.report.updates == whole.report.updates
            assert fit.report.preference_updates == whole.report.preference_updates
            assert fit.report.passes == len(fit.report.mistakes) == len(sizes)

    def classes(self, number):
        return {} if self.binary else {"num_classes": number}

    def test_a_stream_goes_on_from_where_it_was(self):
        x, y = self.rows()
        learner = self.make()
        first = learner.partial_fit(x, y)
        learner.fit(x[:9], y[:9])  # is something else
        twin, other = copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))
        second = learner.partial_fit(x, y)
        assert second.report.mistakes[0] == first.report.mistakes[0]
        assert len(second.report.mistakes) == 2
        for one in (twin, other):
            assert torch.equal(one.partial_fit(x, y).scorer.weight, second.scorer.weight)
        learner.reset()
        assert torch.equal(learner.partial_fit(x, y).scorer.weight, first.scorer.weight)

    def test_batches_may_lack_rows_and_classes(self):
        x, y = self.rows()
        learner = self.make(shuffle=False, max_passes=1)
        empty = learner.partial_fit(x[:0], y[:0], **self.classes(3))
        assert not empty.scorer.weight.isnan().any()
        for rows in (slice(0), y == 0):
            assert self.make().partial_fit(x[rows], y[rows]).scorer.num_classes == (1 if self.binary else 2)
        learner.partial_fit(x[:5], torch.full((5,), -100))
        for label in y.unique():
            fit = learner.partial_fit(x[y == label], y[y == label])
        order = torch.cat([(y == label).nonzero().squeeze(1) for label in y.unique()])
        expected = self.make(shuffle=False, max_passes=1).fit(x[order], y[order])
        torch.testing.assert_close(fit.scorer.weight, expected.scorer.weight)

    def test_whether_all_rows_had_the_same_step(self):
        x, y = self.rows()
        weight = torch.full((len(x),), 2.0)
        learner = self.make(max_passes=1000)
        assert learner.fit(x, y).report.equal_steps
        assert learner.fit(x, y, weight=weight).report.equal_steps
        assert learner.partial_fit(x[:0], y[:0], **self.classes(3)).report.equal_steps
        assert learner.partial_fit(x, y, weight=weight).report.equal_steps
        assert not learner.partial_fit(x, y).report.equal_steps
        weight[len(x) // 2] = 1.0
        assert not learner.fit(x, y, weight=weight).report.equal_steps

    def test_batches_that_do_not_go_with_the_first_are_named(self):
        x, y = self.rows()
        learner = self.make()
        before = learner.partial_fit(x, y)
        with pytest.raises(ValueError, match=r"features: got 3 a row; accepted are 4, as in the first batch"):
            learner.partial_fit(x[:, :3], y)
        bad = y.clone()
        bad[5] = 2 if self.binary else 3
        with pytest.raises(ValueError, match=r"target: (label 3 is outside 0\.\.2 \(3 classes\)|has the labels)"):
            learner.partial_fit(x, bad)
        if not self.binary:
            with pytest.raises(ValueError, match="num_classes: got 4, but the stream began with 3"):
                learner.partial_fit(x, y, num_classes=4)
        x[5] = math.nan
        with pytest.raises(ValueError, match="features: row 5 has an entry that is not finite"):
            learner.partial_fit(x, y)
        assert torch.equal(learner.partial_fit(x[:0], y[:0]).scorer.weight, before.scorer.weight)
