"""Group norms and their proximal step."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torch_multiclass.ops.norms import dual_exponent, group_norm, shrink_group_norm, shrink_group_norm_slope

norm_vectors = st.lists(st.floats(0, 10), min_size=1, max_size=6).filter(lambda v: max(v) > 1e-3)


@given(norms=norm_vectors, weight=st.floats(0.01, 20), p=st.sampled_from([1.0, 1.2, 1.5, 2.0, 3.0, 8.0, math.inf]))
def test_shrinking_a_group_norm_satisfies_moreau(norms, weight, p):
    """``r - u`` must be ``weight`` times a sub-gradient of half the squared norm at ``u``: its dual norm is
    ``weight N(u)`` and its product with ``u`` is ``weight N(u)^2``."""
    r = torch.tensor(norms, dtype=torch.float64)
    u = shrink_group_norm(r, weight, p)
    assert bool((u >= 0).all())
    assert bool((u <= r + 1e-9).all())
    size, scale = float(group_norm(u, p)), float(r.amax())
    away = (r - u) / weight
    assert float(group_norm(away, dual_exponent(p))) == pytest.approx(size, rel=1e-5, abs=1e-6 * scale)
    assert float((away * u).sum()) == pytest.approx(size**2, rel=1e-5, abs=1e-6 * scale**2)


@pytest.mark.parametrize("p", [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 8.0, math.inf])
@pytest.mark.parametrize("weight", [0.05, 1.0, 20.0])
def test_the_slope_of_shrinking_is_its_derivative(p, weight):
    r = torch.tensor([3.0, 0.4, 2.0, 2.9, 0.05], dtype=torch.float64)
    slope = shrink_group_norm_slope(r, shrink_group_norm(r, weight, p), weight, p)
    for k, move in enumerate(1e-6 * torch.eye(5, dtype=torch.float64)):
        change = (shrink_group_norm(r + move, weight, p) - shrink_group_norm(r - move, weight, p)) / 2e-6
        torch.testing.assert_close(slope[:, k], change, rtol=1e-5, atol=1e-6)


def test_group_norm_of_one_and_infinity():
    norms = torch.tensor([1.0, 2.0, 3.0])
    assert float(group_norm(norms, 1)) == 6
    assert float(group_norm(norms, math.inf)) == 3
    with pytest.raises(ValueError, match=r"p: got 0\.5"):
        group_norm(norms, 0.5)
