"""The chain scorer: state, precision, and what it refuses."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass.scorers import Chain


def test_a_pytorch_crf_state_dict_loads_strictly():
    torchcrf = pytest.importorskip("torchcrf")
    theirs = torchcrf.CRF(5, batch_first=True)
    scorer = tm.ChainScorer(7, 5)
    scorer.chain.load_state_dict(theirs.state_dict(), strict=True)
    e, y = torch.randn(3, 6, 5), torch.randint(5, (3, 6))
    mask = torch.arange(6) < torch.tensor([[6], [2], [4]])
    torch.testing.assert_close(tm.CRFLoss(reduction="none")(scorer.chain(e, mask=mask), y), -theirs(e, y, mask, "none"))


def test_state_dict_keys_are_pinned():
    assert sorted(tm.ChainScorer(4, 3).state_dict()) == [
        "chain.end_transitions", "chain.start_transitions", "chain.transitions", "emissions.bias", "emissions.weight",
    ]  # fmt: skip


def test_copies_devices_and_dtypes(device):
    scorer = tm.ChainScorer(4, 3, tm.tag_constraints(["O", "B", "I"]), device=device, dtype=torch.float64)
    features = torch.randn(2, 5, 4, device=device, dtype=torch.float64)
    expected = scorer(features).log_partition()
    buffer = io.BytesIO()
    torch.save(scorer.state_dict(), buffer)
    buffer.seek(0)
    loaded = tm.ChainScorer(4, 3, tm.tag_constraints(["O", "B", "I"]), device=device, dtype=torch.float64)
    loaded.load_state_dict(torch.load(buffer, weights_only=True), strict=True)
    for other in (copy.deepcopy(scorer), pickle.loads(pickle.dumps(scorer)), loaded):
        torch.testing.assert_close(other(features).log_partition(), expected)
    assert scorer.float()(features.float()).log_partition().dtype == torch.float32
    before = scorer.chain.transitions.clone()
    scorer.reset_parameters()
    assert not torch.equal(before, scorer.chain.transitions)
    assert "num_tags=3, constrained" in repr(scorer)


def values_of(target):
    losses = (tm.CRFLoss(), tm.M3NLoss(), tm.SVMStructLoss(), tm.CRFLoss("hamming"))
    return [
        *(lambda scores, loss=loss: loss(scores, target) for loss in losses),
        tm.ChainScores.log_partition,
        tm.ChainScores.marginals,
        tm.ChainScores.entropy,
    ]


def test_autocast_computes_in_float32(device):
    scorer = tm.ChainScorer(4, 3, device=device)
    emissions, target = torch.randn(2, 50, 3, device=device), torch.zeros(2, 50, dtype=torch.long, device=device)
    plain = [value(scorer.chain(emissions)) for value in values_of(target)]
    with torch.autocast(device.type, dtype=torch.bfloat16):
        assert scorer.emissions(torch.randn(2, 4, device=device)).dtype == torch.bfloat16
        assert tm.CRFLoss()(scorer(torch.randn(2, 50, 4, device=device)), target).dtype == torch.float32
        cast = [value(scorer.chain(emissions)) for value in values_of(target)]
    torch.testing.assert_close(cast, plain)


def test_bad_features_are_named():
    with pytest.raises(ValueError, match=r"features: got shape \(2, 5, 3\); accepted is \(\*, 4\)"):
        tm.ChainScorer(4, 3)(torch.zeros(2, 5, 3))
    with pytest.raises(ValueError, match="num_tags: got 0"):
        Chain(0)
    with pytest.raises(ValueError, match=r"constraints.transitions: got shape \(2, 2\); accepted is \(3, 3\)"):
        Chain(3, tm.tag_constraints(["O", "B"]))
