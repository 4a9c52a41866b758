"""Targets that leave labels open: where values can be read, and where they cannot."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings

from tests.losses.test_structured import LOSSES
from tests.references.drawn import chains, draw_chain, draw_target, leaves, seeds
from torch_multiclass.ops import chain as ops
from torch_multiclass.ops.chain import operators, partial


@pytest.fixture
def unread(monkeypatch):
    """As on a GPU: both recursions run side by side."""
    monkeypatch.setattr(partial, "readable", lambda chain: False)


@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=15)
@given(chain=chains, seed=seeds)
def test_both_ways_are_one(unread, name, chain, seed):
    values, grads = [], []
    for read in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(partial, "readable", lambda chain, read=read: read)
            scores, parts = leaves(chain)
            value = LOSSES[name](scores, draw_target(scores, seed), reduction="none", validate_args=False)
            grads.append(torch.autograd.grad(value.sum(), parts, allow_unused=True) if value.requires_grad else ())
            values.append(value.detach())
    torch.testing.assert_close(*values, rtol=1e-11, atol=1e-9)
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("read", [True, False])
@pytest.mark.parametrize("per_step", [True, False])
def test_derivatives(monkeypatch, read, per_step):
    monkeypatch.setattr(partial, "readable", lambda chain: read)
    scores, parts = leaves(draw_chain(3, (3,), 4, 3, ends="rows", per_step=per_step, masking="lengths"))
    target = draw_target(scores, 3, 0.4)
    target[0] = 0  # a sequence that is observed throughout
    chain = ops.Chain.of(*(p.detach().nan_to_num(0, 0, 0) for p in parts), scores.lengths)
    allowed = (target.unsqueeze(2) == torch.arange(3)) | (target.unsqueeze(2) < 0)

    def value(*given):
        return ops.negative_log_likelihood(ops.Chain(*given, chain.lengths), allowed)

    given = [part.requires_grad_() for part in chain[:4]]
    assert torch.autograd.gradcheck(value, given)
    assert torch.autograd.gradgradcheck(value, given)


@pytest.mark.parametrize("read", [True, False])
def test_a_row_depends_on_no_other_row(monkeypatch, read):
    monkeypatch.setattr(partial, "readable", lambda chain: read)
    chain = ops.Chain.of(torch.randn(3, 9, 4) + 50, torch.randn(4, 4))
    labels = torch.randint(4, (3, 9))
    allowed = labels.unsqueeze(2) == torch.arange(4)
    allowed[1, 2:5] = True
    together = ops.negative_log_likelihood(chain, allowed)
    alone = [ops.negative_log_likelihood(chain.rows(torch.tensor([b])), allowed[b : b + 1]) for b in range(3)]
    assert torch.equal(together, torch.cat(alone))
    if read:  # what is observed throughout is computed as if nothing were open anywhere
        assert torch.equal(together[::2], ops.negative_log_likelihood(chain, labels)[::2])


@pytest.mark.parametrize("read", [True, False])
def test_nothing_agrees_and_nothing_else_does(monkeypatch, read):
    monkeypatch.setattr(partial, "readable", lambda chain: read)
    emissions = torch.randn(3, 3, 2).requires_grad_()
    moves = torch.tensor([[0.0, -torch.inf], [0.0, 0.0]])
    allowed = torch.ones(3, 3, 2, dtype=torch.bool)
    allowed[0, 0, 1] = allowed[0, 1, 0] = False  # 0 before 1, which is forbidden
    allowed[1, 1] = False  # no label at all
    value = ops.negative_log_likelihood(ops.Chain.of(emissions, moves), allowed)
    assert value.tolist() == [torch.inf, torch.inf, 0.0]
    assert not torch.autograd.grad(value.sum(), emissions)[0].any()


def test_they_are_operators():
    e, moves, start, end = torch.randn(2, 4, 3), torch.randn(3, 3), torch.randn(3), torch.randn(2, 3)
    parts = [p.requires_grad_() for p in (e, moves, start, end)]
    allowed = torch.rand(2, 4, 3) < 0.8
    lengths, costs = torch.tensor([4, 2]), torch.randint(3, (2, 4, 3))
    torch.library.opcheck(operators.value, (*parts, lengths, allowed, "auto"))
    torch.library.opcheck(operators.best_labels, (*parts, lengths, allowed))
    torch.library.opcheck(operators.slack_labels, (*parts, lengths, costs, 2, allowed))
    for sets in (None, allowed):
        given = tuple(p.detach() for p in parts)
        torch.library.opcheck(operators.slack_search, (*given, lengths, costs.float(), sets))
