"""Every metric passes the suite of metrics."""

import torch

import torch_multiclass as tm
from tests.contracts.metric import MetricContract
from torch_multiclass import codes, metrics


def labels(rows, device, *steps):
    target = torch.arange(rows * 7, device=device).view(rows, 7)[:, : steps[0] if steps else 1] % 3
    return target if steps else target[:, 0]


class TestMulticlassHinge(MetricContract):
    def metric(self, **options):
        return metrics.MulticlassHinge(**options)

    def batch(self, rows, device="cpu"):
        return 2 * torch.randn(rows, 3, device=device), labels(rows, device)


class TestSquaredHinge(TestMulticlassHinge):
    def metric(self, **options):
        return metrics.MulticlassHinge(margin=0.5, power=2, **options)


class TestCalibrationError(MetricContract):
    probabilities = True

    def metric(self, **options):
        return metrics.CalibrationError(5, **options)

    def batch(self, rows, device="cpu"):
        return (2 * torch.randn(rows, 3, device=device)).softmax(-1), labels(rows, device)


class TestEmpiricalMarginLoss(TestMulticlassHinge):
    def metric(self, **options):
        return metrics.EmpiricalMarginLoss(0.7, **options)


class TestMarginDistribution(TestMulticlassHinge):
    def metric(self, **options):
        return metrics.MarginDistribution([-1.0, 0.0, 0.5, 2.0], **options)


class CodedMetricContract(MetricContract):
    """`CodedScores` hold their code beside the numbers."""

    def batch(self, rows, device="cpu"):
        return tm.CodedScores(torch.randn(rows, 3, device=device), codes.one_vs_all(3).to(device)), labels(rows, device)

    def with_scores(self, batch, change):
        scores, *rest = batch
        return tm.CodedScores(change(scores.margins), scores.code), *rest


class TestAverageBinaryLoss(CodedMetricContract):
    def metric(self, **options):
        return metrics.AverageBinaryLoss("logistic", **options)


class TestBitError(CodedMetricContract):
    def metric(self, **options):
        return metrics.BitError(3, **options)


class TagMetricContract(MetricContract):
    """Labels of sequences, padded by -100."""

    takes_scores = False

    def batch(self, rows, device="cpu"):
        target = labels(rows, device, 7).clone()
        preds = torch.where(
            torch.rand(rows, 7, device=device) < 0.3, torch.randint(3, (rows, 7), device=device), target
        )
        lengths = torch.arange(rows, device=device).unsqueeze(-1) % 8
        target[torch.arange(7, device=device) >= lengths] = -100
        return preds, target


class EntryMetricContract(TagMetricContract):
    """Each position may have a weight."""

    def test_a_weight_for_each_position(self):
        batch = self.batch(self.rows)
        weight = torch.rand(self.rows)
        whole = self.weighted(batch, weight)
        self.same(self.weighted(batch, weight.unsqueeze(-1).expand(batch[1].shape)), whole)
        few = torch.rand(batch[1].shape) < 0.4
        left = self.labelled(batch, batch[1].masked_fill(~few, -100))
        self.same(self.weighted(batch, few.float()), self.value(left))


class TestTokenAccuracy(EntryMetricContract):
    def metric(self, **options):
        return metrics.TokenAccuracy(**options)


class TestMeanCost(EntryMetricContract):
    def metric(self, **options):
        return metrics.MeanCost([[0, 1, 5], [2, 0, 0.5], [1, 1, 0]], 3, **options)


class TestHierarchicalError(EntryMetricContract):
    def metric(self, **options):
        return metrics.HierarchicalError([3, 3, 4, 4, -1], **options)


class TestHammingError(EntryMetricContract):
    def metric(self, **options):
        return metrics.HammingError(**options)


class TestHammingErrorOfRows(TagMetricContract):
    def metric(self, **options):
        return metrics.HammingError(normalize=False, **options)


class TestHammingErrorOfSets(EntryMetricContract):
    def metric(self, **options):
        return metrics.HammingError(multilabel=True, **options)

    def batch(self, rows, device="cpu"):
        preds, target = super().batch(rows, device)
        return torch.where(preds > 0, 1, -1), torch.where(target >= 0, torch.where(target > 1, 1, -1), target)

    def test_another_label_to_ignore(self, device):
        """-1, which the suite takes, is an answer here."""
        preds, target = self.batch(self.rows, device)
        marked = target.masked_fill(target == -100, 7)
        self.same(
            self.value((preds, marked), device=device, ignore_index=7), self.value((preds, target), device=device)
        )


class TestSentenceAccuracy(TagMetricContract):
    def metric(self, **options):
        return metrics.SentenceAccuracy(**options)


class TestUnknownWordAccuracy(EntryMetricContract):
    def metric(self, **options):
        return metrics.UnknownWordAccuracy(**options)

    def batch(self, rows, device="cpu"):
        return *super().batch(rows, device), torch.rand(rows, 7, device=device) < 0.5


class TestSpanF1(TagMetricContract):
    def metric(self, **options):
        return metrics.SpanF1(["O", "B-x", "I-x"], **options)


def test_every_metric_passes_it():
    tested = [kind for name, kind in globals().items() if name.startswith("Test")]
    assert {type(kind().metric()).__name__ for kind in tested} == set(metrics.__all__)


class TestViolatedPreferences(MetricContract):
    """Of classes that are preferred to all others."""

    def metric(self, **options):
        return metrics.ViolatedPreferences(**options)

    def batch(self, rows, device="cpu"):
        return 2 * torch.randn(rows, 3, device=device), labels(rows, device)


class TestViolatedPreferencesPerExample(TestViolatedPreferences):
    def metric(self, **options):
        return metrics.ViolatedPreferences(per_example=True, **options)
