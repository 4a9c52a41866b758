"""Least squares through codes: the closed form, C = 0.5, no bias."""

import warnings

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass.solvers import BinaryLeastSquares, CodedReduction

X = torch.tensor([[1, 0, 1], [0, 1, 1], [-1, -1, 1], [2, -1, 1], [-1, 2, 1], [-2, -1, 1]]).double()
Y = torch.tensor([0, 1, 2, 0, 1, 2])
QUERIES = torch.tensor([[0.6, 0.5, 1], [0, -1, 1], [-1, 0, 1]]).double()
TERNARY = torch.tensor([[1, 1, -1, 0], [-1, 1, 1, 1], [1, -1, 1, -1]])
LEARNER = BinaryLeastSquares(C=0.5, tol=1e-10)

MULTI = {
    "one-versus-one": (
        tm.codes.one_vs_one(3),
        [[0.036364, 0.552586, 0.525], [0.363636, -0.086207, -0.5], [-0.363636, -0.396552, -0.166667]],
        [2.128774, 2.299675, 5.736149],
        [0, 2, 2],
    ),
    "one-versus-all": (
        tm.codes.one_vs_all(3),
        [[0.044459, 0.005541, -0.897432], [-0.045946, -0.954054, 0.143243], [-0.759459, -0.240541, 0.132432]],
        [1.93469, 2.090365, 5.702257],
        [0, 2, 2],
    ),
    "ternary": (
        TERNARY,
        [
            [-0.005541, 0.897432, -0.044459, 0.525],
            [0.954054, -0.143243, 0.045946, -0.5],
            [0.240541, -0.132432, 0.759459, -0.166667],
        ],
        [2.93469, 2.31599, 8.027882],
        [1, 2, 2],
    ),
}


@pytest.fixture(params=MULTI)
def case(request):
    return MULTI[request.param]


def test_a_learner_for_each_column(case):
    code, margins, distances, labels = case
    reduction = CodedReduction(code, LEARNER)
    scores = reduction.fit(X, Y).scorer(QUERIES)
    torch.testing.assert_close(scores.margins, torch.tensor(margins).double(), rtol=0, atol=1e-6)
    torch.testing.assert_close(-scores.class_scores("squared")[0], torch.tensor(distances).double(), rtol=0, atol=2e-6)
    assert reduction.decoder.loss.name == "squared"
    assert reduction.decoder(scores).tolist() == labels
    assert tm.HammingDecoder()(scores).tolist() == labels


def test_one_learner_with_the_column_as_an_attribute():
    scorer, _ = CodedReduction(TERNARY, LEARNER, call="single").fit(X, Y)
    right = [0.441386, 0.177387], [0.165948, -0.098051], [0.261005, -0.002994]
    margins = torch.tensor([[a, a, a, b] for a, b in right]).double()
    torch.testing.assert_close(scorer(QUERIES).margins, margins, rtol=0, atol=1e-6)
    assert tm.LossBasedDecoder("squared")(scorer(QUERIES)).tolist() == [1, 2, 2]
    assert type(scorer.margins) is tm.LinearScorer


def test_interaction_gives_a_linear_learner_weights_for_each_column(case):
    code, margins, _, _ = case
    scorer, _ = CodedReduction(code, LEARNER, call="single", interaction=True).fit(X, Y)
    torch.testing.assert_close(scorer(QUERIES).margins, torch.tensor(margins).double(), rtol=0, atol=1e-6)


def test_row_weights():
    scorer, _ = CodedReduction(tm.codes.one_vs_all(3), LEARNER).fit(X, Y, weight=[2, 1, 1, 1, 1, 3])
    right = [
        [0.576693, -0.176295, -0.104582],
        [-0.076693, 0.676295, -0.395418],
        [-0.481076, -0.48506, -0.389442],
    ]
    torch.testing.assert_close(scorer.margins.weight.detach(), torch.tensor(right).double(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("call", ["multi", "single"])
def test_a_class_without_rows(call):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        scorer, report = CodedReduction(tm.codes.one_vs_one(4), LEARNER, call=call).fit(X, Y, num_classes=4)
    assert len(said) == 1
    assert "label 3" in str(said[0].message)
    assert "column 2, 4, 5" in str(said[0].message)
    assert said[0].filename == __file__
    scores = scorer(torch.randn(200, 3, generator=torch.Generator().manual_seed(0)).double())
    assert report.idle == [2, 4, 5]
    assert (scores.margins[:, [2, 4, 5]] == 0).all()
    assert (scores.margins[:, [0, 1, 3]] != 0).any()
    for decoder in (report.decoder, tm.HammingDecoder(), tm.VotingDecoder(), tm.TournamentDecoder()):
        assert (decoder(scores) != 3).all()


BOUNDS = {
    "one-versus-one": (0.404982, 0.607472, 1.214945, 0.5),
    "one-versus-all": (0.118601, 0.177902, 0.355803, 0.0),
    "ternary": (0.179518, 0.287229, 0.574457, 0.133333),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_what_the_training_losses_bound(name):
    code, _, _, _ = MULTI[name]
    mean, theorem, corollary, hamming = BOUNDS[name]
    scores = CodedReduction(code, LEARNER).fit(X, Y).scorer(X)
    signs, margins = code[Y], scores.margins.detach()
    average = float((1 - signs * margins).square().mean())
    assert average == pytest.approx(mean, abs=1e-6)
    assert tm.bounds.coded_error(average, code, "squared").value == pytest.approx(theorem, abs=2e-6)
    assert tm.bounds.hamming_error(average, code, "squared").value == pytest.approx(corollary, abs=2e-6)
    asked = signs != 0
    ignored, wrong = 1 - float(asked.double().mean()), float((signs * margins <= 0)[asked].double().mean())
    bound = tm.bounds.hamming_error(wrong, code, None, ignored=ignored)
    assert bound.value == pytest.approx(hamming, abs=1e-6)
    if name == "ternary":
        assert ignored == pytest.approx(1 / 12)
