"""The value keeps its gradient until it is asked for: however it is asked for, it is the same one."""

from unittest import mock

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import torch_multiclass as tm
from torch_multiclass.ops.chain import native

LABELS = torch.tensor([[0, 1, 2, 3, 0, 1], [3, 2, 1, 0, -100, -100], [0, 0, 0, -100, -100, -100]])
MASK = LABELS >= 0


def drawn(dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    shapes = (3, 6, 4), (4, 4), (4,), (4,)
    return [torch.randn(shape, generator=generator).to(dtype).requires_grad_() for shape in shapes]


def losses(emissions, transitions, start, end):
    scores = tm.ChainScores(emissions, transitions, start=start, end=end, mask=MASK)
    return tm.functional.crf_loss(scores, LABELS, reduction="none")


def exact(weights, parts=None):
    """The gradient of the weighted sum in float64 log space, by autograd through every step."""
    wide = [part.detach().double().requires_grad_() for part in (parts or drawn())]
    emissions, transitions, start, end = wide
    total = torch.zeros((), dtype=torch.float64)
    for b, weight in enumerate(weights):
        n = int(MASK[b].sum())
        alpha, gold = start + emissions[b, 0], start[LABELS[b, 0]] + emissions[b, 0, LABELS[b, 0]]
        for t in range(1, n):
            alpha = torch.logsumexp(alpha[:, None] + transitions, 0) + emissions[b, t]
            gold = gold + transitions[LABELS[b, t - 1], LABELS[b, t]] + emissions[b, t, LABELS[b, t]]
        total = total + float(weight) * (torch.logsumexp(alpha + end, 0) - gold - end[LABELS[b, n - 1]])
    return torch.autograd.grad(total, wide)


def same(found, wanted, tolerance=2e-6):
    for part, own in zip(found, wanted, strict=True):
        torch.testing.assert_close(part.double(), own, rtol=0, atol=tolerance * max(1.0, float(own.abs().max())))


@pytest.mark.parametrize("weights", [(1, 1, 1), (2.5, 2.5, 2.5), (1, 0, -3)])
def test_backward_twice(weights):
    parts = drawn()
    value = (losses(*parts) * torch.tensor(weights)).sum()
    for kept in (True, True, False):
        same(torch.autograd.grad(value, parts, retain_graph=kept), exact(weights))
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(value, parts)


def test_a_value_that_is_used_twice():
    parts = drawn()
    value = losses(*parts)
    (value.sum() + (value * torch.tensor([0.0, 1.0, 2.0])).sum()).backward()
    same([part.grad for part in parts], exact((1, 2, 3)))


def test_a_graph_of_the_gradient_after_a_plain_gradient_and_before():
    parts = drawn(torch.float64)
    value = losses(*parts).sum()
    plain = torch.autograd.grad(value, parts, retain_graph=True)
    first = torch.autograd.grad(value, parts, create_graph=True)
    same(first, plain, 1e-12)
    same(torch.autograd.grad(value, parts, retain_graph=True), plain, 1e-12)
    second = torch.autograd.grad(first[0].square().sum(), parts)
    wide = [part.detach().requires_grad_() for part in parts]
    assert torch.autograd.gradgradcheck(lambda *p: losses(*p).sum(), wide)
    assert all(bool(part.isfinite().all()) and float(part.abs().max()) > 0 for part in second)


@pytest.mark.parametrize("changed", range(4))
def test_what_is_changed_before_backward_is_an_error(changed):
    parts = drawn()
    owned = [part * 1 for part in parts]
    value = losses(*owned).sum()
    with torch.no_grad():
        owned[changed].add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        value.backward()


def test_a_changed_gradient_changes_no_other_and_not_the_next():
    parts = drawn()
    value = losses(*parts).sum()
    first = torch.autograd.grad(value, parts, retain_graph=True)
    for part in first:
        before = [other.clone() for other in first]
        part.zero_()
        assert all(torch.equal(a, b) for a, b in zip(first, before, strict=True) if a is not part)
    same(torch.autograd.grad(value, parts), exact((1, 1, 1)))


@pytest.mark.parametrize("reentrant", [True, False])
def test_under_a_checkpoint(reentrant):
    parts = drawn()
    checkpoint(losses, *parts, use_reentrant=reentrant).sum().backward()
    same([part.grad for part in parts], exact((1, 1, 1)))


def test_hooks_see_and_change_gradients():
    parts, seen = drawn(), []
    for part in parts:
        part.register_hook(lambda grad: grad * 2)
        part.register_post_accumulate_grad_hook(lambda part: seen.append(part.grad.clone()))
    value = losses(*parts)
    value.register_hook(lambda grad: grad * torch.tensor([1.0, 0.0, 3.0]))
    value.sum().backward()
    same([part.grad / 2 for part in parts], exact((1, 0, 3)))
    assert len(seen) == 4


def test_saved_tensors_may_be_packed():
    parts = drawn()
    with torch.autograd.graph.saved_tensors_hooks(lambda part: part.clone(), lambda part: part):
        value = losses(*parts).sum()
    value.backward()
    same([part.grad for part in parts], exact((1, 1, 1)))


def test_a_jacobian_at_once():
    parts = tuple(drawn())
    rows = torch.autograd.functional.jacobian(losses, parts, vectorize=True)
    for b in range(3):
        same([part[b] for part in rows], exact([float(b == row) for row in range(3)]))


def test_gradients_for_some_parts_only():
    parts = drawn()
    some = [part if i in (1, 3) else part.detach() for i, part in enumerate(parts)]
    losses(*some).sum().backward()
    wanted = exact((1, 1, 1))
    same([parts[1].grad, parts[3].grad], [wanted[1], wanted[3]])
    assert parts[0].grad is None
    assert parts[2].grad is None


def test_no_gradient_is_computed_where_none_is_recorded(computed_by):
    parts = drawn()
    with mock.patch.object(native, "vouched", wraps=native.vouched) as looked:
        for off in (torch.no_grad, torch.inference_mode):
            with off():
                losses(*parts)
        losses(*[part.detach() for part in parts])
        losses(*parts)
    asked = [call.args[2] for call in looked.call_args_list]
    assert asked == [False, False, False, True]
