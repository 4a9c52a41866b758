"""The record of a chain, its six functions with masks taken out and put back, and maps over it."""

import itertools
import warnings

import pytest
import torch

from benchmarks.chains import problem, struct_potentials
from tests.references import chain_engine as reference
from torch_multiclass.ops import chain
from torch_multiclass.ops.chain import Chain
from torch_multiclass.ops.chain.layout import lay_out
from torch_multiclass.ops.chain.structure import log_sum_exp

INF = torch.inf
B, T, K = 3, 4, 3


def draw(form="one", lengths=None, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def part(*size):
        return torch.randn(*size, generator=generator, dtype=torch.float64).to(dtype)

    shape = {"one": (K, K), "each": (B, K, K), "steps": (B, T - 1, K, K), "shared": (1, T - 1, K, K)}[form]
    wide = form in ("each", "steps")
    return Chain(part(B, T, K), part(*shape), part(K), part(B, K) if wide else part(K), lengths)


@pytest.mark.parametrize("form", ["one", "each", "steps", "shared"])
@pytest.mark.parametrize("lengths", [None, torch.tensor([4, 0, 2])])
def test_terms_add_up_to_the_score(form, lengths):
    record = draw(form, lengths)
    labels = torch.randint(K, (B, 5, T))
    if lengths is not None:
        labels = labels.masked_fill(torch.arange(T) >= lengths[:, None, None], -100)
        record = record._replace(emissions=record.emissions.masked_fill(~record.inside()[..., None], torch.nan))
    terms = record.terms(labels)
    assert terms.shape == (B, 5, 2 * T + 1)
    for n in range(5):
        wanted = reference.scores_of(*record, labels[:, n])
        torch.testing.assert_close(terms[:, n].sum(1), wanted)
        torch.testing.assert_close(record.score(labels[:, n]), wanted)
        at, moves = record.by_position(terms[:, n])
        torch.testing.assert_close(at.sum(1) + moves.sum(1), wanted)
        measured = record.plus(-at[..., None]).plus(-moves[..., None])
        torch.testing.assert_close(measured.score(labels[:, n]), torch.zeros_like(wanted))


def test_without_positions_the_only_labelling_scores_0():
    record = Chain.of(torch.zeros(2, 0, 3, requires_grad=True), torch.zeros(3, 3))
    assert record.terms(torch.zeros(2, 4, 0, dtype=torch.long)).tolist() == [[[0]] * 4] * 2
    score = record.score(torch.zeros(2, 0, dtype=torch.long))
    assert score.tolist() == [0, 0]
    score.sum().backward()  # it belongs to the graph all the same


def test_times_and_rows():
    record = draw("steps", torch.tensor([4, 0, 2]))
    labels = torch.randint(K, (B, T))
    torch.testing.assert_close(record.times(2.5).score(labels), 2.5 * record.score(labels))
    which = torch.tensor([2, 0])
    torch.testing.assert_close(record.rows(which).score(labels[which]), record.score(labels)[which])
    factor = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    junk = record._replace(emissions=record.emissions.masked_fill(~record.inside()[..., None], torch.nan))
    (slope,) = torch.autograd.grad(chain.log_partition(junk.times(factor)).sum(), factor)
    assert bool(slope.isfinite())


@pytest.mark.parametrize("mask", [None, "left", "holes"])
def test_the_six_functions_in_the_layout_of_the_input(mask):
    """Against the chain of each sequence with its masked positions taken out by hand."""
    kept = {
        None: torch.ones(B, T, dtype=torch.bool),
        "left": torch.arange(T) < torch.tensor([4, 0, 2])[:, None],
        "holes": torch.tensor([[1, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]]).bool(),
    }[mask]
    record = draw()
    laid = lay_out(*record[:4], mask=kept)
    labels, unary = torch.randint(K, (B, T)), torch.randn(B, T, K, dtype=torch.float64)
    best, moved = laid.best_labels(), laid.plus(unary)
    assert bool((best[~kept] == -100).all())
    at, moves = laid.by_position(laid.terms(labels[:, None])[:, 0])
    for b in range(B):
        alone = Chain.of(record.emissions[b : b + 1, kept[b]], *record[1:4])
        own = labels[b : b + 1, kept[b]]
        torch.testing.assert_close(laid.terms(labels[:, None]).sum(2)[b], alone.score(own))
        torch.testing.assert_close(laid.log_partition()[b : b + 1], chain.log_partition(alone))
        assert torch.equal(best[b : b + 1, kept[b]], chain.best_labels(alone))
        added = alone.plus(unary[b : b + 1, kept[b]])
        torch.testing.assert_close(moved.log_partition()[b : b + 1], chain.log_partition(added))
        torch.testing.assert_close(laid.times(0.5).log_partition()[b : b + 1], chain.log_partition(alone.times(0.5)))
        torch.testing.assert_close((at + moves)[b].sum(), alone.score(own)[0])
        assert bool(((at + moves)[b, ~kept[b]] == 0).all())


def test_log_sum_exp_at_the_edges():
    scores = torch.tensor([[-INF, -INF], [1.0, -INF], [0.0, 0.0], [INF, 0.0], [torch.nan, 0.0]])
    torch.testing.assert_close(log_sum_exp(scores, 1), torch.logsumexp(scores, 1), equal_nan=True)
    scores = scores[:3].requires_grad_()
    (grad,) = torch.autograd.grad(log_sum_exp(scores, 1).sum(), scores)
    assert grad.tolist() == [[0, 0], [1, 0], [0.5, 0.5]]


# ------------------------------------------------------------------------------------------------------------- kl


@pytest.mark.parametrize("change", [1e-2, 1e-3, 1e-4])
def test_kl_of_chains_that_hardly_differ_has_its_digits(change):
    p = draw(dtype=torch.float32)
    q = p._replace(emissions=p.emissions + change * torch.randn(B, T, K, generator=torch.Generator().manual_seed(1)))
    every = torch.tensor(list(itertools.product(range(K), repeat=T))).expand(B, -1, -1)
    log_p, log_q = (c.double().terms(every).sum(2).log_softmax(1) for c in (p, q))
    ratio = log_q - log_p  # sum_y p(y) (exp(ratio) - 1 - ratio): every term is positive
    wanted = (log_p.exp() * (torch.expm1(ratio) - ratio)).sum(1)
    torch.testing.assert_close(chain.kl(p, q), wanted, rtol=1e-5, atol=0)
    assert bool((chain.kl(p, p) == 0).all())


# ------------------------------------------------------------------------------------------------------------ vmap


def test_vmap_falls_back_nowhere():
    """A rule for every operator: torch warns where it has to loop by itself, and warnings are errors here."""
    emissions = torch.randn(3, B, T, K)
    transitions, costs = torch.randn(K, K), torch.randint(3, (B, T, K))

    def each(e):
        record = Chain.of(e, transitions)
        return (
            *chain.k_best(record, 3),
            chain.slack_labels(record, costs, 2),
            *chain.slack_search(record, costs),
            chain.slack_curve(record, costs, 2),
            chain.entropy(record),
            chain.kl(record, Chain.of(e.flip(0), transitions)),
            chain.marginals(record),
        )

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = torch.vmap(each)(emissions)
        draws = torch.vmap(lambda e: chain.sample(Chain.of(e, transitions), 4), randomness="different")(emissions)
    for at, own in enumerate(emissions):
        wanted = each(own)
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one[at], other)
    assert draws.shape == (3, B, 4, T)
    assert bool(((draws >= 0) & (draws < K)).all())


def test_draws_have_the_chain_s_marginals():
    record = draw("one", torch.tensor([4, 0, 2]))
    labels = chain.sample(record, 20_000, torch.Generator().manual_seed(0))
    shares = torch.stack([(labels == k).double().mean(1) for k in range(K)], 2)
    torch.testing.assert_close(shares, chain.marginals(record), rtol=0, atol=0.015)


def test_potentials_of_the_peer_can_be_viewed():
    given = problem((2, 5, 3), 0.1, "cpu")
    potentials = struct_potentials(given)
    assert potentials.is_contiguous()
    labels = given.labels
    score = potentials.flatten(2).gather(2, (labels[:, 1:] * 3 + labels[:, :-1])[..., None]).sum((1, 2))
    torch.testing.assert_close(score, Chain.of(*given.parts).score(labels))


def test_an_empty_sequence_tells_nothing():
    one, other = (draw("one", torch.tensor([4, 0, 2]), seed=seed) for seed in (0, 1))
    assert float(chain.entropy(one)[1]) == float(chain.kl(one, other)[1]) == 0.0
    assert bool((chain.entropy(one)[[0, 2]] > 0.1).all())
    assert bool((chain.kl(one, other)[[0, 2]] > 0.1).all())
