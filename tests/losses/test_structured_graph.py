"""Sequences under torch.compile, torch.export and functorch: one graph, the same values."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.func import vmap

import torch_multiclass as tm

K = 4


def parts(batch: int, steps: int, device="cpu"):
    mask = torch.rand(batch, steps) < 0.7
    target = torch.where(torch.rand(batch, steps) < 0.1, -100, torch.randint(K, (batch, steps)))
    return torch.randn(batch, steps, 8).to(device), mask.to(device), target.to(device)


class Step(nn.Module):
    def __init__(self, loss, constraints=None):
        super().__init__()
        self.scorer, self.loss = tm.ChainScorer(8, K, constraints), loss

    def forward(self, features, mask, target):
        return self.loss(self.scorer(features, mask=mask), target)


class Decode(nn.Module):
    def __init__(self, decoder):
        super().__init__()
        self.scorer, self.decoder = tm.ChainScorer(8, K), decoder

    def forward(self, features, mask):
        scores = self.scorer(features, mask=mask)
        return self.decoder(scores), self.decoder.class_scores(scores)


@pytest.mark.parametrize("loss", [tm.CRFLoss(), tm.SVMStructLoss()])
def test_a_training_step_is_one_graph(loss, device):
    torch._dynamo.reset()
    module = Step(loss).to(device)
    inputs = parts(3, 12, device)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    grads = []
    for step in (module, compiled):
        module.zero_grad()
        value = step(*inputs)
        value.backward()
        grads.append([value.detach(), *(p.grad.clone() for p in module.parameters())])
    for ours, eager in zip(grads[1], grads[0], strict=True):
        torch.testing.assert_close(ours, eager)


@pytest.mark.parametrize("decoder", [tm.ViterbiDecoder(), tm.PosteriorDecoder(), tm.KBestDecoder(2)])
def test_export_with_any_batch_and_length(decoder):
    module = Decode(decoder).eval()
    batch, steps = torch.export.Dim("batch", min=2, max=64), torch.export.Dim("steps", min=3, max=512)
    shapes = {"features": {0: batch, 1: steps}, "mask": {0: batch, 1: steps}}
    features, mask, _ = parts(3, 6)
    program = torch.export.export(module, (features, mask), dynamic_shapes=shapes, strict=False)
    for size in ((3, 6), (5, 11)):
        features, mask, _ = parts(*size)
        for ours, eager in zip(program.module()(features, mask), module(features, mask), strict=True):
            torch.testing.assert_close(ours, eager)


def test_export_takes_scores_as_an_input():
    class Loss(nn.Module):
        def forward(self, scores, target):
            return tm.functional.crf_loss(scores, target)

    scores = tm.ChainScores(torch.randn(2, 5, K), torch.randn(K, K), lengths=torch.tensor([5, 2]))
    target = torch.randint(K, (2, 5))
    program = torch.export.export(Loss(), (scores, target), strict=False)
    torch.testing.assert_close(program.module()(scores, target), tm.functional.crf_loss(scores, target))


def test_vmap_over_an_ensemble_of_transitions():
    emissions, moves, target = torch.randn(2, 5, K), torch.randn(3, K, K), torch.randint(K, (2, 5))

    def loss(matrix):
        return tm.functional.crf_loss(tm.ChainScores(emissions, matrix), target)

    torch.testing.assert_close(vmap(loss)(moves), torch.stack([loss(m) for m in moves]))


class Loss(nn.Module):
    """A loss of chain scores built inside the graph."""

    def __init__(self, loss):
        super().__init__()
        self.loss = loss

    def forward(self, emissions, transitions, lengths, target):
        return self.loss(tm.ChainScores(emissions, transitions, lengths=lengths), target)


RECURSIONS = {
    "CRFLoss": (tm.CRFLoss(), "chain_value"),
    "CRFLoss with a cost": (tm.CRFLoss("hamming", 0.5), "chain_value"),
    "M3NLoss": (tm.M3NLoss(), "chain_best_labels"),
    "SVMStructLoss": (tm.SVMStructLoss(), "chain_slack_labels"),
    "SVMStructLoss by search": (tm.SVMStructLoss(exact=False), "chain_slack_search"),
    "StructuredPerceptronLoss": (tm.StructuredPerceptronLoss(), "chain_best_labels"),
}


@pytest.mark.parametrize("name", RECURSIONS)
def test_an_exported_loss_holds_one_recursion_and_knows_partial_labels(name):
    loss, operator = RECURSIONS[name]
    emissions, transitions = torch.randn(3, 6, K), torch.randn(K, K)
    lengths, target = torch.tensor([6, 4, 1]), torch.randint(K, (3, 6))
    program = torch.export.export(Loss(loss), (emissions, transitions, lengths, target), strict=False)
    calls = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    assert [call for call in calls if "torch_multiclass" in call] == [f"torch_multiclass.{operator}.default"]
    for missing in (0.0, 0.4):
        target = torch.where(torch.rand(3, 6) < missing, -100, target)
        expected = Loss(loss)(emissions, transitions, lengths, target)
        torch.testing.assert_close(program.module()(emissions, transitions, lengths, target), expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tm.CRFLoss("hamming", 0.5),
        lambda: tm.M3NLoss(cost=[[0, 1, 2, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]], reduction="sum"),
        lambda: tm.SVMStructLoss(exact=False),
        lambda: tm.StructuredPerceptronLoss(ignore_index=-1, validate_args=False),
    ],
)
def test_losses_are_constructed_inside_a_compiled_function(make):
    torch._dynamo.reset()
    emissions, transitions, target = torch.randn(2, 5, K), torch.randn(K, K), torch.randint(K, (2, 5))

    def step(emissions, transitions, target):
        return make()(tm.ChainScores(emissions, transitions), target)

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(emissions, transitions, target), step(emissions, transitions, target))
