"""The head of sequences: training, constraints, and the guide."""

from __future__ import annotations

import math

import pytest
import torch

import torch_multiclass as tm

INF = math.inf


@pytest.mark.parametrize("loss", [tm.CRFLoss(), tm.M3NLoss(), tm.SVMStructLoss()])
def test_constraints_hold_in_training_and_decoding(loss):
    tags = ["O", "B-X", "I-X"]
    head = tm.ChainHead(4, 3, loss=loss, constraints=tm.tag_constraints(tags))
    features = torch.randn(8, 6, 4) * 30
    scores = head(features)
    labels = head.predict(scores)
    assert bool((scores.score(labels) > -INF).all())
    assert not (labels[:, 0] == 2).any()
    assert not ((labels[:, :-1] == 0) & (labels[:, 1:] == 2)).any()
    value = head.loss(scores, torch.tensor([[1, 2, 2, 0, 1, 0]] * 8))
    value.backward()
    for parameter in head.parameters():
        assert parameter.grad is None or bool(parameter.grad.isfinite().all())
    assert sorted(head.scorer.chain.state_dict()) == ["end_transitions", "start_transitions", "transitions"]


@pytest.mark.parametrize("loss", ["CRFLoss", "M3NLoss", "SVMStructLoss", "StructuredPerceptronLoss"])
def test_a_head_learns_to_copy_its_input(loss, device):
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(3, (32, 8), generator=generator).to(device)
    lengths = torch.randint(1, 9, (32,), generator=generator).to(device)
    features = torch.nn.functional.one_hot(y, 3).float()
    head = tm.ChainHead(3, 3, loss=getattr(tm, loss)(), device=device)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.2)
    for _ in range(30):
        optimizer.zero_grad()
        value = head.loss(head(features, lengths=lengths), y)
        value.backward()
        optimizer.step()
    scores = head(features, lengths=lengths)
    kept = scores.positions
    assert torch.equal(head.predict(scores)[kept], y[kept])
    assert head.predict_proba(scores).shape == (32, 8, 3)


def test_the_heads_of_the_guide_run_as_written():
    num_tags, words = 6, torch.randn(4, 9, 400)
    mask = torch.arange(9) < torch.tensor([[9], [4], [1], [7]])
    tags = torch.where(mask, torch.randint(num_tags, (4, 9)), -100)
    for loss in (tm.CRFLoss(), tm.M3NLoss(), tm.SVMStructLoss()):
        scorer, decode = tm.ChainScorer(400, num_tags), tm.ViterbiDecoder()
        scores = scorer(words, mask=mask)
        loss(scores, tags).backward()
        assert scorer.chain.transitions.grad is not None
        assert bool(((decode(scores) == -100) == ~mask).all())
