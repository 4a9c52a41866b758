"""The metrics of scores and probabilities against the library's loss, torchmetrics and figures worked by hand."""

import pytest
import torch
from torchmetrics.classification import MulticlassCalibrationError

import torch_multiclass as tm
from torch_multiclass import metrics


def in_parts(metric, scores, target, build):
    """Update by three uneven batches, the middle one empty."""
    for part in (slice(0, 11), slice(11, 11), slice(11, None)):
        metric.update(build(scores, part), target[part])
    return metric.compute()


def test_multiclass_hinge_never_soft_maxes():
    g = torch.Generator().manual_seed(0)
    scores, target = 3 * torch.randn(50, 4, generator=g), torch.arange(50) % 4
    target[::7] = -100
    for power in (1, 2):
        value = in_parts(metrics.MulticlassHinge(power=power), scores, target, lambda s, part: s[part])
        assert float(value) == pytest.approx(float(tm.CrammerSingerLoss(power=power)(scores, target)), rel=1e-6)
    one = metrics.MulticlassHinge()
    one.update(torch.tensor([[2.0, 1.5, 1.8, 1.0]]), torch.tensor([0]))  # torchmetrics soft-maxes these
    assert float(one.compute()) == pytest.approx(0.8)


@pytest.mark.parametrize("num_bins", [1, 10, 15])
def test_calibration_error_against_torchmetrics(num_bins):
    g = torch.Generator().manual_seed(0)
    p = (2 * torch.randn(500, 3, generator=g)).softmax(-1)
    target = torch.randint(3, (500,), generator=g)
    theirs = MulticlassCalibrationError(3, n_bins=num_bins, norm="l1")
    theirs.update(p, target)
    value = in_parts(metrics.CalibrationError(num_bins), p, target, lambda s, part: s[part])
    torch.testing.assert_close(value, theirs.compute(), rtol=1e-5, atol=1e-6)


def test_calibration_error_by_hand():
    metric = metrics.CalibrationError(num_bins=4)
    p = torch.tensor([[0.6, 0.4], [0.7, 0.3], [1.0, 0.0], [0.2, 0.8], [0.5, 0.5]])
    metric.update(p, torch.tensor([0, 1, 0, 1, -1]).where(torch.arange(5) < 4, torch.tensor(-100)))
    # bins (.5, .75] with 2 at .65, half right; (.75, 1] with 2 at .9, all right
    assert float(metric.compute()) == pytest.approx(0.5 * 0.15 + 0.5 * 0.1, abs=1e-6)
