"""Projections satisfy their optimality conditions."""

from unittest import mock

import torch
from hypothesis import given
from hypothesis import strategies as st

from torch_multiclass.ops.simplex import project_coupled_box, project_simplex

rows = st.lists(st.lists(st.floats(-20, 20), min_size=3, max_size=3), min_size=1, max_size=4)


@given(rows=rows, total=st.floats(0.1, 10), start=st.floats(-30, 30))
def test_projection_onto_the_simplex_satisfies_its_conditions(rows, total, start):
    v = torch.tensor(rows, dtype=torch.float64)
    totals = torch.full((len(v), 1), total, dtype=torch.float64)
    for begin in (None, torch.full_like(totals, start)):
        b, threshold = project_simplex(v, totals, begin)
        torch.testing.assert_close(b.sum(1, keepdim=True), totals, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(b, (v - threshold).clamp_min(0))


@given(rows=rows, upper=st.floats(0.1, 10), offset=st.floats(0, 1))
def test_projection_onto_the_coupled_box_satisfies_its_conditions(rows, upper, offset):
    v = torch.tensor(rows, dtype=torch.float64)
    caps = torch.full((len(v), 1), upper, dtype=torch.float64)
    offsets = caps * offset * v.shape[1]
    b = project_coupled_box(v, caps, offsets)
    shift = b.sum(1, keepdim=True) - offsets
    torch.testing.assert_close(b, torch.minimum((v - shift).clamp_min(0), caps), rtol=1e-7, atol=1e-7)


def test_newton_s_method_is_there_in_a_few_steps():
    """Halves of the bracket alone would take fifty; its ends are roots where nothing moves or everything is full."""
    draw = torch.Generator().manual_seed(0)
    v, caps = (scale * torch.randn(200, 6, generator=draw).double() for scale in (5.0, 2.0))
    caps, offsets = caps.abs(), torch.rand(200, 1, generator=draw).double()
    v[0], v[1] = -100.0, 100.0
    with mock.patch.object(torch, "minimum", wraps=torch.minimum) as asked:
        b = project_coupled_box(v, caps, offsets)
    assert asked.call_count <= 8
    shift = b.sum(1, keepdim=True) - offsets
    torch.testing.assert_close(b, torch.minimum((v - shift).clamp_min(0), caps), rtol=1e-9, atol=1e-9)
