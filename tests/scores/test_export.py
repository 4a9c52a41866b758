"""Predictions as exported programs: saved and loaded, any batch and length, whether or not gradients are on."""

from __future__ import annotations

import io

import pytest
import torch
from torch import nn

import torch_multiclass as tm

K, D = 4, 6


class Predict(nn.Module):
    """Features to labels, as a user's module has it."""

    def __init__(self, head):
        super().__init__()
        self.head = head

    def forward(self, features, mask=None):
        scores = self.head(features) if mask is None else self.head(features, mask=mask)
        return self.head.predict(scores)


def saved_and_loaded(program):
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    return torch.export.load(buffer).module()


@pytest.mark.parametrize("decoder", [tm.ViterbiDecoder(), tm.PosteriorDecoder(), tm.KBestDecoder(2)], ids=repr)
@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_sequences(decoder, recorded, masked):
    module = Predict(tm.ChainHead(D, K, decoder=decoder))
    batch, steps = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("steps", min=1, max=512)

    def inputs(b, t):
        mask = torch.rand(b, t) < 0.7
        return (torch.randn(b, t, D), mask) if masked else (torch.randn(b, t, D),)

    shapes = [{0: batch, 1: steps}] * (2 if masked else 1)
    with torch.set_grad_enabled(recorded):
        program = torch.export.export(module, inputs(3, 5), dynamic_shapes=shapes, strict=False)
    again = saved_and_loaded(program)
    for size in ((3, 5), (1, 1), (4, 1), (1, 9), (7, 2)):
        given = inputs(*size)
        assert torch.equal(again(*given), module(*given))


@pytest.mark.parametrize(
    "head",
    [tm.MulticlassHead(D, K), tm.OneVsAllHead(D, K), tm.OneVsOneHead(D, K)],
    ids=lambda head: type(head).__name__,
)
@pytest.mark.parametrize("recorded", [True, False])
def test_one_label(head, recorded):
    module = Predict(head)
    shapes = [{0: torch.export.Dim("batch", min=1, max=64)}]
    with torch.set_grad_enabled(recorded):
        program = torch.export.export(module, (torch.randn(3, D),), dynamic_shapes=shapes, strict=False)
    again = saved_and_loaded(program)
    for batch in (3, 1, 8):
        features = torch.randn(batch, D)
        assert torch.equal(again(features), module(features))
