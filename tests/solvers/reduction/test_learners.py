"""Every kind of learner through every kind of code, with a call for each column and with a single one."""

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import torch_multiclass as tm
from torch_multiclass.scorers import OutsideScorer
from torch_multiclass.solvers import (
    AdaBoost,
    Bagging,
    BalancedWinnow,
    BinaryLeastSquares,
    BinaryLogistic,
    CodedReduction,
    DecisionTree,
    DualSVM,
    FrankWolfe,
    Perceptron,
    RandomForest,
    RandomTrees,
)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


CODES = {
    "one-versus-all": tm.codes.one_vs_all(4),
    "one-versus-one": tm.codes.one_vs_one(4),
    "dense": tm.codes.dense_random(4, 5, trials=50, generator=seeded()),
    "sparse": tm.codes.sparse_random(4, 8, trials=50, generator=seeded()),
    "exhaustive": tm.codes.complete(4),
}
LEARNERS = {
    "svm": (DualSVM(binary=True, bias=True), "hinge"),
    "kernel svm": (DualSVM(binary=True, kernel=tm.kernels.Polynomial(2)), "hinge"),
    "logistic": (BinaryLogistic(bias=True), "logistic"),
    "least squares": (BinaryLeastSquares(bias=True), "squared"),
    "boosting": (AdaBoost(15), "exponential"),
    "tree": (DecisionTree(max_leaves=12), "squared"),
    "logistic tree": (DecisionTree(max_leaves=12, loss="logistic"), "logistic"),
    "pruned tree": (DecisionTree(prune=0.5), "squared"),
    "forest": (RandomForest(8, generator=seeded(1)), "squared"),
    "bagging": (Bagging(5, generator=seeded(1)), "squared"),
    "random trees": (RandomTrees(10, generator=seeded(1)), "squared"),
    "perceptron": (Perceptron(averaged=True, bias=True, shuffle=True, generator=seeded(1), max_passes=5), "hinge"),
    "winnow": (BalancedWinnow(1.2, binary=True, bias=True, max_passes=5), "hinge"),
    "structured machine": (FrankWolfe(C=0.1, bias=True, tol=1e-2), "hinge"),
    "scikit-learn": (SGDClassifier(loss="log_loss"), "logistic"),
    "scikit-learn pipeline": (make_pipeline(StandardScaler(), SVC(C=2.0)), "hinge"),
}


def data(rows=80, seed=0, spread=0.4):
    """Four classes at the corners of a square, and features that tell nothing."""
    y = torch.arange(rows) % 4
    x = torch.randn(rows, 4, generator=seeded(seed)).double() * spread
    x[:, 0] += 2.0 * (y % 2) - 1
    x[:, 1] += 2.0 * (y // 2) - 1
    return x, y


@pytest.fixture(params=LEARNERS)
def learner(request):
    return LEARNERS[request.param]


@pytest.fixture(params=CODES)
def code(request):
    return CODES[request.param]


@pytest.mark.filterwarnings("ignore:.*max_passes", "ignore:.*saw every row")
class TestEveryLearnerThroughEveryCode:
    def test_a_call_for_each_column(self, learner, code):
        solver, loss = learner
        x, y = data()
        weight = torch.rand(80, generator=seeded(3)) + 0.5
        reduction = CodedReduction(code, solver)
        scorer, report = reduction.fit(x, y, weight=weight)
        margins = scorer(x).margins
        assert margins.shape == (80, code.shape[1])
        assert bool(margins.isfinite().all())
        assert reduction.decoder.loss.name == loss
        assert (report.idle, report.failed) == ([], {})
        held, labels = data(seed=1)
        assert float((report.decoder(scorer(held)) == labels).double().mean()) > 0.8

    def test_the_same_with_any_number_of_jobs(self, learner):
        x, y = data(48)
        one, many = (CodedReduction(CODES["sparse"], learner[0], jobs=jobs).fit(x, y).scorer(x) for jobs in (1, 3))
        assert torch.equal(one.margins, many.margins)

    def test_a_single_call(self, learner, code):
        solver, loss = learner
        x, y = data(48)
        reduction = CodedReduction(code, solver, call="single", interaction=True)
        scorer, report = reduction.fit(x, y)
        margins = scorer(x).margins
        assert margins.shape == (48, code.shape[1])
        assert bool(margins.isfinite().all())
        assert report.decoder.loss.name == loss
        chance = 0.25
        assert float((report.decoder(scorer(x)) == y).double().mean()) > 2 * chance


# ---------------------------------------------------------------------- missing values
IMPUTED = make_pipeline(SimpleImputer(), LogisticRegression())
MISSING = {
    "boosting": AdaBoost(5),
    "tree": DecisionTree(max_leaves=8),
    "forest": RandomForest(5),
    "scikit-learn trees": HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=2),
    "scikit-learn forest": RandomForestClassifier(5),
    "imputed": IMPUTED,
    "searched": GridSearchCV(IMPUTED, {"logisticregression__C": [0.1, 1.0]}, cv=2),
}


@pytest.mark.parametrize("name", MISSING)
def test_what_takes_missing_values_gets_them(name):
    x, y = data()
    x[3, 1] = torch.nan
    report = CodedReduction(tm.codes.one_vs_all(4), MISSING[name]).fit(x, y).report
    assert report.failed == {}
    x[5, 0] = torch.inf
    with pytest.raises(
        ValueError, match=r"features: row 5 has an entry that is not finite; .* NaN where one is missing"
    ):
        CodedReduction(tm.codes.one_vs_all(4), MISSING[name]).fit(x, y)


class Counted(BinaryLogistic):
    fits = 0

    def fit(self, *args, **options):
        Counted.fits += 1
        return super().fit(*args, **options)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("call", ["multi", "single"])
@pytest.mark.parametrize("learner", [Counted(), SVC(), make_pipeline(StandardScaler(), SVC())])
def test_other_features_that_are_no_numbers_are_refused_before_a_column_is_trained(bad, call, learner):
    x, y = data()
    x[7, 1] = bad
    Counted.fits = 0
    with pytest.raises(ValueError, match="features: row 7 has an entry that is not finite; accepted are finite"):
        CodedReduction(tm.codes.one_vs_one(4), learner, call=call).fit(x, y)
    assert Counted.fits == 0
    y[7] = -100
    CodedReduction(tm.codes.one_vs_one(4), learner, call=call).fit(x, y)


# ---------------------------------------------------------------------- conventions of scikit-learn
@pytest.mark.parametrize(
    ("classifier", "loss"),
    [
        (make_pipeline(StandardScaler(), LogisticRegression()), "logistic"),
        (GridSearchCV(LogisticRegression(), {"C": [1.0]}), "logistic"),
        (MLPClassifier(), "logistic"),
        (LinearDiscriminantAnalysis(), "logistic"),
        (RandomForestClassifier(), "squared"),
    ],
)
def test_the_loss_of_a_classifier_inside_another(classifier, loss):
    assert CodedReduction(tm.codes.one_vs_all(3), classifier).decoder.loss.name == loss


def test_a_pipeline_passes_weights_on():
    x, y = data()
    weight = torch.randint(1, 3, (80,), generator=seeded(2))
    reduction = CodedReduction(tm.codes.one_vs_all(4), make_pipeline(StandardScaler(with_mean=False), SVC()))
    fit = reduction.fit(x, y, weight=weight.double())
    assert fit.report.failed == {}
    right = make_pipeline(StandardScaler(with_mean=False), SVC())
    right.fit(x.numpy(), np.where(y == 2, 1, -1), svc__sample_weight=weight.numpy())
    found = torch.from_numpy(right.decision_function(x.numpy()))
    torch.testing.assert_close(fit.scorer(x).margins[:, 2], found)


def test_probabilities_of_a_likelihood_are_half_the_log_odds():
    x, y = data()
    network = MLPClassifier((4,), max_iter=50, random_state=0, solver="lbfgs")
    scorer, report = CodedReduction(tm.codes.one_vs_all(4), network).fit(x, y)
    margins = scorer(x).margins
    alone = MLPClassifier((4,), max_iter=50, random_state=0, solver="lbfgs").fit(x.numpy(), np.where(y == 1, 1, -1))
    right = torch.from_numpy(alone.predict_proba(x.numpy())[:, 1]).clamp(1e-15, 1 - 1e-15)
    torch.testing.assert_close((2 * margins[:, 1]).sigmoid(), right, rtol=1e-6, atol=1e-9)
    assert report.decoder.loss.name == "logistic"

    class Sure:
        def predict_proba(self, X):
            return np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])

    extreme = OutsideScorer(Sure(), 1, log_odds=True)(torch.zeros(3, 1))[:, 0]
    assert extreme.tolist() == pytest.approx([17.6, -17.6, 0.0], abs=0.1)


def test_a_classifier_without_a_seed_repeats():
    x, y = data()
    forests = CodedReduction(tm.codes.one_vs_all(4), RandomForestClassifier(3))
    one, other = forests.fit(x, y).scorer(x).margins, forests.fit(x, y).scorer(x).margins
    assert torch.equal(one, other)


# ---------------------------------------------------------------------- folds
def with_one_row_of_class_3():
    x, y = data(40)
    order = torch.cat([(y != 3).nonzero()[:, 0], (y == 3).nonzero()[:1, 0]])
    return x[order], y[order]


@pytest.mark.filterwarnings("ignore:The least populated class")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_column_with_one_class_in_a_fold_is_named(jobs):
    """One of two folds trains without the only row of class 3."""
    x, y = with_one_row_of_class_3()
    learner = GridSearchCV(SVC(kernel="linear"), {"C": [1.0]}, cv=2, error_score="raise")
    with pytest.warns(UserWarning, match="the learner failed in column 3, margin 0: .*one class|.*1 class"):
        scorer, report = CodedReduction(tm.codes.one_vs_all(4), learner, jobs=jobs).fit(x, y)
    assert list(report.failed) == [3]
    alone = SVC(kernel="linear").fit(x.numpy(), np.where(y == 0, 1, -1))
    right = torch.from_numpy(alone.decision_function(x.numpy()))
    torch.testing.assert_close(scorer(x).margins[:, 0].detach(), right, rtol=1e-3, atol=1e-3)
    assert bool((scorer(x).margins[:, 3] == 0).all())


def test_a_pruned_tree_whose_folds_miss_a_class():
    x, y = with_one_row_of_class_3()
    report = CodedReduction(tm.codes.one_vs_all(4), DecisionTree(prune="cv", folds=5)).fit(x, y).report
    assert report.failed == {}
