"""The metrics of margins against plain loops, and batches put together."""

import pytest
import torch

import torch_multiclass as tm
from tests.references import coded as naive
from torch_multiclass import codes, metrics

CODE = torch.tensor([[1, 1, -1, 0], [-1, 1, 0, 1], [0, -1, 1, -1]])


def batch(rows=50, seed=0):
    g = torch.Generator().manual_seed(seed)
    margins = torch.randn(rows, 4, generator=g) + CODE[torch.arange(rows) % 3]
    target = torch.arange(rows) % 3
    target[::7] = -100
    return tm.CodedScores(margins, CODE), target


def in_parts(metric, scores, target, build):
    """Update by three uneven batches, the middle one empty."""
    for part in (slice(0, 11), slice(11, 11), slice(11, None)):
        metric.update(build(scores, part), target[part])
    return metric.compute()


@pytest.mark.parametrize("loss", naive.LOSSES)
def test_average_binary_loss(loss):
    scores, target = batch()
    kept = [i for i in range(50) if target[i] != -100]
    expected = sum(float(naive.distances(scores.margins[i].tolist(), CODE, loss)[int(target[i])]) for i in kept) / (
        4 * len(kept)
    )
    value = in_parts(
        metrics.AverageBinaryLoss(loss), scores, target, lambda s, part: tm.CodedScores(s.margins[part], CODE)
    )
    assert float(value) == pytest.approx(expected, rel=1e-5)


def test_bit_error():
    scores, target = batch()
    scores.margins[0, 0] = 0.0
    target[0] = 0
    expected = []
    for s in range(4):
        asked = [i for i in range(50) if target[i] != -100 and CODE[target[i], s] != 0]
        expected.append(sum(float(CODE[target[i], s] * scores.margins[i, s]) <= 0 for i in asked) / len(asked))
    value = in_parts(metrics.BitError(4), scores, target, lambda s, part: tm.CodedScores(s.margins[part], CODE))
    torch.testing.assert_close(value, torch.tensor(expected))
    unasked = metrics.BitError(4)
    unasked.update(tm.CodedScores(torch.ones(1, 4), CODE), torch.tensor([0]))
    assert unasked.compute()[3] == 0  # asked nothing
    with pytest.raises(ValueError, match="scores: have 3 columns; accepted are 4"):
        unasked.update(tm.CodedScores(torch.ones(1, 3), codes.one_vs_all(3)), torch.tensor([0]))


def test_what_is_no_answer_of_a_column_is_named():
    scores = tm.CodedScores(torch.zeros(2, 3), codes.one_vs_all(3))
    metric = metrics.BitError(3)
    with pytest.raises(TypeError, match=r"target: got dtype torch\.float32"):
        metric.update(scores, torch.tensor([0.0, 1.0]))
    with pytest.raises(TypeError, match="scores: got Tensor; accepted here is CodedScores"):
        metric.update(torch.zeros(2, 3), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="scores: have 3 columns; accepted are 4"):
        metrics.BitError(4).update(scores, torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"target: label 3 is outside 0\.\.2"):
        metric.update(scores, torch.tensor([0, 3]))
    with pytest.raises(TypeError, match="scores: got Tensor; accepted here is CodedScores"):
        metrics.AverageBinaryLoss().update(torch.zeros(2, 3), torch.tensor([0, 1]))


def test_a_margin_of_nan_answers_nothing_right():
    metric = metrics.BitError(3)
    margins = torch.tensor([[torch.nan, -1.0, 1.0], [1.0, 1.0, 1.0]])
    metric.update(tm.CodedScores(margins, codes.one_vs_one(3)), torch.tensor([0, 2]))
    found = metric.compute()
    assert found.isnan().tolist() == [True, False, False]
    assert found[1:].tolist() == [1.0, 1.0]


def test_what_is_ignored_beside_100_too():
    """-100 is no label whatever ``ignore_index`` is, as for the losses: it counts neither as a row nor by weight."""
    code = tm.codes.one_vs_all(3)
    torch.manual_seed(0)
    margins, target = torch.randn(5, 3), torch.tensor([0, -1, 2, -100, 1])
    kept, weight = torch.tensor([0, 2, 4]), torch.tensor([0.5, 9.0, 1.0, 9.0, 2.0])
    for metric in (metrics.BitError, metrics.AverageBinaryLoss):
        for given in (None, weight):
            options = {"num_columns": 3} if metric is metrics.BitError else {"loss": "hinge"}
            found, expected = metric(ignore_index=-1, **options), metric(**options)
            found.update(tm.CodedScores(margins, code), target, sample_weight=given)
            expected.update(
                tm.CodedScores(margins[kept], code), target[kept], sample_weight=None if given is None else given[kept]
            )
            torch.testing.assert_close(found.compute(), expected.compute())
