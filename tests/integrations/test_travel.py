"""Scores inside the loops of other libraries: Lightning's Fabric, accelerate, skorch and the Hugging Face trainer."""

import copy

import numpy as np
import pytest
import torch

import torch_multiclass as tm
from tests.heads import every

D, K = 6, 4


def heads():
    torch.manual_seed(0)
    return {
        "flat": (tm.MulticlassHead(D, K), torch.randn(5, D)),
        "coded": (tm.ECOCHead(D, K, generator=torch.Generator().manual_seed(0)), torch.randn(5, D)),
        "many pairs": (tm.OneVsOneHead(D, 300), torch.randn(5, D)),
        "chain": (tm.ChainHead(D, K), torch.randn(5, 3, D)),
        "segments": (tm.SegmentHead(D, 2, 3), torch.randn(5, 3, D)),
        "several labels": (tm.MultilabelHead(D, K), torch.randn(5, D)),
    }


every_head = pytest.mark.parametrize("name", heads())


def wrapped(scores):
    return tm.FlatScores(scores) if isinstance(scores, torch.Tensor) else scores


@every_head
def test_fabric(name):
    fabric = pytest.importorskip("lightning.fabric").Fabric(accelerator="cpu", precision="bf16-mixed")
    head, features = heads()[name]
    scores = wrapped(head(features))
    moved = fabric.to_device({"scores": [scores], "other": torch.zeros(2)})["scores"][0]
    assert torch.equal(head.predict(moved), head.predict(scores))
    out = wrapped(fabric.setup_module(head)(features))  # what is bfloat16 comes back as float32
    assert type(out) is type(scores)
    assert out.dtype == torch.float32
    assert head.predict(out).shape == head.predict(scores).shape


@pytest.mark.parametrize("name", every.HEADS)
def test_fabric_trains(name):
    fabric = pytest.importorskip("lightning.fabric").Fabric(accelerator="cpu", devices=1)
    torch.manual_seed(0)
    head, given = every.HEADS[name](), every.inputs(name, 5, 4)
    twin = copy.deepcopy(head)
    target = every.target_of(head, every.scores_of(head, *given))

    def steps(model, head, optimizer, backward):
        for _ in range(3):
            optimizer.zero_grad()
            loss = head.loss(every.scores_of(model, *given), target)
            backward(loss)
            optimizer.step()
        return float(loss.detach())

    plain = steps(head, head, torch.optim.SGD(head.parameters(), 0.1), torch.Tensor.backward)
    model, optimizer = fabric.setup(twin, torch.optim.SGD(twin.parameters(), 0.1))
    assert steps(model, twin, optimizer, fabric.backward) == plain
    for own, other in zip(head.parameters(), twin.parameters(), strict=True):
        assert torch.equal(own, other)


@every_head
def test_accelerate_moves_and_gathers(name):
    operations = pytest.importorskip("accelerate").utils.operations
    head, features = heads()[name]
    scores = wrapped(head(features))
    sent = operations.send_to_device({"scores": (scores, None)}, "cpu", non_blocking=True)["scores"][0]
    assert torch.equal(head.predict(sent), head.predict(scores))
    narrow = operations.convert_to_fp32([scores.to(torch.bfloat16)])[0]
    assert narrow.dtype == torch.float32
    accelerator = pytest.importorskip("accelerate").Accelerator(cpu=True)
    rows = accelerator.gather_for_metrics(operations.pad_across_processes(scores.as_rows(), dim=1))
    assert torch.equal(head.predict(scores[:1].with_rows(rows)), head.predict(scores))


@pytest.mark.parametrize("name", ["coded", "chain", "segments", "several labels"])
def test_the_evaluation_loop_of_the_hugging_face_trainer(name):
    utilities = pytest.importorskip("transformers.trainer_pt_utils")
    head, features = heads()[name]
    batches = [features[:3], features[3:]]
    if features.ndim == 3:
        batches[1] = batches[1][:, :2]  # padded by the trainer
    scores = [head(part) for part in batches]
    store = utilities.EvalLoopContainer(padding_index=-100)
    for part in scores:
        store.add(utilities.nested_detach((part.as_rows(),)))
    store.to_cpu_and_numpy()
    rows = store.get_arrays()[0]
    assert all(isinstance(part, np.ndarray) for part in rows.values())
    labels = head.predict(scores[0].with_rows(rows))
    assert torch.equal(labels, head.predict(torch.cat(scores)))


@pytest.mark.parametrize("name", ["flat", "coded", "chain", "several labels"])
def test_skorch_trains_and_predicts(name):
    skorch = pytest.importorskip("skorch")
    torch.manual_seed(0)
    head, features = heads()[name]
    target = head.predict(head(features))

    class Criterion(torch.nn.Module):
        def forward(self, scores, target):
            return head.loss(scores, target)

    net = skorch.NeuralNet(
        head,
        Criterion,
        max_epochs=2,
        batch_size=2,
        lr=0.01,
        train_split=None,
        verbose=0,
        predict_nonlinearity=head.predict_proba,
    )
    net.fit(features.numpy(), target.numpy())
    trained = net.module_
    scores = net.forward(features.numpy())  # three batches, put together
    expected = trained(features)
    assert torch.equal(trained.predict(scores), trained.predict(expected))
    probability = torch.as_tensor(net.predict_proba(features.numpy()))
    torch.testing.assert_close(probability, head.predict_proba(expected), rtol=1e-5, atol=1e-6)
