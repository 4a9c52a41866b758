"""A name of a code, a loss or a cost may be spelled with ``-`` or ``_`` wherever one is taken."""

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass import checks, codes, costs, solvers
from torch_multiclass.checks.spelling import spelling
from torch_multiclass.codes.names import NAMES
from torch_multiclass.losses.names import _NAMES as LOSS_NAMES
from torch_multiclass.ops import margins


def shown(made):
    """What can be compared of it."""
    return made if isinstance(made, torch.Tensor) else repr(made)


def same(left, right):
    return torch.equal(left, right) if isinstance(left, torch.Tensor) else left == right


TAKERS = {
    "code of a function": (lambda name: codes.by_name(name, 4, torch.Generator().manual_seed(0)), NAMES),
    "code of a head": (
        lambda name: tm.ECOCHead(3, 4, code=name, generator=torch.Generator().manual_seed(0))(torch.zeros(1, 3)).code,
        NAMES,
    ),
    "loss of a head": (lambda name: tm.MulticlassHead(3, 4, loss=name).criterion, LOSS_NAMES),
    "binary loss": (margins.as_margin_loss, margins.names()),
    "loss of a coded head": (lambda name: tm.OneVsAllHead(3, 4, loss=name).criterion, margins.names()),
    "loss of a decoder": (tm.LossBasedDecoder, margins.names()),
    "cost": (costs.as_cost, ("zero_one", "hamming")),
    "loss of a machine": (lambda name: solvers.DualSVM(loss=name), ("crammer_singer", "weston_watkins")),
    "loss of a structured machine": (lambda name: solvers.FrankWolfe(1.0, loss=name), ("m3n", "svmstruct")),
}


@pytest.mark.parametrize(("make", "names"), TAKERS.values(), ids=TAKERS)
def test_every_taker_of_names(make, names):
    for name in names:
        expected = shown(make(name))
        for other in {
            name.replace("_", "-"),
            name.replace("_vs_", "-versus-"),
            name.replace("one_vs_all", "one-vs-rest"),
        }:
            assert same(shown(make(other)), expected), other
    for wrong in ("one+vs+all", "", " hinge"):
        with pytest.raises(ValueError, match="accepted are"):
            make(wrong)


def test_the_rule():
    ways = ("one_vs_all", "one-vs-all", "one-versus-all", "one_vs_rest", "one-vs-rest", "one-vs_rest")
    assert {spelling(way) for way in ways} == {"one_vs_all"}
    assert spelling("all-pairs") == spelling("one_versus_one") == "one_vs_one"
    assert checks.named("code", "all_pairs", ["one-vs-all", "all-pairs"]) == "all-pairs"
    assert checks.named("loss", "a-b", ["a_b", "a-b"]) == "a-b"  # what is written exactly so goes first
    with pytest.raises(ValueError, match="code: got 3; accepted are 'a_b'"):
        checks.named("code", 3, ["a_b"])
