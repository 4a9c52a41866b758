"""Bounds: known answers, independent formulas, and that what is proven on a sample holds on every sample."""

import itertools
import math
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import torch_multiclass as tm
from torch_multiclass import bounds, solvers

KERNEL = {"num_classes": 3, "radius": 1.0, "norm": 1.0, "margin": 1.0, "rows": 10**6, "delta": 0.05}


@pytest.mark.parametrize(
    ("bound", "value"),
    [
        (bounds.kernel_margin_error(0.1, **KERNEL), 0.113224),
        (
            bounds.kernel_margin_error(0, num_classes=10, radius=2, norm=5, margin=0.5, rows=10**7, delta=0.01),
            0.253462,
        ),
        (bounds.slack_error(0.2, num_classes=4, radius=1, norm=2, rows=10**6, delta=0.05), 0.233224),
        (
            bounds.uniform_margin_error(0.1, num_classes=3, radius=1, norm=2, margin=0.5, rows=10**6, delta=0.05),
            0.198406,
        ),
        (
            bounds.uniform_margin_error(0.05, num_classes=5, radius=1, norm=10, margin=1, rows=10**8, delta=0.1),
            0.090243,
        ),
        (
            bounds.uniform_margin_error(
                0.1, num_classes=3, radius=1, norm=2, margin=0.5, rows=10**6, delta=0.05, trace=5e5
            ),
            0.175467,
        ),
        (
            bounds.margin_error(0.1, num_classes=3, margin=0.5, complexity=0.01, rows=10**4, delta=0.05),
            0.352239,
        ),
        (
            bounds.multilabel_margin_error(0.4, num_labels=5, margin=0.5, complexity=0.001, rows=10**5, delta=0.05),
            0.439351,
        ),
        (bounds.held_out_error(3, 100, delta=0.05), 0.075711),
        (bounds.held_out_error(0, 100, delta=0.05), 0.029513),
        (bounds.held_out_error(19, 2000, delta=0.01), 0.015872),
        (bounds.held_out_error(100, 100, delta=0.05), 1.0),
        (bounds.one_vs_one_error(0.2, num_classes=4), 0.6),
        (bounds.coded_error(0.404982, tm.codes.one_vs_one(3), "squared"), 0.607472),
        (bounds.hamming_error(0.404982, tm.codes.one_vs_one(3), "squared"), 1.214945),
        (bounds.coded_error(0.118601, tm.codes.one_vs_all(3), "squared"), 0.177902),
        (bounds.hamming_error(0.118601, tm.codes.one_vs_all(3), "squared"), 0.355803),
        (bounds.hamming_error(0.0, tm.codes.one_vs_one(3), None, ignored=1 / 3), 0.5),
        # l(0) = ln 2, and a third of the pairs left out: 1.5 (1/3 + 2/3 eps/ln 2), and with twice the loss
        (bounds.coded_error(0.1, tm.codes.one_vs_one(3), "logistic", ignored=1 / 3), 0.644270),
        (bounds.hamming_error(0.1, tm.codes.one_vs_one(3), "logistic", ignored=1 / 3), 0.788539),
        # 0.2 + 4 K r Lambda/sqrt(m) = 0.2 + 0.096, and 0.001224; a radius that is not 1
        (bounds.slack_error(0.2, num_classes=4, radius=2, norm=3, rows=10**6, delta=0.05), 0.297224),
        (
            bounds.uniform_margin_error(0.1, num_classes=4, radius=2, norm=3, margin=0.5, rows=10**6, delta=0.05),
            0.486592,
        ),
        (
            bounds.uniform_margin_error(
                0.1, num_classes=4, radius=2, norm=3, margin=0.5, rows=10**6, delta=0.05, trace=2e6
            ),
            0.379672,
        ),
    ],
)
def test_known_answers(bound, value):
    assert bound.value == pytest.approx(value, abs=2e-6)
    assert bound.vacuous == (value >= bound.trivial)


def test_the_terms_of_a_sum_add_up():
    bound = bounds.uniform_margin_error(0.1, **KERNEL)
    assert sum(bound.terms.values()) == float(bound)
    assert bound.assumptions
    assert pickle.loads(pickle.dumps(bound)) == bound


@pytest.mark.filterwarnings("ignore:delta. got")  # of a delta that is large, and exact all the same
@settings(deadline=None)
@given(st.integers(1, 3000), st.floats(0, 1), st.floats(1e-6, 0.999))
def test_held_out_is_the_quantile_of_beta(rows, share, delta):
    errors = min(int(share * (rows + 1)), rows)
    found = bounds.held_out_error(errors, rows, delta=delta).value
    wanted = 1.0 if errors == rows else stats.beta.ppf(1 - delta, errors + 1, rows - errors)
    assert found == pytest.approx(wanted, rel=1e-9)


LARGE = [(10**6, 10**8), (3 * 10**5, 10**6), (0, 10**9), (10**6, 10**7), (600_000, 2 * 10**6), (10**7 - 1, 10**7)]


@pytest.mark.parametrize(("errors", "rows"), LARGE)
def test_held_out_of_large_samples(errors, rows):
    wanted = stats.beta.ppf(0.95, errors + 1, rows - errors)
    assert bounds.held_out_error(errors, rows, delta=0.05).value == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_held_out_covers_at_its_level_in_a_thousand_draws(delta):
    draws = stats.binom.rvs(200, 0.13, size=1000, random_state=0)
    missed = sum(bounds.held_out_error(int(errors), 200, delta=delta).value < 0.13 for errors in draws)
    assert missed <= stats.binom.ppf(1 - 1e-4, 1000, delta)


def test_complexity_is_the_mean_over_all_signs():
    gram = torch.tensor([[1.0, 0.5, 0.0], [0.5, 1.0, 0.25], [0.0, 0.25, 1.0]])
    found = bounds.rademacher_complexity(gram, 2.0)
    every = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=3)))
    wanted = (((every @ gram) * every).sum(1).sqrt() * 2 / 3).mean()
    assert found.value == pytest.approx(float(wanted), abs=1e-7)
    assert found.value == pytest.approx(1.133005, abs=1e-6)
    assert found.bound == pytest.approx(1.154701, abs=1e-6)
    assert found.standard_error == 0


def test_what_rounding_leaves_of_a_gram_matrix_is_none_of_its_form():
    """Not quite symmetric, beside an entry of 0: the form is 1 or 5."""
    gram = torch.tensor([[1.0, 1e-5, -1.0], [0.0, 1.0, 0.0], [-1.0 - 1e-6, 0.0, 1.0]])
    found = bounds.rademacher_complexity(gram, 1.0)
    assert found.value == pytest.approx((1 + math.sqrt(5)) / 2 / 3, abs=1e-5)


def test_complexity_by_chance_is_near_the_exact_one():
    x = torch.randn(16, 3, generator=torch.Generator().manual_seed(0))
    gram = x @ x.T
    exact = bounds.rademacher_complexity(gram, 1.0)
    wide = torch.zeros(17, 17)
    wide[:16, :16] = gram  # a row without length changes nothing but m
    found = bounds.rademacher_complexity(wide, 17 / 16, generator=torch.Generator().manual_seed(1))
    assert 0 < found.standard_error < 0.05 * exact.value
    assert abs(found.value - exact.value) < 5 * found.standard_error
    assert exact.value <= exact.bound


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["hinge", "squared", "logistic", "exponential", "squared_hinge"]))
def test_what_a_code_proves_holds_on_every_sample(seed, loss):
    generator = torch.Generator().manual_seed(seed)
    classes = int(torch.randint(3, 6, (), generator=generator))
    code = [tm.codes.one_vs_all, tm.codes.one_vs_one, tm.codes.complete][seed % 3](classes)
    labels = torch.randint(classes, (40,), generator=generator)
    margins = code[labels] + torch.randn(40, code.shape[1], generator=generator) * 0.7
    scores = tm.CodedScores(margins, code)
    signs, binary = code[labels].float(), tm.margins.as_margin_loss(loss)
    average = float(binary.value(signs * margins).mean())
    counted = signs != 0
    ignored, rest = 1 - float(counted.float().mean()), float(binary.value((signs * margins)[counted]).mean())
    by_loss = float((tm.LossBasedDecoder(loss)(scores) != labels).float().mean())
    by_signs = float((tm.HammingDecoder()(scores) != labels).float().mean())
    slack = 1 + 1e-5
    assert by_loss <= bounds.coded_error(average, code, loss).value * slack
    assert by_loss <= bounds.coded_error(rest, code, loss, ignored=ignored).value * slack
    assert by_signs <= bounds.hamming_error(average, code, loss).value * slack
    wrong = float(((signs * margins)[counted] <= 0).float().mean())
    assert by_signs <= bounds.hamming_error(wrong, code, None, ignored=ignored).value * slack


def test_the_two_forms_agree_where_nothing_is_smoothed():
    errors, code = (0.2, 0.35, 0.1), tm.codes.one_vs_all(4)
    alphas = [0.5 * math.log((1 - e) / e) for e in errors]
    product = math.prod(2 * math.sqrt(e * (1 - e)) for e in errors)
    for theta in (0.0, 0.1, 0.9):
        printed = math.prod(2 * math.sqrt(e ** (1 - theta) * (1 - e) ** (1 + theta)) for e in errors)
        found = bounds.code_margin(product, code, margin=theta, total_weight=sum(alphas)).value
        assert found == pytest.approx(4 / tm.codes.min_row_distance(code) * printed, rel=1e-9)


def test_a_perfect_stump():
    alpha = 0.5 * math.log(13)
    normaliser = math.exp(-alpha)  # all right: the weights shrink alike
    found = bounds.code_margin(normaliser, [[1, 1, -1], [-1, 1, 1]], margin=0.9, total_weight=alpha)
    assert found.value == pytest.approx(1.319454, abs=1e-6)


def test_one_vs_one_is_tight_on_an_example():
    """Of five parts of each class, three go wrong against one rival each, and that rival wins its other duels there."""
    code = tm.codes.one_vs_one(4)
    pairs = list(itertools.combinations(range(4), 2))
    labels, rivals = zip(*[(y, r) for y in range(4) for r in [*(set(range(4)) - {y}), y, y]], strict=True)
    winners = [[rival, label] for label, rival in zip(labels, rivals, strict=True)]  # who wins first; the rest lose
    margins = torch.tensor(
        [[1.0 if i in row and (j not in row or row[0] == i) else -1.0 for i, j in pairs] for row in winners]
    )
    truth = torch.tensor(labels)
    wrong = (code[truth].float() * margins < 0).float()
    counted = (code[truth] != 0).float()
    assert (wrong.sum(0) / counted.sum(0)).tolist() == pytest.approx([0.2] * 6)
    vote = float((tm.VotingDecoder()(tm.CodedScores(margins, code)) != truth).float().mean())
    assert vote == pytest.approx(bounds.one_vs_one_error(0.2, num_classes=4).value)


@pytest.mark.parametrize(("arguments", "value"), [((0.05, 0.3), 13), ((0.01, 0.1), 53), ((0.5, 1.0), 2)])
def test_runs_for_confidence(arguments, value):
    assert bounds.confidence_runs(*arguments) == value


@pytest.mark.parametrize(
    ("kind", "classes", "value", "vacuous"),
    [
        ("adaboost", None, 0.4, False),
        ("hamming", None, 0.4, False),
        ("mh", 5, 1.0, True),
        ("ranking", None, 0.4, False),
        ("mr", 3, 0.8, False),
        ("averaged", None, 0.4, False),
    ],
)
def test_what_the_normalisers_bound(kind, classes, value, vacuous):
    bound = bounds.boosting_error(0.4, kind, num_classes=classes)
    assert bound.value == pytest.approx(value)
    assert bound.vacuous is vacuous


class Concave(tm.margins.MarginLoss):
    """Grows ever slower to the left, and falls short of ``l(0)`` in the mean."""

    name, at_zero, convex = "concave", 1.0, False

    def value(self, z):
        return torch.where(z < 0, 1 + 0.1 * z.abs().sqrt(), (1 - z).clamp(min=0))

    slope = curvature = conjugate = value


class Dips(Concave):
    """Falls to the left of 0."""

    def value(self, z):
        return torch.where(z < 0, (1 + z).clamp(min=0), 1 + z)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bounds.kernel_margin_error(1.2, **KERNEL), "empirical: got 1.2"),
        (lambda: bounds.kernel_margin_error(0.1, **{**KERNEL, "delta": 1.0}), "delta: got 1.0"),
        (lambda: bounds.kernel_margin_error(0.1, **{**KERNEL, "delta": 0}), "delta: got 0"),
        (lambda: bounds.kernel_margin_error(0.1, **{**KERNEL, "rows": 0}), "rows: got 0"),
        (lambda: bounds.kernel_margin_error(0.1, **{**KERNEL, "margin": 0.0}), "margin: got 0.0"),
        (lambda: bounds.kernel_margin_error(0.1, **{**KERNEL, "num_classes": 1}), "num_classes: got 1"),
        (lambda: bounds.uniform_margin_error(0.1, **{**KERNEL, "margin": 1.5}), "margin: got 1.5; .* = 1"),
        (lambda: bounds.uniform_margin_error(0.1, **KERNEL, trace=2e6), r"trace: got 2e\+06"),
        (
            lambda: bounds.uniform_margin_error(0.1, **{**KERNEL, "radius": 2}, trace=5e6),
            r"trace: .* at most .* = 4e\+06",
        ),
        (lambda: bounds.slack_error(math.nan, num_classes=2, radius=1, norm=1, rows=9, delta=0.1), "mean_slack: got"),
        (
            lambda: bounds.multilabel_margin_error(6, num_labels=5, margin=1, complexity=0, rows=9, delta=0.1),
            "empirical: got 6; accepted is at most num_labels = 5",
        ),
        (lambda: bounds.held_out_error(3, 2, delta=0.1), "errors: got 3; accepted is at most rows = 2"),
        (lambda: bounds.held_out_error(-1, 2, delta=0.1), "errors: got -1"),
        (lambda: bounds.boosting_error(0.5, "mx"), "kind: got 'mx'"),
        (lambda: bounds.boosting_error(0.5, "mr"), "num_classes: got None"),
        (lambda: bounds.boosting_error(0.5, "hamming", num_classes=1), "num_classes: got 1"),
        (
            lambda: bounds.boosting_error(0.5, "adaboost", num_classes=3),
            "num_classes: got 3; accepted of 'adaboost' is 2, of more classes kind='mh' or 'mr'",
        ),
        (lambda: bounds.code_margin(0.5, [[1, 0], [-1, 1]], margin=0, total_weight=1), "code: has zeros"),
        (lambda: bounds.code_margin(0.5, [[1], [-1]], margin=1.5, total_weight=1), "margin: got 1.5"),
        (lambda: bounds.confidence_runs(0.1, 0.0), "success: got 0.0"),
        (lambda: bounds.confidence_runs(0.1, 1.001), "success: got 1.001"),
        (lambda: bounds.coded_error(0.1, [[1], [-1]], Concave()), "loss: .* in the mean over z and -z"),
        (lambda: bounds.hamming_error(0.1, [[1], [-1]], Dips()), "loss: .* at a negative margin"),
        (lambda: bounds.rademacher_complexity(torch.ones(2, 3), 1.0), r"gram: got shape \(2, 3\)"),
        (lambda: bounds.rademacher_complexity(torch.tensor([[1.0, 2.0], [0.0, 1.0]]), 1.0), "gram: is not symmetric"),
        (lambda: bounds.rademacher_complexity(-torch.eye(2), 1.0), "gram: its form is negative"),
        (lambda: bounds.rademacher_complexity(torch.eye(2, device="meta"), 1.0), "gram: is on meta and has no values"),
        (lambda: bounds.mistakes(1.0, 0.0), "margin: got 0.0"),
        (lambda: bounds.mistakes(1.0, 1.0, rule="some"), "rule: got 'some'"),
    ],
)
def test_what_is_no_number_of_the_formula_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_bound_reads_as_what_it_is_made_of():
    given = {"num_classes": 3, "radius": 1, "norm": 2, "margin": 0.5, "delta": 0.05}
    assert str(bounds.kernel_margin_error(0.1, rows=1000, **given)) == (
        "1.657 (vacuous: above 1) = 0.1 empirical + 1.518 complexity + 0.0387 confidence"
    )
    assert str(bounds.held_out_error(100, 100, delta=0.05)).startswith("1 (vacuous: not below 1) = 1 empirical")
    assert str(bounds.one_vs_one_error(0.1, num_classes=3)) == "0.2 = 2 rivals × 0.1 pair_error"
    assert str(bounds.coded_error(0.2, torch.eye(3) * 2 - 1, "hinge")).startswith("0.3, from columns 3, row_distance 2")
    assert str(bounds.Bound(0.5, {"empirical": 0.5, "(eta)": 3.0}, ())) == "0.5 = 0.5 empirical"


def test_the_representation_of_a_bound_makes_it_again():
    bound = bounds.held_out_error(3, 100, delta=0.05)
    assert eval(repr(bound), {"Bound": bounds.Bound}) == bound


@pytest.mark.parametrize("make", [list, tuple, torch.tensor])
def test_normalisers_of_rounds_are_multiplied(make):
    rounds = [0.9, 0.75, 0.5]
    one = bounds.boosting_error(0.9 * 0.75 * 0.5, "mh", num_classes=3)
    assert bounds.boosting_error(make(rounds), "mh", num_classes=3).value == pytest.approx(one.value, rel=1e-6)
    code = [[1, 1, -1], [-1, 1, 1], [1, -1, 1]]
    margin = [bounds.code_margin(z, code, margin=0.1, total_weight=1.0).value for z in (0.9 * 0.75 * 0.5, make(rounds))]
    assert margin[1] == pytest.approx(margin[0], rel=1e-6)
    with pytest.raises(ValueError, match="product: got -1"):
        bounds.boosting_error([0.5, -1], "adaboost")
    report = solvers.AdaBoostMH(rounds=1).fit(torch.eye(3), torch.arange(3)).report
    with pytest.raises(
        TypeError, match=r"^product: got Rounds; accepted is a finite number >= 0, or several, as its Z$"
    ):
        bounds.boosting_error(report, "mh", num_classes=3)


# ---------------------------------------------------------------- what every bound takes, and says

EVERY = {
    "held_out_error": {"errors": 7, "rows": 200, "delta": 0.05},
    "margin_error": {"empirical": 0.1, "num_classes": 3, "margin": 0.5, "complexity": 0.01, "rows": 100, "delta": 0.05},
    "kernel_margin_error": {"empirical": 0.1, **KERNEL},
    "slack_error": {"mean_slack": 0.2, **{name: part for name, part in KERNEL.items() if name != "margin"}},
    "uniform_margin_error": {"empirical": 0.1, **KERNEL, "trace": 0.5e6},
    "multilabel_margin_error": {
        **{"empirical": 0.4, "num_labels": 5, "margin": 0.5, "complexity": 0.001, "rows": 10**5, "delta": 0.05}
    },
    "one_vs_one_error": {"pair_error": 0.2, "num_classes": 4},
    "mistakes": {"radius": 1.0, "margin": 0.1, "rule": "all", "num_classes": 4},
    "boosting_error": {"product": 0.5, "kind": "mh", "num_classes": 3},
    "code_margin": {"product": 0.5, "code": [[1, 1, -1], [-1, 1, 1], [1, -1, 1]], "margin": 0.1, "total_weight": 1.2},
    "coded_error": {"mean_loss": 0.1, "code": [[1, -1], [-1, 1]], "loss": "squared"},
    "hamming_error": {"mean_loss": 0.1, "code": [[1, -1], [-1, 1]], "loss": "squared"},
    "confidence_runs": {"delta": 0.05, "success": 0.3},
}
"""Each function of numbers, by names; `rademacher_complexity` takes a matrix."""


def made(name, **other):
    found = getattr(bounds, name)(**EVERY[name] | other)
    return found if isinstance(found, int) else found.value


def test_every_bound_is_among_them():
    assert set(EVERY) == set(bounds.__all__) - {"Bound", "RademacherComplexity", "rademacher_complexity"}


@pytest.mark.parametrize("name", [name for name, given in EVERY.items() if "delta" in given])
def test_a_delta_that_seems_to_be_the_confidence_is_asked_about(name):
    with pytest.warns(UserWarning, match=r"^delta: got 0\.95, .* with 0\.05 only; did you mean 0\.05\?$") as told:
        assert made(name, delta=0.95) < made(name)
    assert [one.filename for one in told] == [__file__]
    made(name, delta=0.5)  # a bound of even odds is one; warnings are errors in these tests
    with pytest.raises(ValueError, match=r"^delta: got 95; .* the bound fails, such as 0\.05"):
        made(name, delta=95)


@pytest.mark.parametrize("kind", ["torch", "numpy", "numpy without dimensions"])
@pytest.mark.parametrize("name", EVERY)
def test_numbers_may_be_what_counting_and_measuring_give(name, kind):
    """``(p != y).sum()``, ``x.norm(dim=1).max()`` and their likes in NumPy are numbers."""
    as_given = {
        "torch": lambda x: torch.tensor(x, dtype=torch.float64 if isinstance(x, float) else None),
        "numpy": lambda x: np.array([x])[0],
        "numpy without dimensions": np.array,
    }[kind]
    for argument, number in EVERY[name].items():
        if isinstance(number, (int, float)):
            assert made(name, **{argument: as_given(number)}) == made(name), argument


def test_what_is_no_count_stays_refused():
    nowhere = torch.tensor(7, device="meta")
    for errors in (torch.tensor(7.0), torch.tensor([7]), torch.tensor(True), nowhere, np.array([7])):
        with pytest.raises(ValueError, match=r"^errors: got .*; accepted is a whole number >= 0"):
            bounds.held_out_error(errors, 200, delta=0.05)


@pytest.mark.parametrize(("kind", "factor"), [("mh", "1.5 half_the_classes"), ("mr", "2 rivals")])
def test_a_bound_says_what_it_multiplies_by(kind, factor):
    bound = bounds.boosting_error([0.9, 0.5], kind, num_classes=3)
    assert f" = {factor} × 0.45 product" in str(bound)
    assert any({"mh": "K/2", "mr": "K - 1"}[kind] in text for text in bound.assumptions)
    assert str(bounds.boosting_error(0.45, {"mh": "hamming", "mr": "ranking"}[kind])) == "0.45 = 0.45 product"


def test_the_factor_of_mistakes_is_a_term():
    assert bounds.mistakes(1.0, 0.1, rule="all", num_classes=4).terms["half_the_classes"] == 2
