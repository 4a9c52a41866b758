"""Whatever is put into a field of scores, or handed to a verb, is refused by name."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import torch_multiclass as tm

RAGGED = [torch.zeros(4, 3), torch.zeros(2, 3)]
ODD = {
    "string": "a",
    "list": [1.0],
    "tuple": (1,),
    "dict": {},
    "array": np.zeros((2, 4, 3)),
    "meta": torch.zeros(2, 4, 3, device="meta"),
    "sparse": torch.zeros(2, 4, 3).to_sparse(),
    "jagged": torch.nested.nested_tensor(RAGGED, layout=torch.jagged),
    "empty": torch.zeros(0),
    "complex": torch.zeros(2, 4, 3, dtype=torch.complex64),
    "float8": torch.zeros(2, 4, 3).to(torch.float8_e4m3fn),
}
EMISSIONS, MOVES, VALUES = torch.randn(2, 4, 3), torch.randn(3, 3), torch.randn(2, 3)
NAMED = (ValueError, TypeError, IndexError)


def refused(name, act):
    with pytest.raises(NAMED, match=rf"^{name}: .*accepted") as caught:
        act()
    assert caught.value.__cause__ is None or isinstance(caught.value.__cause__, Exception)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    "name", ["transitions", "start", "end", "mask", "lengths", "reference", "allowed", "costs", "factor"]
)
def test_fields_of_chains(name, odd):
    refused(name, lambda: tm.ChainScores(**{"emissions": EMISSIONS, "transitions": MOVES, name: ODD[odd]}))


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ["reference", "costs"])
def test_fields_of_flat_scores(name, odd):
    refused(name, lambda: tm.FlatScores(**{"values": VALUES, name: ODD[odd]}))


@pytest.mark.parametrize("make", [lambda: tm.ChainScores(None, MOVES), lambda: tm.ChainScores(EMISSIONS, None)])
def test_none_is_no_part(make):
    refused("(emissions|transitions)", make)


def test_none_is_no_scores():
    refused("scores", lambda: tm.FlatScores(None))


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("scores", [tm.FlatScores(VALUES), tm.ChainScores(EMISSIONS, MOVES)], ids=["flat", "chain"])
def test_verbs(scores, odd):
    given, cost = ODD[odd], tm.costs.Hamming()
    refused("target", lambda: scores.relative_to(given))
    refused("target", lambda: scores.augment(cost, given))
    refused("target", lambda: scores.slack_max(cost, given))
    refused("target", lambda: scores.labelled(given))
    refused("k", lambda: scores.top(given))
    refused("n", lambda: scores.sample(given))
    if not isinstance(given, torch.Tensor):
        refused("factor", lambda: scores.scale(given))
        refused("to", lambda: scores.to(given))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("name", ["transitions", "start", "mask"])
def test_a_nested_tensor_has_no_shape_to_compare(name):
    dtype = torch.bool if name == "mask" else torch.float32
    given = torch.nested.nested_tensor([torch.zeros(2, dtype=dtype), torch.zeros(3, dtype=dtype)])
    refused(name, lambda: tm.ChainScores(**({"emissions": EMISSIONS, "transitions": MOVES} | {name: given})))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("mask", [None, torch.ones(2, 4, dtype=torch.bool)])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_nested_labels_are_refused(mask, dtype):
    given = torch.nested.nested_tensor([torch.zeros(4, dtype=dtype), torch.zeros(4, dtype=dtype)])
    scores = tm.ChainScores(EMISSIONS, MOVES, mask=mask)
    for act in (scores.check_target, scores.relative_to, lambda y: scores.slack_max(tm.costs.Hamming(), y)):
        refused("target", lambda act=act: act(given))
