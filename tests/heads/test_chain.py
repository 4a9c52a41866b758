"""Scorer, decoders, head and tag constraints of sequences."""

from __future__ import annotations

import copy
import io
import itertools
import math
import pickle
import re

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass.scorers import Chain

INF = math.inf


# -------------------------------------------------------------------------------------------------------- constraints


def spans_are_legal(scheme: str, tags: list[str]) -> bool:
    """Whether a regular expression of whole spans matches; types X and Y."""
    line = "".join(tag.replace("-", "") + " " for tag in tags)
    span = {
        "BIO": lambda t: f"B{t} (I{t} )*",
        "BIOES": lambda t: f"(S{t} |B{t} (I{t} )*E{t} )",
    }
    if scheme in span:
        return re.fullmatch(f"(O |{span[scheme]('X')}|{span[scheme]('Y')})*", line) is not None
    # IOB1: B only right after a span of the same type
    return all(
        tag[0] != "B" or (n > 0 and tags[n - 1] != "O" and tags[n - 1][2:] == tag[2:]) for n, tag in enumerate(tags)
    )


@pytest.mark.parametrize("scheme", ["BIO", "BIOES", "IOB1"])
def test_constraints_allow_exactly_the_legal_sequences(scheme):
    prefixes = "BIES" if scheme == "BIOES" else "BI"
    tags = ["O", *(f"{p}-{t}" for t in "XY" for p in prefixes)]
    allowed = tm.tag_constraints(tags, scheme)
    for n in range(1, 5 if scheme != "BIOES" else 4):
        every = torch.tensor(list(itertools.product(range(len(tags)), repeat=n)))
        scores = tm.ChainScores(torch.zeros(n, len(tags)), allowed.transitions, start=allowed.start, end=allowed.end)
        possible = scores.score(every) == 0
        expected = [spans_are_legal(scheme, [tags[y] for y in row]) for row in every.tolist()]
        assert possible.tolist() == expected


def test_bad_tags_are_named():
    with pytest.raises(ValueError, match=r"tags: 'X-PER' is not a BIO tag; accepted are 'O', 'B-\.\.\.', 'I-\.\.\.'"):
        tm.tag_constraints(["O", "X-PER"])
    with pytest.raises(ValueError, match="tags: 'O' is given twice"):
        tm.tag_constraints(["O", "O"])
    with pytest.raises(ValueError, match="scheme: got 'BMES'; accepted are 'BIO', 'IOB1', 'BIOES'"):
        tm.tag_constraints(["O"], "BMES")


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


# ----------------------------------------------------------------------------------------------------------- modules


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


@pytest.mark.parametrize("decoder", [tm.ViterbiDecoder(), tm.PosteriorDecoder(), tm.PosteriorDecoder(legal=False)])
def test_decoders(decoder, device):
    scores = tm.ChainScores(
        torch.randn(2, 5, 3, device=device), torch.randn(3, 3, device=device),
        lengths=torch.tensor([5, 2], device=device),
    )  # fmt: skip
    labels = decoder(scores)
    assert labels.shape == (2, 5)
    assert bool((labels[1, 2:] == -100).all())
    assert bool((labels[0] >= 0).all())
    torch.testing.assert_close(decoder.class_scores(scores), scores.marginals())
    with pytest.raises(TypeError, match="scores: got Tensor; accepted are ChainScores"):
        decoder(torch.zeros(2, 3))


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
