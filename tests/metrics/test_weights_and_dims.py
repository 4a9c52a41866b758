"""A weight for each example, another dimension of classes, and the kinds of calibration error."""

import functools
import itertools

import pytest
import torch

import torch_multiclass as tm
from torch_multiclass import metrics

N, K = 40, 4


def batch():
    g = torch.Generator().manual_seed(0)
    scores, target = torch.randn(N, K, generator=g), torch.randint(K, (N,), generator=g)
    target[3] = -100
    return scores, target, torch.randint(4, (N,), generator=g)


def coded(scores):
    return tm.CodedScores(scores, tm.codes.one_vs_all(K))


MAKE = {
    "hinge": (metrics.MulticlassHinge, lambda f: f),
    "expected": (metrics.CalibrationError, lambda f: f.softmax(-1)),
    "maximum": (lambda: metrics.CalibrationError(kind="maximum"), lambda f: f.softmax(-1)),
    "classwise": (lambda: metrics.CalibrationError(kind="classwise", num_classes=K), lambda f: f.softmax(-1)),
    "average binary": (metrics.AverageBinaryLoss, coded),
    "bits": (lambda: metrics.BitError(K), coded),
}


@pytest.mark.parametrize("name", MAKE)
def test_a_weight_counts_an_example_as_often(name):
    scores, target, counts = batch()
    make, see = MAKE[name]
    again = torch.arange(N).repeat_interleave(counts)
    weighted, repeated = make(), make()
    for weight in (counts.float(), counts.tolist()):
        weighted.reset()
        weighted.update(see(scores), target, sample_weight=weight)
        repeated.reset()
        repeated.update(see(scores[again]), target[again])
        torch.testing.assert_close(weighted.compute(), repeated.compute())
    small = make()
    small.update(see(scores), target, sample_weight=counts * 1e-3)
    torch.testing.assert_close(small.compute(), weighted.compute())
    for bad in (-counts, counts * torch.nan, counts[:-1]):
        with pytest.raises(ValueError, match="sample_weight: "):
            make().update(see(scores), target, sample_weight=bad)


IN_ANOTHER_DIMENSION = {
    "hinge": metrics.MulticlassHinge,
    "margin loss": metrics.EmpiricalMarginLoss,
    "margins": functools.partial(metrics.MarginDistribution, [-0.5, 0.0, 0.5]),
    "expected": metrics.CalibrationError,
    "classwise": functools.partial(metrics.CalibrationError, kind="classwise", num_classes=K),
}


@pytest.mark.parametrize("make", IN_ANOTHER_DIMENSION.values(), ids=IN_ANOTHER_DIMENSION)
def test_segmentation_has_classes_second(make):
    g = torch.Generator().manual_seed(0)
    scores, target = torch.randn(2, K, 3, 5, generator=g), torch.randint(K, (2, 3, 5), generator=g)
    last, p = make(), scores.softmax(1)
    last.update(p.movedim(1, -1), target)
    for class_dim, of_classes in ((1, p), (-3, p), (0, p.movedim(1, 0)), (-4, p.movedim(1, 0))):
        other = make(class_dim=class_dim)
        other.update(of_classes, target)
        assert torch.equal(other.compute(), last.compute())
    assert float(last.compute().sum()) > 0
    with pytest.raises(ValueError, match="class_dim: got 4"):
        make(class_dim=4).update(p, target)


def test_temperature_over_another_dimension():
    g = torch.Generator().manual_seed(0)
    scores, target = 3 * torch.randn(2, K, 3, 5, generator=g), torch.randint(K, (2, 3, 5), generator=g)
    second, last = tm.TemperatureScaling(class_dim=1).fit(scores, target), tm.TemperatureScaling()
    last.fit(scores.movedim(1, -1), target)
    assert second.temperature == last.temperature
    torch.testing.assert_close(second(scores), last(scores.movedim(1, -1)).movedim(-1, 1))
    head = tm.MulticlassHead(6, K, decoder=tm.ArgmaxDecoder(class_dim=1))
    head.calibrate(scores, target)
    torch.testing.assert_close(head.predict_proba(scores), last(scores.movedim(1, -1)))


def test_calibration_errors_by_hand():
    g = torch.Generator().manual_seed(1)
    p, y = (
        (2 * torch.randn(200, K, generator=g, dtype=torch.float64)).softmax(-1),
        torch.randint(K, (200,), generator=g),
    )
    edges = torch.linspace(0, 1, 11)

    def bins(confidence, right):
        for low, high in itertools.pairwise(edges):
            inside = (confidence > low) & (confidence <= high)
            if inside.any():
                yield inside.double().mean(), (right[inside].double().mean() - confidence[inside].mean()).abs()

    top, label = p.max(-1)
    expected = {
        "expected": sum(share * gap for share, gap in bins(top, label == y)),
        "maximum": max(gap for _, gap in bins(top, label == y)),
        "classwise": sum(share * gap for k in range(K) for share, gap in bins(p[:, k], y == k)) / K,
    }
    for kind, value in expected.items():
        metric = metrics.CalibrationError(10, kind=kind, num_classes=K if kind == "classwise" else None)
        for rows in torch.arange(200).split(37):
            metric.update(p[rows], y[rows])
        torch.testing.assert_close(metric.compute().double(), value, rtol=1e-5, atol=1e-6)


def test_kinds_are_named():
    with pytest.raises(ValueError, match="kind: got 'worst'"):
        metrics.CalibrationError(kind="worst")
    with pytest.raises(ValueError, match="num_classes: got None with kind='classwise'"):
        metrics.CalibrationError(kind="classwise")
    metric = metrics.CalibrationError(kind="classwise", num_classes=3)
    with pytest.raises(ValueError, match="probabilities: are of 4 classes; accepted are 3"):
        metric.update(torch.full((2, 4), 0.25), torch.zeros(2, dtype=torch.long))
