"""Every head exported with gradients on, saved, loaded, and run on another batch."""

import io

import pytest
import torch
from torch import nn

import torch_multiclass as tm
from torch_multiclass import codes, kernels


def kernel_margins(columns):
    return tm.KernelScorer(torch.randn(9, 6), columns, kernels.Gaussian(0.1))


HEADS = {
    "flat": lambda: tm.MulticlassHead(6, 4),
    "one_vs_all": lambda: tm.OneVsAllHead(6, 4),
    "one_vs_one": lambda: tm.OneVsOneHead(6, 4),
    "tournament": lambda: tm.OneVsOneHead(6, 4, decoder=tm.TournamentDecoder()),
    "ecoc": lambda: tm.ECOCHead(6, code=codes.hadamard(4)),
    "exponential": lambda: tm.ECOCHead(6, code=codes.hadamard(4), loss="exponential"),
    "hamming": lambda: tm.ECOCHead(6, code=codes.hadamard(4), decoder=tm.HammingDecoder()),
    "kernel": lambda: tm.ECOCHead(kernel_margins(6), code=codes.one_vs_one(4)),
    "continuous": lambda: tm.ContinuousCodeHead(6, code=codes.hadamard(4)),
    "chain": lambda: tm.ChainHead(6, 4),
    "posterior": lambda: tm.ChainHead(6, 4, decoder=tm.PosteriorDecoder()),
    "constrained": lambda: tm.ChainHead(6, 3, constraints=tm.tag_constraints(["O", "B-X", "I-X"])),
}


class Answers(nn.Module):
    """Features to what a verb of a head says of their scores."""

    def __init__(self, head, verb):
        super().__init__()
        self.head, self.verb = head, verb

    def forward(self, features):
        return getattr(self.head, self.verb)(self.head(features))


OTHERS = [
    pytest.param(name, verb, marks=pytest.mark.slow)
    for name in ("flat", "one_vs_one", "exponential", "continuous", "constrained")
    for verb in ("predict_proba", "class_scores")
]


@pytest.mark.parametrize(("name", "verb"), [*((name, "predict") for name in HEADS), *OTHERS])
def test_export_save_load_with_a_dynamic_batch(name, verb):
    module = Answers(HEADS[name](), verb)
    chain = isinstance(module.head, tm.ChainHead)
    features = torch.randn((5, 7, 6) if chain else (5, 6))
    assert torch.is_grad_enabled()
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(module, (features,), dynamic_shapes=({0: batch},), strict=False)
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    loaded = torch.export.load(buffer).module()
    more = torch.randn((11, 7, 6) if chain else (11, 6))
    torch.testing.assert_close(loaded(more), module(more))
    if verb != "class_scores":
        assert not loaded(more).requires_grad


@pytest.mark.parametrize("name", HEADS)
def test_predict_and_probabilities_have_no_gradient(name):
    head = HEADS[name]()
    scores = head(torch.randn((2, 5, 6) if isinstance(head, tm.ChainHead) else (5, 6)))
    assert not head.predict(scores).requires_grad
    assert not head.predict_proba(scores).requires_grad
    assert head.class_scores(scores).requires_grad or isinstance(
        head.decoder, (tm.HammingDecoder, tm.VotingDecoder, tm.TournamentDecoder)
    )


def made_inside(make):
    """Scores of a module that is constructed within the compiled function."""

    def run(margins, code, target):
        part = make()
        scores = tm.CodedScores(margins, code)
        return part(scores, target) if isinstance(part, tm.Loss) else part(scores)

    return run


@pytest.mark.parametrize(
    "make",
    [
        lambda: tm.CodedLoss(),
        lambda: tm.CodedLoss("logistic", reduction="sum"),
        lambda: tm.CodedLoss(tm.margins.as_margin_loss("squared")),
        lambda: tm.HammingDecoder(),
        lambda: tm.LossBasedDecoder("exponential"),
        lambda: tm.VotingDecoder(),
        lambda: tm.TournamentDecoder(),
    ],
    ids=["hinge", "logistic", "object", "hamming", "loss_based", "voting", "tournament"],
)
def test_losses_and_decoders_are_made_inside_a_compiled_function(make):
    torch._dynamo.reset()
    run = made_inside(make)
    inputs = torch.randn(5, 6), codes.one_vs_one(4), torch.arange(5) % 4
    torch.testing.assert_close(torch.compile(run, fullgraph=True, backend="eager")(*inputs), run(*inputs))


@pytest.mark.parametrize(
    "make",
    [
        lambda: tm.ViterbiDecoder(),
        lambda: tm.PosteriorDecoder(legal=False),
        lambda: tm.KBestDecoder(2),
    ],
    ids=["viterbi", "posterior", "k-best"],
)
def test_chain_decoders_are_made_inside_a_compiled_function(make):
    torch._dynamo.reset()

    def run(emissions, transitions):
        return make()(tm.ChainScores(emissions, transitions))

    inputs = torch.randn(2, 5, 3), torch.randn(3, 3)
    assert torch.equal(torch.compile(run, fullgraph=True, backend="eager")(*inputs), run(*inputs))


def test_the_arg_max_is_made_inside_a_compiled_function():
    torch._dynamo.reset()

    def run(scores):
        return tm.ArgmaxDecoder(class_dim=1)(scores)

    scores = torch.randn(2, 3, 4)
    assert torch.equal(torch.compile(run, fullgraph=True, backend="eager")(scores), run(scores))
