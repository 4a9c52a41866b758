"""Scaled sums over second-order labellings say what log space says, or nothing."""

import math

import pytest
import torch

from torch_multiclass.ops import second_order, second_order_scaled
from torch_multiclass.ops.chain import Chain
from torch_multiclass.ops.second_order import SecondOrder

INF = math.inf


def draw(seed, batch=5, steps=9, k=4, spread=1.0, per_step=False, forbidden=0.0, lengths=True):
    g = torch.Generator().manual_seed(seed)

    def scores(*shape):
        x = spread * torch.randn(shape, generator=g, dtype=torch.float64)
        return torch.where(torch.rand(shape, generator=g) < forbidden, -INF, x)

    moves = scores(batch, steps - 1, k, k) if per_step else scores(k, k)
    of_rows = torch.randint(0, steps + 1, (batch,), generator=g) if lengths else None
    chain = Chain(scores(batch, steps, k), moves, scores(k), scores(batch, k), of_rows)
    return SecondOrder(chain, scores(k, k, k))


def parts(record):
    return [*record.chain[:4], record.second]


def rebuilt(record, given):
    return SecondOrder(Chain(*given[:4], record.chain.lengths), given[4])


def with_gradients(function, record):
    leaves = [part.clone().requires_grad_() for part in parts(record)]
    value = function(rebuilt(record, leaves))
    if value is None:
        return None
    weight = torch.arange(1.0, 1 + len(value), dtype=torch.float64)
    lengths = record.chain.lengths
    value = value if lengths is None else torch.where(lengths > 0, value, 0.0)
    kept = torch.where(value > -INF, value * weight, 0.0)
    return value.detach(), *torch.autograd.grad(kept.sum(), leaves)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("per_step", [False, True])
@pytest.mark.parametrize("forbidden", [0.0, 0.15])
@pytest.mark.parametrize("spread", [1.0, 12.0])
def test_values_and_gradients(seed, per_step, forbidden, spread):
    record = draw(seed, spread=spread, per_step=per_step, forbidden=forbidden, lengths=bool(seed % 2))
    expected = with_gradients(second_order._logspace, record)
    ours = with_gradients(second_order._scaled, record)
    if ours is None:  # more than it can hold: then the sum goes through log space
        assert spread > 1 or forbidden
        ours = with_gradients(lambda r: r.log_partition(), record)
    torch.testing.assert_close(ours[0], expected[0], rtol=1e-11, atol=1e-11)
    for a, b in zip(ours[1:], expected[1:], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def test_it_is_taken_where_scores_are_ordinary():
    assert second_order._scaled(draw(0)) is not None
    assert second_order._scaled(draw(0, per_step=True)) is not None
    tags = draw(0, k=3, lengths=False)  # what BIO tags forbid
    tags.chain.transitions[0, 2] = tags.chain.start[2] = -INF
    assert second_order._scaled(tags) is not None


@pytest.mark.parametrize("steps", [3, 40, 400])
def test_many_steps(steps):
    record = draw(1, steps=steps, lengths=False, spread=3.0)
    expected = second_order._logspace(record)
    torch.testing.assert_close(second_order._scaled(record), expected, rtol=1e-12, atol=0)


def test_a_state_far_below_the_best_may_win_later():
    record = draw(0, batch=2, steps=6, k=3, lengths=False)
    chain, second = record
    second = torch.full_like(second, -50.0)
    for i in range(3):
        second[i, i, i] = 50.0
    emissions = torch.zeros_like(chain.emissions)
    emissions[:, 1, 0] = 900.0
    emissions[:, 5, 2] = 1200.0
    record = SecondOrder(chain._replace(emissions=emissions), second)
    expected = with_gradients(second_order._logspace, record)
    for ours, right in zip(with_gradients(lambda r: r.log_partition(), record), expected, strict=True):
        torch.testing.assert_close(ours, right)


def test_dead_ends_that_outshine_what_survives_go_through_log_space():
    record = draw(0, batch=1, steps=8, k=2, lengths=False)
    chain, second = record
    emissions = torch.zeros_like(chain.emissions)
    emissions[:, :7, 0] = 200.0  # label 0 is worth more and more, and may not be followed by 1
    transitions = torch.tensor([[0.0, -INF], [0.0, 0.0]], dtype=torch.float64)
    end = torch.tensor([-INF, 0.0], dtype=torch.float64)
    record = SecondOrder(Chain(emissions, transitions, torch.zeros(2, dtype=torch.float64), end, None), 0 * second)
    assert record.log_partition() == 0  # only 1, 1, ..., 1
    torch.testing.assert_close(record.marginals()[0, :, 1], torch.ones(8, dtype=torch.float64))


@pytest.mark.parametrize("steps", [3, 4, 40])
def test_steep_scores_are_divided_at_every_step(steps):
    """Either the label or a change of label costs 95 nats at each step: far beyond floats, were masses not divided."""
    emissions = torch.tensor([[0.0, -95.0], [-95.0, 0.0]]).double().repeat(steps, 1)[None, :steps]
    change = 1 - torch.eye(2, dtype=torch.float64)
    nothing = torch.zeros(2, dtype=torch.float64)
    record = SecondOrder(Chain(emissions, -48 * change, nothing, nothing[None], None), (-47 * change).expand(2, 2, 2))
    ours = with_gradients(second_order._scaled, record)
    assert ours is not None
    for found, wanted in zip(ours, with_gradients(second_order._logspace, record), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("lost", [None, "first", "later", "whole"])
def test_a_possible_mass_that_rounds_to_nothing_is_told(lost):
    emissions, start = torch.zeros(1, 4, 2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    masses = torch.ones(4, 2, 1, 2, dtype=torch.float64)
    total = torch.ones(1, dtype=torch.float64)
    if lost == "whole":
        total = total * 0
    elif lost is not None:
        masses[1 if lost == "first" else 2, 0, 0, 0] = 0.0
    shape = torch.zeros(2, 2, dtype=torch.float64), torch.zeros(2, 2, 2, dtype=torch.float64)
    told = second_order_scaled._told_apart(emissions, *shape, start, masses, torch.tensor([3]), total, start)
    assert told is (lost is None)
