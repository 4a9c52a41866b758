"""Estimators of scikit-learn: its own checks of them, and that they are the solver or head that is inside."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

import torch_multiclass as tm
from torch_multiclass import solvers
from torch_multiclass.integrations.sklearn import HeadClassifier, SequenceTagger, SolverClassifier

EXACT = {"bias": True, "tol": 1e-12}
CERTAIN = {"tol": 1e-15, "max_passes": 2000}  # the gap is the square of what weights are off
ESTIMATORS = [
    SolverClassifier(solvers.DualSVM(bias=True, **CERTAIN)),
    SolverClassifier(solvers.DualSVM(kernel=tm.kernels.Gaussian(0.001), **CERTAIN)),
    SolverClassifier(solvers.BinaryLogistic(**EXACT)),
    SolverClassifier(solvers.BinaryLogistic(**EXACT), code="one_vs_one"),
    SolverClassifier(LogisticRegression(), code="one_vs_all"),
    # real-valued leaves are smoothed: what weighs little has little to say
    SolverClassifier(solvers.AdaBoost(10, real=True)),
    SolverClassifier(solvers.AdaBoostMH(10, real=True)),
    SolverClassifier(solvers.DecisionTree(min_leaf=2)),
    SolverClassifier(solvers.RandomForest(10, min_leaf=2)),
    SolverClassifier(solvers.BinaryLeastSquares(**EXACT)),
    SolverClassifier(solvers.Bagging(5, solvers.DecisionTree(min_leaf=2))),
    SolverClassifier(solvers.Perceptron(averaged=True, shuffle=True, bias=True)),  # shuffled as scikit-learn's own
    SolverClassifier(solvers.PassiveAggressive(bias=True)),
    # features of length 30 and weights of 1000: with C = 1 it takes ten million steps, R^2 / lambda
    SolverClassifier(solvers.Pegasos(C=1e-3, bias=True, epochs=300)),
    HeadClassifier(epochs=30, lr=0.1),
    HeadClassifier(tm.ECOCHead, epochs=30, lr=0.1),
    HeadClassifier(tm.OneVsAllHead, epochs=30, lr=0.1),
    HeadClassifier(tm.OneVsOneHead, epochs=30, lr=0.1),
]

WEIGHTS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
DRAWN = dict.fromkeys(WEIGHTS, "which rows a seed draws goes by their order, and the weighted rows come in another")
VISITED = dict.fromkeys(WEIGHTS, "rows are visited in their order, and the weighted rows come in another")
CANNOT = {
    solvers.RandomForest: DRAWN,
    solvers.Bagging: DRAWN,
    solvers.PassiveAggressive: VISITED,
    solvers.Perceptron: VISITED,
}
"""What no such method can pass; scikit-learn's own forests, bags and online learners are declared likewise.

The check fits repeated rows without weights, and the same rows with weights in an order of its own. A method of which
the first fit depends on the order cannot give the second, which is not told that order: repeating the rows of two
tables that differ in it only gives two fits, and weighing them one.
"""


def expected(estimator):
    """The checks that cannot pass, with why."""
    return CANNOT.get(type(getattr(estimator, "solver", None)), {})


@pytest.mark.slow
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected)
@pytest.mark.filterwarnings("ignore")  # what random labels cannot be separated by, and scikit-learn's own
def test_the_checks_of_scikit_learn(estimator, check):
    """Weights are compared to 1e-7, which takes the machines to the end of what numbers hold; the rest does not."""
    if isinstance(getattr(estimator, "solver", None), solvers.DualSVM) and "weight" not in check.func.__name__:
        estimator = clone(estimator).set_params(solver__tol=1e-6)  # the estimator is shared by all its checks
    check(estimator)


def data(rows=90, classes=3, seed=0):
    x, y = make_blobs(rows, centers=classes, n_features=4, cluster_std=2.0, random_state=seed)
    return StandardScaler().fit_transform(x), np.array(["ant", "bee", "cow", "dog"])[y]


CASES = [
    (solvers.DualSVM(C=2.0, bias=True), tm.ArgmaxDecoder()),
    (solvers.RandomForest(5), tm.ArgmaxDecoder()),
    (solvers.AdaBoostMR(5), tm.ArgmaxDecoder()),
    (solvers.Bagging(3, solvers.DualSVM()), tm.ArgmaxDecoder()),
    (solvers.AdaBoostMO(tm.codes.one_vs_one(3), 5), tm.LossBasedDecoder("exponential")),
    (solvers.CodedReduction(tm.codes.one_vs_all(3), solvers.BinaryLogistic()), tm.LossBasedDecoder("logistic")),
    (solvers.CodedReduction(tm.codes.one_vs_one(3), LogisticRegression()), tm.LossBasedDecoder("logistic")),
    (
        solvers.CodedReduction(tm.codes.one_vs_one(3), solvers.DualSVM(binary=True), decoder=tm.HammingDecoder()),
        tm.HammingDecoder(),
    ),
]


@pytest.mark.parametrize(("solver", "decoder"), CASES)
def test_it_is_the_solver(solver, decoder):
    x, y = data()
    classes, target = np.unique(y, return_inverse=True)
    weight = np.random.default_rng(0).random(len(y)) + 0.1
    found = SolverClassifier(solver).fit(x, y, sample_weight=weight)
    rows, target = torch.from_numpy(x), torch.from_numpy(target)
    scorer, report = clone(solver).fit(rows, target, weight=torch.from_numpy(weight))
    assert list(found.predict(x)) == list(classes[decoder(scorer(rows)).numpy()])
    np.testing.assert_array_equal(found.decision_function(x), decoder.class_scores(scorer(rows)).detach().numpy())
    assert type(found.report_) is type(report)
    assert found.report_.iterations == report.iterations == found.n_iter_


def test_it_is_the_head():
    """Of the cross-entropy, trained to its minimum, against scikit-learn's."""
    x, y = data()
    y[::4] = np.roll(y[::4], 1)  # such that there is a minimum
    found = HeadClassifier(epochs=500, lr=0.05, batch_size=90, random_state=0).fit(x, y)
    right = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000).fit(x, y)
    np.testing.assert_allclose(found.predict_proba(x), right.predict_proba(x), atol=1e-3)
    head = found.network_.head
    np.testing.assert_array_equal(found.predict_proba(x), head.predict_proba(head(torch.from_numpy(x))).numpy())
    assert len(found.report_.losses) == found.n_iter_ == 500
    mean = -np.log(right.predict_proba(x)[np.arange(len(y)), np.searchsorted(right.classes_, y)]).mean()
    assert found.report_.losses[-1] == pytest.approx(mean, abs=1e-4)


@pytest.mark.parametrize("make", [lambda: SolverClassifier(solvers.AdaBoostMH(5)), lambda: HeadClassifier(epochs=5)])
def test_frames_and_labels_of_any_kind(make):
    pd = pytest.importorskip("pandas", reason="pandas is an extra of the tests")
    x, y = data()
    frame = pd.DataFrame(x, columns=["a", "b", "c", "d"])
    for labels in (y, pd.Series(y), pd.Categorical(y), list(y), np.unique(y, return_inverse=True)[1] * 7 - 3):
        found = make().set_params(random_state=0).fit(frame, labels)
        assert list(found.feature_names_in_) == ["a", "b", "c", "d"]
        assert set(found.predict(frame)) <= set(np.asarray(labels))
        assert list(found.classes_) == sorted(set(np.asarray(labels)))
    with pytest.raises(ValueError, match="feature names"):
        found.predict(frame[["b", "a", "c", "d"]])


def test_a_code_on_unbalanced_rows_says_once_that_weights_are_wanted():
    x, y = data(600)
    kept = np.r_[np.flatnonzero(y == "ant")[:6], np.flatnonzero(y != "ant")]
    coded = HeadClassifier(tm.ECOCHead, epochs=10, lr=0.1, random_state=0)
    with pytest.warns(UserWarning, match='consider .*class_weight="balanced" of an estimator') as said:
        plain = coded.fit(x[kept], y[kept]).score(x, y)
    assert len(said) == 1
    balanced = clone(coded).set_params(class_weight="balanced").fit(x[kept], y[kept])  # warnings are errors here
    assert balanced.score(x, y) > plain


@pytest.mark.parametrize("make", [lambda: SolverClassifier(solvers.DualSVM(bias=True, tol=1e-9)), HeadClassifier])
def test_balanced_classes_weigh_the_same(make):
    """As given by label, as given by row, and as scikit-learn counts them; weights of rows multiply them."""
    x, y = data(60)
    kept = np.r_[np.flatnonzero(y == "ant")[:5], np.flatnonzero(y != "ant")]
    x, y = x[kept], y[kept]
    by_label = {name: len(y) / (3 * (y == name).sum()) for name in ("ant", "bee", "cow")}
    by_row = np.array([by_label[name] for name in y])
    found = [
        make().set_params(random_state=0, class_weight="balanced").fit(x, y),
        make().set_params(random_state=0, class_weight=by_label).fit(x, y),
        make().set_params(random_state=0).fit(x, y, sample_weight=by_row),
        make().set_params(random_state=0, class_weight="balanced").fit(x, y, sample_weight=np.ones(len(y))),
    ]
    scores = [estimator.decision_function(x) for estimator in found]
    for other in scores[1:]:
        np.testing.assert_allclose(other, scores[0], rtol=1e-6, atol=1e-9)
    plain = make().set_params(random_state=0).fit(x, y)
    assert np.abs(plain.decision_function(x) - scores[0]).max() > 1e-3
    twice = np.r_[x, x[y == "ant"]], np.r_[y, y[y == "ant"]]
    weight = np.where(y == "ant", 2.0, 1.0)
    counted = make().set_params(class_weight="balanced")
    counted._sets, counted.classes_ = False, np.unique(y)
    labels = [np.unique(labels, return_inverse=True)[1] for labels in (y, twice[1])]
    once = counted._with_class_weight(labels[0], y, weight)
    assert once.sum() == pytest.approx(counted._with_class_weight(labels[1], twice[1], None).sum())


def test_weights_that_may_not_be_written_are_copied():
    """As pandas gives them; warnings are errors here."""
    x, y = data(30)
    weight = np.ones(len(y))
    weight.flags.writeable = False
    assert SolverClassifier(solvers.DecisionTree()).fit(x, y, sample_weight=weight).score(x, y) == 1


def test_searches_pipelines_and_calibration():
    x, y = data()
    search = GridSearchCV(SolverClassifier(solvers.DualSVM(tol=1e-2)), {"solver__C": [0.01, 1.0]}, cv=2).fit(x, y)
    assert search.best_params_["solver__C"] == search.best_estimator_.solver_.C
    nested = SolverClassifier(solvers.BinaryLogistic(), code="one_vs_one")
    grid = {"clf__solver": [solvers.BinaryLogistic(C=3.0), solvers.DualSVM(binary=True)], "clf__code": ["one_vs_all"]}
    pipe = make_pipeline(StandardScaler(), nested)
    pipe.steps[1] = ("clf", nested)
    assert GridSearchCV(pipe, grid, cv=2).fit(x, y).score(x, y) > 0.8
    assert cross_val_score(HeadClassifier(epochs=10, lr=0.1), x, y, cv=2).mean() > 0.8
    calibrated = CalibratedClassifierCV(SolverClassifier(solvers.DualSVM(tol=1e-2)), cv=2).fit(x, y)
    np.testing.assert_allclose(calibrated.predict_proba(x).sum(1), 1)


GRAM = {"kernel": "precomputed", "tol": 1e-2}


@pytest.mark.parametrize(
    ("estimator", "strength"),
    [
        (SolverClassifier(solvers.DualSVM(**GRAM)), "solver__C"),
        (SolverClassifier(solvers.DualSVM(binary=True, **GRAM), code="one_vs_one"), "solver__C"),
        (SolverClassifier(SVC(kernel="precomputed"), code="one_vs_all"), "solver__C"),
        (
            SolverClassifier(
                solvers.CodedReduction(tm.codes.one_vs_all(3), solvers.BinaryLogistic(kernel=tm.kernels.Precomputed()))
            ),
            "solver__learner__C",
        ),
        (SolverClassifier(solvers.Bagging(2, solvers.DualSVM(**GRAM))), "solver__base__C"),
    ],
)
def test_parts_of_a_gram_matrix_are_taken_of_rows_and_columns(estimator, strength):
    x, y = data()
    matrix = x @ x.T + 1
    assert estimator.__sklearn_tags__().input_tags.pairwise
    assert cross_val_score(estimator, matrix, y, cv=2).mean() > 0.8  # a fit that fails is an error here
    assert GridSearchCV(estimator, {strength: [0.1, 1.0]}, cv=2).fit(matrix, y).score(matrix, y) > 0.8
    assert not SolverClassifier(solvers.DualSVM()).__sklearn_tags__().input_tags.pairwise


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: HeadClassifier(tm.MulticlassHead, los="m3n"), "^HeadClassifier: .*; accepted .*; meant may be loss$"),
        (lambda: HeadClassifier(learning_rate=0.1), "meant may be lr$"),
        (lambda: SolverClassifier(estimator=solvers.DualSVM()), "^SolverClassifier: .*meant may be solver$"),
        (lambda: SequenceTagger(max_iter=3), "^SequenceTagger: .*meant may be epochs$"),
    ],
)
def test_keywords_that_there_are_not_are_told_what_is_meant(make, words):
    with pytest.raises(TypeError, match=words):
        make()


def test_parameters_reach_what_is_inside():
    reduction = solvers.CodedReduction(tm.codes.one_vs_one(3), LogisticRegression())
    estimator = SolverClassifier(reduction)
    assert estimator.get_params()["solver__learner__C"] == 1.0
    estimator.set_params(solver__learner__C=0.5, solver__jobs=2)
    assert (reduction.learner.C, reduction.jobs) == (0.5, 2)
    twin = clone(estimator)
    twin.set_params(solver__learner=solvers.DualSVM(binary=True), solver__learner__C=2.0)
    assert twin.solver.decoder.loss.name == "hinge"
    assert reduction.decoder.loss.name == "logistic"
    with pytest.raises(ValueError, match="C: got -1"):
        twin.set_params(solver__learner__C=-1)
    with pytest.raises(ValueError, match="set_params: got 'depth'; accepted are 'code', 'learner'"):
        twin.set_params(solver__depth=2)


COST = np.array([[0.0, 1.0, 5.0], [4.0, 0.0, 1.0], [9.0, 2.0, 0.0]])
"""Where little is known, the second class is the cheapest, however rare it is."""


@pytest.mark.parametrize(
    "plain",
    [
        SolverClassifier(solvers.RandomForest(4)),  # shares of 0 among them, whose classes may be the cheapest
        SolverClassifier(solvers.DecisionTree(min_leaf=5)),
        SolverClassifier(solvers.DualSVM()),
        SolverClassifier(solvers.BinaryLogistic(), code="one_vs_one"),
        SolverClassifier(solvers.BinaryLogistic(C=0.01, bias=True)),
        HeadClassifier(epochs=5, random_state=0),
    ],
    ids=lambda plain: repr(getattr(plain, "solver", plain)).split("(")[0],
)
@pytest.mark.parametrize("calibrated", [False, True])
def test_the_lowest_expected_cost_by_the_probabilities(plain, calibrated):
    """What a class costs decides the labels and leaves the probabilities as they are without it."""
    x, y = data(240, 2 if isinstance(getattr(plain, "solver", 0), solvers.BinaryLogistic) and not plain.code else 3)
    x = np.round(x + np.random.default_rng(0).normal(size=x.shape), 1)
    cost = COST[: len(set(y)), : len(set(y))]
    if isinstance(plain, HeadClassifier):
        costly = clone(plain).set_params(options={"decoder": tm.ExpectedCostDecoder(cost)})
    else:
        costly = clone(plain).set_params(decoder=tm.ExpectedCostDecoder(cost))
    for estimator in (plain, costly):
        estimator.fit(x[:120], y[:120])
        if calibrated:
            estimator.calibrate(x[120:], y[120:])
    if hasattr(plain, "predict_proba"):
        p = plain.predict_proba(x)
        np.testing.assert_array_equal(costly.predict_proba(x), p)
    else:
        p = torch.from_numpy(plain.decision_function(x)).softmax(1).numpy()
        assert not hasattr(costly, "predict_proba")
    cheapest = (p @ cost).argmin(1)
    assert list(costly.predict(x)) == list(plain.classes_[cheapest])
    assert (cheapest != p.argmax(1)).any()
    scores = costly.decision_function(x)
    expected = -p @ cost
    np.testing.assert_allclose(scores, expected if len(cost) > 2 else expected[:, 1] - expected[:, 0], atol=1e-12)


@pytest.mark.parametrize(
    ("estimator", "there"),
    [
        (SolverClassifier(), False),
        (SolverClassifier(solvers.AdaBoostMH()), False),
        (SolverClassifier(solvers.RandomForest()), True),
        (SolverClassifier(solvers.DecisionTree()), True),
        (SolverClassifier(solvers.Bagging()), True),
        (SolverClassifier(solvers.Bagging(2, solvers.DualSVM())), False),
        (SolverClassifier(solvers.BinaryLogistic()), True),
        (SolverClassifier(solvers.BinaryLeastSquares()), False),
        (SolverClassifier(solvers.BinaryLogistic(), code="one_vs_one"), True),
        (SolverClassifier(solvers.BinaryLogistic(), code="one_vs_one", decoder=tm.ExpectedCostDecoder(COST)), True),
        (SolverClassifier(solvers.DualSVM(), decoder=tm.ExpectedCostDecoder(COST)), False),
        (SolverClassifier(solvers.BinaryLogistic(), code="one_vs_one", decoder=tm.HammingDecoder()), False),
        (SolverClassifier(solvers.CodedReduction(tm.codes.one_vs_one(3), LogisticRegression())), True),
        (HeadClassifier(), True),
        (HeadClassifier(loss="crammer_singer"), False),
        (HeadClassifier(tm.ECOCHead), True),
        (HeadClassifier(tm.OneVsAllHead), False),
        (HeadClassifier(tm.OneVsAllHead, loss="logistic"), True),
    ],
)
def test_probabilities_are_there_where_they_mean_something(estimator, there):
    assert hasattr(estimator, "predict_proba") is there


@pytest.mark.parametrize("make", [lambda: SolverClassifier(solvers.DualSVM(bias=True)), HeadClassifier])
@pytest.mark.parametrize("classes", [2, 3])
def test_calibration_on_held_out_rows(make, classes):
    x, y = data(200, classes)
    estimator = make()
    if isinstance(estimator, HeadClassifier):
        estimator.set_params(loss="crammer_singer", epochs=20, lr=0.1, random_state=0)
    estimator.fit(x[:100], y[:100])
    assert not hasattr(estimator, "predict_proba")
    with pytest.raises(AttributeError) as raised:
        estimator.predict_proba(x)
    assert "after calibrate(X, y)" in str(raised.value.__cause__)
    before = estimator.predict(x)
    p = estimator.calibrate(x[100:], y[100:]).predict_proba(x)
    assert p.shape == (200, classes)
    np.testing.assert_allclose(p.sum(1), 1)
    assert list(estimator.classes_[p.argmax(1)]) == list(before) == list(estimator.predict(x))
    assert not hasattr(estimator.fit(x, y), "predict_proba")
    with pytest.raises(ValueError, match="y: holds 'emu'; accepted are the classes of training"):
        estimator.calibrate(x[:2], ["ant", "emu"])


@pytest.mark.parametrize("make", [lambda: SolverClassifier(solvers.DualSVM()), lambda: HeadClassifier(epochs=2)])
def test_held_out_labels_are_one_for_each_row(make):
    x, y = data(60)
    estimator = make().fit(x, y)
    for held in (y[0], np.asarray(y[0]), y[:5], y[:, None]):
        with pytest.raises(ValueError, match=r"y: got shape \(.*\); accepted is a label for each of the 60 rows of X"):
            estimator.calibrate(x, held)
    with pytest.raises(ValueError, match=r"y: .*; accepted is a label for each row of X"):
        estimator.calibrate(x, ["ant", ["bee"]])


def test_log_odds_of_two_classes():
    """``P(+1) = sigmoid(2 f)``."""
    x, y = data(classes=2)
    found = SolverClassifier(solvers.BinaryLogistic(bias=True)).fit(x, y)
    margin = found.decision_function(x)
    np.testing.assert_allclose(found.predict_proba(x)[:, 1], 1 / (1 + np.exp(-2 * margin)))
    assert list(found.predict(x)) == [found.classes_[int(m > 0)] for m in margin]


def test_sets_of_labels():
    x, y = data()
    sets = np.stack([y != "ant", y == "bee", x[:, 0] > 0], 1).astype(int)
    booster = SolverClassifier(solvers.AdaBoostMH(30)).fit(x, sets)
    scorer = solvers.AdaBoostMH(30).fit(torch.from_numpy(x), torch.from_numpy(2 * sets - 1)).scorer
    np.testing.assert_array_equal(booster.predict(x), (scorer(torch.from_numpy(x)) > 0).numpy())
    np.testing.assert_array_equal(booster.predict(x), booster.decision_function(x) > 0)
    assert not hasattr(booster, "predict_proba")
    head = HeadClassifier(tm.MultilabelHead, epochs=30, lr=0.1, random_state=0).fit(x, sp.csr_matrix(sets))
    assert head.predict_proba(x).shape == sets.shape
    np.testing.assert_array_equal(head.predict(x), head.predict_proba(x) > 0.5)
    for found in (booster, head):
        assert (found.predict(x) == sets).mean() > 0.9
    with pytest.raises(ValueError, match="class_weight: got 'balanced' for sets of labels"):
        booster.set_params(class_weight="balanced").fit(x, sets)
    with pytest.raises(ValueError, match="calibrate: is for one label"):
        booster.calibrate(x, sets)


@pytest.mark.parametrize("solver", [solvers.Pegasos(), solvers.Perceptron(averaged=True), solvers.DecisionTree()])
@pytest.mark.filterwarnings("ignore:Perceptron")
def test_sparse_rows_are_those_rows(solver, monkeypatch):
    x, y = data()
    x[x < 0] = 0
    dense, sparse = (SolverClassifier(solver, random_state=3).fit(rows, y) for rows in (x, sp.csr_matrix(x)))
    np.testing.assert_allclose(sparse.decision_function(sp.csc_matrix(x)), dense.decision_function(x), rtol=1e-6)
    monkeypatch.setattr("torch_multiclass.integrations.sklearn.base.DENSE_LIMIT", 1000)
    if isinstance(solver, solvers.DecisionTree):
        with pytest.raises(MemoryError, match="X: is sparse, and a dense copy takes 2880 bytes; accepted are 1000"):
            dense.fit(sp.csr_matrix(x), y)
    else:
        dense.fit(sp.csr_matrix(x), y)


def test_large_tables_are_predicted_in_parts(monkeypatch):
    x, y = data()
    found = SolverClassifier().fit(x, y)
    whole = found.decision_function(x)
    monkeypatch.setattr("torch_multiclass.integrations.sklearn.base._PART", 40)
    np.testing.assert_allclose(found.decision_function(x), whole)


def test_a_seed_repeats_a_fit_and_leaves_all_else():
    x, y = data()
    state, solver = torch.random.get_rng_state(), solvers.Pegasos(generator=torch.Generator().manual_seed(5))
    for make in (
        lambda seed: HeadClassifier(epochs=3, random_state=seed),
        lambda seed: SolverClassifier(solver, random_state=seed),
        lambda seed: SolverClassifier(solvers.BinaryLogistic(), code="dense_random", random_state=seed),
        lambda seed: SolverClassifier(solvers.RandomForest(3), random_state=np.random.RandomState(seed)),
    ):
        one, same, other = (make(seed).fit(x, y).decision_function(x) for seed in (1, 1, 2))
        np.testing.assert_array_equal(one, same)
        assert one.shape != other.shape or not np.array_equal(one, other)
    assert torch.equal(state, torch.random.get_rng_state())
    own = [SolverClassifier(solver).fit(x, y).decision_function(x) for _ in range(2)]
    np.testing.assert_array_equal(*own)
    assert torch.equal(solver.generator.get_state(), torch.Generator().manual_seed(5).get_state())


def test_missing_values_where_the_learner_takes_them():
    x, y = data()
    x[::7, 0] = np.nan
    assert SolverClassifier(solvers.AdaBoostMH(20)).fit(x, y).score(x, y) > 0.8
    with pytest.raises(ValueError, match="NaN"):
        SolverClassifier().fit(x, y)


def test_a_backbone_before_the_head():
    x, y = data()
    network = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
    first = network[0].weight.detach().clone()
    for backbone in (network, lambda width: nn.Sequential(nn.Linear(width, 8), nn.Tanh())):
        found = HeadClassifier(backbone=backbone, epochs=20, lr=0.05, random_state=0).fit(x, y)
        assert found.score(x, y) > 0.8
        assert found.network_.head.in_features == 8
    assert torch.equal(network[0].weight, first)
    flat = HeadClassifier(backbone=nn.Flatten(), epochs=20, lr=0.05).fit(x.reshape(-1, 2, 2), y)
    assert flat.score(x.reshape(-1, 2, 2), y) > 0.8


@pytest.mark.parametrize("estimator", [SolverClassifier(solvers.DualSVM(kernel="gaussian")), HeadClassifier(epochs=3)])
def test_a_pickle_predicts_the_same(estimator):
    x, y = data()
    estimator = clone(estimator).fit(x, y)
    twin = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(twin.decision_function(x), estimator.decision_function(x))
    assert "Classifier(" in repr(twin)
    assert "Classifier" in twin._repr_html_()


@pytest.mark.parametrize(
    ("estimator", "kind", "words"),
    [
        (SolverClassifier("svm"), TypeError, "solver: got 'svm'; accepted is one of torch_multiclass.solvers"),
        (
            SolverClassifier(solvers.BinaryLogistic()),
            ValueError,
            "y: Only .* BinaryLogistic tells two classes apart; accepted",
        ),
        (SolverClassifier(solvers.AdaBoost(), code="one"), ValueError, "code: got 'one'; accepted"),
        (SolverClassifier(class_weight="even"), ValueError, "class_weight: got 'even'; accepted"),
        (HeadClassifier(class_weight={"emu": 2.0}), ValueError, "are not in class_weight"),
        (HeadClassifier(nn.Linear), TypeError, "head: got .*Linear.*; accepted is a class of heads"),
        (HeadClassifier(tm.MulticlassHead(4, 3)), TypeError, "head: got MulticlassHead"),
        (HeadClassifier(int), TypeError, "head: got .*int.*; accepted is a class of heads, such as MulticlassHead$"),
        (HeadClassifier(tm.MultilabelHead), ValueError, "y: holds one class a row; accepted for MultilabelHead is"),
        (HeadClassifier(epochs=0), ValueError, "epochs: got 0"),
        (HeadClassifier(lr=-1), ValueError, "lr: got -1"),
        (HeadClassifier(batch_size=1.5), (TypeError, ValueError), "batch_size: got 1.5"),
        (HeadClassifier(optimizer=lambda parameters: "sgd"), TypeError, "optimizer: made 'sgd'"),
        (HeadClassifier(backbone=lambda width: "mlp"), TypeError, "backbone: made 'mlp'"),
        (HeadClassifier(loss="hinges"), ValueError, "loss: got 'hinges'"),
        (HeadClassifier(optimizer=torch.zeros(2)), TypeError, "optimizer: got tensor"),
        (HeadClassifier(optimizer=int), TypeError, "optimizer: got <class 'int'>"),
        (HeadClassifier(backbone=int), TypeError, "backbone: got <class 'int'>"),
        (HeadClassifier(class_weight={"ant": -2.0}), ValueError, "class_weight: holds -2; accepted are weights >= 0"),
        (HeadClassifier(options={"weight": "balanced"}), ValueError, "weight='balanced'; accepted is class_weight="),
        (HeadClassifier(options={1: 2}), TypeError, "options: got {1: 2}; accepted are keyword arguments"),
        (HeadClassifier(options=torch.zeros(2)), TypeError, "options: got tensor"),
        (HeadClassifier(device=1.5), TypeError, "device: got 1.5"),
        (SolverClassifier(decoder=torch.zeros(2)), TypeError, "decoder: got tensor"),
    ],
)
def test_what_is_refused(estimator, kind, words):
    x, y = data()
    with pytest.raises(kind, match=words):
        estimator.fit(x, y)


def test_rows_that_are_refused():
    x, y = data()
    for bad, words in (
        ((x, y[:5]), "inconsistent numbers of samples"),
        ((x, ["ant"] * len(y)), "y: holds 1 class"),
        ((x, np.array([None, *y[1:]], object)), "^y: holds None; accepted is a label for each row"),
        ((x, x[:, 0]), "Unknown label type: continuous"),
    ):
        with pytest.raises(ValueError, match=words):
            SolverClassifier().fit(*bad)
    with pytest.raises(ValueError, match=r"at least one non-zero|there are no rows"):
        SolverClassifier().fit(x, y, sample_weight=np.zeros(len(y)))
    for make in (SolverClassifier, HeadClassifier):
        with pytest.raises(ValueError, match=r"^sample_weight: is from -1 to -1; accepted is >= 0"):
            make().fit(x, y, sample_weight=-1)
    with pytest.raises(ValueError, match=r"^device: got meta, which has no values; accepted is"):
        HeadClassifier(device="meta").fit(x, y)


@pytest.mark.parametrize("make", [SolverClassifier, HeadClassifier])
def test_tensors_of_torch(make):
    """As they are of arrays; one that has no values that NumPy knows is named."""
    x, y = data()
    rows, labels = torch.from_numpy(x).float(), torch.from_numpy(np.unique(y, return_inverse=True)[1])
    fitted = make(random_state=0).fit(rows.requires_grad_(), labels)
    expected = make(random_state=0).fit(x.astype(np.float32), labels.numpy())
    assert (fitted.predict(rows) == expected.predict(x.astype(np.float32))).all()
    assert fitted.predict(rows.bfloat16()).shape == labels.shape
    for bad, kind, words in [
        (rows.to_sparse(), TypeError, "X: got a tensor of layout"),
        (rows.to("meta"), ValueError, "X: is on meta"),
        (rows.to(torch.complex64), TypeError, "X: got dtype torch.complex64"),
    ]:
        with pytest.raises(kind, match=words):
            fitted.predict(bad)
        with pytest.raises(kind, match=words):
            make().fit(bad, labels)
    with pytest.raises(TypeError, match=r"y: got dtype torch\.complex64"):
        make().fit(x, labels.to(torch.complex64))
    with pytest.raises(ValueError, match=r"y: holds .*; accepted are the classes of training"):
        fitted.calibrate(x, np.zeros(len(x), "M8[s]"))


def sentences(count=40, seed=0):
    """Words of which the label is seen, but for one kind that has the label before it."""
    random = np.random.default_rng(seed)
    rows, tags = [], []
    for length in random.integers(1, 9, count):
        kinds = random.integers(3, size=length)
        labels = [kind if kind < 2 else None for kind in kinds]
        for place in range(length):
            labels[place] = labels[place] if labels[place] is not None else (labels[place - 1] if place else 0)
        rows.append(np.eye(3)[kinds])
        tags.append([("noun", "verb")[label] for label in labels])
    return rows, tags


@pytest.mark.parametrize("head", [tm.ChainHead, tm.SecondOrderHead])
@pytest.mark.parametrize("loss", ["crf", "m3n"])
def test_a_tagger_is_its_head(head, loss):
    x, y = sentences()
    tagger = SequenceTagger(head, loss=loss, epochs=30, lr=0.1, random_state=0).fit(x, y)
    assert tagger.score(x, y) > 0.95
    alone = tagger.network_.head
    for rows, found in zip(x, tagger.predict(x), strict=True):
        scores = alone(torch.from_numpy(rows)[None], lengths=torch.tensor([len(rows)]))
        assert list(found) == list(tagger.classes_[alone.predict(scores)[0].numpy()])
    assert hasattr(tagger, "predict_proba") is (loss == "crf")
    if loss == "crf":
        p = tagger.predict_proba(x)
        assert [part.shape for part in p] == [(len(rows), 2) for rows in x]
        np.testing.assert_allclose(np.concatenate(p).sum(1), 1)
    twin = pickle.loads(pickle.dumps(tagger))
    assert all(map(np.array_equal, twin.predict(x), tagger.predict(x)))


@pytest.mark.parametrize("name", ["lr", "weight_decay"])
def test_a_step_beyond_float32_is_named(name):
    x, y = sentences()
    with pytest.raises(ValueError, match=rf"^{name}: got 1e\+300; accepted are numbers up to 1e\+30$"):
        SequenceTagger(epochs=1, **{name: 1e300}).fit(x, y)


def test_predictions_know_nothing_of_autocast():
    x, y = make_blobs(60, 2, centers=3, random_state=0)
    machine, (sequences, tags) = SolverClassifier(solvers.DualSVM()).fit(x, y), sentences()
    tagger = SequenceTagger(epochs=1, random_state=0).fit(sequences, tags)
    plain = machine.decision_function(x), tagger.predict_proba(sequences)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        within = machine.decision_function(x), tagger.predict_proba(sequences)[0]
    for one, other in zip(plain, within, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_tagger_in_a_search():
    x, y = sentences()
    tagger = SequenceTagger(epochs=5, backbone=lambda width: nn.Linear(width, 4), random_state=0)
    search = GridSearchCV(tagger, {"lr": [1e-4, 0.1]}, cv=2).fit(x, y)
    assert search.best_params_ == {"lr": 0.1}
    assert search.best_estimator_.network_.head.in_features == 4


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([], [], "X: holds no sequence"),
        ([np.eye(2)], [["a"]], r"y: sequence 0 has shape \(1,\); accepted is \(2,\), as in X"),
        ([np.eye(2), np.eye(3)], [["a", "b"], ["a", "b", "a"]], "X: sequence 1 has 3 features; accepted are 2"),
        ([np.eye(2)], [["a", "a"]], "y: holds 1 label; accepted are at least two"),
        ([np.eye(2) * np.nan], [["a", "b"]], r"X\[0\] contains NaN"),
        ([np.eye(2)], None, "y: got None; accepted are the labels"),
        ([np.eye(2)], [["a", "b"], ["a"]], "inconsistent numbers of samples"),
    ],
)
def test_sequences_that_are_refused(x, y, words):
    with pytest.raises(ValueError, match=words):
        SequenceTagger().fit(x, y)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (None, "y: got None; accepted are the labels"),
        ([["a"], ["b", "a", "b"]], r"y: sequence 0 has shape \(1,\); accepted is \(2,\), as in X"),  # four in all
        ([["a", "b"]], "inconsistent numbers of samples"),
    ],
)
def test_labels_of_other_places_are_not_scored(y, words):
    x = [np.eye(2)] * 2
    tagger = SequenceTagger(epochs=1).fit(x, [["a", "b"]] * 2)
    with pytest.raises(ValueError, match=words):
        tagger.score(x, y)


@pytest.mark.parametrize(
    ("x", "kind", "words"),
    [
        (torch.zeros(()), TypeError, "X: got "),
        (2.0, TypeError, "X: got 2.0; accepted is a list of sequences"),
        ("ab", TypeError, "X: got 'ab'"),
        (torch.zeros(2, 2, 2, dtype=torch.complex64), TypeError, "X: got dtype"),
        ([torch.zeros(2, 2, dtype=torch.float8_e5m2)], TypeError, "X: got dtype"),
    ],
)
def test_what_is_no_sequence(x, kind, words):
    tagger = SequenceTagger(epochs=1).fit([np.eye(2)] * 2, [["a", "b"]] * 2)
    with pytest.raises(kind, match=words):
        tagger.predict(x)
    assert len(tagger.predict([torch.eye(2, requires_grad=True), [[1.0, 0.0]]])) == 2


def test_a_loss_without_end_is_named():
    x, y = data()
    with pytest.raises(ValueError, match=r"X: the loss of epoch \d+ is not finite; accepted are features"):
        HeadClassifier(tm.OneVsAllHead, loss=tm.CodedLoss("exponential"), epochs=5).fit(1e8 * x, y)


def test_the_width_of_a_kernel_is_searched_by_name():
    x, y = make_blobs(60, 2, centers=3, random_state=0)
    made = SolverClassifier(solvers.DualSVM(kernel=tm.kernels.Gaussian(1e4)))
    search = GridSearchCV(made, {"solver__kernel__gamma": [1e4, 0.5], "solver__C": [1.0, 2.0]}, cv=2).fit(x, y)
    assert search.best_params_["solver__kernel__gamma"] == 0.5
    assert search.best_estimator_.solver_.kernel.gamma == 0.5
    assert made.solver.kernel.gamma == 1e4
    pairs = SolverClassifier(solvers.DualSVM(kernel=tm.kernels.Gaussian(1e4), binary=True), code="one_vs_one")
    assert pairs.set_params(solver__kernel__gamma=0.5).fit(x, y).score(x, y) > 0.8


@pytest.mark.parametrize(("solver", "code"), [(solvers.DualSVM, None), (LogisticRegression, "one_vs_one")])
def test_a_class_in_the_place_of_a_solver_is_told_its_brackets(solver, code):
    name = solver.__name__
    with pytest.raises(TypeError, match=rf"solver: got the class {name}; accepted is an instance, {name}\(\)"):
        SolverClassifier(solver, code=code).fit(np.eye(3), [0, 1, 2])


@pytest.mark.parametrize("weighted", [False, True])
def test_the_loss_of_an_epoch_is_the_weighted_mean_over_its_rows(weighted):
    """Of batches of other sizes and weights too; a step that is next to nothing leaves the network as it began."""
    x, y = data(30)
    weight = np.linspace(0.2, 3.0, 30) if weighted else None
    found = HeadClassifier(epochs=2, lr=1e-12, batch_size=7, random_state=0).fit(x, y, sample_weight=weight)
    head = found.network_.head
    labels = torch.from_numpy(np.searchsorted(found.classes_, y))
    each = torch.nn.functional.cross_entropy(head(torch.from_numpy(x)), labels, reduction="none").detach().numpy()
    assert found.report_.losses == pytest.approx([np.average(each, weights=weight)] * 2, rel=1e-5)
