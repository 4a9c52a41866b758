"""Every head exported with gradients on, saved, loaded, and run on another batch."""

import io

import pytest
import torch
from torch import nn

import torch_multiclass as tm
from tests.heads.every import HEADS, SEQUENCES, inputs, scores_of
from torch_multiclass import codes


class Answers(nn.Module):
    """Features to what a verb of a head says of their scores."""

    def __init__(self, head, verb):
        super().__init__()
        self.head, self.verb = head, verb

    def forward(self, *given):
        return getattr(self.head, self.verb)(scores_of(self.head, *given))


QUICK = [(name, "predict") for name in ("flat", "one_vs_one", "exponential", "kernel", "chain", "segments", "tree")]
LARGE = {*SEQUENCES, "exponential"}
"""Graphs of half a minute each, of which most is the recursion, or the exact order, that `predict` has too."""


def again(name, verb):
    """Whether a case shows what others do: the class scores of all but one are half of what its probabilities are."""
    return (name in LARGE and verb != "predict") or (verb == "class_scores" and name != "one_vs_all")


REST = [
    pytest.param(name, verb, marks=pytest.mark.exhaustive if again(name, verb) else pytest.mark.slow)
    for name in HEADS
    for verb in ("predict", "predict_proba", "class_scores")
    if (name, verb) not in QUICK
]


@pytest.mark.parametrize(("name", "verb"), [*QUICK, *REST])
def test_export_save_load_with_a_dynamic_batch(name, verb):
    """And of sequences with a dynamic length."""
    torch.manual_seed(0)
    module = Answers(HEADS[name](), verb)
    assert torch.is_grad_enabled()
    sizes = dict(enumerate(map(torch.export.Dim, ("batch", "length") if name in SEQUENCES else ("batch",))))
    given = inputs(name, 5, 7)
    program = torch.export.export(module, given, dynamic_shapes=((sizes,) * len(given),), strict=False)
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    loaded = torch.export.load(buffer).module()
    for batch, steps in ((11, 7), (2, 3)):
        more = inputs(name, batch, steps)
        torch.testing.assert_close(loaded(*more), module(*more))
        if verb != "class_scores":
            assert not loaded(*more).requires_grad


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("name", ["flat", "one_vs_one", "one_vs_all", "kernel", "chain", "tree"])
def test_a_traced_head_says_of_other_features_what_they_are(name):
    """Nothing that the native library wrote is taken for a constant, nor memory that it was to fill for its answer."""
    torch.manual_seed(0)
    module = Answers(HEADS[name](), "predict")
    traced = torch.jit.trace(module, inputs(name, 5, 7), check_trace=False)
    more = inputs(name, 5, 7)
    torch.testing.assert_close(traced(*more), module(*more))


@pytest.mark.parametrize("name", HEADS)
def test_predict_and_probabilities_have_no_gradient(name):
    head = HEADS[name]()
    scores = scores_of(head, *inputs(name, 3, 5))
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


COST = torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 1.0, 0.0]])


@pytest.mark.parametrize(
    "make",
    [
        lambda cost: tm.CRFLoss(),
        lambda cost: tm.CRFLoss(cost=cost, temperature=0.5),
        lambda cost: tm.M3NLoss(cost=cost),
        lambda cost: tm.M3NLoss(cost=tm.costs.Hamming()),
        lambda cost: tm.M3NLoss(cost=[[0, 1, 2], [1, 0, 3], [2, 1, 0]]),
        lambda cost: tm.SVMStructLoss(),
        lambda cost: tm.SVMStructLoss(cost=cost),
        lambda cost: tm.SVMStructLoss(cost=cost, exact=False),
        lambda cost: tm.SVMStructLoss(cost=tm.costs.Matrix(cost)),
        lambda cost: tm.StructuredPerceptronLoss(reduction="token_mean"),
    ],
)
@pytest.mark.parametrize("flat", [False, True])
def test_structured_losses_are_made_inside_a_compiled_function(make, flat):
    torch._dynamo.reset()

    def run(emissions, transitions, target, cost):
        loss = make(cost)
        return loss(emissions, target) if flat else loss(tm.ChainScores(emissions, transitions), target)

    given = torch.randn(2, 5, 3), torch.randn(3, 3), torch.randint(3, (2, 5)), COST
    if flat and "token_mean" in repr(make(COST)):
        return  # of sequences alone
    torch.testing.assert_close(torch.compile(run, fullgraph=True, backend="eager")(*given), run(*given))


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
