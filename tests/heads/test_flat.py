"""Scorer and head of one label."""

import copy
import io

import pytest
import torch
from torch import nn

import torch_multiclass as tm


@pytest.mark.parametrize("shape", [(6,), (2, 9, 6), (0, 6), (3, 4, 6)])
def test_a_head_attaches_to_any_features(shape, device):
    head = tm.MulticlassHead(6, 3, loss=tm.WestonWatkinsLoss(), device=device)
    features = torch.randn(shape, device=device)
    scores = head(features)
    assert scores.shape == (*shape[:-1], 3)
    assert head.predict(scores).shape == shape[:-1]
    torch.testing.assert_close(head.predict_proba(scores).sum(-1), torch.ones(shape[:-1], device=device))
    assert torch.equal(head.class_scores(scores), scores)
    head.loss(scores, torch.zeros(shape[:-1], dtype=torch.long, device=device)).backward()
    assert head.scorer.weight.grad is not None


def test_training_a_head_behind_a_network_separates_the_classes(device):
    torch.manual_seed(0)
    centres = torch.randn(4, 10) * 3
    y = torch.randint(4, (200,))
    x = (centres[y] + torch.randn(200, 10)).to(device)
    y = y.to(device)
    for loss in (tm.CRFLoss(), tm.CrammerSingerLoss(), tm.M3NLoss(cost="zero_one"), tm.AdaBoostLoss("mr")):
        body, head = nn.Linear(10, 8).to(device), tm.MulticlassHead(8, 4, loss=loss, device=device)
        optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], 0.02)
        for _ in range(60):
            optimizer.zero_grad()
            value = head.loss(head(body(x)), y)
            value.backward()
            optimizer.step()
        assert (head.predict(head(body(x))) == y).float().mean() > 0.95


def test_state_dict_keys_are_pinned():
    head = tm.MulticlassHead(6, 3, loss=tm.CrammerSingerLoss(weight=[1.0, 2.0, 3.0]))
    assert list(head.state_dict()) == ["scorer.weight", "scorer.bias"]
    assert list(tm.LinearScorer(6, 3, bias=False).state_dict()) == ["weight"]
    buffer = io.BytesIO()
    torch.save(head.state_dict(), buffer)
    buffer.seek(0)
    tm.MulticlassHead(6, 3).load_state_dict(torch.load(buffer, weights_only=True), strict=True)


def test_compile_export_and_copies(device):
    head = tm.MulticlassHead(6, 3, device=device)
    features = torch.randn(5, 6, device=device)
    torch.testing.assert_close(torch.compile(head, fullgraph=True, backend="aot_eager")(features), head(features))
    program = torch.export.export(head, (features,), strict=False)
    torch.testing.assert_close(program.module()(features), head(features))
    torch.testing.assert_close(copy.deepcopy(head)(features), head(features))
    assert "in_features=6, num_classes=3" in repr(head)


def test_bad_input():
    with pytest.raises(ValueError, match=r"features: got shape \(5, 7\); accepted is \(\*, 6\)"):
        tm.MulticlassHead(6, 3)(torch.zeros(5, 7))
    with pytest.raises(TypeError, match=r"features: got dtype torch\.int64"):
        tm.MulticlassHead(6, 3)(torch.zeros(5, 6, dtype=torch.long))
    with pytest.raises(ValueError, match="num_classes: got 0"):
        tm.MulticlassHead(6, 0)
    with pytest.raises(TypeError, match="loss: got CrossEntropyLoss"):
        tm.MulticlassHead(6, 3, loss=nn.CrossEntropyLoss())
    with pytest.raises(TypeError, match="decoder: got str"):
        tm.MulticlassHead(6, 3, decoder="argmax")


def test_losses_by_name(device):
    from torch_multiclass.losses.names import _NAMES

    for name in _NAMES:
        head = tm.MulticlassHead(6, 3, loss=name, device=device)
        scores = head(torch.randn(5, 6, device=device))
        target = torch.zeros(5, dtype=torch.long, device=device)
        assert torch.equal(head.loss(scores, target), head.criterion(scores, target))
    assert isinstance(tm.MulticlassHead(6, 3, loss="crammer_singer").criterion, tm.CrammerSingerLoss)
    assert isinstance(tm.ChainHead(6, 3, loss="m3n").criterion, tm.M3NLoss)
    with pytest.raises(ValueError, match=r"loss: got 'hinge_loss'; accepted are 'crf', 'cross_entropy'"):
        tm.MulticlassHead(6, 3, loss="hinge_loss")
    with pytest.raises(TypeError, match="loss: got CrossEntropyLoss"):
        tm.MulticlassHead(6, 3, loss=nn.CrossEntropyLoss())


def test_features_in_the_place_of_scores_are_named(device):
    head, features = tm.MulticlassHead(64, 12, device=device), torch.randn(3, 64, device=device)
    target = torch.zeros(3, dtype=torch.long, device=device)
    for call in (head.predict, head.predict_proba, head.class_scores, lambda given: head.loss(given, target)):
        with pytest.raises(ValueError, match="scores: are of 64 classes; accepted are 12"):
            call(features)


def test_a_head_weighs_examples(device):
    head = tm.MulticlassHead(6, 3, loss="weston_watkins", device=device)
    scores, target = head(torch.randn(4, 6, device=device)), torch.tensor([0, 1, 2, 1], device=device)
    weighted = head.loss(scores, target, sample_weight=torch.tensor([1.0, 0.0, 2.0, 0.0], device=device))
    torch.testing.assert_close(weighted, head.loss(scores[[0, 2, 2]], target[[0, 2, 2]]))
