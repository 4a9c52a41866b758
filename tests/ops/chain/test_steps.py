"""The value of a chain in forward mode: the same as ever, with tangents that are the gradient's."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from torch.autograd import forward_ad

from tests.losses.test_structured import LOSSES
from tests.references.drawn import chains, draw_target, leaves, seeds
from torch_multiclass.ops import chain as ops
from torch_multiclass.ops.chain import Chain


@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=20)
@given(chain=chains, seed=seeds)
def test_tangents_are_those_of_the_gradient(name, chain, seed):
    """Forbidden labels and gold, masks, NaN in the padding and open targets included."""
    scores, parts = leaves(chain)
    target = draw_target(scores, seed)
    value = LOSSES[name](scores, target, reduction="none")
    along = [torch.randn_like(part) for part in parts]
    expected = torch.zeros(())
    if value.requires_grad:
        grads = torch.autograd.grad(value.sum(), parts, materialize_grads=True)
        expected = sum((grad * v).sum() for grad, v in zip(grads, along, strict=True))
    with forward_ad.dual_level():
        duals = iter([forward_ad.make_dual(part.detach(), v) for part, v in zip(parts, along, strict=True)])
        kept = {n: next(duals) for n in ("emissions", "transitions", "start", "end") if getattr(scores, n) is not None}
        dual = LOSSES[name](scores._with(**kept), target, reduction="none")
        found, tangent = forward_ad.unpack_dual(dual)
    torch.testing.assert_close(found, value.detach(), rtol=1e-9, atol=1e-9)
    total = torch.zeros(()) if tangent is None else tangent.sum()
    torch.testing.assert_close(total, expected.to(total), rtol=1e-7, atol=1e-7)


def test_derivatives_of_any_order():
    e, moves = torch.randn(2, 3, 2, dtype=torch.float64), torch.randn(2, 2, dtype=torch.float64)

    def total(e):
        return ops.log_partition(Chain.of(e, moves)).sum()

    third = torch.func.jacrev(torch.func.jacrev(torch.func.grad(total)))(e)
    for other in (torch.func.jacfwd(torch.func.hessian(total))(e), torch.func.jacfwd(torch.func.jacfwd(
        torch.func.jacfwd(total)))(e)):  # fmt: skip
        torch.testing.assert_close(other, third)
    v, h = torch.randn_like(e), 1e-5
    ahead, behind = (torch.func.hessian(total)(e + step * v) for step in (h, -h))
    torch.testing.assert_close((third * v).flatten(6).sum(-1), (ahead - behind) / (2 * h), rtol=1e-6, atol=1e-7)


def test_what_a_search_finds_has_no_derivative_under_a_transform():
    e, moves = torch.randn(2, 3, 2), torch.randn(2, 2)
    with pytest.raises(NotImplementedError, match="chain_k_best: has no derivative"):
        torch.func.grad(lambda e: ops.k_best(Chain.of(e, moves), 2)[1].sum())(e)


def test_half_precision_is_computed_in_more():
    e, v = torch.randn(2, 3, 4).bfloat16(), torch.randn(2, 3, 4).bfloat16()
    found, tangent = torch.func.jvp(lambda e: ops.log_partition(Chain.of(e, torch.zeros(4, 4))), (e,), (v,))
    assert found.dtype == tangent.dtype == torch.float32
    torch.testing.assert_close(found, e.float().logsumexp(2).sum(1))
    torch.testing.assert_close(tangent, (e.float().softmax(2) * v.float()).sum((1, 2)))
