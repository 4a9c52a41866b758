"""The ascent over labellings: natively and by NumPy, of features and of a Gram matrix, with and without neighbours."""

import itertools

import pytest
import torch

from torch_multiclass.ops import _native
from torch_multiclass.ops.labellings import Found, Labellings, ascend, by_numpy

FIRST = torch.tensor([0, 3, 4, 4, 10, 16, 23])
ROWS, LABELS, EXAMPLES = 23, 4, 6
WAYS = [pytest.param(ascend, id="native"), pytest.param(by_numpy, id="numpy")]


def made(gram, neighbours, capacity=3, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, 5, generator=generator).double()
    gold = torch.randint(LABELS, (ROWS,), generator=generator)
    strength = torch.rand(EXAMPLES, generator=generator).double() + 0.5
    rows = ((x @ x.mT + 1) ** 2 if gram else x).to(dtype)
    return Labellings.none(
        rows, FIRST, gold, strength, LABELS, gram=gram, neighbours=neighbours, scale=2.5, capacity=capacity
    )


def drawn(kept, generator):
    labels = torch.randint(LABELS, (ROWS,), generator=generator).to(torch.int32)
    labels = torch.where(torch.rand(ROWS, generator=generator) < 0.5, kept.gold, labels)
    wrong = torch.zeros(EXAMPLES).index_add_(0, kept.example, (labels != kept.gold).float())
    offset = wrong.double() + torch.rand(EXAMPLES, generator=generator)
    return Found(labels, (wrong > 0) * (torch.rand(EXAMPLES, generator=generator).double() + 0.1), offset)


def slopes(kept):
    """Of every labelling kept: ``(example, number, by score (M, K), by neighbours)``, naively."""
    for i in range(EXAMPLES):
        begin, end = FIRST[i], FIRST[i + 1]
        for a in range(int(kept.count[i])):
            place = int(begin) * kept.capacity + a * int(end - begin)
            y = kept.labels[place : place + int(end - begin)].tolist()
            gold, factor = kept.gold[begin:end].tolist(), float(kept.factor[i, a])
            score = torch.zeros(ROWS, LABELS).double()
            pairs, first, last = torch.zeros(LABELS, LABELS).double(), *torch.zeros(2, LABELS).double()
            for labels, sign in ((y, factor), (gold, -factor)):
                for t, k in enumerate(labels):
                    score[begin + t, k] += sign
                    if t:
                        pairs[labels[t - 1], k] += sign
                first[labels[0]] += sign
                last[labels[-1]] += sign
            yield i, a, score, (pairs, first, last)


def check_weights(kept):
    """That state and neighbours are what the shares make of them."""
    rows = kept.rows.double()
    score, neighbours = torch.zeros(ROWS, LABELS).double(), None
    for i, a, by_score, by_neighbours in slopes(kept):
        share = float(kept.share[i, a])
        score -= share * by_score
        parts = tuple(-2.5 * share * part for part in by_neighbours)
        neighbours = parts if neighbours is None else tuple(x + y for x, y in zip(neighbours, parts, strict=True))
    torch.testing.assert_close(kept.multipliers(), score, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(kept.state, score.mT @ rows, rtol=1e-7, atol=1e-7)
    if kept.neighbours is not None:
        for found in (kept.neighbours, kept.neighbour_weights()):
            for part, expected in zip(found, neighbours, strict=True):
                torch.testing.assert_close(part, expected, rtol=1e-9, atol=1e-9)


def dual(kept):
    alpha = kept.multipliers()
    square = alpha * (
        kept.rows.double() @ alpha if kept.gram else kept.rows.double() @ (alpha.mT @ kept.rows.double()).mT
    )
    neighbours = sum(float(part.square().sum()) for part in kept.neighbours or ()) / 2.5
    return float((kept.share * kept.offset).sum()) - 0.5 * (float(square.sum()) + neighbours)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("gram", [False, True])
@pytest.mark.parametrize("neighbours", [False, True])
def test_every_visit_raises_the_dual_and_keeps_the_weights(way, gram, neighbours):
    kept, generator = made(gram, neighbours), torch.Generator().manual_seed(1)
    before, full = 0.0, 0
    for number in range(40):
        found = drawn(kept, generator) if number % 2 == 0 else None
        full += way(kept, torch.randperm(EXAMPLES, generator=generator), 3, found)
        check_weights(kept)
        assert bool((kept.share >= 0).all())
        assert bool((kept.share.sum(1) <= kept.strength * (1 + 1e-12)).all())
        after = dual(kept)
        assert after >= before - 1e-10
        before = after
        if number % 8 == 7:
            kept = kept.grown(kept.capacity + 1)
            check_weights(kept)
    assert full > 0
    assert int((kept.share > 0).sum()) > EXAMPLES


@pytest.mark.parametrize("gram", [False, True])
@pytest.mark.parametrize("neighbours", [False, True])
def test_both_ways_reach_the_same_optimum(gram, neighbours):
    values = []
    for way in (ascend, by_numpy):
        kept, generator = made(gram, neighbours, capacity=6), torch.Generator().manual_seed(2)
        for _ in range(5):
            way(kept, torch.arange(EXAMPLES), 2, drawn(kept, generator))
        for _ in range(150):
            way(kept, torch.randperm(EXAMPLES, generator=generator), 10)
        values.append(dual(kept))
        for i, a, by_score, parts in slopes(kept):  # at the optimum no plane is above those that have a share
            scores = kept.state.mT if gram else kept.rows @ kept.state.mT
            value = float(kept.offset[i, a]) + float((by_score * scores).sum())
            if neighbours:
                value += sum(float((p * w).sum()) for p, w in zip(parts, kept.neighbours, strict=True))
            rest = float(kept.strength[i] - kept.share[i].sum())
            assert value < 1e-5 or rest < 1e-9
    assert values[0] == pytest.approx(values[1], rel=1e-8)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("gram", [False, True])
def test_rows_in_single_precision(way, gram):
    kinds = made(gram, True, 6, torch.float32), made(gram, True, 6)
    for kept in kinds:
        generator = torch.Generator().manual_seed(3)
        for number in range(60):
            way(kept, torch.arange(EXAMPLES), 5, drawn(kept, generator) if number < 3 else None)
        assert kept.state.dtype == torch.float64
    assert dual(kinds[0]) == pytest.approx(dual(kinds[1]), rel=1e-5)


def test_without_the_library(monkeypatch):
    monkeypatch.setattr(_native, "library", lambda: None)
    kept, generator = made(False, True), torch.Generator().manual_seed(1)
    assert ascend(kept, torch.arange(EXAMPLES), 3, drawn(kept, generator)) == 0
    check_weights(kept)
    assert bool(kept.share.any())


def test_a_step_along_a_plane_without_slope_takes_everything():
    """Features of 0: the loss cannot be changed, and its whole strength goes to the plane with the highest offset."""
    for way in (ascend, by_numpy):
        kept = made(False, False)
        kept.rows.zero_()
        way(kept, torch.arange(EXAMPLES), 3, drawn(kept, torch.Generator().manual_seed(1)))
        some = (kept.lengths > 0) & (kept.count > 0)
        torch.testing.assert_close(kept.share.sum(1)[some], kept.strength[some])


def test_neighbours_are_counted_by_example():
    """How often each transition, start and end is made; an example without a position makes none."""
    kept = made(False, True)
    labels = torch.randint(LABELS, (ROWS,), generator=torch.Generator().manual_seed(1))
    times = torch.arange(1.0, EXAMPLES + 1).double()
    for first in (FIRST, torch.tensor([0, 0, 4, 4, 10, 23, 23])):
        kept = Labellings.none(
            kept.rows, first, kept.gold, kept.strength, LABELS, gram=False, neighbours=True, scale=1.0, capacity=3
        )
        found = torch.zeros(LABELS, LABELS).double(), torch.zeros(LABELS).double(), torch.zeros(LABELS).double()
        expected = [part.clone() for part in found]
        kept.count_neighbours(found, labels, times)
        for i, (begin, end) in enumerate(zip(first[:-1].tolist(), first[1:].tolist(), strict=True)):
            y = labels[begin:end].tolist()
            for pair in itertools.pairwise(y):
                expected[0][pair] += times[i]
            for part, label in zip(expected[1:], (y[:1], y[-1:]), strict=True):
                part[label] += times[i]
        for part, other in zip(found, expected, strict=True):
            torch.testing.assert_close(part, other)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("gram", [False, True])
@pytest.mark.parametrize("neighbours", [False, True])
def test_the_lowest_plane_without_a_share_makes_room(way, gram, neighbours):
    kept, generator = made(gram, neighbours), torch.Generator().manual_seed(4)
    alone, width = torch.tensor([3]), 6  # of six positions
    for _ in range(10):
        way(kept, alone, 0, drawn(kept, generator))
    for part in (kept.state, *(kept.neighbours or ())):
        part.copy_(torch.randn(part.shape, generator=generator))
    begin = int(FIRST[3])
    rows = slice(begin, begin + width)
    scores = kept.state[:, rows].mT if gram else kept.rows[rows] @ kept.state.mT

    def value(labels):
        total = sum(float(scores[t, k]) for t, k in enumerate(labels))
        if neighbours:
            moves, start, end = kept.neighbours
            total += float(start[labels[0]] + end[labels[-1]])
            total += sum(float(moves[a, b]) for a, b in itertools.pairwise(labels))
        return total

    gold = kept.gold[rows].tolist()
    for _ in range(12):
        each = kept.labels[begin * 3 : (begin + width) * 3].view(3, width).tolist()
        values = [
            float(kept.offset[3, a]) + float(kept.factor[3, a]) * (value(labels) - value(gold))
            for a, labels in enumerate(each)
        ]
        values[1] = float("inf")  # has a share
        kept.share[3] = torch.tensor([0.0, 0.1, 0.0]).double()
        found = drawn(kept, generator)
        new = found.labels[rows].tolist()
        assert way(kept, alone, 0, found) == 0
        if new not in each and float(found.factor[3]) > 0:
            each[values.index(min(values))] = new
        assert kept.labels[begin * 3 : (begin + width) * 3].view(3, width).tolist() == each
