"""The hinge of the best rival by the native library, against torch."""

import math

import pytest
import torch

from torch_multiclass.functional import crammer_singer_loss
from torch_multiclass.ops import _native
from torch_multiclass.ops.rivals import hinges

pytestmark = pytest.mark.skipif(_native.library() is None, reason=_native.backends()["native"])

LEVELS = sorted(path.name.split(".")[0] for path in _native.FOLDER.glob("*") if path.suffix != ".json")


def by_torch(scores, label, margin, cost=None, rescaled=False):
    if rescaled:
        return ((scores - scores.gather(1, label) + margin).clamp(min=0) * cost[label[:, 0]]).max(1, keepdim=True)
    if cost is not None:
        worst, rival = (scores - scores.gather(1, label) + cost[label[:, 0]]).max(1, keepdim=True)
        return worst.clamp(min=0), rival
    best = scores.scatter(1, label, -math.inf).amax(1, keepdim=True)
    same = (scores == best).scatter(1, label, False)
    return (best - scores.gather(1, label) + margin).clamp(min=0), same.int().argmax(1, keepdim=True)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("k", [2, 3, 4, 7, 8, 15, 16, 17, 33, 70])
def test_every_label_with_and_without_ties(k, dtype, level, monkeypatch):
    if level > _native.level() and level.startswith("avx"):
        pytest.skip(f"this processor has no {level}")
    library = _native.open_library(_native.FOLDER, level)
    monkeypatch.setattr(_native, "library", lambda: library)
    for scores in (torch.randn(k, k, dtype=dtype), torch.randint(3, (k, k)).to(dtype)):
        scores[0, k // 2] = -math.inf
        label = torch.arange(k).unsqueeze(1)
        costs = torch.randint(4, (k, k)).to(dtype) / 3
        given = (None, False), (costs.fill_diagonal_(0), False), (costs.tril().neg(), False), (costs, True)
        for cost, rescaled in given:
            hinge, rival = hinges(scores, label, 0.5, cost, rescaled)
            wanted, lowest = by_torch(scores, label, 0.5, cost, rescaled)
            assert torch.equal(hinge, wanted)
            assert torch.equal(rival, lowest)


@pytest.mark.parametrize("at", [0, 5, 16, 18])
def test_a_score_that_is_no_number_is_left_to_torch(at):
    scores, label = torch.zeros(2, 19), torch.tensor([[3], [at]])
    scores[1, at] = math.nan
    assert hinges(scores, label, 1.0) is None
    for rescaled in (False, True):
        assert hinges(scores, label, 1.0, torch.ones(19, 19), rescaled) is None
    assert crammer_singer_loss(scores, label[:, 0], reduction="none").isnan().tolist() == [False, True]


def test_what_it_is_not_for():
    label = torch.tensor([[0], [1]])
    assert hinges(torch.zeros(2, 6)[:, ::2], label, 1.0) is None
    assert hinges(torch.zeros(2, 1), torch.zeros(2, 1, dtype=torch.long), 1.0) is None
    assert hinges(torch.zeros(2, 3).half(), label, 1.0) is None
    for cost in (torch.zeros(3, 3).double(), torch.zeros(2, 2), torch.zeros(2, 3, 3), torch.zeros(3, 6)[:, ::2]):
        assert hinges(torch.zeros(2, 3), label, 1.0, cost) is None
    assert hinges(torch.tensor([[-math.inf, 0.0]]), label[:1] + 1, 1.0, torch.full((2, 2), math.inf)) is None


def test_infinite_scores():
    """A label that is forbidden costs all there is; rivals that are cost nothing."""
    scores = torch.tensor([[-math.inf, 0.0], [0.0, -math.inf]], requires_grad=True)
    losses = crammer_singer_loss(scores, torch.tensor([0, 0]), reduction="none")
    assert losses.tolist() == [math.inf, 0.0]
    losses[1].backward()
    assert bool((scores.grad == 0).all())
