"""Every proven inequality holds on drawn samples, codes, ensembles and streams, and bounds in probability cover."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import torch_multiclass as tm
from torch_multiclass import bounds
from torch_multiclass.solvers import (
    AdaBoost,
    AdaBoostAveraged,
    AdaBoostMH,
    AdaBoostMO,
    AdaBoostMR,
    ConstraintClassifier,
    Perceptron,
)

SEEDS = st.integers(0, 2**31 - 1)
LOSSES = ["hinge", "squared", "squared_hinge", "logistic", "exponential", "sigmoid"]
ROUNDING = 1 + 1e-6
UNUSUAL = pytest.mark.filterwarnings("ignore:.*against each other", "ignore:.*no base classifier is better")


def seeded(seed):
    return torch.Generator().manual_seed(seed)


# ---------------------------------------------------------------------- held out
pytestmark = pytest.mark.filterwarnings("ignore:delta. got")  # of a delta that is large, and exact all the same


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.floats(1e-4, 1 - 1e-4), st.floats(1e-4, 0.9))
def test_held_out_covers_whatever_the_error(rows, error, delta):
    """The probability of a sample whose limit is below the error, summed over all samples."""
    limits = [bounds.held_out_error(wrong, rows, delta=delta).value for wrong in range(rows + 1)]
    missed = sum(stats.binom.pmf(wrong, rows, error) for wrong, limit in enumerate(limits) if limit < error)
    assert missed <= delta * ROUNDING
    assert limits == sorted(limits)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 80), st.floats(0, 1), st.floats(1e-4, 0.9))
def test_held_out_is_no_larger_than_that_takes(rows, share, delta):
    """At the limit itself, a sample with so few errors has just the probability delta."""
    wrong = min(int(share * rows), rows - 1)
    limit = bounds.held_out_error(wrong, rows, delta=delta).value
    assert stats.binom.cdf(wrong, rows, limit) == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize(("rows", "error", "delta"), [(200, 0.13, 0.05), (1000, 0.02, 0.1), (60, 0.5, 0.01)])
def test_held_out_covers_at_its_level_in_a_thousand_draws(rows, error, delta):
    """By what it adds for the confidence: the share of errors alone is below the error half the time."""
    drawn = stats.binom.rvs(rows, error, size=1000, random_state=1)
    of = {wrong: bounds.held_out_error(wrong, rows, delta=delta) for wrong in set(drawn.tolist())}
    found = [of[wrong] for wrong in drawn.tolist()]
    most = stats.binom.ppf(1 - 1e-4, 1000, delta)
    assert sum(bound.value < error for bound in found) <= most
    assert sum(bound.terms["empirical"] < error for bound in found) > 3 * most


# ---------------------------------------------------------------------- margin bounds
def world(seed, atoms=12, width=2, classes=3):
    """A distribution over finitely many points of the unit ball and their labels."""
    generator = seeded(seed)
    x = torch.randn(atoms, width, generator=generator).double()
    x = x / x.norm(dim=1).max()
    share = torch.rand(atoms, classes, generator=generator).double().pow(4)
    return x, share / share.sum(), generator


def margins_of(x, weights):
    """``(W, atoms, K)``: the margin of each point for each label it may have, under each of some weights."""
    scores = torch.einsum("wkd,nd->wnk", weights, x)
    best = scores.topk(2, -1)
    others = torch.where(
        torch.arange(scores.shape[-1]) == best.indices[..., :1], best.values[..., 1:], best.values[..., :1]
    )
    return scores - others


def ball(generator, count, classes, width, norm):
    """Weights whose classes have norms of at most ``norm``, most of them just that."""
    weights = torch.randn(count, classes, width, generator=generator).double()
    length = torch.rand(count, classes, 1, generator=generator).double().pow(0.2)
    return norm * length * weights / weights.norm(dim=-1, keepdim=True)


def drawn(share, rows, generator):
    """The shares that a sample of so many rows has."""
    counts = torch.multinomial(share.flatten(), rows, replacement=True, generator=generator).bincount(
        minlength=share.numel()
    )
    return counts.double().reshape(share.shape) / rows


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.sampled_from([0.5, 1.0, 2.0]), st.sampled_from([0.3, 0.7, 1.0]), st.booleans())
def test_margin_bounds_hold_for_all_functions_of_the_ball_at_once(seed, norm, margin, ramp):
    x, share, generator = world(seed)
    rows, delta, classes = 200_000, 0.05, 3
    sample = drawn(share, rows, generator)
    margins = margins_of(x, ball(generator, 300, classes, 2, norm))
    error = ((margins <= 0) * share).sum((1, 2))
    loss = (1 - margins / margin).clamp(0, 1) if ramp else (margins < margin).double()
    given = {"num_classes": classes, "rows": rows, "delta": delta}
    kernel = {**given, "radius": 1.0, "norm": norm}
    hinge = ((1 - margins).clamp(min=0) * sample).sum((1, 2))
    trace = float((sample.sum(1) * x.square().sum(1)).sum()) * rows
    for wrong, empirical, slack in zip(
        error.tolist(), (loss * sample).sum((1, 2)).tolist(), hinge.tolist(), strict=True
    ):
        empirical = min(empirical, 1.0)
        found = [
            bounds.kernel_margin_error(empirical, margin=margin, **kernel),
            bounds.margin_error(empirical, margin=margin, complexity=norm / math.sqrt(rows), **given),
            bounds.slack_error(slack, **kernel),
        ]
        if margin <= norm:
            found += [bounds.uniform_margin_error(empirical, margin=margin, **kernel, trace=t) for t in (None, trace)]
        assert wrong <= min(float(bound) for bound in found)


def test_the_bound_of_one_function_covers_at_its_level_by_its_term_of_confidence():
    """A class of one function has no complexity, so that the margin bound is Hoeffding's."""
    error, rows, delta = 0.3, 400, 0.1
    drawn = stats.binom.rvs(rows, error, size=1000, random_state=2) / rows
    given = {"num_classes": 2, "margin": 1e-9, "complexity": 0.0, "rows": rows, "delta": delta}
    found = [bounds.margin_error(float(share), **given) for share in drawn]
    most = stats.binom.ppf(1 - 1e-4, 1000, delta)
    assert sum(bound.value < error for bound in found) <= most
    assert sum(bound.value - bound.terms["confidence"] < error for bound in found) > 3 * most


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.sampled_from([0.3, 1.0]))
def test_the_bound_for_sets_of_labels_holds_for_all_functions_of_the_ball_at_once(seed, margin):
    x, share, generator = world(seed, classes=8)  # a label is one of eight sets of three
    rows, labels, norm = 200_000, 3, 1.0
    sets = 2.0 * (torch.arange(8)[:, None] >> torch.arange(labels) & 1) - 1
    sample = drawn(share, rows, generator)
    scores = torch.einsum("wkd,nd->wnk", ball(generator, 300, labels, 2, norm), x)
    signed = scores[:, :, None] * sets
    wrong = ((signed <= 0).double().sum(-1) * share).sum((1, 2))
    empirical = ((1 - signed / margin).clamp(0, 1).sum(-1) * sample).sum((1, 2))
    given = {"num_labels": labels, "margin": margin, "rows": rows, "delta": 0.05}
    for error, loss in zip(wrong.tolist(), empirical.tolist(), strict=True):
        assert error <= bounds.multilabel_margin_error(loss, complexity=norm / math.sqrt(rows), **given).value


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 12), st.floats(0.1, 10))
def test_complexity_is_below_its_bound_and_grows_with_the_norm(seed, rows, norm):
    x = torch.randn(rows, 3, generator=seeded(seed)).double()
    found, twice = (bounds.rademacher_complexity(x @ x.mT, n) for n in (norm, 2 * norm))
    assert found.value <= found.bound * ROUNDING
    assert twice.value == pytest.approx(2 * found.value)
    assert found.bound <= norm * float(x.norm(dim=1).max()) / math.sqrt(rows) * ROUNDING


# ---------------------------------------------------------------------- codes
def codes(kind, classes, generator):
    if kind == "sparse":
        return tm.codes.sparse_random(classes, 6, trials=20, generator=generator)
    return {"all": tm.codes.one_vs_all, "one": tm.codes.one_vs_one, "complete": tm.codes.complete}[kind](classes)


@UNUSUAL
@given(SEEDS, st.sampled_from(LOSSES), st.sampled_from(["all", "one", "complete", "sparse"]), st.floats(0.05, 4))
def test_theorem_1_and_corollary_2_for_any_margins(seed, loss, kind, spread):
    """Margins that are often 0 or tied, of functions that were never trained."""
    generator = seeded(seed)
    code = codes(kind, int(torch.randint(3, 6, (), generator=generator)), generator)
    labels = torch.randint(len(code), (30,), generator=generator)
    margins = (
        (code[labels] + spread * torch.randn(30, code.shape[1], generator=generator)).mul(2).round().div(2).double()
    )
    scores, signs, binary = tm.CodedScores(margins, code), code[labels].double(), tm.margins.as_margin_loss(loss)
    values, counted = binary.value(signs * margins), signs != 0
    ignored, average, rest = 1 - float(counted.double().mean()), float(values.mean()), float(values[counted].mean())
    by_loss = float((tm.LossBasedDecoder(loss)(scores) != labels).double().mean())
    by_signs = float((tm.HammingDecoder()(scores) != labels).double().mean())
    wrong = float(((signs * margins)[counted] <= 0).double().mean())
    assert by_loss <= bounds.coded_error(average, code, loss).value * ROUNDING
    assert by_loss <= bounds.coded_error(rest, code, loss, ignored=ignored).value * ROUNDING
    assert by_signs <= bounds.hamming_error(average, code, loss).value * ROUNDING
    assert by_signs <= bounds.hamming_error(rest, code, loss, ignored=ignored).value * ROUNDING
    assert by_signs <= bounds.hamming_error(wrong, code, None, ignored=ignored).value * ROUNDING


@given(SEEDS, st.integers(2, 6), st.floats(0.1, 3))
def test_the_vote_errs_no_more_than_its_pairs_allow(seed, classes, spread):
    generator, code = seeded(seed), tm.codes.one_vs_one(classes)
    labels = torch.cat([torch.arange(classes), torch.randint(classes, (60,), generator=generator)])
    margins = code[labels] + spread * torch.randn(len(labels), code.shape[1], generator=generator)
    asked = (code[labels] != 0).double()
    pairs = ((code[labels] * margins <= 0) * asked).sum(0) / asked.sum(0)
    error = float((tm.VotingDecoder()(tm.CodedScores(margins, code)) != labels).double().mean())
    assert error <= bounds.one_vs_one_error(float(pairs.max()), num_classes=classes).value * ROUNDING


# ---------------------------------------------------------------------- boosting
def labelled(seed, classes, rows=40):
    generator = seeded(seed)
    return torch.randn(rows, 3, generator=generator).round(decimals=1), torch.cat(
        [torch.arange(classes), torch.randint(classes, (rows - classes,), generator=generator)]
    )


def after_each_round(report, x):
    total = torch.zeros(len(x), report.trees[0].values.shape[1])
    for tree, alpha, bound in zip(report.trees, report.alphas, report.bound, strict=True):
        total = total + tm.EnsembleScorer([tree], [alpha])(x)
        yield total.double(), bound


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.integers(2, 5), st.booleans(), st.sampled_from([2, 4]))
def test_products_of_normalisers_bound_what_they_say_at_every_round(seed, classes, real, leaves):
    x, y = labelled(seed, classes)
    signs = 2.0 * (y[:, None] == torch.arange(classes)).double() - 1
    options = {"rounds": 12, "leaves": leaves}

    def holds(share, product, kind):
        bound = bounds.boosting_error(product, kind, num_classes=2 if kind == "adaboost" else classes)
        assert float(share.double().mean()) <= bound.value * ROUNDING

    for scores, product in after_each_round(AdaBoost(real=real, **options).fit(x, (y == 0).long()).report, x):
        holds(scores[:, 0] * signs[:, 0] <= 0, product, "adaboost")
    for scores, product in after_each_round(AdaBoostMH(real=real, **options).fit(x, y).report, x):
        holds(scores * signs <= 0, product, "hamming")
        holds(scores.argmax(1) != y, product, "mh")
    others = y[:, None] != torch.arange(classes)
    for scores, product in after_each_round(AdaBoostMR(**options).fit(x, y).report, x):
        holds((scores.gather(1, y[:, None]) <= scores)[others], product, "ranking")
        holds(scores.argmax(1) != y, product, "mr")
    for scores, product in after_each_round(AdaBoostAveraged(**options).fit(x, y).report, x):
        holds((scores * signs).sum(1) <= 0, product, "averaged")


@UNUSUAL
@settings(max_examples=15, deadline=None)
@given(SEEDS, st.integers(3, 5), st.sampled_from(["all", "one", "complete", "sparse"]), st.booleans())
def test_boosting_a_code_is_bounded_at_every_round(seed, classes, kind, real):
    (x, y), code = labelled(seed, classes), codes(kind, classes, seeded(seed))
    report = AdaBoostMO(code, 10, real=real).fit(x, y).report
    ignored = float((code[y] == 0).double().mean())
    for scores, product in after_each_round(report, x):
        wrong = float((tm.LossBasedDecoder("exponential")(tm.CodedScores(scores, code)) != y).double().mean())
        assert wrong <= bounds.coded_error(product, code, "exponential", ignored=ignored).value * ROUNDING


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.integers(3, 5), st.sampled_from(["all", "complete"]), st.floats(0, 1))
def test_theorem_6_at_every_margin(seed, classes, kind, theta):
    (x, y), code = labelled(seed, classes), codes(kind, classes, None)
    scorer, report = AdaBoostMO(code, 10).fit(x, y)
    share = float((AdaBoostMO.margins(scorer(x), y, report) <= theta).double().mean())
    bound = bounds.code_margin(report.bound[-1], code, margin=theta, total_weight=sum(report.alphas))
    assert share <= bound.value * ROUNDING


@given(st.floats(1e-6, 0.999), st.floats(0.001, 1))
def test_so_many_runs_that_one_succeeds(delta, success):
    runs = bounds.confidence_runs(delta, success)
    assert (1 - success) ** runs <= delta / 2 * ROUNDING


# ---------------------------------------------------------------------- online learners
@pytest.mark.filterwarnings("ignore:.*no row has the label")
@settings(max_examples=15, deadline=None)
@given(SEEDS, st.integers(2, 5), st.sampled_from(["conservative", "all", "uniform"]), st.booleans())
def test_updates_stay_below_the_bound_of_any_weights_that_separate(seed, classes, rule, ordinal):
    """Rows labelled by weights drawn beforehand, those close to a boundary left out."""
    generator = seeded(seed)
    right = torch.randn(classes, 3, generator=generator).double()
    x = torch.randn(300, 3, generator=generator).double()
    order = (x @ right.mT).argsort(1, descending=True)
    pairs = tm.preferences.ranking(order) if ordinal else tm.preferences.ranking(order[:, :2])
    if not ordinal:  # a class against all others
        pairs = torch.stack([order[:, :1].expand(-1, classes - 1), order[:, 1:]], 2)
    differences = ((right[pairs[..., 0]] - right[pairs[..., 1]]) * x[:, None]).sum(-1).amin(1)
    kept = differences > 0.1
    x, pairs, y, least = x[kept], pairs[kept], order[kept, 0], float(differences[kept].min())
    given = {"radius": float(x.norm(dim=1).max()), "margin": least / math.sqrt(2 * float(right.square().sum()))}
    report = ConstraintClassifier(rule, max_passes=100_000).fit(x, pairs, num_classes=classes).report
    assert report.converged
    count = report.preference_updates if rule == "all" else report.updates
    assert count <= bounds.mistakes(**given, rule=rule, num_classes=classes).value
    if not ordinal:
        assert (
            Perceptron(max_passes=100_000).fit(x, y, num_classes=classes).report.updates
            <= bounds.mistakes(**given).value
        )


@pytest.mark.parametrize(
    ("bound", "value"),
    [
        (bounds.code_margin(0.0, [[1], [-1]], margin=1.0, total_weight=1e30), 0.0),
        (bounds.code_margin(0.5, [[1], [-1]], margin=1.0, total_weight=1e30), math.inf),
        (bounds.mistakes(1e200, 1e-200), math.inf),
    ],
)
def test_numbers_beyond_floating_point(bound, value):
    assert bound.value == value
    assert bound.vacuous == (value > 0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: bounds.code_margin(0.5, [[1, 1], [1, 1]], margin=0.1, total_weight=1),
            "code: two of its rows are equal",
        ),
        (lambda: bounds.confidence_runs(0.1, 5e-324), "success: got .*accepted is a larger number, up to 1"),
        (lambda: bounds.held_out_error(1, 10, delta=1), r"delta: got 1; accepted is a number in \(0, 1\)"),
        (
            lambda: bounds.one_vs_one_error(1.5, num_classes=3),
            r"pair_error: got 1\.5; accepted is a number in \[0, 1\]",
        ),
        (lambda: bounds.coded_error(-1, [[1], [-1]], "hinge"), "mean_loss: got -1; accepted is a finite number >= 0"),
    ],
)
def test_errors_say_the_range(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_measured_numbers_may_be_tensors_of_one_number():
    mean = torch.tensor(0.25, dtype=torch.float64)
    code = [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
    assert bounds.coded_error(mean, code, "hinge") == bounds.coded_error(0.25, code, "hinge")
    assert bounds.hamming_error(mean, code, "hinge") == bounds.hamming_error(0.25, code, "hinge")
    assert bounds.one_vs_one_error(mean, num_classes=3) == bounds.one_vs_one_error(0.25, num_classes=3)
    assert bounds.boosting_error(mean, "mh", num_classes=3) == bounds.boosting_error(0.25, "mh", num_classes=3)
    with pytest.raises(ValueError, match="mean_loss: got"):
        bounds.coded_error(torch.tensor([0.25]), code, "hinge")
