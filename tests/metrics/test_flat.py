"""Metrics of class scores and probabilities: oracles, what they say over nothing, and what they refuse."""

import math
import re

import pytest
import torch
from torchmetrics.classification import MulticlassCalibrationError

import torch_multiclass as tm
from torch_multiclass import metrics


def in_parts(metric, scores, target):
    """Update by three uneven batches, the middle one empty."""
    for part in (slice(0, 11), slice(11, 11), slice(11, None)):
        metric.update(scores[part], target[part])
    return metric.compute()


def test_multiclass_hinge_never_soft_maxes():
    g = torch.Generator().manual_seed(0)
    scores, target = 3 * torch.randn(50, 4, generator=g), torch.arange(50) % 4
    target[::7] = -100
    for power in (1, 2):
        value = in_parts(metrics.MulticlassHinge(power=power), scores, target)
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
    value = in_parts(metrics.CalibrationError(num_bins), p, target)
    torch.testing.assert_close(value, theirs.compute(), rtol=1e-5, atol=1e-6)


def test_calibration_error_by_hand():
    metric = metrics.CalibrationError(num_bins=4)
    p = torch.tensor([[0.6, 0.4], [0.7, 0.3], [1.0, 0.0], [0.2, 0.8], [0.5, 0.5]])
    metric.update(p, torch.tensor([0, 1, 0, 1, -1]).where(torch.arange(5) < 4, torch.tensor(-100)))
    # bins (.5, .75] with 2 at .65, half right; (.75, 1] with 2 at .9, all right
    assert float(metric.compute()) == pytest.approx(0.5 * 0.15 + 0.5 * 0.1, abs=1e-6)


def test_classwise_calibration_error_by_hand():
    """Bins of a quarter, open below: the probabilities of each class, a row that sums to 1 but for its rounding too."""
    p = torch.tensor([[0.0, 1.0], [0.1, 0.9], [0.25, 0.75], [0.3, 0.7], [0.5, 0.5], [1.004, 0.0]])
    y = torch.tensor([1, 0, 0, 1, 0, 1])
    metric = metrics.CalibrationError(4, kind="classwise", num_classes=2)
    metric.update(p, y)
    off = {}
    for row, label in zip(p.tolist(), y.tolist(), strict=True):
        for k, share in enumerate(row):
            place = k, min(max(math.ceil(4 * share), 1), 4)
            off[place] = off.get(place, 0.0) + (label == k) - share
    assert len(off) == 7
    assert float(metric.compute()) == pytest.approx(sum(map(abs, off.values())) / 12, rel=1e-6)


# ---------------------------------------------------------------------- nothing, and NaN


@pytest.mark.filterwarnings("ignore:The ``compute`` method of metric")
@pytest.mark.parametrize(
    "metric",
    [metrics.AverageBinaryLoss(), metrics.BitError(2), metrics.MulticlassHinge(), metrics.CalibrationError(),
     metrics.TokenAccuracy(), metrics.SentenceAccuracy(), metrics.UnknownWordAccuracy(), metrics.SpanF1(["O", "B-X"])],
    ids=lambda metric: type(metric).__name__,
)  # fmt: skip
def test_the_mean_over_nothing_is_zero(metric):
    assert bool((metric.compute() == 0).all())


@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.parametrize(
    "metric", [metrics.MulticlassHinge(), metrics.CalibrationError()], ids=lambda m: type(m).__name__
)
def test_batches_without_a_label_add_nothing(metric, rows):
    metric.reset()
    p, nothing = torch.full((rows, 4), 0.25), torch.full((rows,), -100)
    metric.update(p, nothing)
    assert metric.compute() == 0
    metric.update(torch.tensor([[0.9, 0.1, 0.0, 0.0]]), torch.tensor([0]))
    value = metric.compute()
    assert value > 0
    metric.update(p * torch.nan, nothing)  # nor does NaN there
    assert metric.compute() == value


@pytest.mark.parametrize(
    "metric", [metrics.MulticlassHinge(), metrics.CalibrationError()], ids=lambda m: type(m).__name__
)
@pytest.mark.parametrize("place", range(3))
def test_nan_is_never_swallowed(metric, place):
    p = torch.tensor([[0.5, 0.25, 0.25]]).repeat(2, 1)
    p[1, place] = torch.nan
    metric.reset()
    metric.update(p, torch.tensor([0, 1]))
    assert metric.compute().isnan()


# ---------------------------------------------------------------------- arguments

P, Y = torch.full((2, 4), 0.25), torch.tensor([0, 3])
TAKERS = {"class_scores": metrics.MulticlassHinge, "probabilities": metrics.CalibrationError}
BAD = {
    "float target": (P, Y.float(), TypeError, "target"),
    "bool target": (P, Y > 0, TypeError, "target"),
    "list target": (P, [0, 3], TypeError, "target"),
    "no target": (P, None, TypeError, "target"),
    "short target": (P, Y[:1], ValueError, "target"),
    "scores as target": (P, P.long(), ValueError, "target"),
    "meta target": (P, Y.to("meta"), ValueError, "target"),
    "label 4": (P, Y + 1, ValueError, "target"),
    "label -1": (P, Y - 1, ValueError, "target"),
    "integers": (P.long(), Y, TypeError, ""),
    "complex": (P + 0j, Y, TypeError, ""),
    "float8": (P.to(torch.float8_e5m2), Y, TypeError, ""),
    "sparse": (P.to_sparse(), Y, TypeError, ""),
    "nested": (torch.nested.nested_tensor(list(P), layout=torch.jagged), Y, TypeError, ""),
    "meta": (P.to("meta"), Y.to("meta"), ValueError, ""),
    "list": (P.tolist(), Y, TypeError, ""),
    "a number": (torch.tensor(0.5), Y, ValueError, ""),
    "no class": (P[:, :0], Y, ValueError, ""),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("name", TAKERS)
def test_bad_arguments_are_named(name, kind):
    values, target, error, argument = BAD[kind]
    metric = TAKERS[name]()
    with pytest.raises(error, match=rf"^{argument or name}: "):
        metric.update(values, target)
    assert int(metric.count.sum()) == 0


@pytest.mark.parametrize(
    ("rows", "word"),
    [([[3.0, 0.0]], "3"), ([[-0.5, 1.5]], "-0.5"), ([[torch.inf, 0.0]], "inf"), ([[0.5, 0.1]], "0.6"),
     ([[0.9, 0.9]], "1.8"), ([[0.5, 0.5], [2.0, -1.0]], "2")],
)  # fmt: skip
def test_scores_are_not_probabilities(rows, word):
    with pytest.raises(ValueError, match=rf"^probabilities: .*{re.escape(word)}; accepted"):
        metrics.CalibrationError().update(torch.tensor(rows), torch.zeros(len(rows), dtype=torch.long))


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_probabilities_of_half_precision_are_probabilities(half):
    p = torch.randn(50, 1000, generator=torch.Generator().manual_seed(0)).softmax(-1)
    target = torch.arange(50)
    exact, rounded = metrics.CalibrationError(), metrics.CalibrationError()
    exact.update(p, target)
    rounded.update(p.to(half), target)
    torch.testing.assert_close(rounded.compute(), exact.compute(), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("integer", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.uint16, torch.uint32])
def test_labels_of_any_integer_dtype(integer):
    for make in TAKERS.values():
        one, other = make(), make()
        one.update(P, Y)
        other.update(P, Y.to(integer))
        assert one.compute() == other.compute()


@pytest.mark.parametrize(
    ("make", "error", "argument"),
    [
        (lambda: metrics.CalibrationError(0), ValueError, "num_bins"),
        (lambda: metrics.CalibrationError(2.0), ValueError, "num_bins"),
        (lambda: metrics.MulticlassHinge(-1.0), ValueError, "margin"),
        (lambda: metrics.MulticlassHinge("1"), ValueError, "margin"),
        (lambda: metrics.MulticlassHinge(power=0.5), ValueError, "power"),
        (lambda: metrics.MulticlassHinge(ignore_index=1.0), TypeError, "ignore_index"),
    ],
)
def test_bad_settings_are_named(make, error, argument):
    with pytest.raises(error, match=rf"^{argument}: .*; accepted "):
        make()


@pytest.mark.parametrize("ignore_index", [-1, -100])
def test_minus_100_is_no_label_whatever_is_ignored(ignore_index):
    scores, target = torch.tensor([[2.0, 0.0], [0.0, 1.0], [5.0, 0.0]]), torch.tensor([0, -100, 1])
    for metric in (metrics.EmpiricalMarginLoss, metrics.MulticlassHinge, metrics.CalibrationError):
        found, expected = metric(ignore_index=ignore_index), metric()
        rows = scores.softmax(1) if metric is metrics.CalibrationError else scores
        found.update(rows, target)
        expected.update(rows[[0, 2]], target[[0, 2]])
        torch.testing.assert_close(found.compute(), expected.compute())
    for metric in (metrics.TokenAccuracy, metrics.SentenceAccuracy):
        found = metric(ignore_index=ignore_index)
        found.update(torch.tensor([[0, 1, 1]]), torch.tensor([[0, -100, 1]]))
        assert found.compute() == 1
