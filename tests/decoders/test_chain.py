"""Decoders of sequences."""

from __future__ import annotations

import pytest
import torch

import torch_multiclass as tm


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


@pytest.mark.parametrize("kind", ["full", "lengths", "padded", "holes", "one", "many", "bfloat16", "dead", "relative"])
def test_the_labels_alone_are_those_of_the_path_with_its_score(kind):
    generator = torch.Generator().manual_seed(0)
    lead = {"one": (), "many": (2, 3)}.get(kind, (4,))
    emissions = torch.randn(*lead, 6, 3, generator=generator)
    transitions, start = torch.randn(3, 3, generator=generator), torch.randn(3, generator=generator)
    given = {}
    if kind == "lengths":
        given["lengths"] = torch.tensor([6, 0, 2, 5])
    elif kind in ("padded", "holes"):
        given["mask"] = torch.arange(6) < torch.tensor([[6], [0], [2], [5]])
        if kind == "holes":
            given["mask"] = given["mask"].flip(1)
    elif kind == "bfloat16":
        emissions, transitions, start = (part.bfloat16() for part in (emissions, transitions, start))
    elif kind == "dead":
        emissions[1, 3] = -torch.inf
    emissions.requires_grad_()
    scores = tm.ChainScores(emissions, transitions, start=start, **given)
    if kind == "relative":
        scores = scores.relative_to(torch.zeros(4, 6, dtype=torch.long))
    followed = scores.decode()
    with torch.no_grad():
        plain = scores.decode()
    labels = tm.ViterbiDecoder()(scores)
    assert torch.equal(labels, followed.labels)
    assert torch.equal(labels, plain.labels)
    assert not plain.score.requires_grad
    torch.testing.assert_close(plain.score, followed.score.detach())
    assert plain.score.dtype == followed.score.dtype == torch.float32
    if kind == "dead":
        assert labels[1].tolist() == [-100] * 6
