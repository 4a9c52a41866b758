"""Where probabilities leave the range of floats: the scaled recursions are right, or know that they are not."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torch_multiclass.ops import chain
from torch_multiclass.ops.chain import Chain, certificate, engine, scaled
from torch_multiclass.ops.chain.pieces import cut_batch, whole_batch
from torch_multiclass.ops.chain.plan import Cut
from torch_multiclass.ops.chain.table import tabulate

INF = torch.inf
DTYPES = [torch.float32, torch.float64]


def solved(parts, lengths=None, labels=None, method="auto"):
    """Values, and gradients for emissions and transitions."""
    parts = [part.detach().clone().requires_grad_() for part in parts]
    record = Chain.of(*parts, lengths=lengths)
    if labels is None:
        value = chain.log_partition(record, method=method)
    else:
        value = chain.negative_log_likelihood(record, labels, method=method)
    value.sum().backward()
    return value.detach(), [part.grad for part in parts]


def agrees_with_float64_log_space(parts, lengths=None, labels=None, method="auto"):
    value, grads = solved(parts, lengths, labels, method)
    wanted, exact = solved([part.double() for part in parts], lengths, labels, "log")
    tolerance = 1e-6 if value.dtype == torch.float32 else 1e-10
    torch.testing.assert_close(value.double(), wanted, rtol=tolerance, atol=tolerance)
    positions = parts[0].shape[0] * parts[0].shape[1]
    for found, grad, most in zip(grads, exact, (1, positions), strict=True):
        assert bool(found.isfinite().all())
        assert float((found - grad).abs().max()) <= 10 * tolerance * most


def alternating(gap, last, dtype, stay=-INF):
    """Two labels that have to take turns; one falls behind at every step, and its last emission decides."""
    emissions = torch.zeros(1, 6, 2, dtype=dtype)
    emissions[0, :5, 1], emissions[0, 5, 1] = -gap, -last
    return emissions, torch.tensor([[stay, 0], [0, stay]], dtype=dtype)


@pytest.mark.parametrize("stay", [-INF, -800.0, -150.0])
@pytest.mark.parametrize(("gap", "dtype"), [(34.3, torch.float32), (248.0, torch.float64)])
def test_what_is_lost_before_a_rescaling_is_seen(stay, gap, dtype):
    parts = alternating(gap, gap + 10.7, dtype, stay)
    wanted = {34.3: -102.89998, 248.0: -743.99998}[gap]
    if stay < -744:
        assert float(chain.log_partition(Chain.of(*parts))) == pytest.approx(wanted, abs=2e-5)
        gold = torch.tensor([[1, 0, 1, 0, 1, 0]])
        assert float(chain.negative_log_likelihood(Chain.of(*parts), gold)) == pytest.approx(2.2544666e-5, rel=1e-5)
    for labels in (None, torch.tensor([[1, 0, 1, 0, 1, 0]]), torch.tensor([[0, 1, 0, 1, 0, 1]])):
        agrees_with_float64_log_space(parts, None, labels)
    assert float(chain.marginals(Chain.of(*parts)).max()) <= 1 + 1e-6


@pytest.mark.parametrize("steps", [3, 5, 6, 9, 60])
@pytest.mark.parametrize("gap", [18.0, 21.0, 25.0, 30.0, 34.3, 40.0, 60.0])
def test_gaps_around_the_edge_of_float32(gap, steps):
    for extra in (-9.0, 0.0, 11.0):
        emissions = torch.zeros(2, steps, 2)
        emissions[:, :-1, 1], emissions[:, -1, 1] = -gap, -gap - extra
        for transitions in (torch.tensor([[-INF, 0], [0, -INF]]), torch.tensor([[-3 * gap, 0], [0, -3 * gap]])):
            for lengths in (None, torch.tensor([steps, steps - 1])):
                agrees_with_float64_log_space((emissions, transitions), lengths)


def test_gradients_are_finite_where_the_loss_is():
    emissions = torch.zeros(1, 5, 2)
    emissions[0, 0, 1], emissions[0, 3, 1] = -50, -400
    transitions = torch.tensor([[-37.0, -37], [0, -20]])
    labels = torch.tensor([[1, 1, 0, 1, 0]])
    value, (by_emission, by_transition) = solved((emissions, transitions), None, labels)
    assert float(value) == pytest.approx(413.69315, abs=1e-4)
    wanted = torch.tensor([[1.0, -1], [0, 0], [-1, 1], [1, -1], [-0.5, 0.5]])
    torch.testing.assert_close(by_emission[0], wanted, rtol=0, atol=1e-5)
    torch.testing.assert_close(by_transition, torch.tensor([[0.5, 0.5], [-1, 0]]), rtol=0, atol=1e-5)


@given(
    seed=st.integers(0, 10**6),
    spread=st.sampled_from([(800, 12), (100, 40), (30, 30), (3, 100), (400, 1)]),
    size=st.sampled_from([(4, 9, 3), (2, 33, 4), (3, 70, 2), (1, 5, 8)]),
    forbid=st.sampled_from([0.0, 0.2, 0.5]),
    method=st.sampled_from(["auto", "scaled", "chunked"]),
)
def test_fuzz_wide_spans(seed, spread, size, forbid, method):
    generator = torch.Generator().manual_seed(seed)
    batch, steps, k = size
    emissions = spread[0] * torch.randn(size, generator=generator)
    transitions = spread[1] * torch.randn(k, k, generator=generator)
    transitions = transitions.masked_fill(torch.rand(k, k, generator=generator) < forbid, -INF)
    labels = torch.randint(k, (batch, steps), generator=generator)
    lengths = torch.randint(0, steps + 1, (batch,), generator=generator) if seed % 2 else None
    for own in (None, labels):
        value, grads = solved((emissions, transitions), lengths, own, method)
        wanted, exact = solved((emissions.double(), transitions.double()), lengths, own, "log")
        torch.testing.assert_close(value.double(), wanted, rtol=1e-5, atol=1e-5)
        for found, grad in zip(grads, exact, strict=True):
            assert float((found - grad).abs().max()) <= 1e-5 * max(1.0, float(grad.abs().max()), batch * steps / 10)


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12, 1e20])
def test_any_scale_of_the_incoming_gradient_on_wide_spans(scale):
    generator = torch.Generator().manual_seed(3)
    parts = [20 * torch.randn(3, 40, 4, generator=generator), 20 * torch.randn(4, 4, generator=generator)]

    def slope(dtype, method):
        own = [part.to(dtype).requires_grad_() for part in (p.clone() for p in parts)]
        value = chain.log_partition(Chain.of(*own), method=method)
        (value * torch.tensor([scale, -2 * scale, 0.0], dtype=dtype)).sum().backward()
        return [part.grad.double() / scale for part in own]

    for found, wanted in zip(slope(torch.float32, "auto"), slope(torch.float64, "log"), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-4)


# -------------------------------------------------------------------------------------- rows and their neighbours


def far_gold(emissions, labels, depth):
    """One row whose gold labelling is improbable, or forbidden."""
    out = emissions.clone()
    out[2, 3, labels[2, 3]] -= depth
    return out


@pytest.mark.parametrize("shift", [0.0, 1e4, -3e4])
@pytest.mark.parametrize("depth", [90.0, 200.0, INF])
@pytest.mark.parametrize("steps", [6, 200])
def test_a_row_does_not_depend_on_its_neighbours(shift, depth, steps):
    generator = torch.Generator().manual_seed(0)
    emissions = torch.randn(4, steps, 3, generator=generator) + shift
    transitions, labels = torch.randn(3, 3, generator=generator), torch.randint(3, (4, steps), generator=generator)
    labels[0] = chain.best_labels(Chain.of(emissions, transitions))[0]
    hard = far_gold(emissions, labels, depth)
    value, (grad, _) = solved((hard, transitions), None, labels)
    for row in (0, 1, 3):
        one = slice(row, row + 1)
        alone, (own, _) = solved((emissions[one], transitions), None, labels[one])
        torch.testing.assert_close(value[one], alone, rtol=3e-7, atol=0)
        torch.testing.assert_close(grad[one], own, rtol=0, atol=1e-6)
    best = chain.best_labels(Chain.of(hard, transitions))
    for row in range(4):
        assert torch.equal(best[row], chain.best_labels(Chain.of(hard[row : row + 1], transitions))[0])


def test_a_decode_does_not_depend_on_its_neighbours():
    """A row far from zero keeps its digits beside one that spans as much."""
    emissions = torch.zeros(2, 40, 2)
    emissions[0] = 1e6
    emissions[0, :, 1] += 1 / 16
    emissions[1, 0, 0] = -1e6
    transitions = torch.tensor([[0.03, 0], [0, 0]])
    labels = chain.best_labels(Chain.of(emissions, transitions))
    assert torch.equal(labels[:1], chain.best_labels(Chain.of(emissions[:1], transitions)))
    assert bool((labels[0] == 1).all())


# ------------------------------------------------------------------------------------------------- small losses


@pytest.mark.parametrize("method", chain.METHODS)
def test_a_confident_loss_has_its_digits(method):
    record = Chain.of(torch.tensor([[[20.0, 0], [20, 0]]]), torch.tensor([[-1.6, 0.2], [2.2, 0.8]]))
    value = chain.negative_log_likelihood(record, torch.tensor([[0, 0]]), method=method)
    assert float(value) == pytest.approx(1.0461e-7, rel=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("steps", [1, 2, 30, 200])
@pytest.mark.parametrize("method", chain.METHODS)
def test_losses_are_never_negative_and_keep_their_digits(method, steps, dtype):
    generator = torch.Generator().manual_seed(steps)
    lengths = torch.randint(0, steps + 1, (8,), generator=generator)
    for scale in (1.0, 5.0, 15.0, 40.0):
        labels = torch.randint(5, (8, steps), generator=generator)
        emissions = torch.randn(8, steps, 5, generator=generator)
        emissions.scatter_add_(2, labels[..., None], torch.full((8, steps, 1), scale))
        parts = emissions.to(dtype), torch.randn(5, 5, generator=generator, dtype=dtype)
        for given_lengths in (None, lengths):
            value, grads = solved(parts, given_lengths, labels, method)
            assert bool((value >= 0).all())
            assert all(bool(grad.isfinite().all()) for grad in grads)
            wanted, _ = solved([part.double() for part in parts], given_lengths, labels, "log")
            torch.testing.assert_close(value.double(), wanted, rtol=3e-6 if dtype == torch.float32 else 1e-10, atol=0)


def test_a_confident_loss_equals_the_mass_of_the_other_labellings():
    """Against enumeration in which nothing cancels: log1p of the sum of exp(s(y) - s(gold)) over y != gold."""
    generator = torch.Generator().manual_seed(1)
    emissions = 9 * torch.randn(6, 4, 3, generator=generator, dtype=torch.float64)
    record = Chain.of(emissions, torch.randn(3, 3, generator=generator, dtype=torch.float64))
    gold = chain.best_labels(record)
    every = torch.cartesian_prod(*[torch.arange(3)] * 4).expand(6, -1, -1)
    differences = record.terms(every) - record.terms(gold[:, None])
    others = (every != gold[:, None]).any(2)
    wanted = torch.where(others, differences.sum(2), -INF).exp().sum(1).log1p()
    for method in chain.METHODS:
        found = chain.negative_log_likelihood(record, gold, method=method)
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=0)
        found = chain.negative_log_likelihood(record.to(torch.float32), gold, method=method)
        torch.testing.assert_close(found.double(), wanted, rtol=2e-5, atol=0)


@pytest.mark.parametrize("steps", [1, 2, 60, 183])
@pytest.mark.parametrize("method", chain.METHODS)
def test_with_one_label_the_loss_is_exactly_0(steps, method):
    generator = torch.Generator().manual_seed(183)
    parts = [10 * torch.randn(3, steps, 1, generator=generator), 10 * torch.randn(1, 1, generator=generator)]
    lengths = torch.tensor([steps, steps // 2, 0])
    labels = torch.zeros(3, steps, dtype=torch.long)
    for given_lengths in (None, lengths):
        value, grads = solved(parts, given_lengths, labels, method)
        assert value.tolist() == [0, 0, 0]
        assert all(float(grad.abs().max()) < 1e-9 for grad in grads)
        agrees_with_float64_log_space(parts, given_lengths, None, method)


# ------------------------------------------------------------------------------------------- the certificate's parts


def test_clear_is_asked_before_the_scales_are_divided_out():
    alpha = np.array([[1.0], [1e-20], [1e-20], [1.0]], np.float32)
    found = certificate.clear(alpha, np.array([1.0, 1.0, 1e-15, 1.0], np.float32))
    assert found.flatten().tolist() == [True, True, False, True]


def test_all_that_is_possible_has_to_be_clear():
    counts = np.ones((3, 2, 2), bool)
    found, moves = counts.copy(), np.ones((2, 2), bool)

    def clear():
        parts = counts.reshape(6, 2), found.reshape(6, 2), moves, whole_batch(2, 3)
        return certificate.all_possible_clear(*parts).tolist()

    found[1, 0, 1] = False
    assert clear() == [False, True]
    moves[:, 1] = False  # no way there: it does not count
    found[2, 0, 1] = found[0, 0, 1] = True
    assert clear() == [True, True]


@pytest.mark.parametrize("lengths", [None, [7, 4, 0, 1], [3, 3, 3, 6]])
def test_cut_and_join(lengths):
    rows = 1 + np.arange(4 * 7 * 3).reshape(4, 7, 3)
    counted = np.array([7] * 4 if lengths is None else lengths)
    inside = np.arange(7) < counted[:, None]
    for cut in (Cut(7, 1, 0), Cut(3, 3, 1), Cut(4, 2, 2)):
        pieces = cut_batch(4, 7, None if lengths is None else counted, cut)
        parts = pieces.gather(rows)
        assert parts.shape == (counted.sum(), 3)
        assert (pieces.scatter(parts, rows.dtype) == rows * inside[..., None]).all()
        assert (pieces.sums(parts[:, 0].astype(float)) == (rows[..., 0] * inside).sum(1)).all()
        # each position but the first has the one before it, in its piece or in the piece that leads
        after, before = parts[pieces.later], parts[pieces.prior]
        if pieces.joints is not None:
            lead, follow = pieces.joints.lead, pieces.joints.follow
            after = np.concatenate([after, parts[follow]])
            before = np.concatenate([before, parts[pieces.final[lead]]])
        assert (after - before == 3).all()
        assert len(after) == np.maximum(counted - 1, 0).sum()
        assert (np.sort(parts[pieces.starting][:, 0]) == rows[counted > 0, 0, 0]).all()
        last = rows[np.arange(4), counted - 1, 0][counted > 0]
        assert (np.sort(parts[pieces.ends][:, 0]) == last).all()


@pytest.mark.parametrize("spread", [0.0, 1.0])
@pytest.mark.parametrize("gap", [25.0, 34.3])
def test_a_hard_row_is_handed_on_and_the_rest_is_not(gap, spread):
    parts = spread * torch.randn(3, 12, 2), torch.tensor([[-INF, 0], [0, -INF]])
    parts[0][1] = alternating(gap, gap + 10.7, torch.float32)[0].repeat(1, 2, 1)[0]
    record = Chain.of(*parts)
    sound = [engine.scaled(record, None, tabulate(record, dtype), Cut(12, 1, 0)).sound.tolist() for dtype in DTYPES]
    assert sound == [[True, False, True], [True, True, True]]


def test_a_row_whose_mass_is_lost_leaves_the_loss_of_the_others_alone():
    """Beside a row that underflows, one whose gold labelling is improbable keeps its loss."""
    emissions = torch.tensor([[[3451.5, 617.1]], [[1324.6, 2010.5]]], dtype=torch.float64)
    start, end = torch.tensor([-1324.6, 0.0]).double(), torch.tensor([0.0, -617.1]).double()
    record = Chain.of(emissions, torch.zeros(2, 2).double(), start, end)
    value = chain.negative_log_likelihood(record, torch.tensor([[1], [0]]))
    torch.testing.assert_close(value, torch.tensor([2126.9, 1393.4], dtype=torch.float64), rtol=1e-9, atol=0)


def test_how_far_apart_two_rows_of_masses_are():
    one, other = np.array([[1.0, 2, 0], [3, 3, 3], [0, 0, 0]]), np.array([[2.0, 2, 0], [1, 1, 1], [0, 0, 0]])
    with np.errstate(all="ignore"):
        assert certificate.distance(one, other).tolist() == [1.0, 0.0, 0.0]  # at most half, at least all of it
        assert certificate.distance(np.array([[1.0, 1]]), np.array([[1.0, 0]])).tolist() == [np.inf]


def test_what_moves_can_reach_step_by_step():
    parts = torch.zeros(1, 5, 2), torch.tensor([[-INF, 0.0], [-INF, 0.0]]), torch.tensor([0.0, -INF]), torch.zeros(2)
    reached = certificate.within_reach(tabulate(Chain.of(*parts), torch.float64))
    assert [step.tolist() for step in reached] == [[True, False], [False, True]]


@pytest.mark.parametrize(("warm", "short"), [(1, []), (2, [1]), (3, [1])])
def test_a_last_piece_that_its_neighbour_reads_whole_is_short(warm, short):
    joints = cut_batch(1, 10, None, Cut(4, 3, warm)).joints  # of 4, 4 and 2 positions
    assert joints.short.tolist() == short
    assert len(cut_batch(1, 12, None, Cut(4, 3, warm)).joints.short) == 0


@pytest.mark.parametrize("size", [1e-30, 5e-7, 2e6, 1e300])
def test_gradients_beyond_the_range_are_scaled(size):
    assert scaled.out_of_range(size) == size
    assert [scaled.out_of_range(usual) for usual in (0.0, 1e-3, 1.0, 1e5, INF)] == [None] * 5


def test_small_beside_what_it_sums():
    parts = np.array([[1.0, 2.0], [-1.0, 1.0]])
    assert scaled.cancelled(np.array([1e-7, 0]), parts)
    assert scaled.cancelled(np.array([0.0, -1e-7]), parts)
    assert not scaled.cancelled(np.array([1.9, 0]), parts)
    assert not scaled.cancelled(np.array([0, -1.9]), parts)


@pytest.mark.parametrize("method", ["auto", "scaled"])
def test_starts_of_two_sequences_that_cancel_have_their_digits(method):
    near = torch.randn(1, 6, 3, generator=torch.Generator().manual_seed(0))
    emissions, rest = torch.cat([near, near + 1e-6 * near]), torch.zeros(3, 3)

    def of(dtype):
        start = torch.zeros(3, dtype=dtype, requires_grad=True)
        record = Chain.of(emissions.to(dtype), rest.to(dtype), start, torch.zeros(3, dtype=dtype))
        value = chain.negative_log_likelihood(record, torch.zeros(2, 6, dtype=torch.long), method=method)
        return torch.autograd.grad(value[0] - value[1], start)[0].double()

    found, wanted = of(torch.float32), of(torch.float64)
    assert float((found - wanted).abs().max()) <= 1e-7
