"""Margin losses and margin distributions against numbers worked out in NumPy."""

import math

import numpy as np
import pytest
import torch

import torch_multiclass as tm
from tests.processes import available, in_two_processes
from torch_multiclass import bounds
from torch_multiclass.metrics import EmpiricalMarginLoss, MarginDistribution

THRESHOLDS = [-1.0, 0.0, 0.25, 1.5]


def drawn(rows=60, classes=4):
    g = torch.Generator().manual_seed(3)
    scores = torch.randn(rows, classes, generator=g).round(decimals=1)  # with ties
    target = torch.randint(classes, (rows,), generator=g)
    target[::7] = -100
    return scores, target


def margins(scores, target):
    """By a loop."""
    found = []
    for row, label in zip(scores.double().numpy(), target.tolist(), strict=True):
        if label != -100:
            found.append(row[label] - max(np.delete(row, label)))
    return np.array(found)


def measured(metric, *batches):
    for batch in batches:
        metric.update(*batch)
    return metric.compute()


@pytest.mark.parametrize("rho", [0.3, 1.0, 4.0])
def test_the_margin_loss(rho):
    scores, target = drawn()
    rhos = margins(scores, target)
    expected = np.clip(1 - rhos / rho, 0, 1).mean()
    found = float(measured(EmpiricalMarginLoss(rho), (scores, target)))
    assert found == pytest.approx(expected, abs=1e-6)
    assert (rhos <= 0).mean() <= found + 1e-6
    assert found <= (rhos <= rho).mean() + 1e-6  # (9.6)


def test_the_distribution():
    scores, target = drawn()
    rhos = margins(scores, target).astype(np.float32)
    found = measured(MarginDistribution(THRESHOLDS), (scores, target))
    assert found.tolist() == pytest.approx([(rhos <= theta + 1e-7).mean() for theta in THRESHOLDS], abs=1e-6)
    assert found[1] == pytest.approx((rhos <= 0).mean())  # the error: a tie is wrong


def test_nan_is_not_swallowed_and_one_class_is_never_wrong():
    scores, target = torch.tensor([[1.0, math.nan]]), torch.tensor([0])
    assert math.isnan(measured(EmpiricalMarginLoss(), (scores, target)))
    assert measured(MarginDistribution([0.0, 1.0]), (scores, target)).isnan().all()
    assert measured(MarginDistribution([0.0, 9.0]), (torch.zeros(3, 1), torch.zeros(3).long())).tolist() == [0.0, 0.0]


def test_what_a_bound_takes():
    scores, target = drawn()
    loss = float(measured(EmpiricalMarginLoss(0.5), (scores, target)))
    bound = bounds.margin_error(loss, num_classes=4, margin=0.5, complexity=1e-4, rows=60, delta=0.05)
    assert bound.terms["empirical"] == pytest.approx(loss)


def test_the_thresholds_travel():
    metric = MarginDistribution(torch.tensor([0.0, 1.0]))
    assert metric.double().thresholds.dtype == torch.float64
    assert "thresholds" not in metric.state_dict()


def test_bad_input():
    for given in ([], [1.0, 0.0], [0.0, 0.0], [[0.0]], [math.nan, 1.0]):
        with pytest.raises(ValueError, match="thresholds: "):
            MarginDistribution(given)
    with pytest.raises(TypeError, match="thresholds: "):
        MarginDistribution("abc")
    for rho in (0, -1.0, math.nan):
        with pytest.raises(ValueError, match="rho: "):
            EmpiricalMarginLoss(rho)
    with pytest.raises(ValueError, match=r"target: label 4 is outside 0\.\.3"):
        EmpiricalMarginLoss().update(torch.zeros(1, 4), torch.tensor([4]))


def on_a_shard(rank):
    scores, target = drawn()
    rows = slice(0, 11) if rank == 0 else slice(11, None)
    return [
        measured(metric, (scores[rows], target[rows]))
        for metric in (EmpiricalMarginLoss(), MarginDistribution(THRESHOLDS))
    ]


@pytest.mark.slow
@pytest.mark.skipif(not available, reason="needs torch.distributed")
def test_two_processes_with_uneven_shards(tmp_path):
    scores, target = drawn()
    rhos = margins(scores, target).astype(np.float32)
    for loss, shares in in_two_processes(on_a_shard, tmp_path):
        assert float(loss) == pytest.approx(np.clip(1 - rhos, 0, 1).mean(), abs=1e-6)
        assert shares.tolist() == pytest.approx([(rhos <= theta + 1e-7).mean() for theta in THRESHOLDS], abs=1e-6)


def test_the_ramp_of_the_library_is_the_same():
    scores, target = drawn()
    loss = tm.MarginRampLoss(0.7)(scores, target)
    assert float(measured(EmpiricalMarginLoss(0.7), (scores, target))) == pytest.approx(float(loss), abs=1e-6)
