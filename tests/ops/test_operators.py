"""The operators of torch that captures see, each as torch would have it, and none without its derivative or a word."""

import pytest
import torch

from torch_multiclass.ops import second_order, segments, tree  # whose k best make `first_best`, too
from torch_multiclass.ops.chain import operators as chain


def numbers(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).requires_grad_()


CHAIN = (numbers(2, 4, 3), numbers(3, 3), numbers(3), numbers(3), torch.tensor([4, 2]))
ALONG = (numbers(2, 4, 3), numbers(3, 3), numbers(3), numbers(3))
COSTS = torch.ones(2, 4, 3)
TREE = (numbers(2, 3, 2), numbers(2, 2), torch.tensor([[-1, 0, 0], [-1, 0, 1]]), None)
SEGMENTS = (numbers(2, 3, 2, 2), numbers(2, 2), numbers(2), numbers(2), torch.tensor([3, 2]), [2, 2])
SECOND = (numbers(2, 4, 3), numbers(3, 3), numbers(3, 3, 3), numbers(3), numbers(3), torch.tensor([4, 2]))
CALLS = {
    "chain_value": (chain.value, (*CHAIN, None, "auto")),
    "chain_gradient": (chain.gradient, (numbers(2), *CHAIN, None, "auto")),
    "chain_curvature": (chain.curvature, (numbers(2), *ALONG, *CHAIN, None)),
    "chain_best_labels": (chain.best_labels, (*CHAIN, None)),
    "chain_k_best": (chain.k_best, (*CHAIN, 2)),
    "chain_slack_labels": (chain.slack_labels, (*CHAIN, COSTS.long(), 4, None)),
    "chain_slack_search": (chain.slack_search, (*CHAIN, COSTS, None)),
    "first_best": (torch.ops.torch_multiclass.first_best.default, (torch.randint(3, (2, 4, 3)), numbers(2, 4))),
    "tree_value": (tree.value.value, TREE),
    "tree_gradient": (tree.value.gradient, (numbers(2), *TREE)),
    "tree_best_labels": (tree.best_labels, TREE),
    "segments_value": (segments.value.value, SEGMENTS),
    "segments_gradient": (segments.value.gradient, (numbers(2), *SEGMENTS)),
    "segments_best_labels": (segments.best_labels, SEGMENTS),
    "second_order_value": (second_order.value.value, SECOND),
    "second_order_gradient": (second_order.value.gradient, (numbers(2), *SECOND)),
    "second_order_best_labels": (second_order.best_labels, SECOND),
}


def test_these_are_all():
    known = {name for name in dir(torch.ops.torch_multiclass) if name.endswith(("value", "gradient", "labels"))}
    assert known < set(CALLS)
    for name, (made, _) in CALLS.items():
        assert made is getattr(torch.ops.torch_multiclass, name).default


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("check", ["test_schema", "test_autograd_registration", "test_faketensor"])
def test_it_is_as_torch_would_have_it(name, check):
    made, given = CALLS[name]
    torch.library.opcheck(made, given, test_utils=check)


@pytest.mark.parametrize("name", ["chain_curvature", "chain_k_best", "chain_slack_search"])
def test_where_there_is_no_derivative_it_says_so(name):
    made, given = CALLS[name]
    numbers = [part for part in made(*given) if part.is_floating_point()]
    with pytest.raises(NotImplementedError, match=f"^torch_multiclass::{name}: has no derivative$"):
        numbers[0].sum().backward()


@pytest.mark.parametrize("name", [name for name in CALLS if name.endswith("labels")])
def test_labels_are_followed_by_nobody(name):
    made, given = CALLS[name]
    assert not made(*given).requires_grad
