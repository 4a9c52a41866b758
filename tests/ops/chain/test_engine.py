"""The chain engine against all labellings and the plain recursion, and on what breaks other implementations."""

import math
import time
import warnings

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from tests.ops.chain import fuzz_native
from tests.references import chain_engine as reference
from torch_multiclass.ops import chain
from torch_multiclass.ops.chain import Chain, engine, logspace, maxplus, operators, plan, scaled
from torch_multiclass.ops.chain.viterbi import best_labels, by_torch

INF = torch.inf
FORMS = ["one", "each", "steps", "shared_steps"]


def draw(batch, steps, k, form="one", seed=0, scale=1.0, dtype=torch.float64, forbid=0.0):
    """Random emissions, transitions of the given form, start and end; a share of the scores forbidden."""
    generator = torch.Generator().manual_seed(seed)
    moves = max(steps - 1, 0)
    shape = {"one": (k, k), "each": (batch, k, k), "steps": (batch, moves, k, k), "shared_steps": (1, moves, k, k)}

    def part(*size):
        values = scale * torch.randn(*size, generator=generator, dtype=torch.float64)
        return values.masked_fill(torch.rand(size, generator=generator) < forbid, -INF).to(dtype)

    wide = form in ("each", "steps")
    return part(batch, steps, k), part(*shape[form]), part(k), part(batch, k) if wide else part(k)


def leaves(*parts):
    return [part.detach().clone().requires_grad_() for part in parts]


def close(found, wanted, tolerance=1e-10):
    torch.testing.assert_close(found.double(), wanted.double(), rtol=tolerance, atol=tolerance, equal_nan=True)


def relative(found, wanted):
    """Largest difference, relative to the largest wanted value."""
    return float((found.double() - wanted.double()).abs().max() / wanted.double().abs().max().clamp_min(1e-30))


def value_and_gradient(parts, lengths=None, labels=None, method="auto", weight=None):
    parts = leaves(*parts)
    if labels is None:
        value = chain.log_partition(Chain.of(*parts, lengths), method=method)
    else:
        value = chain.negative_log_likelihood(Chain.of(*parts, lengths), labels, method=method)
    (value if weight is None else value * weight.to(value)).sum().backward()
    return value.detach(), [part.grad for part in parts]


def in_float64(parts, *rest, **named):
    """The same by the log-space recursion in float64."""
    return value_and_gradient([part.double() for part in parts], *rest, method="log", **named)


class Spy:
    """Which recursions ran, and for how many sequences."""

    def __init__(self, monkeypatch):
        self.ran = []
        begin, end = scaled.Scaled.__init__, engine.Logspace.__init__

        def note_scaled(run, given, labels, weights, layout, *rest):
            begin(run, given, labels, weights, layout, *rest)
            kind = "chunked" if layout.chunks > 1 else "scaled"
            first = torch.float64 if plan.small(*given.emissions.shape) else torch.float32
            self.ran.append((kind + ("" if weights.dtype == first else "64"), int(run.sound.sum())))

        def note_log(run, given, labels):
            end(run, given, labels)
            self.ran.append(("log", len(run.value)))

        monkeypatch.setattr(scaled.Scaled, "__init__", note_scaled)
        monkeypatch.setattr(engine.Logspace, "__init__", note_log)


@pytest.fixture
def spy(monkeypatch):
    return Spy(monkeypatch)


# ------------------------------------------------------------------------------------------- against enumeration


@pytest.mark.parametrize("forbid", [0.0, 0.25])
@pytest.mark.parametrize("form", FORMS)
def test_everything_equals_enumeration(form, forbid):
    lengths = torch.tensor([4, 2, 0, 1, 3])
    for seed in range(3):
        parts = draw(5, 4, 3, form, seed, forbid=forbid)
        close(chain.log_partition(Chain.of(*parts, lengths)), reference.enumerated_log_partition(*parts, lengths))
        unary, pair = reference.enumerated_marginals(*parts, lengths)
        close(chain.marginals(Chain.of(*parts, lengths)), unary)
        close(chain.pair_marginals(Chain.of(*parts, lengths)), pair)
        close(chain.transition_counts(Chain.of(*parts, lengths)), pair.sum(1))
        labels, score = chain.viterbi(Chain.of(*parts, lengths))
        wanted, best = reference.enumerated_viterbi(*parts, lengths)
        close(score, best)
        possible = best > -INF
        assert torch.equal(labels[possible], wanted[possible])
        own = torch.randint(3, (5, 4), generator=torch.Generator().manual_seed(seed))
        score = reference.scores_of(*parts, lengths, own)
        nll = torch.where(score == -INF, INF, reference.enumerated_log_partition(*parts, lengths) - score)
        close(chain.negative_log_likelihood(Chain.of(*parts, lengths), own), nll)


@pytest.mark.parametrize("method", chain.METHODS)
def test_every_method_equals_the_plain_recursion_and_its_gradient(method):
    lengths = torch.tensor([40, 17, 0, 1, 39, 16])
    parts = draw(6, 40, 4)
    weight = torch.randn(6)
    plain = leaves(*parts)
    wanted = reference.log_partition_plain(*plain, lengths)
    (wanted * weight).sum().backward()
    value, grads = value_and_gradient(parts, lengths, method=method, weight=weight)
    close(value, wanted.detach())
    for own, part in zip(grads, plain, strict=True):
        close(own, part.grad)


def test_the_loss_is_log_partition_less_the_gold_score_and_its_gradient_too():
    lengths = torch.tensor([30, 7, 0, 1])
    parts, labels = draw(4, 30, 5), torch.randint(5, (4, 30))
    labels[1, 7:] = -100
    value, grads = value_and_gradient(parts, lengths, labels)
    mine = leaves(*parts)
    wanted = chain.log_partition(Chain.of(*mine, lengths), method="log") - chain.path_score(
        Chain.of(*mine, lengths), labels
    )
    wanted.sum().backward()
    close(value, wanted.detach())
    for own, part in zip(grads, mine, strict=True):
        close(own, part.grad)


@given(
    batch=st.integers(0, 3),
    steps=st.integers(0, 4),
    k=st.integers(1, 3),
    form=st.sampled_from(FORMS),
    palette=st.sampled_from([[0.0, 1, -1, 0.5], [0.0, 1, -INF], [0, 1e4, -1e4, 1], [0, 1e4, -1e4, -INF, 3]]),
    seed=st.integers(0, 10**6),
    data=st.data(),
)
def test_fuzz_against_enumeration(batch, steps, k, form, palette, seed, data):
    generator = torch.Generator().manual_seed(seed)
    parts = [
        torch.tensor(palette)[torch.randint(len(palette), part.shape, generator=generator)]
        for part in draw(batch, steps, k, form)
    ]
    lengths = data.draw(st.none() | st.lists(st.integers(0, steps), min_size=batch, max_size=batch))
    lengths = None if lengths is None else torch.tensor(lengths, dtype=torch.long)
    value, grads = value_and_gradient(parts, lengths)
    labels, score = chain.viterbi(Chain.of(*parts, lengths))
    assert labels.shape == (batch, steps)
    assert all(not grad.isnan().any() for grad in grads)
    if batch == 0:
        return
    wanted = reference.enumerated_log_partition(*parts, lengths)
    close(value, wanted, 1e-5)
    unary, _ = reference.enumerated_marginals(*parts, lengths)
    close(grads[0], unary, 1e-5)
    assert bool((grads[0][unary == 0] < 1e-30).all())
    impossible = parts[0] == -INF
    assert bool((grads[0][impossible] == 0).all())
    best_labels, best = reference.enumerated_viterbi(*parts, lengths)
    close(score, best, 1e-5)
    close(chain.path_score(Chain.of(*(part.double() for part in parts), lengths), labels), best)
    if not any(part.abs().max() > 100 for part in parts if part.numel() and part.isfinite().all()):
        possible = best > -INF
        assert torch.equal(labels[possible], best_labels[possible])


@given(seed=st.integers(0, 10**6), steps=st.integers(30, 200), k=st.integers(1, 6), case=st.integers(0, 5))
@example(seed=183, steps=183, k=1, case=0)
@example(seed=183, steps=183, k=1, case=1)
@example(seed=183, steps=183, k=1, case=2)
@example(seed=183, steps=183, k=1, case=3)
@example(seed=183, steps=183, k=1, case=4)
@example(seed=183, steps=183, k=1, case=5)
def test_fuzz_long_chains_against_float64_log_space(seed, steps, k, case):
    """Float32 by whatever method is chosen, with lengths, forbidden scores and huge ones."""
    generator = torch.Generator().manual_seed(seed)
    scale, forbid = [(1, 0), (6, 0), (30, 0), (1, 0.2), (6, 0.2), (1000, 0.1)][case]
    parts = draw(3, steps, k, seed=seed, scale=scale, forbid=forbid, dtype=torch.float32)
    lengths = torch.randint(0, steps + 1, (3,), generator=generator)
    labels = torch.randint(k, (3, steps), generator=generator)
    for own in (None, labels):
        value, grads = value_and_gradient(parts, lengths, own)
        wanted, exact = in_float64(parts, lengths, own)
        close(value, wanted, 1e-5)
        if own is None:  # the gold labelling's own share takes digits from the counts, but adds no error
            sizes = [max(1.0, float(grad.abs().max())) for grad in exact]
        for found, grad, size in zip(grads, exact, sizes, strict=True):
            assert float((found.double() - grad).abs().max()) <= 1e-5 * size
    found, _ = chain.viterbi(Chain.of(*parts, lengths))
    exact = [part.double() for part in parts]
    wanted, best = chain.viterbi(Chain.of(*exact, lengths))
    close(chain.path_score(Chain.of(*exact, lengths), found), best, 1e-6)


def test_ties_go_to_the_lowest_last_label_and_then_backwards():
    parts = torch.zeros(1, 3, 3), torch.zeros(3, 3), None, None
    assert chain.viterbi(Chain.of(*parts))[0].tolist() == [[0, 0, 0]]
    emissions = torch.tensor([[[0.0, 1, 1], [1, 1, 0], [0, 1, 1]]])
    assert chain.viterbi(Chain.of(emissions, torch.zeros(3, 3)))[0].tolist() == [[1, 0, 1]]
    emissions, transitions = torch.randint(0, 2, (4, 5, 3)).float(), torch.randint(0, 2, (3, 3)).float()
    for lengths in (None, torch.tensor([5, 3, 1, 4])):
        wanted, _ = reference.enumerated_viterbi(emissions, transitions, None, None, lengths)
        assert torch.equal(chain.viterbi(Chain.of(emissions, transitions, None, None, lengths))[0], wanted)


# ------------------------------------------------------------------------------------------------- the edges


@pytest.mark.parametrize(("batch", "steps", "k"), [(0, 3, 2), (2, 0, 3), (2, 1, 3), (2, 4, 1), (0, 0, 1), (1, 1, 1)])
@pytest.mark.parametrize("form", FORMS)
def test_smallest_sizes(batch, steps, k, form):
    parts = draw(batch, steps, k, form)
    labels = torch.zeros(batch, steps, dtype=torch.long)
    for own in (None, labels):
        value, grads = value_and_gradient(parts, None, own)
        assert value.shape == (batch,)
        assert [grad.shape for grad in grads] == [part.shape for part in parts]
    assert chain.marginals(Chain.of(*parts)).shape == (batch, steps, k)
    assert chain.pair_marginals(Chain.of(*parts)).shape == (batch, max(steps - 1, 0), k, k)
    assert chain.viterbi(Chain.of(*parts))[0].shape == (batch, steps)
    if batch:
        close(chain.log_partition(Chain.of(*parts)), reference.enumerated_log_partition(*parts, None))
    if k == 1 and batch:
        close(chain.negative_log_likelihood(Chain.of(*parts, None), labels), torch.zeros(batch))


def test_a_length_of_zero_costs_nothing_and_moves_nothing():
    parts = draw(2, 5, 3)
    value, grads = value_and_gradient(parts, torch.tensor([0, 0]), torch.zeros(2, 5, dtype=torch.long))
    assert value.tolist() == [0, 0]
    assert all(float(grad.abs().max()) == 0 for grad in grads)
    labels, score = chain.viterbi(Chain.of(*parts, torch.tensor([0, 0])))
    assert bool((labels == -100).all())
    assert score.tolist() == [0, 0]


@pytest.mark.parametrize("junk", [torch.nan, INF, -INF, 1e30])
@pytest.mark.parametrize("method", ["auto", "chunked", "log"])
def test_nothing_past_a_length_matters(junk, method):
    lengths = torch.tensor([40, 11, 0, 25])
    parts, labels = draw(4, 40, 3, dtype=torch.float32), torch.randint(3, (4, 40))
    clean = value_and_gradient(parts, lengths, labels, method)
    past = torch.arange(40) >= lengths[:, None]
    dirty_labels = labels.masked_fill(past, -100)
    dirty = parts[0].masked_fill(past[..., None], junk)
    value, grads = value_and_gradient([dirty, *parts[1:]], lengths, dirty_labels, method)
    assert torch.equal(value, clean[0])
    assert all(torch.equal(own, wanted) for own, wanted in zip(grads, clean[1], strict=True))
    assert float(grads[0][past].abs().max()) == 0
    found = chain.viterbi(Chain.of(dirty, *parts[1:], lengths))
    wanted = chain.viterbi(Chain.of(*parts, lengths))
    assert torch.equal(found[0], wanted[0])
    assert torch.equal(found[1], wanted[1])


@pytest.mark.parametrize("where", range(4))
@pytest.mark.parametrize("steps", [3, 200])
def test_nan_gives_nan(where, steps):
    parts = list(draw(2, steps, 3, dtype=torch.float32))
    parts[where].view(-1, 3)[:, 1] = torch.nan
    labels = torch.zeros(2, steps, dtype=torch.long)
    assert bool(chain.log_partition(Chain.of(*parts)).isnan().all())
    assert bool(chain.negative_log_likelihood(Chain.of(*parts, None), labels).isnan().all())
    assert bool(chain.viterbi(Chain.of(*parts))[1].isnan().all())


def test_nan_in_one_row_leaves_the_others_alone():
    parts, labels = draw(3, 60, 4, dtype=torch.float32), torch.randint(4, (3, 60))
    clean, wanted = value_and_gradient(parts, None, labels)
    parts[0][1, 30, 2] = torch.nan
    value, grads = value_and_gradient(parts, None, labels)
    assert value.isnan().tolist() == [False, True, False]
    close(value[[0, 2]], clean[[0, 2]], 1e-6)
    close(grads[0][[0, 2]], wanted[0][[0, 2]], 1e-6)


def test_rows_do_not_mix_and_padding_changes_nothing():
    parts, labels = draw(3, 20, 4, dtype=torch.float32), torch.randint(4, (3, 20))
    whole, grads = value_and_gradient(parts, None, labels)
    for row in range(3):
        alone, own = value_and_gradient([parts[0][row : row + 1], *parts[1:]], None, labels[row : row + 1])
        close(alone, whole[row : row + 1], 1e-6)
        close(own[0][0], grads[0][row], 1e-6)
    wide = torch.cat([parts[0], torch.full((3, 33, 4), torch.nan)], 1)
    padded, own = value_and_gradient(
        [wide, *parts[1:]], torch.full((3,), 20), torch.nn.functional.pad(labels, (0, 33), value=-100)
    )
    close(padded, whole, 1e-6)
    close(own[0][:, :20], grads[0], 1e-6)


@pytest.mark.parametrize("method", chain.METHODS)
def test_forbidden_gold_and_no_legal_labelling(method):
    emissions, transitions = torch.randn(3, 6, 3), torch.zeros(3, 3)
    emissions[0, 2, 1] = -INF
    emissions[1, 3] = -INF
    labels = torch.ones(3, 6, dtype=torch.long)
    none = torch.zeros(3)
    value, grads = value_and_gradient([emissions, transitions, none, none], None, labels, method)
    assert value[0] == INF
    assert value[1] == INF
    assert value[2].isfinite()
    assert float(grads[0][:2].abs().max()) == 0
    assert all(bool(grad.isfinite().all()) for grad in grads)
    value, grads = value_and_gradient([emissions, transitions, none, none], None, None, method)
    assert value[1] == -INF
    assert float(grads[0][1].abs().max()) == 0
    assert all(bool(grad.isfinite().all()) for grad in grads)
    assert chain.viterbi(Chain.of(emissions, transitions))[1][1] == -INF


def test_a_label_legal_only_as_the_first():
    transitions = torch.randn(3, 3)
    transitions[:, 2] = -INF
    parts = torch.randn(2, 30, 3), transitions, torch.zeros(3), torch.zeros(3)
    value, grads = value_and_gradient(parts)
    wanted, exact = in_float64(parts)
    close(value, wanted, 1e-6)
    for own, grad in zip(grads, exact, strict=True):
        assert relative(own, grad) < 1e-5
    assert bool((grads[0][:, 1:, 2] == 0).all())
    assert bool((grads[0][:, 0, 2] > 0).all())


def test_a_decode_never_takes_what_is_forbidden():
    transitions = torch.tensor([[0, -INF], [-INF, 0]])
    emissions = torch.tensor([[[3e4, 0], [0, 3e4]]])
    labels, score = chain.viterbi(Chain.of(emissions, transitions))
    assert labels.tolist() in ([[0, 0]], [[1, 1]])
    assert score.tolist() == [30000]


# -------------------------------------------------------------------------------------- accuracy in float32


def base():
    e = torch.tensor([[[1.0, 0, -1], [0, 2, 0], [0.5, 0, 1], [0, 0, 3]], [[0, 1, 0], [2, 0, 0], [0, 0, 0], [1, 1, 1]]])
    transitions = torch.tensor([[0.5, -0.5, 0], [0, 0.2, 0.3], [-0.4, 0, 0.1]])
    start, end = torch.tensor([0.1, 0, -0.1]), torch.tensor([0, 0.2, 0])
    return e, transitions, start, end, torch.tensor([[0, 1, 2, 2], [1, 0, 0, 1]])


@pytest.mark.parametrize(
    ("lengths", "forbid", "wanted"),
    [
        ([4, 0], None, 1.61672),
        ([4, 1], None, 2.09010),
        ([4, 2], None, 2.52443),
        ([4, 4], -INF, 3.62049),
        ([4, 4], -1e4, 3.62049),
    ],
)
@pytest.mark.parametrize("method", chain.METHODS)
def test_small_inputs_with_known_values(lengths, forbid, wanted, method):
    e, transitions, start, end, labels = base()
    lengths = torch.tensor(lengths)
    if forbid is not None:
        transitions[0, 2] = transitions[2, 0] = forbid
    labels = labels.masked_fill(torch.arange(4) >= lengths[:, None], -100)
    value = chain.negative_log_likelihood(Chain.of(e, transitions, start, end, lengths), labels, method=method)
    assert float(value.sum()) == pytest.approx(wanted, abs=1e-5)


def test_one_position():
    e, transitions, start, end, labels = base()
    value = chain.negative_log_likelihood(Chain.of(e[:, :1], transitions, start, end, None), labels[:, :1])
    assert float(value.sum()) == pytest.approx(0.89036, abs=1e-5)


@pytest.mark.parametrize(
    ("size", "scale"), [((8, 512, 20), 0.1), ((8, 512, 20), 1.0), ((8, 512, 20), 3.0), ((1, 4096, 9), 1.0)]
)
def test_float32_agrees_with_float64_to_1e_5(size, scale):
    batch, steps, k = size
    parts = list(draw(batch, steps, k, seed=3, dtype=torch.float32))
    parts[1] = parts[1] * scale
    for lengths in (None, torch.randint(steps // 2, steps + 1, (batch,))):
        value, grads = value_and_gradient(parts, lengths)
        wanted, exact = in_float64(parts, lengths)
        close(value, wanted, 1e-5)
        assert float((grads[0] - exact[0]).abs().max()) < 1e-5
        for own, grad in zip(grads[1:], exact[1:], strict=True):
            assert relative(own, grad) < 1e-5


def test_emissions_shifted_by_1e4():
    parts, labels = draw(4, 512, 9, dtype=torch.float32), torch.randint(9, (4, 512))
    # On a grid that float32 holds at 1e4, so that the shift itself rounds nothing.
    emissions = (parts[0] * 64).round() / 64
    value, grads = value_and_gradient([emissions + 1e4, *parts[1:]], None, labels)
    wanted, exact = in_float64([emissions, *parts[1:]], None, labels)
    close(value, wanted, 1e-5)
    assert relative(grads[0], exact[0]) < 1e-5
    assert torch.equal(
        chain.viterbi(Chain.of(emissions + 1e4, *parts[1:]))[0],
        chain.viterbi(Chain.of(emissions.double(), *(p.double() for p in parts[1:])))[0],
    )


def test_small_transitions_and_many_steps():
    parts = [torch.randn(2, 102, 17), 0.01 * torch.randn(17, 17), torch.zeros(17), torch.zeros(17)]
    for method in ("auto", "scaled", "chunked"):
        value, grads = value_and_gradient(parts, method=method)
        wanted, exact = in_float64(parts)
        close(value, wanted, 1e-5)
        for own, grad in zip(grads, exact, strict=True):
            assert relative(own, grad) < 1e-5


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_float32(half):
    parts, labels = [part.to(half) for part in draw(2, 512, 9)], torch.randint(9, (2, 512))
    value, grads = value_and_gradient(parts, None, labels)
    wanted, exact = in_float64(parts, None, labels)
    assert value.dtype == torch.float32
    close(value, wanted, 1e-5)
    assert [grad.dtype for grad in grads] == [half] * 4
    assert relative(grads[0], exact[0]) < 1e-2
    assert chain.marginals(Chain.of(*parts)).dtype == torch.float32
    assert torch.equal(
        chain.viterbi(Chain.of(*parts))[0], chain.viterbi(Chain.of(*(part.float() for part in parts)))[0]
    )


@pytest.mark.parametrize("method", chain.METHODS)
def test_autocast_changes_nothing(method):
    parts, labels = draw(3, 60, 9, dtype=torch.float32), torch.randint(9, (3, 60))
    wanted, exact = value_and_gradient(parts, None, labels, method)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value, grads = value_and_gradient(parts, None, labels, method)
        unary, (best, score) = chain.marginals(Chain.of(*parts), method=method), chain.viterbi(Chain.of(*parts))
    assert torch.equal(value, wanted)
    assert all(torch.equal(own, grad) for own, grad in zip(grads, exact, strict=True))
    assert torch.equal(unary, chain.marginals(Chain.of(*parts), method=method))
    assert torch.equal(best, chain.viterbi(Chain.of(*parts))[0])
    assert torch.equal(score, chain.viterbi(Chain.of(*parts))[1])


@pytest.mark.parametrize("steps", [2, 20, 150, 600])
@pytest.mark.parametrize("height", [16.0, 50.0, 400.0])
def test_a_label_far_below_the_best_wins_at_last(steps, height):
    """Sticky transitions hold the favoured label until the last emission favours another by 400."""
    emissions = torch.zeros(2, steps, 4)
    emissions[:, 0, 1] = 3
    emissions[:, -1, 2] = 400
    transitions = torch.full((4, 4), -height).fill_diagonal_(height)
    parts = emissions, transitions, torch.zeros(4), torch.zeros(4)
    for labels in (None, torch.ones(2, steps, dtype=torch.long)):
        value, grads = value_and_gradient(parts, None, labels)
        wanted, exact = in_float64(parts, None, labels)
        close(value, wanted, 1e-5)
        for own, grad in zip(grads, exact, strict=True):
            close(own, grad, 1e-5)
    exact = [part.double() for part in parts]
    assert torch.equal(chain.viterbi(Chain.of(*parts))[0], chain.viterbi(Chain.of(*exact))[0])


@pytest.mark.parametrize("gap", [3.0, 30.0, 300.0, 3e4])
@pytest.mark.parametrize("forbid", [-INF, -1e4])
def test_parts_of_the_chain_that_never_meet(gap, forbid, spy):
    """Two labels without a way between them: one leads by the middle, the other is right in the end."""
    transitions = torch.tensor([[0, forbid], [forbid, 0]])
    emissions = torch.zeros(1, 60, 2)
    emissions[0, :30, 0] = gap / 20
    emissions[0, 30:, 1] = gap / 15
    for end in ([-INF, 0.0], [0.0, 0.0]):
        parts = emissions, transitions, torch.zeros(2), torch.tensor(end)
        value, grads = value_and_gradient(parts)
        wanted, exact = in_float64(parts)
        close(value, wanted, 1e-5)
        for own, grad in zip(grads, exact, strict=True):
            close(own, grad, 1e-5)
    if gap == 3e4:
        assert spy.ran[-1] != ("scaled", 1)


def bio(k, forbid):
    """Transitions and start of BIO tags: O, B-1, I-1, B-2, I-2, ..."""
    transitions, start = torch.zeros(k, k), torch.zeros(k)
    for inner in range(2, k, 2):
        transitions[:, inner] = start[inner] = forbid
        transitions[[inner - 1, inner], inner] = 0
    return transitions, start


@pytest.mark.parametrize("forbid", [-INF, -1e4])
@pytest.mark.parametrize(("steps", "k"), [(30, 9), (60, 17), (512, 9)])
def test_bio_constraints_stay_on_the_fast_path(forbid, steps, k, spy):
    transitions, start = bio(k, forbid)
    parts = torch.randn(4, steps, k) * 3, transitions + torch.randn(k, k), start + torch.randn(k), torch.randn(k)
    labels = torch.zeros(4, steps, dtype=torch.long)
    value, grads = value_and_gradient(parts, None, labels)
    assert sum(sound for kind, sound in spy.ran if kind in ("scaled", "chunked")) == 4
    assert all(kind in ("scaled", "chunked") for kind, _ in spy.ran)
    wanted, exact = in_float64(parts, None, labels)
    close(value, wanted, 1e-5)
    assert float((grads[0] - exact[0]).abs().max()) < 1e-5
    assert float((grads[1] - exact[1]).abs().max()) < 1e-5 * 4 * steps
    assert bool((grads[1][transitions == forbid] == 0).all())


def test_one_hard_row_leaves_the_others_on_the_fast_path(spy):
    parts, labels = draw(4, 20, 5, dtype=torch.float32), torch.randint(5, (4, 20))
    parts[0][2, 7, labels[2, 7]] = -INF
    value, grads = value_and_gradient(parts, None, labels)
    assert spy.ran[0] == ("scaled", 3)
    assert spy.ran[-1] == ("log", 1)
    assert value.isinf().tolist() == [False, False, True, False]
    assert float(grads[0][2].abs().max()) == 0


@pytest.mark.parametrize(("dtype", "goal"), [(torch.float32, 1e-7), (torch.float64, 1e-14)])
@pytest.mark.parametrize("span", [0.0, 4e-4, 0.3, 1.0, 4.0, 7.5])
def test_a_warm_up_forgets_where_it_started(span, dtype, goal):
    """By Birkhoff's contraction, step by step, and one step more."""
    distance, steps = max(2 * span, 1e-3), 0
    contraction = math.tanh(distance / 4)
    while distance > goal:
        distance, steps = distance * contraction, steps + 1
    assert plan.warm_up(span, dtype) == steps + 1
    assert plan.warm_up(100.0, dtype) >= 1e9


def test_chunks_that_do_not_forget_are_not_trusted(spy):
    """Transitions that hardly mix: the warm-up is measured, found short, and the chain done step by step."""
    parts = draw(3, 300, 4, dtype=torch.float32, scale=0.1)
    parts[1].fill_diagonal_(9.0)
    value, grads = value_and_gradient(parts, method="chunked")
    assert ("chunked", 0) in spy.ran
    assert ("scaled", 3) in spy.ran
    wanted, exact = in_float64(parts)
    close(value, wanted, 1e-5)
    assert relative(grads[0], exact[0]) < 1e-5


@pytest.mark.parametrize("warm", [1, 3])
def test_viterbi_chunks_that_do_not_meet_are_not_trusted(warm, monkeypatch):
    monkeypatch.setattr(plan, "viterbi_cuts", lambda *size: (plan.Cut(7, 8, warm), plan.Cut(50, 1, 0)))
    for seed, lengths in enumerate([None, torch.tensor([50, 0, 33, 21])] * 3):
        parts = draw(4, 50, 4, seed=seed, scale=2.0, dtype=torch.float32)
        exact = [part.double() for part in parts]
        labels, _ = chain.viterbi(Chain.of(*parts, lengths))
        value = chain.path_score(Chain.of(*exact, lengths), labels)
        # float64 per-step matrices take the plain way
        plain = exact[1].expand(1, 49, 4, 4)
        close(value, chain.viterbi(Chain.of(exact[0], plain, *exact[2:], lengths))[1], 1e-6)


# ------------------------------------------------------------------------------- derivatives and transforms


@pytest.mark.parametrize("form", FORMS)
def test_first_and_second_derivatives(form):
    lengths = torch.tensor([3, 1, 0])
    labels = torch.randint(2, (3, 3))
    parts = leaves(*draw(3, 3, 2, form))
    for labelled in (False, True):

        def value(*parts, labelled=labelled):
            if labelled:
                return chain.negative_log_likelihood(Chain.of(*parts, lengths), labels)
            return chain.log_partition(Chain.of(*parts, lengths))

        assert torch.autograd.gradcheck(value, parts)
        assert torch.autograd.gradgradcheck(value, parts)
    for quantity in (chain.marginals, chain.pair_marginals, chain.transition_counts):
        assert torch.autograd.gradcheck(lambda *parts, quantity=quantity: quantity(Chain.of(*parts, lengths)), parts)


def test_second_derivatives_with_forbidden_scores_are_finite():
    transitions, start = bio(5, -INF)
    parts = leaves(
        torch.randn(2, 4, 5, dtype=torch.float64), transitions.double(), start.double(), torch.zeros(5).double()
    )
    lengths = torch.tensor([4, 2])
    grads = torch.autograd.grad(chain.log_partition(Chain.of(*parts, lengths)).sum(), parts, create_graph=True)
    direction = [torch.randn_like(grad) for grad in grads]
    product = sum((grad * along).sum() for grad, along in zip(grads, direction, strict=True))
    second = torch.autograd.grad(product, parts)
    assert all(bool(part.isfinite().all()) for part in second)
    # against a difference of gradients along the direction, where the direction leaves what is forbidden alone
    step = 1e-5

    def gradient(sign):
        moved = [torch.where(p == -INF, p, p + sign * step * d) for p, d in zip(parts, direction, strict=True)]
        return value_and_gradient(moved, lengths)[1]

    for found, ahead, behind in zip(second, gradient(1), gradient(-1), strict=True):
        close(found, (ahead - behind) / (2 * step), 1e-6)


def test_a_graph_used_twice_gives_the_same_gradient():
    parts = leaves(*draw(2, 60, 4, dtype=torch.float32))
    value = chain.log_partition(Chain.of(*parts)).sum()
    first = torch.autograd.grad(value, parts, retain_graph=True)
    second = torch.autograd.grad(value, parts)
    for one, other in zip(first, second, strict=True):
        close(one, other, 1e-6)


def test_the_gradient_of_the_best_score_is_the_best_path():
    parts, lengths = leaves(*draw(3, 6, 4)), torch.tensor([6, 0, 3])
    labels, score = chain.viterbi(Chain.of(*parts, lengths))
    score.sum().backward()
    kept = torch.arange(6) < lengths[:, None]
    wanted = torch.nn.functional.one_hot(labels.clamp_min(0), 4) * kept[..., None]
    assert torch.equal(parts[0].grad, wanted.double())


def test_operators_pass_torch_s_own_check():
    e, transitions, start, end = draw(2, 4, 3, dtype=torch.float32)
    lengths, labels = torch.tensor([4, 2]), torch.randint(3, (2, 4))
    parts = leaves(e, transitions, start, end)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.library.opcheck(operators.value, (*parts, lengths, labels, "auto"))
        torch.library.opcheck(operators.gradient, (torch.ones(2), *parts, None, None, "auto"))
        along = [torch.randn_like(part) for part in parts]
        torch.library.opcheck(
            operators.curvature, (torch.ones(2), *along, *(p.detach() for p in parts), lengths, labels)
        )
        torch.library.opcheck(operators.best_labels, (e, transitions, start, end, lengths, None))


def test_compile_sees_one_node_and_is_quick():
    parts, labels = leaves(*draw(2, 512, 9, dtype=torch.float32)), torch.randint(9, (2, 512))
    lengths = torch.tensor([512, 300])

    def step(*parts):
        return chain.negative_log_likelihood(Chain.of(*parts, lengths), labels).sum()

    begin = time.process_time()
    torch._dynamo.reset()
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    value = compiled(*parts)
    grads = torch.autograd.grad(value, parts)
    assert time.process_time() - begin < 5
    wanted = step(*parts)
    close(value, wanted, 1e-6)
    for own, grad in zip(grads, torch.autograd.grad(wanted, parts), strict=True):
        close(own, grad, 1e-5)
    graphs = []

    def look(graph, _):
        graphs.append([str(node.target) for node in graph.graph.nodes])
        return graph.forward

    torch.compile(step, fullgraph=True, backend=look)(*parts)
    (targets,) = graphs
    assert sum("chain_value" in target for target in targets) == 1
    assert len(targets) < 20
    decode = torch.compile(
        lambda *parts: chain.viterbi(Chain.of(*parts, lengths))[0], fullgraph=True, backend="aot_eager"
    )
    assert torch.equal(decode(*parts), chain.viterbi(Chain.of(*parts, lengths))[0])


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.transitions = torch.nn.Parameter(torch.randn(4, 4))

    def forward(self, emissions, lengths=None):
        parts = emissions, self.transitions, None, None, lengths
        labels, best = chain.viterbi(Chain.of(*parts))
        return (
            labels,
            best,
            chain.log_partition(Chain.of(*parts)),
            chain.marginals(Chain.of(*parts)),
            chain.transition_counts(Chain.of(*parts)),
        )


@pytest.mark.parametrize("ragged", [False, True])
def test_export_with_dynamic_batch_and_steps(ragged):
    model, batch, steps = Tagger(), torch.export.Dim("batch"), torch.export.Dim("steps")

    def inputs(size):
        emissions, lengths = torch.randn(*size, 4), torch.randint(0, size[1] + 1, size[:1])
        return (emissions, lengths) if ragged else (emissions,)

    shapes = ({0: batch, 1: steps}, {0: batch}) if ragged else ({0: batch, 1: steps},)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = torch.export.export(model, inputs((3, 7)), dynamic_shapes=shapes).module()
    for size in [(3, 7), (5, 90), (2, 2)]:
        given = inputs(size)
        for found, wanted in zip(exported(*given), model(*given), strict=True):
            close(found, wanted, 1e-6)


def test_vmap_over_each_argument():
    e, transitions, start, end = draw(2, 5, 3)
    stacked = [torch.stack([part, part + 0.5, part * 2]) for part in (e, transitions, start, end)]
    lengths, labels = torch.tensor([5, 3]), torch.randint(3, (2, 5))

    def nll(*parts):
        return chain.negative_log_likelihood(Chain.of(*parts, lengths), labels)

    for dims in [(0, None, None, None), (None, 0, None, None), (None, None, 0, 0), (0, 0, 0, 0)]:
        parts = [
            own if dim == 0 else part
            for own, part, dim in zip(stacked, (e, transitions, start, end), dims, strict=True)
        ]
        chosen = [[p[i] if dim == 0 else p for p, dim in zip(parts, dims, strict=True)] for i in range(3)]
        found = torch.vmap(nll, in_dims=dims)(*parts)
        close(found, torch.stack([nll(*own) for own in chosen]))
        slope = torch.vmap(torch.func.grad(lambda *parts: nll(*parts).sum(), argnums=(0, 1, 2, 3)), in_dims=dims)(
            *parts
        )
        for at in range(3):
            wanted = value_and_gradient(chosen[at], lengths, labels)[1]
            for own, grad in zip(slope, wanted, strict=True):
                close(own[at], grad)
        best = torch.vmap(lambda *parts: chain.viterbi(Chain.of(*parts, lengths))[0], in_dims=dims)(*parts)
        assert torch.equal(best, torch.stack([chain.viterbi(Chain.of(*own, lengths))[0] for own in chosen]))


def test_vmap_over_lengths_and_labels():
    parts = draw(2, 5, 3)
    lengths, labels = torch.tensor([[5, 3], [0, 2]]), torch.randint(3, (2, 2, 5))
    found = torch.vmap(lambda n, y: chain.negative_log_likelihood(Chain.of(*parts, n), y))(lengths, labels)
    wanted = [chain.negative_log_likelihood(Chain.of(*parts, n), y) for n, y in zip(lengths, labels, strict=True)]
    close(found, torch.stack(wanted))


def test_functional_derivatives():
    e, transitions, start, end = draw(2, 4, 3)

    def total(e):
        return chain.log_partition(Chain.of(e, transitions, start, end)).sum()

    close(torch.func.grad(total)(e), chain.marginals(Chain.of(e, transitions, start, end)))
    wanted = torch.autograd.functional.hessian(total, e)
    close(torch.func.jacrev(torch.func.grad(total))(e), wanted)


# ----------------------------------------------------------------------------------------------- good manners


def test_inputs_are_left_alone_and_may_be_strided():
    parts = draw(3, 50, 4, dtype=torch.float32)
    strided = [part.transpose(-1, -2).contiguous().transpose(-1, -2) if part.dim() > 1 else part for part in parts]
    before = [part.clone() for part in strided]
    value, grads = value_and_gradient(strided)
    wanted, exact = value_and_gradient(parts)
    close(value, wanted, 1e-6)
    for own, grad in zip(grads, exact, strict=True):
        close(own, grad, 1e-6)
    chain.viterbi(Chain.of(*strided))
    assert all(torch.equal(one, other) for one, other in zip(strided, before, strict=True))
    assert not any(part.requires_grad for part in strided)
    with torch.inference_mode():
        close(chain.log_partition(Chain.of(*strided)), wanted, 1e-6)


@pytest.mark.parametrize("scale", [0.0, 1e-12, 65536.0, -3.0, 1e20])
def test_any_scale_of_the_incoming_gradient(scale):
    parts = draw(3, 60, 4, dtype=torch.float32)
    _, grads = value_and_gradient(parts, weight=torch.tensor([scale, 2 * scale, 0.0]))
    _, exact = in_float64(parts, weight=torch.tensor([scale, 2 * scale, 0.0], dtype=torch.float64))
    for own, grad in zip(grads, exact, strict=True):
        assert float((own.double() - grad).abs().max()) <= 2e-6 * float(grad.abs().max())


def test_values_are_read_on_the_cpu_only():
    """Tensors without values: whatever would wait for a GPU to know a value fails on them."""
    for form in ("one", "steps"):
        chained = [part.to("meta") for part in draw(2, 6, 3, form)]
        lengths, labels = (
            torch.empty(2, dtype=torch.long, device="meta"),
            torch.empty(2, 6, dtype=torch.long, device="meta"),
        )
        weight = torch.empty(2, device="meta")
        for own in (None, labels):
            solution = engine.solve(Chain(*chained, lengths), own, "auto")
            assert solution.value.shape == (2,)
            assert solution.gradient(weight)[0].shape == (2, 6, 3)
            logspace.curvature(weight, tuple(chained), Chain(*chained, lengths), own)
        assert best_labels(Chain(*chained, lengths)).shape == (2, 6)


def test_small_steps_run_on_one_thread(by_torch, monkeypatch):
    seen = []
    begin = scaled.Scaled.__init__

    def note(run, *inputs):
        seen.append(torch.get_num_threads())
        begin(run, *inputs)

    monkeypatch.setattr(scaled.Scaled, "__init__", note)
    torch.set_num_threads(2)
    value_and_gradient(draw(2, 5, 3))
    assert seen == [1]
    assert torch.get_num_threads() == 2


def test_a_method_is_chosen_by_name():
    parts = draw(1, 3, 2)
    with pytest.raises(ValueError, match="method: got 'fast'; accepted are 'auto'"):
        chain.log_partition(Chain.of(*parts), method="fast")


def test_the_engine_saves_memory():
    """A training step holds no (T, K, K) and at most a few (B, T, K)."""
    from benchmarks.chains import ours, peak_memory, problem

    size = (16, 128, 100)
    mib = peak_memory(ours(problem(size, 0.1, "cpu"))[0], "cpu")
    assert mib < 15


def test_parts_of_one_sequence_each():
    """Start and end of each sequence's own, as a batch of unlike chains has them."""
    e, transitions, start, _ = draw(3, 20, 4)
    starts, ends = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    lengths = torch.tensor([20, 5, 0])
    value = chain.log_partition(Chain.of(e, transitions, starts, ends, lengths))
    labels, _ = chain.viterbi(Chain.of(e, transitions, starts, ends, lengths))
    for row in range(3):
        own = e[row : row + 1], transitions, starts[row], ends[row], lengths[row : row + 1]
        close(value[row : row + 1], chain.log_partition(Chain.of(*own)))
        assert torch.equal(labels[row : row + 1], chain.viterbi(Chain.of(*own))[0])
    assert isinstance(start, Tensor)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_the_best_path_where_rounding_cannot_tell_it_from_the_next(padded, scale):
    """The decoder without the library adds up float32, and float64 where two paths come close."""
    for seed in range(10):
        generator = torch.Generator().manual_seed(seed)
        coarse, fine = (torch.randint(n, (8, 30, 24), generator=generator) for n in (3, 2))
        transitions = torch.randint(3, (24, 24), generator=generator) * scale
        lengths = torch.randint(1, 31, (8,), generator=generator) if padded else None
        given = Chain.of((coarse + fine * 1e-6) * scale, transitions, lengths=lengths)
        wide = given.double()
        assert torch.equal(wide.score(maxplus.max_path(given)[0]), wide.score(by_torch(wide)))


@pytest.mark.parametrize(
    "seed", [2442, 2769, 3641, 4226, 20016, 20139, 20148, 21085, 31258, 21127, *range(21020, 21032)]
)
def test_gradients_keep_their_digits_where_sums_cancel(seed):
    """Near the labels that are likely, what is left of probabilities less counts is small."""
    for name, off in fuzz_native.errors(seed).items():
        assert off <= fuzz_native.BOUNDS[name], f"seed {seed}: {name} off by {off}"
