"""The search over ``d + λ c`` and the tables by cost, against all labellings written out."""

import itertools
import math

import pytest
import torch

from torch_multiclass.ops.chain import Chain, slack

K, B, T, MOST = 3, 6, 4, 3


@pytest.fixture(autouse=True)
def computed_by():
    """By torch: no native library knows of costs."""


def problem(seed, lengths=None, form="one"):
    """A chain relative to a gold labelling of score 0, and whole costs, 0 for the gold."""
    draw = torch.Generator().manual_seed(seed)
    shape = {"one": (K, K), "steps": (B, T - 1, K, K)}[form]
    parts = [torch.randn(size, generator=draw, dtype=torch.float64) for size in ((B, T, K), shape, (K,), (B, K))]
    costs = torch.randint(1, MOST + 1, (B, T, K), generator=draw)
    costs[..., 0] = 0
    if lengths is not None:
        costs[torch.arange(T) >= lengths[:, None]] = 0
    chain = Chain.of(*parts, lengths=lengths)
    gold = chain.score(torch.zeros(B, T, dtype=torch.long))
    parts[0][:, 0] -= gold[:, None]
    return Chain.of(*parts, lengths=lengths), costs


def everything(chain, costs):
    """``V_c`` by enumeration, ``(B, C)``."""
    curve = torch.full((B, T * MOST + 1), -math.inf, dtype=torch.float64)
    for labels in itertools.product(range(K), repeat=T):
        y = torch.tensor(labels).expand(B, T)
        if chain.lengths is not None:
            y = torch.where(chain.inside(), y, 0)
        cost, score = costs.gather(2, y[..., None]).sum((1, 2)), chain.score(y)
        curve[range(B), cost] = torch.maximum(curve[range(B), cost], score)
    return curve


SHORT = torch.tensor([4, 1, 3, 2, 4, 3])
CASES = [(seed, lengths, form) for seed in range(4) for lengths in (None, SHORT) for form in ("one", "steps")]


@pytest.mark.parametrize(("seed", "lengths", "form"), CASES)
def test_lines_of_the_search_bound_the_curve(seed, lengths, form):
    chain, costs = problem(seed, lengths, form)
    curve, counts = everything(chain, costs), torch.arange(T * MOST + 1).double()
    for rounds in (1, 2, 3, slack._SEARCH):
        found = slack.search(chain, costs, rounds)
        assert len(found.slopes) == len(found.ceilings) <= rounds
        # each line is the highest labelling's on d + λ c
        highest = (curve + found.slopes[..., None] * counts).amax(2)
        torch.testing.assert_close(found.ceilings, highest, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(chain.score(found.labels.clamp(min=0)), found.score)
        own = costs.gather(2, found.labels.clamp(min=0)[..., None]).sum((1, 2))
        assert torch.equal(own, found.cost.long())
        lines = (found.ceilings[..., None] - found.slopes[..., None] * counts).amin(0)
        torch.testing.assert_close(slack.ceiling(found, counts), lines, rtol=1e-12, atol=1e-12)
        assert bool((slack.ceiling(found, counts) >= lines).all())
        fine = torch.linspace(0, 3 * T * MOST, 8001, dtype=torch.float64)
        products = fine * (1 + (found.ceilings[..., None] - found.slopes[..., None] * fine).amin(0))
        if rounds > 1:  # else a level line, below which there is no largest product
            seen, bound = products.amax(1).clamp(min=0), slack.upper_bound(found)
            assert bool((seen <= bound + 1e-9).all())
            assert bool((bound <= 1.001 * seen + 0.02).all())


@pytest.mark.parametrize(("seed", "lengths", "form"), CASES)
def test_the_search_ends_at_the_best_corner_of_the_hull(seed, lengths, form):
    """The corner with the largest product, of those that are highest on ``d + λ c`` for some ``λ >= 0``."""
    chain, costs = problem(seed, lengths, form)
    curve, counts = everything(chain, costs), torch.arange(T * MOST + 1).double()
    rises = (curve[:, :, None] - curve[:, None]) / (counts - counts[:, None]).abs().clamp(min=1)
    changes = rises.flatten(1).nan_to_num(0, 0, 0).clamp(min=0).sort(1).values  # where another corner is the highest
    slopes = torch.cat([changes[:, 1:] + changes[:, :-1], 4 * changes[:, -1:]], 1) / 2
    corners = (curve[:, None] + slopes[..., None] * counts).argmax(2)  # (B, slopes)
    products = counts[corners] * (1 + curve.gather(1, corners)).clamp(min=0)
    found = slack.search(chain, costs)
    torch.testing.assert_close(found.cost * (1 + found.score).clamp(min=0), products.amax(1), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("search_from", [0, math.inf])
@pytest.mark.parametrize(("seed", "lengths", "form"), CASES)
def test_labels_of_the_largest_product(seed, lengths, form, search_from, monkeypatch):
    monkeypatch.setattr(slack, "_SEARCH_FROM", search_from)
    monkeypatch.setattr(slack, "_ROUNDS", 1 + seed)
    monkeypatch.setattr(slack, "_BUFFER", 40)
    chain, costs = problem(seed, lengths, form)
    curve, counts = everything(chain, costs), torch.arange(T * MOST + 1).double()
    torch.testing.assert_close(slack.slack_curve(chain, costs, MOST), curve)
    labels = slack.best_labels(chain, costs, MOST)
    known = labels.clamp(min=0)
    cost = costs.gather(2, known[..., None]).sum((1, 2))
    products = counts * (1 + curve).clamp(min=0)
    torch.testing.assert_close(cost * (1 + chain.score(known)).clamp(min=0), products.amax(1))
    assert torch.equal(labels >= 0, chain.inside().expand(B, T))


@pytest.mark.parametrize(("lowest", "highest"), [(0, 12), (3, 5), (7, 7), (11, 12), (1, 2)])
def test_tables_of_some_costs(lowest, highest):
    """They keep what can still come to a total that is asked for, and no more."""
    chain, costs = problem(5)
    most_at = costs.amax((0, 2)).tolist()
    first, tables = slack._tables(chain, costs, most_at, lowest, highest)
    for t, table in enumerate(tables):
        least, most = max(0, lowest - sum(most_at[t + 1 :])), min(highest, sum(most_at[: t + 1]))
        assert first[t] == least
        assert table.shape == (K, B, max(most, least) - least + 1)
    curve = slack._finished(tables[-1], chain.end).amax(0)
    torch.testing.assert_close(curve, everything(chain, costs)[:, first[-1] : first[-1] + curve.shape[1]])


@pytest.mark.parametrize(
    ("costs", "unit", "most"),
    [([0, 2, 6], 2.0, 3), ([0.5, 0.75], 0.25, 3), ([0, 0], 1.0, 0), ([1, 1 + 1 / 60], 1 / 60, 61)],
)
def test_the_unit_of_costs(costs, unit, most):
    found = slack.common_unit(torch.tensor(costs, dtype=torch.float64))
    assert found == (pytest.approx(unit), most)


def test_costs_without_a_unit():
    with pytest.raises(ValueError, match=r"cost: entries such as 1 and 1\.01639 are not whole multiples of one unit"):
        slack.common_unit(torch.tensor([1, 1 + 1 / 61], dtype=torch.float64))
