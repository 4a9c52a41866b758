"""The loops of the library, at every level of the processor that runs here, against those of NumPy."""

import copy

import numpy as np
import pytest
import torch

from torch_multiclass.ops import _native
from torch_multiclass.ops.online import Asked, Descent, Rows, Rule, State, by_numpy, descend, visit, visit_chains
from torch_multiclass.ops.online.by_numpy import _even, _sums

LEVELS = [level for level in ("base", "sse2", "avx2", "avx512") if (_native.FOLDER / f"{level}.so").exists()]
RUNS = LEVELS[: LEVELS.index(_native.level()) + 1] if _native.level() in LEVELS else []
pytestmark = pytest.mark.skipif(not RUNS, reason="there is no library")

COUNT, WIDTH = 60, 9


def both(monkeypatch, level, work):
    """What the library and NumPy make of the same."""
    found = []
    for library in (_native.open_library(_native.FOLDER, level), None):
        monkeypatch.setattr(_native, "library", lambda library=library: library)
        found.append(work())
    return found


def same(one, other):
    assert torch.equal(one.counts, other.counts)
    for name in ("weights", "drift", "exponents", "shift"):
        left, right = getattr(one, name), getattr(other, name)
        assert (left is None) == (right is None)
        if left is not None:
            torch.testing.assert_close(left, right, rtol=1e-12, atol=1e-12)


def material(classes, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(COUNT, WIDTH, generator=g) * (torch.rand(COUNT, WIDTH, generator=g) < 0.6)
    x[7] = 0
    signs = torch.randint(-1, 2, (COUNT, classes), generator=g).to(torch.int8)
    order = torch.rand(COUNT, classes, generator=g).argsort(1)
    pairs = torch.stack([order[:, :-1], order[:, 1:]], 2).flatten(0, 1)
    first = torch.arange(COUNT + 1) * (classes - 1)
    asked = [Asked("labels", order[:, 0].contiguous()), Asked("signs", signs), Asked("pairs", pairs, first)]
    steps = torch.rand(COUNT, generator=g, dtype=torch.float64) + 0.5
    return x, asked, steps, torch.randint(COUNT, (3 * COUNT,), generator=g)


def compressed(x):
    there = x.nonzero()
    offsets = torch.cat([torch.zeros(1, dtype=torch.long), (x != 0).sum(1).cumsum(0)])
    return Rows(x[x != 0], x.shape[1], offsets, there[:, 1].contiguous())


@pytest.mark.parametrize("level", RUNS)
@pytest.mark.parametrize("classes", [2, 3, 17, 70])
@pytest.mark.parametrize("wide", [False, True])
def test_additive_learners(monkeypatch, level, classes, wide):
    x, every, steps, order = material(classes)
    x = x.double() if wide else x
    for rows in (Rows(x, WIDTH), compressed(x)):
        for asked in every:
            for rule in (
                Rule("perceptron"),
                Rule("perceptron", "all"),
                Rule("perceptron", "uniform"),
                Rule("passive_aggressive"),
            ):
                for bias in (False, True):

                    def work(rows=rows, asked=asked, rule=rule, bias=bias):
                        state = State.zero(classes, WIDTH + bias, averaged=True)
                        visit(state, rows, asked, steps, rule, bias, order)
                        visit(state, rows, asked, steps, rule, bias, order[:20])
                        return state

                    same(*both(monkeypatch, level, work))


@pytest.mark.parametrize("level", RUNS)
@pytest.mark.parametrize(("kind", "classes"), [("winnow", 2), ("winnow", 5), ("winnow_binary", 2)])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_winnow(monkeypatch, level, kind, classes, scale):
    """Exponents of hundreds: another unit is taken on the way."""
    x, every, steps, order = material(classes)
    for rows in (Rows(scale * x, WIDTH), compressed(scale * x)):

        def work(rows=rows):
            state = State.zero(classes, WIDTH + 1, exponents=True)
            visit(state, rows, every[0], steps, Rule(kind, threshold=0.5, ratio=2.0), True, order)
            return state

        one, other = both(monkeypatch, level, work)
        same(one, other)
        assert bool(one.shift > 0) == (scale > 1)
        assert bool(one.weights.isfinite().all())


@pytest.mark.parametrize("level", RUNS)
@pytest.mark.parametrize("classes", [2, 3, 4, 9, 26])
def test_chains(monkeypatch, level, classes):
    x, every, _, _ = material(classes)
    g = torch.Generator().manual_seed(1)
    first = torch.tensor([0, 5, 6, 6, 20, 27, 41, 60])
    steps, order = torch.rand(7, generator=g, dtype=torch.float64) + 0.5, torch.randint(7, (60,), generator=g)
    padded = -(-classes // 4) * 4
    allowed = torch.zeros(classes + 2, padded, dtype=torch.float64)
    allowed[0, 1] = -torch.inf
    for bias, forbidden in ((False, None), (True, allowed)):

        def work(bias=bias, forbidden=forbidden):
            state = State.zero(classes, WIDTH + bias + classes + 2, averaged=True)
            asked = Asked("labels", every[0].target, first)
            visit_chains(state, Rows(x, WIDTH), asked, steps, forbidden, bias, order)
            return state

        same(*both(monkeypatch, level, work))


@pytest.mark.parametrize("level", RUNS)
@pytest.mark.parametrize("batch", [1, 7, 500])
@pytest.mark.parametrize("expected", [0, 40])
def test_pegasos(monkeypatch, level, batch, expected):
    x, every, steps, order = material(5)
    for rows in (Rows(x, WIDTH), compressed(x)):

        def work(rows=rows):
            descent = Descent.zero(5, WIDTH + 1, 0.05, expected)
            descend(descent, rows, every[0], steps, True, order, batch)
            return descent

        one, other = both(monkeypatch, level, work)
        assert torch.equal(one.steps, other.steps)
        torch.testing.assert_close(one.state.weights, other.state.weights, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(one.result(), other.result(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("level", RUNS)
@pytest.mark.parametrize("classes", [3, 5, 6, 7, 13, 26])
def test_classes_of_equal_weights_tie(monkeypatch, level, classes):
    """To the last bit, whatever the width, so that the lowest of them is the competitor."""
    g = torch.Generator().manual_seed(0)
    for width in (1, 3, 16, 33, 100):
        x = torch.randn(40, width, generator=g, dtype=torch.float64)
        weight = torch.randn(width, generator=g, dtype=torch.float64)
        for label in (0, 1, classes - 1):

            def work(x=x, weight=weight, label=label):
                moved = []
                for i in range(len(x)):
                    state = State.zero(classes, len(weight))
                    state.weights[:, :classes] = weight[:, None]
                    asked, steps = Asked("labels", torch.full((len(x),), label)), torch.ones(len(x)).double()
                    visit(state, Rows(x, len(weight)), asked, steps, Rule("perceptron"), False, torch.tensor([i]))
                    moved.append((state.result() - weight).abs().amax(1) > 0)
                return torch.stack(moved)

            for found in both(monkeypatch, level, work):
                expected = torch.zeros(classes, dtype=torch.bool)
                expected[[label, 1 if label == 0 else 0]] = True
                assert torch.equal(found, expected.expand_as(found))


def test_numpy_where_products_are_uneven(monkeypatch):
    """Another order of sums: the same to rounding."""
    x, every, steps, order = material(6)
    monkeypatch.setattr(_native, "library", lambda: None)
    found = []
    for even in (_even, lambda shape: False):
        monkeypatch.setattr(by_numpy, "_even", even)
        state = State.zero(6, WIDTH, averaged=True)
        visit(state, Rows(x, WIDTH), every[0], steps, Rule("perceptron"), False, order)
        found.append(copy.copy(state))
    same(*found)
    weights = np.repeat(np.random.default_rng(0).normal(size=(17, 1)), 7, 1)
    assert len(set(_sums(weights, np.random.default_rng(1).normal(size=17)).tolist())) == 1
