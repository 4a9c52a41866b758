"""Two processes on uneven shards: the same training and the same metrics as one process on everything."""

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torchmetrics.classification import MulticlassAccuracy

import torch_multiclass as tm
from tests.processes import available, in_two_processes
from torch_multiclass import codes, metrics

ROWS, SHARDS = 20, (slice(0, 12), slice(12, 20))


def heads():
    torch.manual_seed(0)
    code = codes.hadamard(4)
    return {
        "one_vs_all": tm.OneVsAllHead(5, 4),
        "one_vs_one": tm.OneVsOneHead(5, 4),
        "ecoc": tm.ECOCHead(5, code=code),
        "continuous": tm.ContinuousCodeHead(5, code=code),
    }


def data():
    g = torch.Generator().manual_seed(1)
    return torch.randn(ROWS, 5, generator=g), torch.arange(ROWS) % 4


def train_and_measure(features, target, wrap=lambda module: module, share=1.0):
    """Three steps of descent, then every metric; ``share`` undoes the mean over processes of unequal batches."""
    results = {}
    for name, head in heads().items():
        model = wrap(nn.Sequential(nn.Linear(5, 5), head))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (share * head.loss(model(features), target)).backward()
            optimizer.step()
        with torch.no_grad():
            scores = model(features)
        measured = {
            "accuracy": (MulticlassAccuracy(4, average="micro"), head.predict(scores)),
            "hinge": (metrics.MulticlassHinge(), head.class_scores(scores)),
            "calibration": (metrics.CalibrationError(5), head.predict_proba(scores)),
        }
        if isinstance(scores, tm.CodedScores):
            measured["binary"] = (metrics.AverageBinaryLoss(), scores)
            measured["bits"] = (metrics.BitError(scores.num_columns), scores)
        for label, (metric, prediction) in measured.items():
            metric.update(prediction, target)
            results[f"{name} {label}"] = metric.compute()
        results[f"{name} weight"] = getattr(head.scorer, "margins", head.scorer).weight.detach().clone()
    return results


def on_a_shard(rank):
    features, target = data()
    shard = SHARDS[rank]
    share = 2 * (shard.stop - shard.start) / ROWS
    results = train_and_measure(features[shard], target[shard], DistributedDataParallel, share)
    accuracy = MulticlassAccuracy(2, average="micro")  # rank 0: three rows right; rank 1: two rows wrong
    right = torch.tensor([0, 1, 0]) if rank == 0 else torch.tensor([0, 1])
    accuracy.update(right if rank == 0 else 1 - right, right)
    results["uneven accuracy"] = accuracy.compute()
    return results


@pytest.mark.slow
@pytest.mark.skipif(not available, reason="needs gloo")
def test_two_processes_train_and_measure_as_one(tmp_path):
    shared, _ = in_two_processes(on_a_shard, tmp_path)
    alone = train_and_measure(*data())
    assert float(shared.pop("uneven accuracy")) == pytest.approx(0.6)
    assert shared.keys() == alone.keys()
    for name, value in alone.items():
        torch.testing.assert_close(shared[name].float(), value.float(), rtol=1e-4, atol=1e-5, msg=name)
