"""What the scores of trees and ensembles are good for: every decoder, calibration and metric, and codes."""

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass import metrics
from torch_multiclass.solvers import AdaBoostMH, AdaBoostMR, Bagging, DecisionTree, RandomForest, RandomTrees

SOLVERS = [
    DecisionTree(max_leaves=6),
    Bagging(5),
    RandomForest(5),
    RandomForest(6, vote="majority"),
    RandomTrees(5),
    AdaBoostMH(9),
    AdaBoostMH(9, real=True, leaves=4),
    AdaBoostMR(9),
]
Y = torch.arange(90) % 3
X = torch.randn(90, 4, generator=torch.Generator().manual_seed(0)) + 1.5 * torch.eye(3, 4)[Y]


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_scores_feed_every_decoder_calibration_and_metric(solver):
    scorer = solver.fit(X, Y).scorer
    scores = scorer(X)
    best = scores.argmax(1)
    assert float((best == Y).double().mean()) > 0.6
    assert torch.equal(tm.ArgmaxDecoder()(scores), best)
    assert torch.equal(tm.RankingDecoder()(scores)[:, 0], best)
    chain = tm.ChainScores(scores.reshape(9, 10, 3), torch.zeros(3, 3))
    for decoder in (tm.ViterbiDecoder(), tm.PosteriorDecoder()):
        found = decoder(chain).reshape(-1, 1)
        assert torch.allclose(scores.gather(1, found).squeeze(1), scores.amax(1), atol=1e-6)
    scaling = tm.TemperatureScaling().fit(scores, Y)
    probabilities = scaling(scores).softmax(1)
    for metric in (metrics.MulticlassHinge(), metrics.EmpiricalMarginLoss(), metrics.CalibrationError()):
        metric.update(probabilities if isinstance(metric, metrics.CalibrationError) else scores, Y)
        assert 0 <= float(metric.compute()) < 3
    cost = metrics.MeanCost([[0, 1, 2], [1, 0, 1], [2, 1, 0]], num_classes=3)
    cost.update(best, Y)
    assert float((best != Y).double().mean()) <= float(cost.compute()) < 1


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_margins_feed_every_decoder_of_a_code(solver):
    """Columns as labels of their own, by the solvers that take sets; class scores as three columns by the others."""
    code = tm.codes.one_vs_all(3)
    boosted = isinstance(solver, (AdaBoostMH, AdaBoostMR))
    scorer = tm.CodedScorer(solver.fit(X, code[Y].long() if boosted else Y).scorer, code)
    scores = scorer(X)
    margins = scores.margins if boosted else 2 * scores.margins - 1
    scores = tm.CodedScores(margins, code)
    for decoder in (tm.LossBasedDecoder("exponential"), tm.LossBasedDecoder("hinge"), tm.HammingDecoder()):
        assert float((decoder(scores) == Y).double().mean()) > 0.6
    scaled = tm.PlattScaling(3).fit(scores, Y)(scores)
    assert float((tm.LossBasedDecoder("logistic")(scaled) == Y).double().mean()) > 0.6
    metric = metrics.AverageBinaryLoss("hinge")
    metric.update(scores, Y)
    assert 0 <= float(metric.compute()) < 3
    twin = tm.CodedScorer(type(scorer.margins).from_state_dict(scorer.state_dict(), "margins."), code)
    twin.load_state_dict(scorer.state_dict())
    assert torch.equal(twin(X).margins, scorer(X).margins)
