"""Pegasos against the certified machine, and on streams."""

import math

import pytest
import torch

import torch_multiclass as tm
from tests.references import svm as naive
from torch_multiclass.solvers import DualSVM, Pegasos


class TestPegasos:
    def test_approaches_the_certified_optimum(self):
        x, y = naive.mixture(5, 400, 10, 1.0, torch.Generator().manual_seed(0))
        exact = DualSVM(1.0, tol=1e-4).fit(x, y).report
        primals = []
        for epochs in (2, 50):
            scorer, report = Pegasos(1.0, epochs=epochs).fit(x, y)
            primals.append(report.primal * 400)  # its objective is that of the machine over C m
            losses = tm.functional.crammer_singer_loss(scorer(x), y, reduction="sum")
            expected = 0.5 * scorer.weight.square().sum() + losses
            assert float(expected.detach()) == pytest.approx(primals[-1], rel=1e-5)
        assert exact.dual <= primals[1] < primals[0]
        assert primals[1] < 1.02 * exact.primal

    def test_streams(self):
        x, y = naive.mixture(3, 3000, 4, 2.0, torch.Generator().manual_seed(0))
        order = torch.randperm(3000, generator=torch.Generator().manual_seed(1))
        batches = ((x[rows], y[rows]) for rows in order[:2500].split(25))
        scorer, report = Pegasos(regularisation=1e-2, bias=True).fit_stream(batches, 4, 3)
        assert report.iterations == 100
        assert report.primal is None
        held = order[2500:]
        assert float((scorer(x[held]).argmax(1) == y[held]).float().mean()) > 0.75
        with pytest.raises(ValueError, match="regularisation: got None"):
            Pegasos().fit_stream([], 4, 3)

    @pytest.mark.filterwarnings("ignore:.*ended from the keyboard:torch_multiclass.solvers.Interrupted")
    def test_an_interrupted_stream_keeps_what_it_learned(self):
        x, y = naive.mixture(3, 300, 4, 2.0, torch.Generator().manual_seed(0))

        def batches():
            yield x[:200], y[:200]
            raise KeyboardInterrupt

        scorer, report = Pegasos(regularisation=1e-2).fit_stream(batches(), 4, 3)
        assert report.interrupted
        assert report.iterations == 1
        assert float((scorer(x).argmax(1) == y).float().mean()) > 0.6

    def test_bad_input(self):
        with pytest.raises(ValueError, match="C: got 0"):
            Pegasos(0)
        with pytest.raises(ValueError, match="no rows"):
            Pegasos().fit(torch.zeros(0, 2), torch.zeros(0, dtype=torch.long))
        with pytest.raises(ValueError, match=r"target: label 3 is outside 0\.\.2"):
            Pegasos().fit(torch.zeros(2, 2), torch.tensor([0, 3]), num_classes=3)
        with pytest.raises(ValueError, match="not finite"):
            Pegasos().fit(torch.full((2, 2), math.nan), torch.tensor([0, 1]))


@pytest.mark.parametrize("weights", ["few", "drawn"])
def test_rows_of_large_weight_take_many_short_steps(weights):
    """As good as on rows of equal weight with the same strength of the regulariser."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(400, 5, generator=generator)
    y = (x[:, 0] + 0.3 * torch.randn(400, generator=generator) > 0).long() + (x[:, 1] > 0.8).long()
    drawn = torch.exp(3 * torch.randn(400, generator=generator))
    weight = torch.where(torch.arange(400) < 10, 1000.0, 1e-4) if weights == "few" else drawn
    total = float(weight.sum())
    weighted = Pegasos(1.0, epochs=200).fit(x, y, weight=weight).report.primal * total
    even = Pegasos(total / 400, epochs=200).fit(x, y).report.primal * total
    best = DualSVM(1.0, tol=1e-3).fit(x, y, weight=weight).report.dual
    best_even = DualSVM(total / 400, tol=1e-3).fit(x, y).report.dual
    assert weighted / best <= 2 * even / best_even
