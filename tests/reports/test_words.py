"""What a reader of a report meets: every term explained, and nothing said that is not known."""

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass.solvers import CodedReduction, DualSVM

X = torch.randn(120, 5, generator=torch.Generator().manual_seed(0))
Y = (X[:, :4] + 0.5 * torch.randn(120, 4, generator=torch.Generator().manual_seed(1))).argmax(1)
BINARY = DualSVM(binary=True, tol=1e-2)


@pytest.fixture(scope="module")
def pairs():
    return CodedReduction(tm.codes.one_vs_one(4), learner=BINARY, progress=False).fit(X, Y)


def test_votes_are_no_distances(pairs):
    voted = tm.report(pairs.scorer, (X, Y), decoder=tm.VotingDecoder())
    assert "these are counts of votes" in voted.gaps["margin bounds"]
    distances = tm.report(pairs.scorer, (X, Y), decoder=tm.LossBasedDecoder("hinge"))
    assert "these are distances to rows of a code" in distances.gaps["margin bounds"]


@pytest.mark.parametrize("held_out", [True, False, None])
def test_whether_rows_were_trained_on_is_said_as_it_is_known(pairs, held_out):
    found = tm.report(pairs, (X, Y), held_out=held_out)
    text = {True: "took no part in", False: "The examples took part in", None: "Whether the examples took part in"}
    assert text[held_out] in found.markdown()
    bounds = [one["name"] for one in found.as_dict()["bounds"]["bounds"]]
    assert ("Clopper–Pearson" in bounds) == (held_out is True)
    assert ("Clopper–Pearson" in found.gaps) == (held_out is not True)
    assert found.as_dict()["bounds"]["held_out"] is held_out


def test_rows_that_may_not_be_those_taught_prove_nothing_of_mistakes():
    fit = tm.solvers.Perceptron().fit(torch.eye(4).repeat(3, 1), torch.arange(12) % 4)
    gaps = tm.report(fit, (torch.eye(4), torch.arange(4)), held_out=None).gaps
    assert ["these may not be (held_out=None)" in why for name, why in gaps.items() if "mistake" in name] == [True]


def test_both_kinds_of_interval_are_named(pairs):
    text = tm.report(pairs, (X, Y)).markdown()
    assert "| two-sided 95 % interval |" in text
    assert "Clopper–Pearson is one-sided here, with all of δ = 0.05 above it" in text
    assert "| two-sided interval |" in text


def test_every_term_of_a_bound_is_explained(pairs):
    linear = DualSVM(tol=1e-2).fit(X, Y)
    ensemble = tm.solvers.AdaBoostMO(tm.codes.hadamard(4), rounds=3, real=False).fit(X, Y)
    for fit, options in (
        (pairs, {"decoder": tm.VotingDecoder()}),
        (pairs, {"decoder": tm.HammingDecoder()}),
        (pairs, {}),
        (linear, {"radius": 9.0, "norm": 99.0, "margin": 0.5}),
        (ensemble, {"held_out": False}),
        (tm.solvers.Perceptron(max_passes=50).fit(X, X[:, 0].gt(0).long()), {"held_out": False}),
    ):
        target = X[:, 0].gt(0).long() if fit[0].num_classes == 2 else Y
        report = tm.report(fit, (X, target), **options)
        terms = {term for one in report.as_dict()["bounds"]["bounds"] for term in one["terms"]}
        blocks = next(part.blocks for part in report.sections if part.key == "bounds")
        said = next((block.rows for block in blocks if getattr(block, "header", ())[:1] == ["made of"]), [])
        assert {row[0] for row in said} == {term.strip("()").replace("_", " ") for term in terms}
        assert all(len(row[1]) > 10 for row in said)


def test_only_columns_that_err_are_listed():
    """The first class is far from the others, which cannot be told apart."""
    x = torch.randn(120, 3, generator=torch.Generator().manual_seed(0))
    x[:40, 0] += 20
    x[40:, 0] -= 20
    y = torch.tensor([0] * 40 + [1, 2] * 40)
    code = tm.codes.one_vs_one(3)
    scorer = CodedReduction(code, learner=BINARY, progress=False).fit(x, y).scorer
    report = tm.report(scorer, (x, y), decoder=tm.VotingDecoder())
    section = next(part for part in report.sections if part.key == "code")
    (table,) = (block for block in section.blocks if hasattr(block, "rows"))
    erring = [s for s, share in enumerate(section.facts["column_errors"]) if share]
    assert 0 < len(erring) < 3
    assert sorted(int(row[0]) for row in table.rows) == erring
    assert f"{3 - len(erring)} of 3 columns do not err." in report.markdown()


def test_the_code_and_the_errors_of_its_columns_share_their_columns():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    report = tm.report(tm.OneVsOneHead(5, 4), (X, Y), names=["a", "b", "a long name", "d"])
    code, errors = (
        block for part in report.sections for block in part.blocks if getattr(block, "name", "") in ("code", "columns")
    )
    assert code.size[0] == errors.size[0]
    assert code.sides == errors.sides is not None
    limits = []
    for block in (code, errors):
        axes = Figure().subplots()
        block.draw(axes)
        limits.append(axes.get_xlim())
    assert limits[0] == limits[1] == (-0.5, 5.5)


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("rounds", [1, 30])
def test_a_share_of_rows_below_one_row_is_none_of_them(held_out, rounds):
    x = torch.linspace(-1, 1, 24).unsqueeze(1)
    y = (x[:, 0] > -0.3).long() + (x[:, 0] > 0.4).long()
    fit = tm.solvers.AdaBoostMH(rounds, leaves=3).fit(x, y)
    lines = [line for line in str(tm.report(fit, (x, y), held_out=held_out)).splitlines() if "AdaBoostMH, Π Z" in line]
    product = fit.report.bound[-1]
    none = [line for line in lines if "0 of these 24 rows, for it is below one of them, where they weigh alike" in line]
    assert len(none) == (not held_out and 1.5 * product < 1 / 24)
    assert all("wrong labels" not in line for line in none)
