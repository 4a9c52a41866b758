"""Chains in the wrappers of torch.distributed: two processes train as one does."""

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import torch_multiclass as tm
from tests.processes import available, in_two_processes

ROWS, SHARDS = 6, (slice(0, 3), slice(3, 6))


def model():
    torch.manual_seed(0)
    return nn.ModuleList([nn.Linear(5, 5), tm.ChainHead(5, 4)])


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = model()

    def forward(self, features, mask, tags):
        first, head = self.parts
        return head.loss(head(first(features), mask=mask), tags)


def data():
    generator = torch.Generator().manual_seed(1)
    mask = torch.arange(7) < torch.tensor([7, 3, 1, 5, 7, 2])[:, None]
    tags = torch.randint(4, (ROWS, 7), generator=generator)
    return torch.randn(ROWS, 7, 5, generator=generator), mask, torch.where(mask, tags, -100)


def train(step, given):
    optimizer = torch.optim.SGD(step.parameters(), 0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = step(*given)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    whole = [p.full_tensor() if hasattr(p, "full_tensor") else p for p in (q.detach() for q in step.parameters())]
    return {"loss": torch.stack(losses), "weights": [p.clone() for p in whole]}


def sharded(step):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (2,))
    fully_shard(step.parts[0], mesh=mesh)
    return fully_shard(step, mesh=mesh)


def on_a_shard(rank, how):
    given = [part[SHARDS[rank]] for part in data()]
    step = Step()
    return train(DistributedDataParallel(step) if how == "replicated" else sharded(step), given)


@pytest.mark.slow
@pytest.mark.skipif(not available, reason="needs gloo")
@pytest.mark.parametrize("how", ["replicated", "sharded"])
def test_two_processes_train_as_one(how, tmp_path):
    found = in_two_processes(on_a_shard, tmp_path, how)
    alone = train(Step(), data())
    torch.testing.assert_close((found[0]["loss"] + found[1]["loss"]) / 2, alone["loss"])
    for result in found:
        torch.testing.assert_close(result["weights"], alone["weights"])
