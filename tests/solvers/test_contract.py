"""The solvers under their common contract."""

import math

import pytest
import torch

from tests.contracts.solver import CertifiedContract, SolverContract
from torch_multiclass.solvers import (
    BinaryLearner,
    BinaryLeastSquares,
    BinaryLogistic,
    CuttingPlane,
    DualSVM,
    FrankWolfe,
    Pegasos,
)


class TestDualSVM(CertifiedContract):
    solver, options, long = DualSVM, {"tol": 1e-9}, {"C": 10.0}


class TestWestonWatkins(CertifiedContract):
    solver, options, long = DualSVM, {"tol": 1e-10, "loss": "weston_watkins"}, {"C": 10.0}
    at_zero = 2.0


class TestGroupNorm(CertifiedContract):
    solver, options, long = DualSVM, {"tol": 1e-9, "p": 1.5}, {"C": 10.0}

    def test_multipliers_belong_to_the_rows_given(self):
        """Their image is the gradient of half the squared norm, not the weight."""


class TestBinaryDualSVM(CertifiedContract):
    solver, options, long, binary = DualSVM, {"tol": 1e-9, "binary": True}, {"C": 10.0}, True


class _Free(CertifiedContract):
    def test_a_bias_is_a_constant_feature(self):
        """A free one is there for nothing: one that is charged beside it stays at 0."""
        x, y = self.data()
        constant = torch.cat([x, torch.ones(36, 1).double()], 1)
        fit, beside = self.make().fit(x, y), self.make().fit(constant, y)
        torch.testing.assert_close(fit.scorer(x), beside.scorer(constant), rtol=self.close, atol=self.close)
        assert float(beside.scorer.weight.detach()[:, -1].abs().max()) < self.close

    @pytest.mark.parametrize("C", [1e-2, 1e-4, 1e-8])  # weaker ones are lost in the rounding of the bias
    @pytest.mark.parametrize("scale", [0.1, 1.0])
    def test_weak_losses_are_minimised_too(self, C, scale):
        super().test_weak_losses_are_minimised_too(C, scale)


class TestFreeBias(_Free):
    solver, options, long = DualSVM, {"tol": 1e-9, "bias": "free"}, {"C": 10.0}


class TestBinaryFreeBias(_Free):
    solver, options, long, binary = DualSVM, {"tol": 1e-9, "binary": True, "bias": "free"}, {"C": 10.0}, True


class TestBinaryLogistic(CertifiedContract):
    solver, options, long, binary = BinaryLogistic, {"tol": 1e-11}, {"C": 1e3}, True
    at_zero = math.log(2)


class TestBinaryLeastSquares(CertifiedContract):
    solver, options, long, binary = BinaryLeastSquares, {"tol": 1e-11}, {}, True

    def test_running_out_of_passes_is_said_of_the_line_that_called(self):
        """One step is exact."""


class TestSquaredHinge(CertifiedContract):
    solver, options, long, binary = BinaryLearner, {"loss": "squared_hinge", "tol": 1e-11}, {"C": 1e3}, True
    few = 1


class TestPegasos(SolverContract):
    """In steps over all rows: where rows are drawn, a weight and a repeated row are equal on average only."""

    solver, options, certified = Pegasos, {"batch_size": 10_000}, False


class TestFrankWolfe(CertifiedContract):
    solver, options, long = FrankWolfe, {"tol": 1e-9}, {"C": 10.0}


class TestCuttingPlane(CertifiedContract):
    solver, options, long = CuttingPlane, {"tol": 1e-9}, {"C": 10.0}
