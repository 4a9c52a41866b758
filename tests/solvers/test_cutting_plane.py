"""The shares of planes against their conditions of optimality."""

import numpy as np
import pytest

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
