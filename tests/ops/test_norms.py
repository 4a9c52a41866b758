"""Group norms and their proximal step."""

import math
from unittest import mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torch_multiclass.ops import norms
from torch_multiclass.ops.norms import dual_exponent, group_norm, shrink_group_norm, shrink_group_norm_slope

norm_vectors = st.lists(st.floats(0, 10), min_size=1, max_size=6).filter(lambda v: max(v) > 1e-3)


@given(drawn=norm_vectors, weight=st.floats(0.01, 20), p=st.sampled_from([1.0, 1.2, 1.5, 2.0, 3.0, 8.0, math.inf]))
def test_shrinking_a_group_norm_satisfies_moreau(drawn, weight, p):
    """``r - u`` must be ``weight`` times a sub-gradient of half the squared norm at ``u``: its dual norm is
    ``weight N(u)`` and its product with ``u`` is ``weight N(u)^2``."""
    r = torch.tensor(drawn, dtype=torch.float64)
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
    one = torch.tensor([1.0, 2.0, 3.0])
    assert float(group_norm(one, 1)) == 6
    assert float(group_norm(one, math.inf)) == 3
    assert [dual_exponent(p) for p in (1, 3, math.inf)] == [math.inf, 1.5, 1.0]
    with pytest.raises(ValueError, match=r"p: got 0\.5"):
        group_norm(one, 0.5)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, math.inf])
def test_nothing_stays_nothing(p):
    nothing, one = torch.zeros(3), torch.tensor([1.0, 0.0])
    assert float(group_norm(nothing, p)) == 0
    assert torch.equal(shrink_group_norm(nothing, 0.5, p), nothing)
    torch.testing.assert_close(shrink_group_norm(one, 0.5, p), one / 1.5)


@pytest.mark.parametrize("p", [1.2, 1.5, 2.5, 3.0, 8.0])
@pytest.mark.parametrize("weight", [1e-3, 0.05, 1.0, 20.0, 1e3])
def test_norms_given_their_size(p, weight):
    """Roots of ``u + weight N^{2-p} u^{p-1} = r``, and of the one ``N`` that is the norm of its roots the minimiser."""
    r, sizes = torch.tensor([3.0, 0.4, 2.0, 2.9], dtype=torch.float64), torch.tensor([0.5, 1.0, 4.0]).double()
    roots = norms._norms_given(sizes, r, weight, p)
    torch.testing.assert_close(
        roots + weight * sizes[:, None] ** (2 - p) * roots ** (p - 1), r.expand(3, -1), rtol=1e-6, atol=1e-8
    )
    for polish in (0, 3):
        with mock.patch.object(norms, "_POLISH", polish):
            u = shrink_group_norm(r, weight, p)
        error = u + weight * group_norm(u, p) ** (2 - p) * u ** (p - 1) - r
        found_to = 2 * weight * float(group_norm(r, p)) / 64**2  # the grid of sizes, twice refined
        assert float(error.abs().max()) < (1e-9 if polish else found_to)


@pytest.mark.parametrize("weight", [0.05, 1.0, 20.0])
def test_a_sum_of_norms_is_shrunk_until_it_agrees_with_itself(weight):
    r = torch.tensor([3.0, 0.4, 2.0, 2.9, 0.05], dtype=torch.float64)
    u = norms._shrink_sum(r, weight)
    torch.testing.assert_close(u, (r - weight * u.sum()).clamp(min=0))
