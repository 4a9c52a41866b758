"""Known answers, and the definitions written out: Kesler's construction, the binary perceptron, bounds on mistakes."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.contracts.online import OUT_OF_PASSES
from tests.references import online as naive
from torch_multiclass import preferences
from torch_multiclass.solvers import BalancedWinnow, ConstraintClassifier, PassiveAggressive, Perceptron

pytestmark = pytest.mark.filterwarnings("ignore:target. no row has the label:UserWarning")

X6, Y6 = torch.tensor(naive.P6), torch.tensor(naive.Y6)
B6 = torch.tensor(naive.B6)
SIGNS = torch.tensor(naive.MULTILABEL6)
RANKINGS = preferences.ranking(torch.tensor(naive.RANKINGS6))
ORDINAL = preferences.ordinal(Y6, 3)


def close(found, expected, atol=1e-6):
    expected = torch.as_tensor(np.asarray(expected), dtype=torch.float64)
    torch.testing.assert_close(found.detach().double(), expected, rtol=1e-9, atol=atol)


# ------------------------------------------------------------------------------------------------------ known answers


def test_perceptron():
    scorer, report = Perceptron().fit(X6, Y6)
    assert report.mistakes == [3, 0]
    assert report.converged
    close(scorer.weight, [[2, 0, -1], [-1, 1, 0], [-1, -1, 1]])
    half = Perceptron(learning_rate=0.5).fit(X6, Y6)
    assert torch.equal(2 * half.scorer.weight, scorer.weight)
    assert half.report.mistakes == report.mistakes


def test_averaged_perceptron():
    scorer = Perceptron(averaged=True).fit(X6, Y6).scorer
    expected = [[1.833333, -0.083333, -0.75], [-1, 0.916667, -0.083333], [-0.833333, -0.833333, 0.833333]]
    close(scorer.weight, expected)


def test_ultraconservative_rules():
    scorer, report = ConstraintClassifier("all").fit(X6, Y6)
    assert (report.mistakes, report.preference_updates) == ([3, 0], 6)
    close(scorer.weight, [[3, 0, 0], [0, 3, 0], [-3, -3, 0]])
    close(ConstraintClassifier("uniform").fit(X6, Y6).scorer.weight, [[1.5, 0, 0], [0, 1.5, 0], [-1.5, -1.5, 0]])
    conservative, perceptron = ConstraintClassifier().fit(X6, Y6), Perceptron().fit(X6, Y6)
    assert torch.equal(conservative.scorer.weight, perceptron.scorer.weight)


def test_two_classes():
    w, passes, _ = naive.binary_perceptron(naive.P6, [1, -1, -1, 1, -1, -1])
    assert (w.tolist(), passes) == ([2, 0, -1], [3, 0])
    scorer, report = Perceptron().fit(X6, torch.tensor([1, 0, 0, 1, 0, 0]))
    assert report.mistakes == passes
    close(scorer.weight, [-w, w])


@pytest.mark.filterwarnings(OUT_OF_PASSES)
def test_passive_aggressive():
    scorer, report = PassiveAggressive(C=1.0, max_passes=1).fit(X6, Y6)
    expected = [[0.458333, -0.229167, -0.270833], [-0.159722, 0.420139, 0.079861], [-0.298611, -0.190972, 0.190972]]
    close(scorer.weight, expected)
    assert report.mistakes == [5]
    assert naive.passive_aggressive(naive.P6, naive.Y6, 3)[1] == pytest.approx([1, 1.5, 1, 0.25, 0, 0.541667], abs=1e-6)


@pytest.mark.parametrize(
    ("target", "rule", "mistakes", "used", "weight"),
    [
        (SIGNS, "conservative", [3, 0], 3, [[2, 0, -1], [0, 1, 1], [-2, -1, 0]]),
        (SIGNS, "all", [4, 0], 6, [[4, -1, 0], [0, 3, 0], [-4, -2, 0]]),
        (RANKINGS, "conservative", [5, 2, 1, 0], 8, [[3, 1, 0], [-2, 2, 1], [-1, -3, -1]]),
        (RANKINGS, "all", [6, 3, 1, 1, 0], 13, [[4, 2, 0], [-1, 3, 1], [-3, -5, -1]]),
        (ORDINAL, "conservative", [6, 0], 6, [[3, 0, -1], [-1, 2, 2], [-2, -2, -1]]),
    ],
)
def test_constraints(target, rule, mistakes, used, weight):
    scorer, report = ConstraintClassifier(rule).fit(X6, target)
    assert (report.mistakes, report.preference_updates, report.converged) == (mistakes, used, True)
    close(scorer.weight, weight)


def test_pairs_of_two_classes_and_of_none():
    x, pairs = torch.eye(2), torch.tensor([[[0, 1]], [[1, 0]]])
    assert ConstraintClassifier().fit(x, pairs).scorer.num_classes == 2
    assert ConstraintClassifier().partial_fit(x[:0], pairs[:0]).scorer.num_classes == 2


@pytest.mark.parametrize(
    ("ratio", "theta", "plus", "minus"),
    [(2.0, 0.0, [2, 0.5, 0.5, 0.5], [0.5, 2, 2, 2]), (1.5, 1.0, [2.25, 1, 1, 1], [0.444444, 1, 1, 1])],
)
@pytest.mark.parametrize("zero", [-1, 0])
def test_winnow_of_two_classes(ratio, theta, plus, minus, zero):
    signs = torch.tensor([1, -1] * 3)
    scorer, report = BalancedWinnow(ratio, binary=True, theta=theta).fit(B6, signs.clamp_min(zero))
    assert report.mistakes == [3, 0]
    close(report.weights, [minus, plus])
    close(scorer.weight, [np.subtract(plus, minus)])
    assert torch.equal(scorer(B6)[:, 0] >= 0, signs > 0)


def test_winnow_of_two_classes_names_other_labels():
    with pytest.raises(ValueError, match=r"target: has the labels \[2\] with a binary learner"):
        BalancedWinnow(binary=True).partial_fit(B6, torch.tensor([0, 1, 2, 0, 1, 1]))


@pytest.mark.parametrize(
    ("rule", "mistakes", "weights"),
    [
        ("conservative", [5, 3, 0], [[8, 1, 1, 0.5], [0.25, 4, 1, 1], [0.5, 0.25, 1, 2]]),
        ("all", [5, 1, 0], [[8, 0.5, 1, 0.25], [0.25, 8, 0.5, 1], [0.5, 0.25, 2, 4]]),
    ],
)
def test_winnow_of_three_classes(rule, mistakes, weights):
    scorer, report = BalancedWinnow(2.0, rule=rule).fit(B6, torch.tensor([0, 1, 0, 2, 0, 1]))
    assert report.mistakes == mistakes
    close(report.weights, weights)
    close(scorer.weight, weights)


@pytest.mark.parametrize("ratio", [1, 1 + 5e-7, 0.5, -2.0, 1.5e6, 10**400, math.nan, math.inf, True, "2", None])
def test_a_ratio_of_winnow_is_above_one(ratio):
    with pytest.raises(ValueError, match=r"ratio: got .*; accepted is a number > 1 \(from 1 \+ 1e-6 to 1e6\)"):
        BalancedWinnow(ratio)


@pytest.mark.parametrize("ratio", [1 + 1e-6, 1e6])
def test_the_least_and_the_largest_ratio_of_winnow(ratio):
    assert BalancedWinnow(ratio).ratio == ratio


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("theta", [0.0, -1.0])
def test_weights_beyond_the_numbers_of_the_features_are_scaled(theta, bias):
    """The largest, 2^100, to the root of the largest float32, 2^64, and the threshold with it."""
    learner = BalancedWinnow(2.0, binary=True, theta=theta, bias=bias, max_passes=1)
    with pytest.warns(UserWarning, match="in the last of 1 passes"):
        scorer, report = learner.fit(torch.tensor([[100.0, -1.0], [-1.0, 0.0]]), torch.tensor([0, 1]))
    exponents = [[100.0, -1.0, 1.0][: 2 + bias], [-100.0, 1.0, -1.0][: 2 + bias]]
    close(report.weights, 2.0 ** torch.tensor(exponents).double())
    (minus, plus), scale = 2.0 ** torch.tensor(exponents).double(), 2.0**-36
    torch.testing.assert_close(scorer.weight.data, (scale * (plus - minus)[None, :2]).float())
    moved = scale * (float((plus - minus)[-1]) * bias - theta)
    assert (0.0 if scorer.bias is None else scorer.bias.item()) == pytest.approx(moved, rel=1e-6)


# ------------------------------------------------------------------------------------------------------- definitions

SEEDS = st.integers(0, 10**6)
RULES = st.sampled_from(["conservative", "all", "uniform"])
KINDS = st.sampled_from(["classes", "signs", "ranking", "closure", "ordinal", "pairs"])


def drawn(seed, rows=12, width=3, classes=4, whole=False):
    """Features, whole numbers at times, where ties are frequent, with rows that stand twice."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, width, generator=g, dtype=torch.float64)
    x = (2 * x).round() if whole else x
    x[1::3] = x[: len(x[1::3])]
    return x, g


def asked(kind, scores, g):
    """Preferences of each kind that the scores keep, as a target and as lists of pairs."""
    rows, k = scores.shape
    order = scores.argsort(1, descending=True)
    if kind == "classes":
        return order[:, 0], [naive.of_class(y, k) for y in order[:, 0].tolist()]
    if kind == "signs":
        cut = scores.gather(1, order.gather(1, torch.randint(0, k, (rows, 1), generator=g)))
        signs = torch.where(scores >= cut, 1, -1)
        return signs, [naive.of_signs(row) for row in signs.tolist()]
    if kind in ("ranking", "closure"):
        pairs = [naive.of_ranking(row, kind == "closure") for row in order.tolist()]
        return preferences.ranking(order, closure=kind == "closure"), pairs
    if kind == "ordinal":
        y = torch.randint(k, (rows,), generator=g)
        return preferences.ordinal(y, k), [naive.of_ordinal(label, k) for label in y.tolist()]
    chosen = torch.rand(rows, k * (k - 1) // 2, generator=g) < 0.5
    every = [naive.of_ranking(row, True) for row in order.tolist()]
    pairs = [
        [pair for pair, keep in zip(row, kept, strict=True) if keep] for row, kept in zip(every, chosen, strict=True)
    ]
    target = torch.full((rows, k * (k - 1) // 2, 2), -100)
    for i, row in enumerate(pairs):
        target[i, : len(row)] = torch.tensor(row).view(-1, 2)
    return preferences.pairs(target), pairs


@pytest.mark.filterwarnings(OUT_OF_PASSES)
@given(SEEDS, RULES, KINDS, st.integers(2, 6), st.booleans(), st.booleans())
def test_kesler(seed, rule, kind, classes, averaged, whole):
    """Whatever the preferences, and whether or not anything keeps them."""
    x, g = drawn(seed, classes=classes, whole=whole)
    target, pairs = asked(kind, torch.randn(len(x), classes, generator=g), g)
    if kind == "classes" and len(target.unique()) < 2:
        return
    steps = torch.randint(1, 4, (len(x),), generator=g) if whole else torch.rand(len(x), generator=g).double() + 0.5
    has = torch.tensor([bool(row) for row in pairs]) | (kind == "signs")
    reference = naive.constraint_classifier(
        x[has].numpy(), [row for row, kept in zip(pairs, has, strict=True) if kept], classes, rule,
        max_passes=4, steps=steps[has].tolist(),
    )  # fmt: skip
    learner = ConstraintClassifier(rule, averaged=averaged, max_passes=4)
    scorer, report = learner.fit(x, target, weight=steps, num_classes=classes)
    assert report.mistakes == reference[2]
    assert report.preference_updates == reference[3]
    close(scorer.weight, reference[1 if averaged else 0], atol=1e-9)


@pytest.mark.filterwarnings(OUT_OF_PASSES)
@given(SEEDS, st.booleans())
def test_two_classes_are_the_binary_perceptron_update_for_update(seed, whole):
    x, g = drawn(seed, 20, whole=whole)
    y = torch.randint(2, (20,), generator=g)
    y[:2] = torch.tensor([0, 1])
    signs = (2 * y - 1).tolist()
    _, _, history = naive.binary_perceptron(x.numpy(), signs, 1)
    learner = Perceptron()
    for i in range(20):
        scorer = learner.partial_fit(x[i : i + 1], y[i : i + 1], num_classes=2).scorer
        w = torch.tensor(history[i])
        torch.testing.assert_close(scorer.weight.detach(), torch.stack([-w, w]), rtol=1e-12, atol=1e-12)
    assert Perceptron(max_passes=3).fit(x, y).report.mistakes == naive.binary_perceptron(x.numpy(), signs, 3)[1]


@pytest.mark.filterwarnings(OUT_OF_PASSES)
@given(SEEDS, st.integers(2, 5), st.sampled_from([0.01, 0.3, 5.0]), st.booleans())
def test_passive_aggressive_is_what_it_says(seed, classes, C, whole):
    x, g = drawn(seed, whole=whole)
    x = x[x.ne(0).any(1)]
    y = torch.randint(classes, (len(x),), generator=g)
    y[:2] = torch.tensor([0, 1])
    if whole:  # steps that are a power of two: the many ties are exact, whatever the order of sums
        C = 2.0**-10
    expected, losses = naive.passive_aggressive(x.numpy(), y.tolist(), classes, C, 3)
    scorer, report = PassiveAggressive(C, max_passes=3).fit(x, y, num_classes=classes)
    if min(map(abs, losses), default=1) > 1e-9 or not whole:
        assert report.updates == sum(loss > 1e-12 for loss in losses)
    close(scorer.weight, expected, atol=1e-9)


@pytest.mark.filterwarnings(OUT_OF_PASSES)
@given(SEEDS, st.integers(2, 5), st.sampled_from([2.0, 4.0]), st.sampled_from(["conservative", "all"]))
def test_winnow_is_what_it_says(seed, classes, ratio, rule):
    """Powers of two, where the order of sums does not matter."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randint(-1, 2, (12, 5), generator=g).double()
    x = x[x.ne(0).any(1)]
    y = torch.randint(classes, (len(x),), generator=g)
    y[:2] = torch.tensor([0, 1])
    expected, passes = naive.winnow(x.numpy(), y.tolist(), classes, ratio, rule, 4)
    scorer, report = BalancedWinnow(ratio, rule=rule, max_passes=4).fit(x, y, num_classes=classes)
    assert report.mistakes == passes
    torch.testing.assert_close(report.weights, torch.tensor(expected))
    for theta in (0.0, 0.5, -2.0):
        plus, minus, passes = naive.winnow_binary(x.numpy(), (2 * y.clamp_max(1) - 1).tolist(), ratio, theta, 4)
        learner = BalancedWinnow(ratio, binary=True, theta=theta, max_passes=4)
        scorer, report = learner.fit(x, y.clamp_max(1))
        assert report.mistakes == passes
        torch.testing.assert_close(report.weights, torch.tensor(np.stack([minus, plus])))
        torch.testing.assert_close(scorer(x)[:, 0], x @ torch.tensor(plus - minus) - theta)


# ------------------------------------------------------------------------------------------------------------ bounds


@given(SEEDS, RULES, KINDS, st.integers(2, 6), st.integers(2, 6))
def test_mistake_bounds(seed, rule, kind, classes, width):
    """``R^2/gamma^2`` updates, and ``K R^2/(2 gamma^2)`` preferences under the rule "all"."""
    g = torch.Generator().manual_seed(seed)
    star = torch.randn(classes, width, generator=g, dtype=torch.float64)
    x = torch.randn(60, width, generator=g, dtype=torch.float64)
    target, pairs = asked(kind, x @ star.mT, g)
    if kind == "ordinal":  # only rows whose scores fall off on either side of their best
        best = (x @ star.mT).argmax(1)
        target, pairs = preferences.ordinal(best, classes), [naive.of_ordinal(y, classes) for y in best.tolist()]
    products = [[float((star[a] - star[b]) @ row) for a, b in found] for row, found in zip(x, pairs, strict=True)]
    least = torch.tensor([min(row, default=1.0) for row in products])
    norm = float((2 * star.square().sum()).sqrt())
    clear = least / norm > 0.02
    rows = clear & torch.tensor([bool(row) for row in pairs])
    if not rows.any() or (kind == "classes" and len(target[rows].unique()) < 2):
        return
    gamma, radius = float(least[rows].min()) / norm, float(x[rows].norm(dim=1).max())
    learner = ConstraintClassifier(rule, max_passes=100_000)
    report = learner.fit(x[rows], target[rows], num_classes=classes).report
    assert report.converged
    bound = radius**2 / gamma**2
    if rule == "all":
        assert report.preference_updates <= classes / 2 * bound
    else:
        assert report.updates <= bound
    if kind == "classes":
        perceptron = Perceptron(max_passes=100_000).fit(x[rows], target[rows], num_classes=classes).report
        assert perceptron.updates <= bound


def test_where_labels_begin_is_told_of_all_there_are():
    x, y = torch.eye(3), torch.tensor([1, 2, 3])
    with pytest.raises(ValueError, match="labels start at 0 here: subtract 1"):
        Perceptron().fit(x, y, num_classes=3)
    learner = Perceptron()
    learner.partial_fit(x, y - 1)
    with pytest.raises(ValueError, match=r"target: label 3 is outside 0\.\.2 \(3 classes\)$"):
        learner.partial_fit(x, y)
