"""Structured machines: known answers, the objective by enumeration, the solvers against each other and `DualSVM`."""

import math
import warnings
from types import SimpleNamespace

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

import torch_multiclass as tm
from tests.references import structured as naive
from torch_multiclass.ops import _native
from torch_multiclass.solvers import CuttingPlane, DualSVM, FrankWolfe, PlaneCertificate, Planes, parametric, planes
from torch_multiclass.solvers.cutting_plane import Bundle
from torch_multiclass.solvers.objective import Point
from torch_multiclass.solvers.sequences import Examples

SOLVERS = [FrankWolfe, CuttingPlane]
both = pytest.mark.parametrize("solver", SOLVERS)

COST = [[0, 1, 2], [1, 0, 1], [3, 1, 0]]
ONE = [([[1.0], [-1.0]], [0, 1])]
THREE = [([[1.0, 0]], [0]), ([[0.0, 1], [1, 1]], [1, 2]), ([[1.0, -1], [0, 2], [-1, 0]], [2, 1, 0])]
FLAT = torch.tensor([[1, 0], [0, 1], [-1, -1], [2, 1], [-1, 0.5], [0, -2]]).double(), torch.tensor([0, 1, 2, 0, 1, 2])


def padded(words, fill=math.nan, extra=0):
    """Features, target and lengths."""
    steps, width = max(len(y) for _, y in words) + extra, len(words[0][0][0])
    x = torch.full((len(words), steps, width), fill, dtype=torch.float64)
    y = torch.full((len(words), steps), -100)
    for i, (rows, labels) in enumerate(words):
        x[i, : len(labels)], y[i, : len(labels)] = torch.tensor(rows, dtype=torch.float64), torch.tensor(labels)
    return x, y, torch.tensor([len(labels) for _, labels in words])


def drawn(seed, count=7, labels=3, width=3, longest=4):
    generator = torch.Generator().manual_seed(seed)
    words = []
    for _ in range(count):
        length = int(torch.randint(1, longest + 1, (), generator=generator))
        y = torch.randint(labels, (length,), generator=generator)
        x = torch.randn(length, width, generator=generator).double()
        x[:, 0] += y
        words.append((x.tolist(), y.tolist()))
    words[0] = ([*words[0][0][:1]] * 2, [0, labels - 1])
    return words


def fit(solver, words, **options):
    x, y, lengths = padded(words)
    given = {name: options.pop(name) for name in ("weight", "num_classes", "warm_start") if name in options}
    return solver(**{"tol": 1e-7, **options}).fit(x, y, lengths=lengths, **given)


def parameters(scorer):
    chain = scorer.chain
    return scorer.emissions.weight, chain.transitions, chain.start_transitions, chain.end_transitions


class TestKnownAnswers:
    @both
    @pytest.mark.parametrize(
        ("words", "options", "expected"),
        [
            (ONE, {"C": 1.0}, 1 / 7),
            (ONE, {"C": 0.1}, 0.13),
            (ONE, {"C": 0.1, "loss": "svmstruct"}, 0.077538),
            (THREE, {"C": 0.5}, 1.395831),
            (THREE, {"C": 0.5, "loss": "svmstruct"}, 1.104078),
            (THREE, {"C": 0.5, "transition_scale": 3.0}, 0.590597),
            (THREE, {"C": 0.5, "cost": COST}, 3.791910),
            (THREE, {"C": 0.5, "cost": COST, "loss": "svmstruct"}, 1.418533),
        ],
    )
    def test_words(self, solver, words, options, expected):
        scorer, report = fit(solver, words, **options)
        assert report.primal == pytest.approx(expected, abs=2e-6)
        assert report.dual <= report.primal
        assert report.dual == pytest.approx(expected, abs=2e-6)
        assert report.converged
        kernel = fit(solver, words, kernel=tm.kernels.Polynomial(1, 1.0, 0.0), **options)
        assert kernel.report.primal == pytest.approx(expected, abs=2e-6)
        x, _, lengths = padded(words, 0.0)
        torch.testing.assert_close(
            kernel.scorer(x, lengths=lengths).emissions, scorer(x, lengths=lengths).emissions, rtol=1e-2, atol=2e-3
        )
        template = tm.ChainScorer(x.shape[-1], report.alpha.shape[1], bias=False)
        before = [part.clone() for part in template.parameters()]
        own = fit(solver, words, scorer=template, **options)
        assert own.report.primal == pytest.approx(expected, abs=2e-6)
        assert all(torch.equal(a, b) for a, b in zip(template.parameters(), before, strict=True))

    @both
    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({}, 0.960648),
            ({"cost": COST}, 2.328125),
            ({"cost": COST, "loss": "svmstruct"}, 1.015625),
        ],
    )
    def test_rows(self, solver, options, expected):
        report = solver(C=0.5, tol=1e-7, **options).fit(*FLAT).report
        assert report.primal == pytest.approx(expected, abs=2e-6)
        assert report.dual <= report.primal
        if "loss" not in options:
            exact = DualSVM(0.5, tol=1e-8, **options).fit(*FLAT).report
            assert report.primal == pytest.approx(exact.primal, rel=1e-6)


@pytest.mark.filterwarnings("ignore:target. no row has the label")
class TestObjective:
    @both
    @pytest.mark.parametrize("kind", ["m3n", "svmstruct"])
    @settings(max_examples=25)
    @given(seed=st.integers(0, 10**6), C=st.sampled_from([0.05, 0.5, 3.0]), scale=st.sampled_from([1.0, 2.5]))
    @example(seed=77, C=3.0, scale=1.0)
    @example(seed=77, C=3.0, scale=2.5)
    def test_the_primal_by_enumeration(self, solver, kind, seed, C, scale):
        words = drawn(seed)
        x = [(torch.tensor(rows, dtype=torch.float64), labels) for rows, labels in words]
        scorer, report = fit(solver, words, C=C, transition_scale=scale, loss=kind, tol=1e-4)
        assert report.primal == pytest.approx(naive.primal(parameters(scorer), x, C, scale=scale, kind=kind), rel=1e-9)
        assert report.dual <= report.primal + 1e-12
        assert report.gap <= 1e-4

    @settings(max_examples=15)
    @given(seed=st.integers(0, 10**6), C=st.sampled_from([0.05, 0.5, 3.0]))
    def test_the_solvers_agree(self, seed, C):
        words = drawn(seed)
        ways = [fit(solver, words, C=C, tol=1e-5).report for solver in SOLVERS]
        for one in ways:
            for other in ways:
                assert one.dual <= other.primal + 1e-9
                assert one.primal == pytest.approx(other.primal, rel=2e-5, abs=2e-5)

    @settings(max_examples=15)
    @given(seed=st.integers(0, 10**6), C=st.sampled_from([0.05, 0.5, 3.0]), bias=st.booleans())
    def test_rows_are_the_machine_of_dual_svm(self, seed, C, bias):
        words = drawn(seed, count=12, longest=1)[1:]
        x, y, _ = padded(words)
        x, y = x[:, 0], y[:, 0]
        y[:3] = torch.arange(3)
        exact = DualSVM(C, tol=1e-6, bias=bias).fit(x, y, num_classes=3).report
        for solver in SOLVERS:
            report = solver(C, tol=1e-5, bias=bias).fit(x, y, num_classes=3).report
            assert report.primal == pytest.approx(exact.primal, rel=2e-5, abs=2e-5)
            assert report.dual <= exact.primal + 1e-9

    @both
    def test_words_of_one_letter_are_rows(self, solver):
        """Start and end scores are then biases, regularised apart."""
        x, y, _ = padded(drawn(3, count=12, longest=1)[1:])
        scorer, report = solver(tol=1e-7, transition_scale=1e-6).fit(x, y)
        flat = solver(tol=1e-7).fit(x[:, 0], y[:, 0])
        assert isinstance(scorer, tm.ChainScorer)
        assert isinstance(flat.scorer, tm.LinearScorer)
        assert report.primal == pytest.approx(flat.report.primal, rel=1e-5)

    @both
    def test_a_kernel_is_its_features(self, solver):
        words = drawn(5)
        squared = [([[a * b for a in row for b in row] for row in rows], labels) for rows, labels in words]
        explicit = fit(solver, squared, C=0.3)
        kernel = fit(solver, words, C=0.3, kernel=tm.kernels.Polynomial(2, 1.0, 0.0))
        assert kernel.report.primal == pytest.approx(explicit.report.primal, rel=1e-5)
        assert isinstance(kernel.scorer.emissions, tm.KernelScorer)
        assert len(kernel.scorer.emissions.support) <= sum(len(y) for _, y in words)
        x, _, lengths = padded(words, 0.0)
        wide, _, _ = padded(squared, 0.0)
        one, other = kernel.scorer(x, lengths=lengths), explicit.scorer(wide, lengths=lengths)
        torch.testing.assert_close(one.emissions, other.emissions, rtol=1e-2, atol=1e-2)

    @both
    def test_a_bias_is_a_constant_feature(self, solver):
        words = drawn(7)
        constant = [([[*row, 1.0] for row in rows], labels) for rows, labels in words]
        for kernel in ("linear", tm.kernels.Polynomial(1, 1.0, 0.0)):
            with_bias = fit(solver, words, bias=True, kernel=kernel)
            assert with_bias.scorer.emissions.bias is not None
            assert with_bias.report.primal == pytest.approx(fit(solver, constant).report.primal, rel=1e-6)

    @both
    def test_a_normalised_cost_and_one_for_each_word(self, solver):
        words = drawn(9)
        x = [(torch.tensor(rows, dtype=torch.float64), labels) for rows, labels in words]
        scorer, report = fit(solver, words, cost=tm.costs.Hamming(normalize=True))
        expected = naive.primal(parameters(scorer), x, 1.0, cost=None)
        assert report.primal < expected
        matrices = torch.tensor(COST).double().expand(len(words), 3, 3)
        many, one = (fit(solver, words, cost=cost).report.primal for cost in (matrices, COST))
        assert many == pytest.approx(one, rel=1e-6)
        scorer, report = fit(solver, words, cost=COST)
        assert report.primal == pytest.approx(naive.primal(parameters(scorer), x, 1.0, cost=COST), rel=1e-9)


class TestPadding:
    @both
    @pytest.mark.parametrize("fill", [math.nan, math.inf, 9.0])
    def test_what_stands_there_changes_nothing(self, solver, fill):
        words = drawn(11)
        x, y, lengths = padded(words, 0.0)
        expected = solver().fit(x, y, lengths=lengths)
        x, y, _ = padded(words, fill, extra=2)
        y = torch.where(y < 0, torch.full_like(y, 1), y)
        found = solver().fit(x, y, lengths=lengths)
        for a, b in zip(parameters(found.scorer), parameters(expected.scorer), strict=True):
            assert torch.equal(a, b)
        mask = torch.arange(x.shape[1]) < lengths.unsqueeze(1)
        again = solver().fit(x, y, mask=mask)
        assert again.report.primal == found.report.primal

    @both
    def test_a_hole_joins_its_neighbours(self, solver):
        x, y, lengths = padded(THREE, 0.0)
        expected = solver(tol=1e-6).fit(x, y, lengths=lengths).report.primal
        wide, labels = torch.full((3, 5, 2), math.nan).double(), torch.full((3, 5), -100)
        places = [[4], [0, 3], [1, 2, 4]]
        mask = torch.zeros(3, 5, dtype=torch.bool)
        for i, at in enumerate(places):
            wide[i, at], labels[i, at], mask[i, at] = x[i, : len(at)], y[i, : len(at)], True
        found = solver(tol=1e-6).fit(wide, labels, mask=mask)
        assert found.report.primal == expected
        assert set(found.report.support.tolist()) <= set(mask.flatten().nonzero().squeeze(1).tolist())

    @both
    def test_sequences_without_labels_are_left_out(self, solver):
        words = drawn(13)
        x, y, lengths = padded(words, 0.0)
        expected = solver().fit(x[1:], y[1:], lengths=lengths[1:], num_classes=3).report.primal
        y[0], x[0] = -100, math.nan
        assert solver().fit(x, y, lengths=lengths, num_classes=3).report.primal == expected
        empty = torch.cat([lengths[:1] * 0, lengths[1:]])
        assert solver().fit(x, y, lengths=empty, num_classes=3).report.primal == expected

    @both
    def test_a_weight_of_two_is_the_sequence_twice(self, solver):
        words = drawn(17)
        weight = [2.0, 1.0, 3.0, 0.0, 1.0, 1.0, 1.0]
        many = [word for word, times in zip(words, weight, strict=True) for _ in range(int(times))]
        found = fit(solver, words, weight=weight, num_classes=3)
        assert found.report.primal == pytest.approx(fit(solver, many, num_classes=3).report.primal, rel=1e-6)
        x = [(torch.tensor(rows, dtype=torch.float64), labels) for rows, labels in words]
        assert found.report.primal == pytest.approx(
            naive.primal(parameters(found.scorer), x, 1.0, weights=weight), rel=1e-9
        )


class TestReport:
    @both
    def test_the_multipliers_make_the_weights(self, solver):
        words = drawn(19)
        x, y, lengths = padded(words, 0.0)
        scorer, report = solver(tol=1e-10).fit(x, y, lengths=lengths)
        assert isinstance(report, PlaneCertificate)
        rows = x.flatten(0, 1)[report.support]
        torch.testing.assert_close(report.alpha.mT @ rows, scorer.emissions.weight.detach(), rtol=1e-3, atol=1e-3)
        assert report.rows == y.numel()

    @both
    def test_a_warm_start_on_a_path(self, solver):
        words = drawn(23)
        first = fit(solver, words, C=0.5)
        again = fit(solver, words, C=0.5, warm_start=first)
        assert again.report.iterations == 0
        assert again.report.primal == first.report.primal
        cold, warm = (fit(solver, words, C=0.7, warm_start=start).report for start in (None, first))
        assert warm.primal == pytest.approx(cold.primal, rel=1e-6)
        other = fit(next(other for other in SOLVERS if other is not solver), words)
        with pytest.raises(ValueError, match="warm_start: is of another solver or structure"):
            fit(solver, words, warm_start=other)

    @both
    def test_features_in_single_precision(self, solver):
        words = drawn(29)
        x, y, lengths = padded(words, 0.0)
        scorer, report = solver(tol=1e-3).fit(x.float(), y, lengths=lengths)
        assert all(part.dtype == torch.float32 for part in scorer.parameters())
        x = [(torch.tensor(rows).double(), labels) for rows, labels in words]
        assert report.primal == pytest.approx(naive.primal(parameters(scorer), x, 1.0), rel=1e-9)
        assert report.gap <= 1e-3

    @pytest.mark.parametrize("options", [{}, {"loss": "svmstruct"}, {"kernel": tm.kernels.Gaussian(0.5)}])
    def test_without_the_library(self, monkeypatch, options):
        words = drawn(31)
        expected = fit(FrankWolfe, words, tol=1e-6, **options).report
        monkeypatch.setattr(_native, "library", lambda: None)
        report = fit(FrankWolfe, words, tol=1e-6, **options).report
        assert report.primal == pytest.approx(expected.primal, rel=2e-6)
        assert report.dual <= expected.primal


def structures():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(6, 4, 3, generator=generator)
    y = torch.randint(2, (6, 4), generator=generator)
    lengths = torch.tensor([4, 2, 3, 4, 1, 4])
    y = y.masked_fill(torch.arange(4) >= lengths.unsqueeze(1), -100)
    parents = torch.tensor([[-1, 0, 0, 1], [-1, 0, 0, 0], [-1, -1, 1, 0], [-1, 0, 1, 2], [-1, 0, 0, 0], [1, -1, 1, 2]])
    signs = torch.randint(2, (6, 4), generator=generator) * 2 - 1
    return {
        "second order": (tm.SecondOrderScorer(3, 2, bias=False), x, y, {"lengths": lengths}),
        "segments": (tm.SegmentScorer(3, 2, 3, longest=(3, 1), bias=False), x, y.clamp(max=0), {"lengths": lengths}),
        "tree": (tm.LabelTreeScorer(3, 2, bias=False), x, y, {"parents": parents, "lengths": lengths}),
        "several labels": (tm.MultilabelScorer(3, 4, bias=False), x[:, 0], signs, {}),
        "rows": (tm.LinearScorer(3, 2), x[:, 0], y[:, 0], {}),
    }


class TestStructures:
    @pytest.mark.parametrize("name", list(structures()))
    def test_any_scorer_that_is_linear_in_its_parameters(self, name):
        scorer, x, y, structure = structures()[name]
        ways = [solver(C=0.5, tol=1e-5, scorer=scorer).fit(x.double(), y, **structure) for solver in SOLVERS]
        loss = tm.M3NLoss(reduction="sum")
        for trained, report in ways:
            assert type(trained) is type(scorer)
            squares = sum(part.detach().square().sum() for part in trained.parameters())
            expected = 0.5 * squares + 0.5 * loss(trained(x.double(), **structure), y)
            assert report.primal == pytest.approx(float(expected.detach()), rel=1e-9)
            assert report.gap <= 1e-5
        assert ways[0].report.primal == pytest.approx(ways[1].report.primal, rel=1e-4)

    def test_several_labels_are_as_many_binary_machines(self):
        scorer, x, y, _ = structures()["several labels"]
        found = FrankWolfe(C=0.5, tol=1e-6, scorer=scorer).fit(x.double(), y).report
        # max(0, 1 - 2 y f) for each label: the hinge of 2 f, so machines on doubled features, with their norm
        apart = [
            DualSVM(0.5, tol=1e-7, binary=True).fit(2 * x.double(), y[:, label]).report.primal for label in range(4)
        ]
        assert found.primal == pytest.approx(sum(apart), rel=1e-5)

    def test_a_tree_that_is_a_chain(self):
        x, y, lengths = padded(drawn(37), 0.0)
        parents = (torch.arange(x.shape[1]) - 1).expand(y.shape)
        tree = FrankWolfe(tol=1e-6, scorer=tm.LabelTreeScorer(3, 3, bias=False))
        chain = FrankWolfe(tol=1e-6, scorer=NoEnds(tm.ChainScorer(3, 3, bias=False)))
        one = tree.fit(x, y, lengths=lengths, parents=parents).report
        other = chain.fit(x, y, lengths=lengths).report
        assert one.primal == pytest.approx(other.primal, rel=1e-5)

    @pytest.mark.filterwarnings("ignore:target. no row has the label")
    @pytest.mark.parametrize(
        "cost", [None, (1 - torch.eye(9)) * torch.linspace(1, 1.001, 9)], ids=["hamming", "other costs"]
    )
    def test_room_is_made_where_all_planes_are_in_use(self, monkeypatch, cost):
        """At a small C a row is pushed from all other labels at once; there is room for four planes at first."""
        generator = torch.Generator().manual_seed(2)
        x = torch.randn(4, 2, generator=generator, dtype=torch.float64)
        y, scorer = torch.tensor([0, 3, 3, 8]), tm.LinearScorer(2, 9, bias=False)
        options = {"tol": 1e-8, "max_passes": 300, "cost": cost}
        wide = FrankWolfe(C=0.02, scorer=scorer, **options).fit(x, y).report
        monkeypatch.setattr(parametric, "_MEMORY", 1)
        first = FrankWolfe(C=0.02, scorer=scorer, **options).fit(x, y)
        again = FrankWolfe(C=0.03, scorer=scorer, **options).fit(x, y, warm_start=first)
        for (trained, report), C in ((first, 0.02), (again, 0.03)):
            exact = (
                DualSVM(C, cost="zero_one" if cost is None else cost, tol=1e-9).fit(x, y, num_classes=9).report.primal
            )
            assert report.converged
            assert report.dual <= exact * (1 + 1e-12)
            assert report.primal == pytest.approx(exact, rel=2e-8)
            kept = report.planes
            assert 4 < int(kept.count.max()) <= 8
            assert kept.slope.shape[1] == kept.offset.shape[1] == kept.share.shape[1] == 8
            for i, count in enumerate(kept.count.tolist()):
                assert not bool(kept.share[i, count:].any())
                assert len(kept.slope[i, :count].unique(dim=0)) == count  # none is kept twice
            pull, offset = kept.pull(kept.share)
            torch.testing.assert_close(pull.parts[0].view(9, 2), trained.weight.detach(), rtol=1e-3, atol=1e-4)
            assert offset == pytest.approx(kept.linear())
        assert again.report.iterations < 300
        assert first.report.primal == pytest.approx(wide.primal, rel=2e-8)

    def test_a_plane_out_of_use_makes_room(self, monkeypatch):
        """Of those without a share, the one that is lowest at the weight goes."""
        monkeypatch.setattr(parametric, "_MEMORY", 1)
        problem = Examples.made(torch.ones(1, 1).double(), torch.tensor([0]), None, None, None, {})
        kept = FrankWolfe(scorer=tm.LinearScorer(1, 6, bias=False)).objective(problem).kept()
        slopes = torch.eye(6, dtype=torch.float64)
        for number in range(4):
            assert kept._keep(0, slopes[number], float(number))
        kept.weight.copy_(torch.tensor([9.0, -7.0, 0.0, 0.0, 0.0, 0.0]))  # values 9, -6, 2, 3
        assert kept._keep(0, slopes[2], 2.0)  # known
        assert kept._keep(0, torch.zeros(6).double(), 1.0)  # the plane 0 is always there
        assert kept.offset.tolist() == [[0.0, 1.0, 2.0, 3.0]]
        kept.share[0, 1] = 0.5
        assert kept._keep(0, slopes[4], 7.0)
        assert kept.offset.tolist() == [[0.0, 1.0, 7.0, 3.0]]
        assert torch.equal(kept.slope[0], slopes[[0, 1, 4, 3]])
        kept.share[0] = 0.1
        assert not kept._keep(0, slopes[5], 8.0)
        more = kept.grown()
        assert more.slope.shape == (1, 8, 6)
        assert more.share.tolist() == [[0.1] * 4 + [0.0] * 4]
        assert more._keep(0, slopes[5], 8.0)
        assert more.offset.tolist() == [[0.0, 1.0, 7.0, 3.0, 8.0, 0.0, 0.0, 0.0]]
        assert more.count.tolist() == [5]

    def test_other_scorers_are_named(self):
        with pytest.raises(TypeError, match="scorer: got Linear; accepted is None or a scorer"):
            FrankWolfe(scorer=torch.nn.Linear(2, 2))
        with pytest.raises(ValueError, match="scorer: given with a kernel or a bias"):
            FrankWolfe(scorer=tm.LinearScorer(2, 2), bias=True)
        with pytest.raises(TypeError, match="parents: is for scorers that take it"):
            FrankWolfe().fit(*FLAT, parents=FLAT[1])

    @both
    @pytest.mark.parametrize("kind", ["m3n", "svmstruct"])
    @pytest.mark.parametrize(
        "curve",
        [lambda x: 2 * torch.nn.functional.softplus(x), torch.relu, torch.tanh, torch.abs, lambda x: x[:, :1] * x],
        ids=["softplus", "relu", "tanh", "abs", "products"],
    )
    def test_a_scorer_that_is_not_linear_proves_nothing(self, solver, kind, curve):
        with pytest.raises(
            TypeError, match=r"scorer: got Bent, whose scores are not linear in its parameters; accepted"
        ):
            solver(loss=kind, scorer=Bent(curve)).fit(*FLAT)

    @both
    def test_a_network_within_a_chain(self, solver):
        x, y, lengths = padded(THREE, 0.0)
        with pytest.raises(TypeError, match="scorer: got ChainScorer, whose scores are not linear"):
            solver(scorer=tm.ChainScorer(Bent(torch.relu), 3)).fit(x, y, lengths=lengths)

    @both
    def test_what_is_added_to_the_scores_may_stay(self, solver):
        """A constant shifts the hinges: both ways prove the same, and it is the objective by hand."""
        shift = torch.tensor([0.0, 1.5, 3.0])
        scorer, report = solver(C=0.5, tol=1e-6, scorer=Bent(lambda scores: scores + shift.to(scores))).fit(*FLAT)
        losses = tm.functional.m3n_loss(scorer(FLAT[0]), FLAT[1], reduction="sum")
        by_hand = 0.5 * (scorer.weight.square().sum() + losses)
        assert report.primal == pytest.approx(float(by_hand.detach()), rel=1e-9)
        assert report.converged
        assert -1e-12 <= report.gap <= 1e-6

    @both
    @pytest.mark.parametrize("kind", ["m3n", "svmstruct"])
    def test_labels_that_the_scorer_forbids(self, solver, kind):
        x, y, lengths = padded([([[0.0, 1]] * 3, [-100] * 3), *THREE, ([[1.0, 0]] * 3, [0, 2, 0])], 0.0)
        y[0] = -100
        scorer = tm.ChainScorer(2, 3, constraints=tm.tag_constraints(["O", "B-X", "I-X"]))
        with pytest.raises(ValueError, match="target: sequence 3 has labels that the constraints forbid; accepted are"):
            solver(loss=kind, scorer=scorer).fit(x, y, lengths=lengths)
        never = torch.tensor([False, False, True])
        with pytest.raises(ValueError, match="target: row 2 has a label of score -inf"):
            solver(loss=kind, scorer=Bent(lambda scores: scores.masked_fill(never, -math.inf))).fit(*FLAT)

    @both
    def test_a_tree_has_no_exact_slack(self, solver):
        scorer, x, y, structure = structures()["tree"]
        with pytest.raises(ValueError, match=r"loss: got 'svmstruct' with TreeScores.*accepted is loss='m3n'"):
            solver(loss="svmstruct", scorer=scorer).fit(x, y, **structure)

    def test_a_dual_above_the_primal_is_no_proof(self, monkeypatch):
        """Of a scorer that passes for linear and is none."""
        monkeypatch.setattr(parametric, "check_linear", lambda *given: None)
        made = FrankWolfe(scorer=Bent(lambda x: 2 * torch.nn.functional.softplus(x)), max_passes=50)
        with pytest.warns(
            UserWarning, match="the dual exceeds the primal .* accepted is a scorer linear in its parameters"
        ):
            report = made.fit(*FLAT).report
        assert report.gap < 0
        assert not report.converged


class Bent(tm.scorers.Scorer):
    """A curve of linear scores."""

    def __init__(self, curve):
        super().__init__()
        self.in_features, self.num_classes, self.curve = 2, 3, curve
        self.weight = torch.nn.Parameter(torch.zeros(3, 2))

    def reset_parameters(self):
        pass

    def forward(self, features):
        return self.curve(features @ self.weight.mT)


class NoEnds(tm.scorers.Scorer):
    """A chain without scores of the first and the last label."""

    def __init__(self, chain):
        super().__init__()
        self.emissions, self.transitions = chain.emissions, torch.nn.Parameter(chain.chain.transitions.detach().clone())
        self.in_features, self.num_classes = chain.in_features, chain.num_classes

    def reset_parameters(self):
        pass

    def forward(self, features, lengths=None):
        return tm.ChainScores(self.emissions(features), self.transitions.clone(), lengths=lengths)


class TestPlanes:
    @pytest.mark.parametrize("name", list(structures()))
    @pytest.mark.parametrize("loss", [tm.M3NLoss(), tm.CRFLoss(), tm.StructuredPerceptronLoss()])
    def test_a_plane_is_below_the_loss_and_touches_it(self, name, loss):
        scorer, x, y, structure = structures()[name]
        scorer, x = scorer.double(), x.double()
        count = sum(part.numel() for part in scorer.parameters())
        weights = torch.randn(4, count, generator=torch.Generator().manual_seed(1)).double()
        each = [planes(scorer, loss, x, y, weight=weight, **structure) for weight in weights]
        for weight, plane in zip(weights, each, strict=True):
            assert isinstance(plane, Planes)
            torch.testing.assert_close(plane.offset + plane.slope @ weight, plane.loss)
            for other, there in zip(weights, each, strict=True):
                assert bool((plane.offset + plane.slope @ other <= there.loss + 1e-9).all())
        torch.nn.utils.vector_to_parameters(weights[0], scorer.parameters())
        own = planes(scorer, loss, x, y, **structure)
        torch.testing.assert_close(own.slope, each[0].slope)
        assert all(part.grad is None for part in scorer.parameters())

    @pytest.mark.parametrize("loss", [tm.MarginRampLoss(1.0), tm.CodedLoss("sigmoid")], ids=str)
    def test_of_a_loss_that_is_not_convex(self, loss):
        with pytest.raises(ValueError, match=r"loss: got \w+Loss\(.*\), which is not convex; accepted"):
            planes(tm.LinearScorer(2, 3).double(), loss, *FLAT)


class TestBadInput:
    @both
    def test_sequences(self, solver):
        x, y, lengths = padded(THREE, 0.0)
        for message, error, arguments in (
            (r"target: got shape \(3, 2\); accepted is \(3, 3\)", ValueError, (x, y[:, :2])),
            ("target: sequence 0 has no label at position 1, which counts", ValueError, (x, y)),
            (r"features: got shape \(3, 3, 2\); accepted is \(N, D\) with a target \(N\)", ValueError, (x, y[:, 0])),
        ):
            with pytest.raises(error, match=message):
                solver().fit(*arguments)
        with pytest.raises(ValueError, match=r"lengths: 4 is outside 0\.\.3"):
            solver().fit(x, y, lengths=lengths + 1)
        with pytest.raises(TypeError, match="mask"):
            solver().fit(x, y, mask=(y >= 0).long())
        with pytest.raises(ValueError, match="lengths: given with features of shape"):
            solver().fit(*FLAT, lengths=lengths)
        bad = x.clone()
        bad[2, 1, 0] = math.nan
        with pytest.raises(ValueError, match="features: sequence 2 has an entry that is not finite at position 1"):
            solver().fit(bad, y, lengths=lengths)
        with pytest.raises(ValueError, match="target: label 2 is outside"):
            solver().fit(x, y, lengths=lengths, num_classes=2)
        with pytest.raises(ValueError, match="there are no rows"):
            solver().fit(x, y, lengths=lengths * 0)
        with pytest.raises(ValueError, match=rf"none of the {len(x)} sequences .* counts \(mask, lengths\), a label"):
            solver().fit(x, y, mask=y < -1)
        with pytest.raises(ValueError, match=r"cost: is 2 x 2, but the scores have 3 classes"):
            solver(cost=[[0, 1], [1, 0]]).fit(x, y, lengths=lengths)

    @both
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"loss": "hinge"}, "loss: got 'hinge'; accepted"),
            ({"transition_scale": 0}, "transition_scale: got 0"),
            ({"transition_scale": math.inf}, "transition_scale: got inf"),
            ({"cost": "none"}, "cost: got 'none'"),
        ],
    )
    def test_options(self, solver, options, message):
        with pytest.raises(ValueError, match=message):
            solver(**options)

    @both
    def test_a_fractional_cost_has_no_exact_slack(self, solver):
        x, y, lengths = padded(THREE, 0.0)
        cost = torch.tensor([[0, 1, math.pi], [1, 0, 1], [1, 1, 0]])
        with pytest.raises(ValueError, match="cost"):
            solver(loss="svmstruct", cost=cost).fit(x, y, lengths=lengths)
        assert solver(cost=cost).fit(x, y, lengths=lengths).report.gap <= 1e-3

    @both
    def test_an_interrupt_in_the_middle(self, solver, monkeypatch):
        """Ctrl-C while a pass is under way: what it has reached is measured."""
        x, y, lengths = padded(drawn(41, count=30), 0.0)
        steps = []

        def stop(step):
            steps.append(step)
            if len(steps) == 4:
                raise KeyboardInterrupt

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tm.solvers.Interrupted)
            scorer, report = solver(C=10.0, tol=1e-9, on_step=stop).fit(x, y, lengths=lengths)
        assert report.interrupted
        assert report.dual <= report.primal < math.inf
        words = [(x[i, : int(n)], y[i, : int(n)].tolist()) for i, n in enumerate(lengths)]
        assert report.primal == pytest.approx(naive.primal(parameters(scorer), words, 10.0), rel=1e-9)


@pytest.mark.parametrize("solver", [FrankWolfe, CuttingPlane])
def test_a_labelling_that_is_wrong_at_no_cost_is_a_plane_too(solver):
    x = torch.tensor([[2.8, 2.9], [11.4, 7.9], [3.7, 10.3], [-4.4, -4.8], [-6.4, 14.9], [4.3, 5.7]]).double()
    y, cost = torch.tensor([0, 1, 0, 0, 1, 1]), torch.tensor([[0.0, 0.0], [3.0, 0.0]])
    report = solver(cost=cost, tol=1e-6, max_passes=100).fit(x, y).report
    exact = DualSVM(cost=cost, tol=1e-7).fit(x, y).report
    assert report.converged
    assert report.primal == pytest.approx(exact.primal, rel=3e-6)


class TestLargeFeatures:
    """Steps at one example are short there, and all of them lead the same way."""

    @pytest.mark.parametrize("scorer", [None, tm.LinearScorer(2, 2, bias=False)], ids=["rows", "parameters"])
    def test_they_are_solved(self, scorer):
        x = torch.randn(8, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 100
        y = torch.tensor([1, 0, 0, 0, 1, 0, 1, 1])
        report = FrankWolfe(tol=1e-6, max_passes=50, scorer=scorer).fit(x, y).report
        assert report.converged
        assert report.primal == pytest.approx(DualSVM(tol=1e-7).fit(x, y).report.primal, rel=2e-6)

    @pytest.mark.parametrize("chain", [False, True], ids=["rows", "chain"])
    @pytest.mark.parametrize("way", ["features", "gram", "parameters"])
    def test_going_on_raises_the_dual_value_and_stays_feasible(self, way, chain):
        generator = torch.Generator().manual_seed(1)
        x = torch.randn(6, 3, 2, generator=generator, dtype=torch.float64) * 10
        y = torch.randint(3, (6, 3), generator=generator)
        x, y = (x, y) if chain else (x[:, 0], y[:, 0])
        scorer = (tm.ChainScorer(2, 3, bias=False) if chain else tm.LinearScorer(2, 3, bias=False)).double()
        kernel = tm.kernels.Polynomial(1) if way == "gram" else "linear"
        solver = FrankWolfe(tol=1e-5, kernel=kernel, scorer=scorer if way == "parameters" else None)
        structured = solver.template is not None
        problem = Examples.made(x, y, None, None, None, {}) if structured else solver.problem(x, y)
        objective = solver.objective(problem)
        kept, order, moved = objective.kept(), torch.arange(6), 0

        def value():
            return kept.linear() - 0.5 * objective.inner(kept.point(), kept.point())

        for _ in range(6):
            kept = kept.visit(order, 4, objective.planes(kept.point())[1])
            before, least = kept.shares.clone(), value()
            kept = kept.visit(order, 4)
            after = value()
            kept = kept.onward(before, objective)
            moved += value() > after
            assert value() >= after >= least
            assert bool((kept.shares >= 0).all())
            assert bool((kept.shares.sum(1) <= objective.strength * (1 + 1e-12)).all())
            again = kept.pull(kept.shares)
            assert again[1] == pytest.approx(kept.linear())
            for one, other in zip(again[0].parts, kept.point().parts, strict=True):
                torch.testing.assert_close(one, other)
        assert moved > 2
        fresh = kept.shares.clone()
        assert torch.equal(kept.onward(fresh, objective).shares, fresh)  # from nowhere: nowhere


def test_a_plane_goes_after_fifty_rounds_without_use():
    """Of constant planes, each above the one before, the newest is in use: it, the plane 0 and 50 others stay."""
    objective = SimpleNamespace(
        strength=torch.ones(1),
        pull=lambda found, strength: (Point((torch.zeros(1),)), float(found)),
        inner=lambda one, other: float(one.parts[0] @ other.parts[0]),
    )
    bundle = Bundle(objective)
    for number in range(1, 100):
        bundle = bundle.with_plane(number, 1e-9)
        assert bundle.offsets.tolist() == [0, *range(max(1, number - 50), number + 1)]
        assert bundle.shares.tolist() == [0.0] * (len(bundle.shares) - 1) + [1.0]
        assert bundle.products.shape == (len(bundle.shares),) * 2
