"""The shares of planes against their conditions of optimality."""

import numpy as np
import pytest
import torch

from torch_multiclass.kernels import Polynomial
from torch_multiclass.solvers import CuttingPlane
from torch_multiclass.solvers.cutting_plane import best_shares


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("rank", [1, 2, 6])
def test_shares_are_the_best(seed, rank):
    r = np.random.default_rng(seed)
    planes = r.normal(size=(6, rank)).round(seed % 2)  # whole numbers tie
    products, offsets = planes @ planes.T, r.normal(size=6).round(seed % 3)
    start = r.dirichlet(np.ones(6)) if seed % 4 else np.eye(6)[seed % 6]
    before = start.copy()
    shares = best_shares(products, offsets, start, 1e-9)
    assert (start == before).all()
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1)
    slope = offsets - products @ shares
    size = max(np.abs(products).max(), np.abs(offsets).max())
    assert slope.max() - shares @ slope <= 1e-8 * size  # no plane promises more: it is a maximum
    assert (slope[shares > 1e-6] >= slope.max() - 1e-3 * size).all()


@pytest.mark.parametrize("far", [1e-6, 1.0, 1e6])
def test_two_planes_by_hand(far):
    """Half of the difference of the offsets, in units of how far the planes are apart, and at most all."""
    for gain in (-3.0, -0.5, 0.0, 0.5, 3.0):
        found = best_shares(far * np.eye(2), far * np.array([gain, 0.0]), np.array([0.5, 0.5]), far * 1e-12)
        assert found == pytest.approx([np.clip(0.5 + gain / 2, 0, 1), np.clip(0.5 - gain / 2, 0, 1)], abs=1e-6)


@pytest.mark.parametrize("far", [1e6, 1e16, 1e30])
def test_shares_that_are_small_beside_one(far):
    """A plane far from the plane 0, and one that is it again: ``a = b / |g|^2``, however small."""
    products = far * np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    found = best_shares(products, np.array([0.0, 24.0, 24.0]), np.array([1.0, 0.0, 0.0]), 1e-9)
    assert found[1:].sum() == pytest.approx(24 / far, rel=1e-9)
    assert found[0] == pytest.approx(1 - 24 / far)


def rows_of_three(scale, rows, inputs):
    generator = torch.Generator().manual_seed(0)
    features = scale * torch.randn(rows, inputs, generator=generator)
    return features, torch.arange(rows) % 3


@pytest.mark.parametrize("scale", [1.0, 2e3, 1e5])
def test_large_features_take_their_rounds(scale):
    """As good as rows can be told apart, with entries of a Gram matrix up to 1e20."""
    fit = CuttingPlane(kernel=Polynomial(2), tol=1e-2).fit(*rows_of_three(scale, 12, 4))
    assert fit.report.converged
    assert fit.report.iterations < 200
    assert fit.report.primal - fit.report.dual <= 1e-2 * max(1, fit.report.primal)


def test_few_rows_whose_planes_depend_on_one_another():
    features = torch.tensor([1.2533590, -0.4785092, -0.5537033, 1.5326150, 0.7197012, -2.1215626])[:, None]
    fit = CuttingPlane(kernel=Polynomial(2)).fit(features, torch.tensor([0, 0, 0, 2, 2, 1]))
    assert fit.report.converged
    assert fit.report.iterations < 50


def test_a_fit_that_rounding_holds_ends_and_says_so():
    """Rows that cannot be told apart: ``|w|^2`` is a difference of numbers of 1e17, which hides the rest of the gap."""
    with pytest.warns(UserWarning, match=r"^CuttingPlane: the gap is .* passes, above tol=0.001"):
        fit = CuttingPlane(kernel=Polynomial(2)).fit(*rows_of_three(2e4, 60, 2))
    report = fit.report
    assert report.iterations < 300
    assert report.gap > 1e-3
    assert not report.converged
