"""Learners of every kind through codes, in threads, interrupted, and with what can go wrong."""

import copy
import functools
import os
import pickle
import time
import warnings

import numpy as np
import pytest
import torch
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import torch_multiclass as tm
from torch_multiclass.solvers import (
    AdaBoost,
    AdaBoostMO,
    BalancedWinnow,
    BinaryLearner,
    BinaryLogistic,
    CodedReduction,
    DecisionTree,
    DualSVM,
    Interrupted,
    PassiveAggressive,
    Pegasos,
    Perceptron,
)
from torch_multiclass.solvers.reduction import rows as module
from torch_multiclass.solvers.reduction.origin import origin_of

CODE = torch.tensor([[1, 1, -1, 0], [-1, 1, 1, 1], [1, -1, 1, -1]])
LEARNERS = {
    "svm": (DualSVM(binary=True, tol=1e-8), "LinearScorer", "hinge"),
    "kernel": (DualSVM(binary=True, kernel=tm.kernels.Gaussian(0.5), bias=True), "KernelScorer", "hinge"),
    "bias": (BinaryLogistic(bias=True), "LinearScorer", "logistic"),
    "squared hinge": (BinaryLearner("squared_hinge"), "LinearScorer", "squared_hinge"),
    "boosting": (AdaBoost(5), "EnsembleScorer", "exponential"),
    "trees": (AdaBoost(5, leaves=4, real=True), "EnsembleScorer", "exponential"),
    "perceptron": (Perceptron(averaged=True), "LinearScorer", "hinge"),
    "passive-aggressive": (PassiveAggressive(bias=True), "LinearScorer", "hinge"),
    "winnow": (BalancedWinnow(1.2, binary=True, theta=0.5), "LinearScorer", "hinge"),
    "pegasos": (Pegasos(), "LinearScorer", "hinge"),
}


@pytest.fixture(params=LEARNERS)
def kind(request):
    return LEARNERS[request.param]


def data(rows=60, seed=0):
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(rows) % 3
    x = torch.randn(rows, 4, generator=generator).double() / 2
    x[:, :3] += 2 * torch.eye(3).double()[y]
    return x, y


def by_hand(learner, x, y, code, queries):
    """The margins of a learner for each column, one after the other."""
    margins = []
    for column in code.T:
        signs = column[y]
        asked = signs != 0
        target = signs[asked]
        if not isinstance(learner, (DualSVM, BinaryLearner, AdaBoost)):
            target = (target > 0).long()
        scores = learner.fit(x[asked], target).scorer(queries)
        margins.append(scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0])
    return torch.stack(margins, 1)


@pytest.mark.filterwarnings("ignore:.*max_passes")
@pytest.mark.parametrize("jobs", [1, 3])
def test_every_learner_is_that_of_its_columns(kind, jobs):
    learner, name, loss = kind
    x, y = data()
    queries = data(20, seed=1)[0]
    reduction = CodedReduction(CODE, learner, jobs=jobs)
    scorer, report = reduction.fit(x, y)
    assert type(scorer.margins).__name__ == name
    right = by_hand(learner, x, y, CODE, queries)
    torch.testing.assert_close(scorer(queries).margins, right, rtol=1e-6, atol=1e-6)
    assert reduction.decoder.loss.name == report.decoder.loss.name == loss
    assert float((report.decoder(scorer(x)) == y).double().mean()) > 0.8
    assert (report.idle, report.failed, report.unfinished, report.iterations) == ([], {}, [], 4)
    again = pickle.loads(pickle.dumps(scorer))
    torch.testing.assert_close(again(queries).margins, scorer(queries).margins)


@pytest.mark.filterwarnings("ignore:.*max_passes")
def test_a_single_call_of_every_learner(kind):
    learner, _, _ = kind
    x, y = data()
    scorer, report = CodedReduction(CODE, learner, call="single", interaction=True).fit(x, y)
    assert scorer(x).margins.shape == (60, 4)
    assert scorer(x[0]).margins.shape == (4,)
    assert len(report.columns) == 1
    assert float((report.decoder(scorer(x)) == y).double().mean()) > 0.5


def test_a_single_call_of_a_kernel_machine_sees_the_column():
    x, y = data(30)
    learner = DualSVM(binary=True, kernel=tm.kernels.Gaussian(0.5), tol=1e-8)
    scorer, _ = CodedReduction(CODE, learner, call="single").fit(x, y)
    row, column = (CODE[y] != 0).nonzero(as_tuple=True)
    pairs = torch.cat([x[row], torch.eye(4).double()[column]], 1)
    machine = learner.fit(pairs, CODE[y][row, column]).scorer
    for s in range(4):
        right = machine(torch.cat([x, torch.eye(4).double()[[s] * 30]], 1))[:, 0]
        torch.testing.assert_close(scorer(x).margins[:, s], right)


@pytest.mark.parametrize("make", [tm.codes.one_vs_all, tm.codes.one_vs_one, tm.codes.complete, tm.codes.hadamard])
@pytest.mark.parametrize("interaction", [False, True])
@pytest.mark.parametrize("options", [{}, {"real": True}, {"leaves": 5}, {"real": True, "leaves": 4, "bins": 6}])
def test_a_single_call_of_adaboost_is_adaboost_mo_for_every_code(make, interaction, options):
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(150, 5, generator=generator), torch.randint(5, (150,), generator=generator)
    x[torch.rand(x.shape, generator=generator) < 0.1] = torch.nan
    code, learner = make(5), AdaBoost(12, **options)
    scorer, report = CodedReduction(code, learner, call="single", interaction=interaction, jobs=2).fit(x, y)
    right, rounds = AdaBoostMO(code, 12, **options).fit(x, y)
    assert torch.equal(scorer(x).margins, right(x).margins)
    assert scorer.state_dict().keys() == right.state_dict().keys()
    assert (report.columns[0].alphas, report.columns[0].errors) == (rounds.alphas, rounds.errors)
    assert torch.equal(report.decoder(scorer(x)), tm.LossBasedDecoder("exponential")(right(x)))


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_single_call_of_adaboost_is_adaboost_mo(real, weighted):
    x, y = data()
    weight = torch.rand(60, generator=torch.Generator().manual_seed(2)) + 0.1 if weighted else None
    scorer, report = CodedReduction(CODE, AdaBoost(20, real=real), call="single").fit(x, y, weight=weight)
    right, rounds = AdaBoostMO(CODE, 20, real=real).fit(x, y, weight=weight)
    assert torch.equal(scorer(x).margins, right(x).margins)
    assert report.columns[0].Z == rounds.Z
    assert report.decoder.loss.name == "exponential"


@pytest.mark.filterwarnings("ignore:.*max_passes")
def test_a_random_learner_gives_the_same_in_any_order():
    x, y = data()
    learner = Perceptron(shuffle=True, averaged=True, generator=torch.Generator().manual_seed(3))
    one, many = (CodedReduction(CODE, learner, jobs=jobs).fit(x, y).scorer for jobs in (1, 4))
    assert torch.equal(one.margins.weight, many.margins.weight)


def test_labels_left_out():
    x, y = data()
    hidden = torch.cat([y, torch.full((5,), -100)])
    more = torch.cat([x, torch.full((5, 4), 7.0).double()])
    one, other = (CodedReduction(CODE, BinaryLogistic()).fit(*rows).scorer(x) for rows in ((x, y), (more, hidden)))
    torch.testing.assert_close(one.margins, other.margins)


# ---------------------------------------------------------------------- interrupted
class Stopping(BinaryLogistic):
    """Ends from the keyboard at its third fit."""

    fits = 0

    def fit(self, *args, **options):
        Stopping.fits += 1
        if Stopping.fits == 3:
            raise KeyboardInterrupt
        return super().fit(*args, **options)


@pytest.mark.parametrize("by", ["report", "fit", "folder"])
def test_goes_on_with_the_columns_that_are_done(by, tmp_path):
    x, y = data()
    whole = CodedReduction(CODE, BinaryLogistic()).fit(x, y).scorer
    Stopping.fits = 0
    resume = tmp_path / "columns" if by == "folder" else None
    reduction = CodedReduction(CODE, Stopping())
    with pytest.warns(Interrupted, match="after 2 columns"):
        scorer, report = reduction.fit(x, y, resume=resume)
    assert report.interrupted
    assert report.unfinished == [2, 3]
    assert (scorer(x).margins[:, 2:] == 0).all()
    torch.testing.assert_close(scorer(x).margins[:, :2], whole(x).margins[:, :2])
    resume = {"report": report, "fit": (scorer, report), "folder": resume}[by]
    if by == "fit":
        resume = tm.solvers.Fit(scorer, report)
    again, report = reduction.fit(x, y, resume=resume)
    assert Stopping.fits == 5  # two, the one that was ended, and the two that were left
    assert not report.interrupted
    assert report.unfinished == []
    assert torch.equal(again.margins.weight, whole.margins.weight)


def test_an_interrupt_before_anything_is_done_propagates():
    Stopping.fits = 2
    with pytest.raises(KeyboardInterrupt):
        CodedReduction(CODE, Stopping()).fit(*data())


def test_a_column_that_was_ended_is_done_again():
    x, y = data()

    class Ended(BinaryLogistic):
        def steps(self, problem, monitor):
            yield from super().steps(problem, monitor)
            if len(problem.labels) == 40:  # the last column leaves a class out
                raise KeyboardInterrupt

    with pytest.warns(Interrupted) as said:
        _, report = CodedReduction(CODE, Ended()).fit(x, y)
    assert "after 3 columns" in str(said[-1].message)
    assert report.unfinished == [3]


@pytest.mark.parametrize("other", ["rows", "code", "weight"])
def test_columns_of_another_fit(other, tmp_path):
    x, y = data()
    _, report = CodedReduction(CODE, BinaryLogistic()).fit(x, y, resume=tmp_path)
    code = tm.codes.one_vs_all(3) if other == "code" else CODE
    weight = torch.full((60,), 2.0) if other == "weight" else None
    for resume in (report, tmp_path):
        with pytest.raises(ValueError, match=r"resume: .* ha(s|ve) columns of other rows"):
            CodedReduction(code, BinaryLogistic()).fit(x + (other == "rows"), y, weight=weight, resume=resume)
    with pytest.raises(TypeError, match="resume: got"):
        CodedReduction(CODE, BinaryLogistic()).fit(x, y, resume=3)


def of(gamma):
    """A kernel that is a function, which remembers a number."""
    return lambda a, b: (a @ b.mT + gamma) ** 2


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (BinaryLogistic(C=2.0), BinaryLogistic(C=1.0), r"learner\.C was 2\.0 and is 1\.0"),
        (
            BinaryLogistic(C=2.0, bias=True),
            BinaryLogistic(),
            r"learner\.C was 2\.0 and is 1\.0, learner\.bias was True and is False",
        ),
        (BinaryLogistic(), BinaryLearner("squared_hinge"), "learner differs"),
        (
            DualSVM(binary=True, kernel=tm.kernels.Gaussian(0.5)),
            DualSVM(binary=True, kernel=tm.kernels.Gaussian(0.4)),
            r"learner\.kernel\.gamma was 0\.5 and is 0\.4",
        ),
        (
            DualSVM(binary=True, kernel=of(1.0)),
            DualSVM(binary=True, kernel=of(2.0)),
            r"learner\.kernel\.\S*closure\.0 was 1",
        ),
        (
            Perceptron(generator=torch.Generator().manual_seed(1), shuffle=True),
            Perceptron(generator=torch.Generator().manual_seed(2), shuffle=True),
            r"learner\.generator was seed 1 and is seed 2",
        ),
        (DecisionTree(max_leaves=3), DecisionTree(max_leaves=4), r"learner\.options\.max_leaves was 3 and is 4"),
        (AdaBoost(3), AdaBoost(4), r"learner\.rounds was 3 and is 4"),
        (SVC(C=2.0), SVC(), r"learner\.C was 2\.0 and is 1\.0"),
        (
            make_pipeline(StandardScaler(), SVC(C=2.0)),
            make_pipeline(StandardScaler(), SVC()),
            r"learner\.steps\.1\.1\.C was 2\.0",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:.*max_passes")
def test_columns_of_a_learner_with_other_options_are_refused_by_name(one, other, said, tmp_path):
    x, y = data()
    _, report = CodedReduction(CODE, one).fit(x, y, resume=None if "closure" in said else tmp_path)
    assert CodedReduction(CODE, copy.deepcopy(one), jobs=2).fit(x, y, resume=report).report.iterations == 4
    for resume in (report,) if "closure" in said else (report, tmp_path):
        with pytest.raises(ValueError, match=f"resume: .*: (learner.*)?{said}.*; accepted are those of the same fit"):
            CodedReduction(CODE, other).fit(x, y, resume=resume)


OUTSIDE = [SVC(), make_pipeline(StandardScaler(), SVC()), GradientBoostingClassifier(n_estimators=2), DecisionTree()]


@pytest.mark.parametrize(
    "learner", [*(one for one, _, _ in LEARNERS.values()), *OUTSIDE], ids=lambda one: repr(one)[:40]
)
@pytest.mark.filterwarnings("ignore:.*max_passes")
def test_kept_columns_are_read_back(learner, tmp_path):
    x, y = data()
    first = CodedReduction(CODE, learner).fit(x, y, resume=tmp_path).scorer
    again = CodedReduction(CODE, learner).fit(x, y, resume=tmp_path).scorer
    assert torch.equal(first(x).margins, again(x).margins)


class Calls:
    """Pickled, it calls the function when it is read."""

    def __init__(self, function, *arguments):
        self.made = function, arguments

    def __reduce__(self):
        return self.made


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (Calls(os.mkdir, "ran"), r"it would call (posix|nt)\.mkdir"),
        (Calls(torch.hub.set_dir, "ran"), r"it would call torch\.hub\.set_dir"),
        (Calls(tm.codes.one_vs_all, 3), r"it would call torch_multiclass\.codes\.\w+\.one_vs_all"),
        (Calls(eval, "1"), r"it would call __builtin__\.eval"),
    ],
    ids=["system", "torch", "ours", "eval"],
)
def test_a_kept_column_calls_nothing(call, said, tmp_path, monkeypatch):
    x, y = data()
    monkeypatch.chdir(tmp_path)
    torch.save(({}, 0, call), tmp_path / "column_000000.pt")
    with pytest.raises(ValueError, match=rf"resume: .*column_000000\.pt cannot be read: {said}; accepted is what"):
        CodedReduction(CODE, BinaryLogistic()).fit(x, y, resume=tmp_path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut", b"text"])
def test_a_damaged_column_is_named(content, tmp_path):
    x, y = data()
    (tmp_path / "column_000000.pt").write_bytes(content)
    with pytest.raises(
        ValueError, match=r"resume: .*column_000000\.pt cannot be read: .*; accepted is what a fit wrote"
    ):
        CodedReduction(CODE, BinaryLogistic()).fit(x, y, resume=tmp_path)


def test_a_column_that_cannot_be_written_is_named(tmp_path):
    x, y = data()
    with pytest.raises(ValueError, match=r"resume: column 0 cannot be written: .*pickle.*; accepted are learners"):
        CodedReduction(CODE, DualSVM(binary=True, kernel=of(1.0))).fit(x, y, resume=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_other_rows_codes_and_calls_are_named():
    x, y = data()
    _, report = CodedReduction(CODE, BinaryLogistic()).fit(x, y)
    for change, said in (
        ({"features": x + 1}, "another learner: features differs; accepted"),
        ({"target": (y + 1) % 3}, "target differs; accepted"),
        ({"weight": torch.ones(60)}, "weight differs; accepted"),
        ({"call": "single"}, "call was 'multi' and is 'single'; accepted"),
        ({"code": tm.codes.one_vs_all(3)}, "code differs; accepted"),
    ):
        given = {"features": x, "target": y, "code": CODE, "call": "multi", "weight": None, **change}
        with pytest.raises(ValueError, match=said):
            CodedReduction(given.pop("code"), BinaryLogistic(), call=given.pop("call")).fit(**given, resume=report)


def test_what_changes_nothing_may_be_other(tmp_path):
    x, y = data()
    CodedReduction(CODE, BinaryLogistic(), decoder=tm.HammingDecoder()).fit(x, y, resume=tmp_path)
    learner = BinaryLogistic(progress=False, on_step=print)
    CodedReduction(CODE, learner, jobs=2, progress=False).fit(x, y, resume=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"column_{s:06d}.pt" for s in range(4)]


@pytest.mark.parametrize("jobs", [2, 3])
def test_an_interrupt_keeps_the_columns_that_have_begun(jobs):
    """One of those that run at the same time is ended; the others come to their end."""
    x, y = data()
    Stopping.fits = 0
    with pytest.warns(Interrupted, match=f"after {jobs if jobs == 2 else 2} columns|after 3 columns"):
        _, report = CodedReduction(CODE, Stopping(), jobs=jobs).fit(x, y)
    assert report.interrupted
    assert len(report.unfinished) in (1, 2)
    assert set(report.fits).isdisjoint(report.unfinished)


def test_columns_are_written_as_soon_as_they_are_done(tmp_path):
    """In whatever order: the first waits here for the file of the second."""
    x, y = data()

    class Waiting(BinaryLogistic):
        def fit(self, features, target, **options):
            if torch.equal(target, CODE[y, 0].long()):
                deadline = time.monotonic() + 20
                while not (tmp_path / "column_000001.pt").exists() and time.monotonic() < deadline:
                    time.sleep(0.01)
                assert (tmp_path / "column_000001.pt").exists()
            return super().fit(features, target, **options)

    report = CodedReduction(CODE, Waiting(), jobs=2).fit(x, y, resume=tmp_path).report
    assert report.failed == {}
    assert list(report.fits) == [0, 1, 2, 3]


@pytest.mark.filterwarnings("ignore:.*ended from the keyboard")
def test_an_unfinished_single_call_is_kept_but_not_resumed(tmp_path):
    x, y = data()

    class Ended(BinaryLogistic):
        ends = True

        def steps(self, problem, monitor):
            yield from super().steps(problem, monitor)
            if Ended.ends:
                raise KeyboardInterrupt

    reduction = CodedReduction(CODE, Ended(), call="single", interaction=True)
    scorer, report = reduction.fit(x, y, resume=tmp_path)
    assert report.interrupted
    assert bool((scorer(x).margins != 0).any())
    assert list(tmp_path.iterdir()) == []
    Ended.ends = False
    for resume in (report, tmp_path):
        again = reduction.fit(x, y, resume=resume).report
        assert not again.interrupted
        assert not again.columns[0].interrupted


# ---------------------------------------------------------------------- what can go wrong
class Odd:
    """A classifier that goes wrong where the rows are 40, as in the last column."""

    def __init__(self, how):
        self.how = how

    def fit(self, X, y, sample_weight=None):
        self.bad = len(X) == 40
        if self.bad and self.how == "error":
            raise RuntimeError("no memory of that")

    def decision_function(self, X):
        if self.bad:
            if self.how == "late":
                return np.where(np.arange(len(X)) < len(X) - 2, X[:, 0], np.nan)
            return X[:, 0] * float("nan") if self.how == "nan" else X[:3]
        return X[:, 0]


@pytest.mark.parametrize(
    ("how", "said"),
    [("nan", "not finite"), ("late", "not finite"), ("shape", "gave shape"), ("error", "no memory of that")],
)
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_column_that_fails_is_named_and_the_others_are_kept(how, said, jobs):
    x, y = data()
    with pytest.warns(UserWarning, match=f"failed in column 3, margin 0: .*{said}"):
        scorer, report = CodedReduction(CODE, Odd(how), jobs=jobs).fit(x, y)
    assert list(report.failed) == [3]
    assert said in report.failed[3]
    torch.testing.assert_close(scorer(x).margins[:, :3], x[:, :1].expand(-1, 3))
    assert (scorer(x).margins[:, 3] == 0).all()


def test_a_learner_that_fails_everywhere_says_why():
    x, y = data()

    class Broken(Odd):
        def fit(self, X, y, sample_weight=None):
            raise RuntimeError("no memory of that")

    words = "learner: fails in every column; in column 0: no memory of that; accepted"
    with pytest.raises(ValueError, match=words) as seen:
        CodedReduction(CODE, Broken("error"), jobs=2).fit(x, y)
    assert isinstance(seen.value.__cause__, RuntimeError)


def test_rows_that_are_no_numbers():
    x, y = data()
    x[[3, 4], 1] = torch.nan  # the last column does not ask the first of them
    with pytest.raises(ValueError, match=r"features: row .* not finite"):
        CodedReduction(CODE, BinaryLogistic()).fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CodedReduction(CODE, AdaBoost(3)).fit(x, y)  # to boosting it is a missing value


def test_a_single_call_says_its_size_before_it_is_made(monkeypatch, capsys):
    x, y = data()
    CodedReduction(CODE, BinaryLogistic(), call="single", progress=True).fit(x, y)
    assert "a single call makes 220 rows of 8 features, 14080 bytes (1.31e-05 GiB)" in capsys.readouterr().err
    with pytest.raises(MemoryError, match=r"220 rows of 16 features, 28160 bytes"):
        CodedReduction(CODE, BinaryLogistic(), call="single", interaction=True, memory_limit=28159).fit(x, y)
    CodedReduction(CODE, BinaryLogistic(), call="single", interaction=True, memory_limit=28160).fit(x, y)
    monkeypatch.setattr(module, "available_bytes", lambda device: 10)
    with pytest.raises(MemoryError, match="and 10 bytes are free"):
        CodedReduction(CODE, BinaryLogistic(), call="single").fit(x, y)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"learner": "svm"}, TypeError, "learner: got 'svm'; accepted is a solver"),
        ({"learner": BinaryLogistic}, TypeError, "learner: got"),
        ({"learner": DualSVM()}, ValueError, r"accepted is DualSVM\(binary=True\)"),
        ({"call": "both"}, ValueError, "call: got 'both'"),
        ({"decoder": "hamming"}, TypeError, "decoder: got"),
        ({"jobs": 0}, ValueError, "jobs: got 0"),
        ({"interaction": True}, ValueError, "interaction: got True with call='multi'"),
        ({"code": [[1, 1], [1, 1]]}, ValueError, "code"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        CodedReduction(**{"code": CODE, "learner": BinaryLogistic(), **options})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_classes": 4}, "num_classes: got 4; accepted are None and the 3 of the code"),
        ({"target": torch.full((60,), 5)}, "target: label 5 is outside 0..2"),
        ({"target": torch.zeros(60, dtype=torch.long)}, "every row has the label 0"),
        ({"target": torch.ones(60, 3, dtype=torch.long)}, r"target: got shape \(60, 3\)"),
        ({"weight": torch.ones(3)}, "weight"),
        ({"weight": -torch.ones(60)}, "weight"),
    ],
)
def test_bad_rows(change, message):
    x, y = data()
    with pytest.raises(ValueError, match=message):
        CodedReduction(CODE, BinaryLogistic()).fit(**{"features": x, "target": y, **change})


def test_a_column_with_rows_of_one_sign():
    (x, _), y = data(), torch.arange(40) % 2
    reduction = CodedReduction([[1, 1], [1, -1], [-1, -1]], BinaryLogistic())
    with pytest.warns(UserWarning, match="label 2, never predicted; the rows of column 0 have one sign"):
        scorer, report = reduction.fit(x[:40], y)
    assert report.idle == [0]
    assert (report.decoder(scorer(x)) != 2).all()


@pytest.mark.filterwarnings("ignore:code.*against each other")
def test_no_column_with_rows_of_two_signs():
    (x, _), y = data(), torch.arange(40) % 2
    reduction = CodedReduction([[1, 0], [0, 1], [-1, -1]], BinaryLogistic())
    with pytest.raises(ValueError, match="code: no column has rows of both signs"):
        reduction.fit(x[:40], y)


def test_warnings_that_are_errors_are_no_failures_of_a_column():
    x, y = data()
    with pytest.raises(UserWarning, match="max_passes"):  # as pytest is set up here
        CodedReduction(CODE, BinaryLearner("logistic", max_passes=1, tol=1e-12)).fit(x, y)


def test_shows_itself():
    assert "BinaryLogistic" in repr(CodedReduction(CODE, BinaryLogistic()))


class Itself:
    """An object that holds itself."""

    def __init__(self, number):
        self.number, self.own = number, self


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        (lambda: {"b", "a"}, lambda: {"a", "b"}, lambda: {"a"}),
        (lambda: np.random.RandomState(1), lambda: np.random.RandomState(1), lambda: np.random.RandomState(2)),
        (lambda: np.random.default_rng(1), lambda: np.random.default_rng(1), lambda: np.random.default_rng(2)),
        (lambda: len, lambda: len, lambda: max),
        (lambda: np.float64(2), lambda: 2.0, lambda: np.float64(3)),
        (lambda: Itself(1), lambda: Itself(1), lambda: Itself(2)),
        (lambda: [].append, lambda: [].append, lambda: [].extend),
        (lambda: functools.partial(max, 1), lambda: functools.partial(max, 1), lambda: functools.partial(max, 2)),
    ],
)
def test_what_options_are_is_told_apart(one, same, other):
    assert origin_of(option=one()) == origin_of(option=same())
    assert origin_of(option=one()) != origin_of(option=other())
