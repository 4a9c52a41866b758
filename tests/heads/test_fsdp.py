"""Heads under sharded and replicated training, in a process group of one: the same as without."""

import copy

import pytest
import torch
import torch.distributed as dist
from torch import multiprocessing
from torch.nn.parallel import DistributedDataParallel

import torch_multiclass as tm
from tests.heads import every

TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y"]


def chain_head(constrained):
    return tm.ChainHead(6, 5, constraints=tm.tag_constraints(TAGS) if constrained else None)


def batch(head):
    generator = torch.Generator().manual_seed(0)
    if isinstance(head, tm.ChainHead):
        return torch.randn(3, 4, 6, generator=generator), torch.tensor([[1, 2, 0, 3]] * 3)
    return torch.randn(5, 6, generator=generator), torch.arange(5) % head.num_classes


def losses(name, head, model=None):
    """Three steps of descent, and the labels after them."""
    given = every.inputs(name, 5, 4, torch.Generator().manual_seed(0))
    model = head if model is None else model
    optimizer, seen, target = torch.optim.SGD(head.parameters(), 0.1), [], None
    for _ in range(3):
        optimizer.zero_grad()
        scores = every.scores_of(model, *given)
        target = every.target_of(head, scores) if target is None else target
        loss = head.loss(scores, target)
        loss.backward()
        optimizer.step()
        seen.append(float(loss.detach()))
    return seen, head.predict(every.scores_of(model, *given)).tolist()


def sharded(head, mesh):
    """Every part with parameters of its own as a shard of its own, innermost first."""
    from torch.distributed.fsdp import fully_shard

    for module in reversed(list(head.scorer.modules())):
        if list(module.parameters(recurse=False)):
            fully_shard(module, mesh=mesh)
    if not list(head.scorer.parameters(recurse=False)):
        fully_shard(head.scorer, mesh=mesh)
    return head


def in_process(rank, store, queue):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=1)
    mesh = dist.device_mesh.init_device_mesh("cpu", (1,))
    found = {}
    for name, make in every.HEADS.items():
        head = make()
        plain = losses(name, copy.deepcopy(head))
        found[f"{name} sharded"] = plain, losses(name, sharded(copy.deepcopy(head), mesh))
        twin = copy.deepcopy(head)
        copies = DistributedDataParallel(twin, find_unused_parameters=True)
        found[f"{name} replicated"] = plain, losses(name, twin, copies)
    with torch.device("meta"):
        late = chain_head(True)
    late = sharded(late, mesh)
    late.to_empty(device="cpu")
    for module in late.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    found["late"] = late.scorer.chain.allowed_start.tolist(), tm.tag_constraints(TAGS).start.tolist()
    queue.put(found)
    dist.destroy_process_group()


@pytest.mark.skipif(not dist.is_available() or not dist.is_gloo_available(), reason="needs gloo")
@pytest.mark.slow
def test_sharded_and_replicated_heads_train_as_plain_ones(tmp_path):
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    running = multiprocessing.spawn(in_process, (str(tmp_path / "store"), queue), nprocs=1, join=False)
    while not running.join(timeout=1) and queue.empty():
        pass
    found = queue.get()
    running.join()
    late = found.pop("late")
    assert late[0] == late[1]
    for name, ((plain, labels), (other, other_labels)) in found.items():
        assert other == pytest.approx(plain, rel=1e-5), name
        assert other_labels == labels, name


def test_scores_do_not_hold_the_parameters_themselves():
    """Whoever shards or watches parameters takes them back when the scorer returns."""
    for head in (chain_head(False), chain_head(True)):
        own = {parameter.data_ptr() for parameter in head.parameters()}
        scores = head(batch(head)[0])
        held = [getattr(scores, name) for name in scores.field_names]
        assert not any(part.data_ptr() in own for part in held if isinstance(part, torch.Tensor))
