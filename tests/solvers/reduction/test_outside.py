"""Classifiers of scikit-learn through codes, against its own reductions with the same classifiers."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC

import torch_multiclass as tm
from torch_multiclass.scorers import ColumnsScorer, OutsideScorer
from torch_multiclass.solvers import CodedReduction

DIGITS = load_digits()
X, Y = DIGITS.data / 16, DIGITS.target
TRAIN, TEST = slice(0, 500), slice(500, 900)
LEARNERS = {
    "ridge": (RidgeClassifier(alpha=2.0), tm.LinearScorer),
    "logistic": (LogisticRegression(C=0.5, max_iter=500), tm.LinearScorer),
    "svc": (SVC(kernel="rbf", gamma=0.1, tol=1e-7), ColumnsScorer),
}


def rows(part):
    return torch.from_numpy(X[part]), torch.from_numpy(Y[part])


@pytest.fixture(params=LEARNERS)
def learner(request):
    return LEARNERS[request.param]


def margins(reduction):
    scorer, report = reduction.fit(*rows(TRAIN))
    return scorer, report, scorer(rows(TEST)[0])


def test_one_versus_rest(learner):
    classifier, kind = learner
    scorer, report, scores = margins(CodedReduction(tm.codes.one_vs_all(10), classifier))
    theirs = OneVsRestClassifier(classifier).fit(X[TRAIN], Y[TRAIN])
    factor = 0.5 if "Logistic" in repr(classifier) else 1.0
    right = torch.from_numpy(factor * theirs.decision_function(X[TEST]))
    assert type(scorer.margins) is kind
    torch.testing.assert_close(scores.margins.detach(), right, rtol=1e-5, atol=1e-6)
    assert report.decoder(scores).tolist() == theirs.predict(X[TEST]).tolist()


def test_one_versus_one(learner):
    classifier, _ = learner
    _, _, scores = margins(CodedReduction(tm.codes.one_vs_one(10), classifier))
    theirs = OneVsOneClassifier(classifier).fit(X[TRAIN], Y[TRAIN])
    votes = np.stack([one.decision_function(X[TEST]) for one in theirs.estimators_], 1)  # positive: the later class
    factor = 0.5 if "Logistic" in repr(classifier) else 1.0
    right = -factor * torch.from_numpy(votes)
    torch.testing.assert_close(scores.margins.detach(), right, rtol=1e-4, atol=1e-4)
    by_votes = scores.votes()
    best = by_votes.topk(2, -1).values
    clear = best[:, 0] > best[:, 1]  # scikit-learn breaks ties by confidences
    assert clear.float().mean() > 0.9
    assert tm.VotingDecoder()(scores)[clear].tolist() == theirs.predict(X[TEST])[clear.numpy()].tolist()


def test_output_codes():
    classifier = RidgeClassifier()
    theirs = OutputCodeClassifier(classifier, code_size=1.5, random_state=3).fit(X[TRAIN], Y[TRAIN])
    code = torch.from_numpy(theirs.code_book_).long()
    _, _, scores = margins(CodedReduction(code, classifier))
    right = np.stack([one.decision_function(X[TEST]) for one in theirs.estimators_], 1)
    torch.testing.assert_close(scores.margins.detach(), torch.from_numpy(right), rtol=1e-6, atol=1e-8)
    decoded = tm.LossBasedDecoder("squared")(scores)  # Euclidean distance to ±1 words orders like the squared loss
    assert decoded.tolist() == theirs.predict(X[TEST]).tolist()


def test_row_weights_reach_the_classifier():
    x, y = rows(TRAIN)
    weight = torch.randint(1, 3, (500,), generator=torch.Generator().manual_seed(0))
    reduction = CodedReduction(tm.codes.one_vs_one(10), RidgeClassifier())
    weighted = reduction.fit(x, y, weight=weight.double()).scorer(x).margins
    repeated = reduction.fit(x.repeat_interleave(weight, 0), y.repeat_interleave(weight)).scorer(x).margins
    torch.testing.assert_close(weighted, repeated, rtol=1e-6, atol=1e-8)


def test_a_classifier_without_row_weights():
    reduction = CodedReduction(tm.codes.one_vs_all(3), KNeighborsClassifier(3))
    x, y = torch.randn(30, 2), torch.arange(30) % 3
    reduction.fit(x, y)
    with pytest.raises(ValueError, match=r"weight: KNeighborsClassifier.fit takes no weights of rows; accepted"):
        reduction.fit(x, y, weight=torch.ones(30))


def test_probabilities_where_there_is_no_decision_function():
    x, y = rows(TRAIN)
    reduction = CodedReduction(tm.codes.one_vs_all(10), GaussianNB(var_smoothing=1e-2))
    scorer, report = reduction.fit(x, y)
    shares = GaussianNB(var_smoothing=1e-2).fit(X[TRAIN], Y[TRAIN] == 4).predict_proba(X[TEST])
    right = torch.from_numpy(2 * shares[:, 1] - 1)
    torch.testing.assert_close(scorer(rows(TEST)[0]).margins[:, 4], right, rtol=1e-5, atol=1e-6)
    assert report.decoder.loss.name == "squared"


@pytest.mark.parametrize(
    ("classifier", "loss"),
    [
        (LogisticRegression(), "logistic"),
        (RidgeClassifier(), "squared"),
        (LinearSVC(loss="hinge"), "hinge"),
        (LinearSVC(), "squared_hinge"),
        (SVC(), "hinge"),
        (GradientBoostingClassifier(loss="exponential"), "exponential"),
    ],
)
def test_the_decoder_is_of_the_loss_that_the_classifier_minimises(classifier, loss):
    assert CodedReduction(tm.codes.one_vs_all(3), classifier).decoder.loss.name == loss


def test_the_classifier_given_is_not_fitted():
    classifier = RidgeClassifier()
    CodedReduction(tm.codes.one_vs_all(10), classifier).fit(*rows(TRAIN))
    assert not hasattr(classifier, "coef_")


def test_single_call_with_a_classifier():
    scorer, report, scores = margins(CodedReduction(tm.codes.one_vs_all(10), SVC(gamma=0.1), call="single"))
    pairs, signs = [], []
    for x, y in zip(X[TRAIN], Y[TRAIN], strict=True):
        for s in range(10):
            pairs.append(np.concatenate([x, np.eye(10)[s]]))
            signs.append(1 if s == y else -1)
    theirs = SVC(gamma=0.1).fit(np.array(pairs), signs)
    some = np.concatenate([X[TEST], np.tile(np.eye(10)[7], (400, 1))], 1)
    right = torch.from_numpy(theirs.decision_function(some))
    torch.testing.assert_close(scores.margins[:, 7], right, rtol=1e-6, atol=1e-8)
    assert isinstance(scorer.margins.scorer, OutsideScorer)
    assert report.columns == [None]
