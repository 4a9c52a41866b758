"""Max-margin losses of chains as one node of the native library, against operators of torch in float64."""

import random

import pytest
import torch

import torch_multiclass as tm
from tests.ops.chain import fuzz_native
from torch_multiclass.ops import _native
from torch_multiclass.ops.chain import Chain, margins, slack

pytestmark = pytest.mark.skipif(_native.library() is None, reason=_native.backends()["native"])


@pytest.fixture(autouse=True)
def computed_by():
    """Always by the library: torch is the oracle here."""


@pytest.fixture
def by_library(monkeypatch):
    """How many losses the library has computed."""
    used, own = [], margins.differentiable

    def counting(*given):
        used.append(1)
        return own(*given)

    monkeypatch.setattr(margins, "differentiable", counting)
    return used


def cost_of(draw, k, generator):
    matrix = torch.randint(1, 4, (k, k), generator=generator) * draw.choice([1.0, 0.5])
    matrix.fill_diagonal_(0)
    kinds = (lambda n: tm.costs.Hamming(n)), (lambda n: tm.costs.Matrix(matrix, normalize=n))
    return draw.choice(kinds)(draw.random() < 0.5)


def loss_of(name, cost, **options):
    if name == "perceptron":
        return tm.StructuredPerceptronLoss(**options)
    return {"m3n": tm.M3NLoss, "slack": tm.SVMStructLoss}[name](cost, **options)


def both(monkeypatch, loss, chain, labels, mask, weight, dtype):
    """Losses and gradients by the library in this dtype, then by torch in float64."""
    found, library = [], _native.library
    for own, which in ((dtype, library), (torch.float64, lambda: None)):
        monkeypatch.setattr(_native, "library", which)
        parts = [part.to(own).requires_grad_() for part in chain[:4]]
        lengths = chain.lengths if mask is None else None
        scores = tm.ChainScores(parts[0], parts[1], start=parts[2], end=parts[3], mask=mask, lengths=lengths)
        value = loss(scores, labels)
        found.append((value.detach().double(), torch.autograd.grad(value, parts, weight.to(own))))
    monkeypatch.setattr(_native, "library", library)
    return found


@pytest.mark.parametrize("name", ["m3n", "perceptron", "slack"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_random_problems_are_as_by_torch(name, dtype, by_library, monkeypatch):
    bound = 1e-6 if dtype == torch.float32 else 1e-12
    for seed in range(60):
        chain = fuzz_native.problem(seed).chain
        draw, generator = random.Random(seed), torch.Generator().manual_seed(seed)
        batch, steps, k = chain.emissions.shape
        labels = torch.randint(k, (batch, steps), generator=generator)
        holes = torch.rand(batch, steps, generator=generator) < 0.6 if draw.random() < 0.3 else None
        loss = loss_of(name, cost_of(draw, k, generator), reduction="none")
        weight = torch.rand(batch, generator=generator)
        (value, parts), (wanted, exact) = both(monkeypatch, loss, chain, labels, holes, weight, dtype)
        legal = wanted.isfinite()
        assert torch.equal(value[~legal], wanted[~legal]), seed
        assert bool(((value - wanted)[legal].abs() <= bound * wanted[legal].abs().clamp(min=1)).all()), seed
        for part, own in zip(parts, exact, strict=True):
            assert float((part - own).abs().max()) <= 10 * bound * max(1, float(own.abs().max())), seed
    assert len(by_library) > 30


@pytest.mark.parametrize("name", ["m3n", "perceptron", "slack"])
def test_a_step_is_one_node(name, by_library):
    chain = fuzz_native.Chain(*(torch.randn(shape) for shape in ((3, 5, 4), (4, 4), (4,), (4,))), None)
    parts = [part.requires_grad_() for part in chain[:4]]
    scores = tm.ChainScores(parts[0], parts[1], start=parts[2], end=parts[3])
    value = loss_of(name, None, reduction="sum")(scores, torch.randint(4, (3, 5)))
    assert len(by_library) == 1
    node = value.grad_fn.next_functions[0][0]  # before the sum
    assert type(node).__name__ == "LossBackward"
    assert [type(part).__name__ for part, _ in node.next_functions[:4]] == ["AccumulateGrad"] * 4


@pytest.mark.parametrize("name", ["m3n", "perceptron", "slack"])
@pytest.mark.parametrize("reduction", ["sum", "mean", "token_mean"])
def test_reductions_and_lengths(name, reduction, monkeypatch):
    chain = fuzz_native.Chain(
        *(torch.randn(shape) for shape in ((4, 6, 3), (3, 3), (3,), (3,))), torch.tensor([6, 0, 1, 4])
    )
    loss = loss_of(name, "hamming", reduction=reduction)
    labels = torch.randint(3, (4, 6))
    (value, parts), (wanted, exact) = both(monkeypatch, loss, chain, labels, None, torch.tensor(1.0), torch.float32)
    torch.testing.assert_close(value, wanted, rtol=1e-6, atol=1e-6)
    for part, own in zip(parts, exact, strict=True):
        torch.testing.assert_close(part.double(), own, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["m3n", "perceptron", "slack"])
def test_twice_differentiable_as_by_torch(name, by_library, monkeypatch):
    generator = torch.Generator().manual_seed(3)
    shapes = (2, 4, 3), (3, 3), (3,), (3,)
    given = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    labels = torch.randint(3, (2, 4), generator=generator)
    loss = loss_of(name, "hamming", reduction="none")
    found, library = [], _native.library
    for which in (library, lambda: None):
        monkeypatch.setattr(_native, "library", which)
        parts = [part.clone().requires_grad_() for part in given]
        scores = tm.ChainScores(parts[0], parts[1], start=parts[2], end=parts[3])
        value = loss(scores, labels)
        first = torch.autograd.grad((value**2).sum(), parts, create_graph=True)
        found.append(torch.autograd.grad(sum((part**2).sum() for part in first), parts))
        many = torch.eye(2, dtype=torch.float64)
        found[-1] += torch.autograd.grad(loss(scores, labels), parts, many, is_grads_batched=True)
    monkeypatch.setattr(_native, "library", library)
    assert len(by_library) == 2
    for part, own in zip(*found, strict=True):
        torch.testing.assert_close(part, own)


def test_a_large_offset_costs_no_digits(by_library, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    shapes = (3, 30, 5), (5, 5), (5,), (5,)
    whole = [torch.randint(-8, 8, shape, generator=generator).double() for shape in shapes]
    labels = torch.randint(5, (3, 30), generator=generator)
    for name in ("m3n", "perceptron", "slack"):
        values = []
        for offset in (0.0, 1e11):
            e, w, start, end = (part + offset for part in whole)
            scores = tm.ChainScores(e, w, start=start, end=end)
            values.append(loss_of(name, "hamming", reduction="none")(scores, labels))
        assert torch.equal(*values), name
    assert len(by_library) == 6


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["m3n", "perceptron", "slack"])
def test_what_is_no_score_is_left_to_torch(bad, name, by_library):
    emissions = torch.randn(2, 4, 3)
    emissions[1, 2, 0] = bad
    value = loss_of(name, "hamming", reduction="none")(
        tm.ChainScores(emissions, torch.zeros(3, 3)), torch.ones(2, 4, dtype=torch.long)
    )
    assert not by_library
    assert not bool(value[1].isfinite())
    assert bool(value[0].isfinite())


def test_a_program_over_costs_that_is_too_large_is_searched(by_library, monkeypatch):
    scores = tm.ChainScores(torch.randn(2, 6, 3), torch.randn(3, 3))
    labels = torch.randint(3, (2, 6))
    wanted = tm.SVMStructLoss()(scores, labels)
    with monkeypatch.context() as patched:
        patched.setattr(margins, "MOST_BYTES", 1)
        torch.testing.assert_close(tm.SVMStructLoss()(scores, labels), wanted)
    assert len(by_library) == 1


@pytest.mark.parametrize("most", [1, 4])
@pytest.mark.parametrize("seed", range(8))
def test_the_search_over_costs_is_exact(seed, most, by_library):
    """Long sequences, whose cells are narrowed down, against the program over all costs; some with equal values."""
    generator = torch.Generator().manual_seed(seed)
    batch, steps, k = 3, 60, (2, 5, 9)[seed % 3]
    emissions = torch.randn(batch, steps, k, generator=generator, dtype=torch.float64) * 10.0 ** (seed % 4 - 1)
    labels = torch.randint(k, (batch, steps), generator=generator)
    emissions.scatter_add_(2, labels[..., None], torch.full((batch, steps, 1), seed / 3, dtype=torch.float64))
    emissions = emissions.round() if seed % 2 else emissions
    transitions = torch.randn(k, k, generator=generator, dtype=torch.float64)
    if seed > 3:
        transitions[0, 1] = -float("inf")
        labels[labels == 1] = 0
    start, end = torch.zeros(2, k, dtype=torch.float64)
    chain = Chain(emissions, transitions, start, end, torch.tensor([60, 17, 41]))
    units = torch.randint(1, most + 1, (k, k), generator=generator).fill_diagonal_(0)
    found = margins.slack_loss(chain, labels, units, most, 0.5, False)
    assert len(by_library) == 1
    costs = torch.where(chain.inside()[..., None], units[labels], 0)
    curve = slack.slack_curve(chain, costs, most) - chain.score(labels)[:, None]
    counts = torch.arange(curve.shape[1]) * 0.5
    wanted = torch.where(curve > -float("inf"), counts * (1 + curve).clamp(min=0), 0.0).amax(1)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)
