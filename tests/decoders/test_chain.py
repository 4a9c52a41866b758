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
