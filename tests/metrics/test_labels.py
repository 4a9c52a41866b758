"""What mistakes cost, against sums by hand and scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.metrics import hamming_loss

import torch_multiclass as tm
from tests.processes import available, in_two_processes
from torch_multiclass.metrics import HammingError, HierarchicalError, MeanCost

COST = [[0.0, 1.0, 5.0], [2.0, 0.0, 0.5], [1.0, 1.0, 0.0]]


def drawn(rows=50, steps=6):
    g = torch.Generator().manual_seed(5)
    preds, target = (torch.randint(3, (rows, steps), generator=g) for _ in range(2))
    target[torch.rand(rows, steps, generator=g) < 0.2] = -100
    target[::9] = -100
    return preds, target


def measured(metric, *batches):
    for batch in batches:
        metric.update(*batch)
    return float(metric.compute())


def by_hand(preds, target):
    paid = [COST[y][p] for p, y in zip(preds.flatten().tolist(), target.flatten().tolist(), strict=True) if y != -100]
    return float(np.mean(paid))


@pytest.mark.parametrize("cost", [COST, torch.tensor(COST), tm.costs.Matrix(COST)])
def test_any_matrix(cost):
    preds, target = drawn()
    assert measured(MeanCost(cost, 3), (preds, target)) == pytest.approx(by_hand(preds, target), abs=1e-6)


def test_zero_one_is_the_error():
    preds, target = drawn()
    kept = target != -100
    expected = (preds != target)[kept].double().mean()
    for cost in ("zero_one", "hamming"):
        assert measured(MeanCost(cost, 3), (preds, target)) == pytest.approx(float(expected), abs=1e-6)
    assert measured(HammingError(), (preds, target)) == pytest.approx(float(expected), abs=1e-6)


def test_a_hierarchy_by_hand():
    """Mammals {0: cat, 1: dog} under 5, birds {2: hen} under 6, fish {3} and both under 7; the root 7 has 4, too.

    cat to dog: up to the mammals and down, 2. cat to hen: mammals, root, birds, 4. cat to fish: mammals, root, 3.
    """
    parents = [5, 5, 6, 7, 7, 7, 7, -1]
    pairs = {(0, 1): 2, (0, 2): 4, (0, 3): 3, (3, 4): 2, (2, 3): 3, (1, 1): 0}
    for (given, true), edges in pairs.items():
        assert measured(HierarchicalError(parents), (torch.tensor([given]), torch.tensor([true]))) == edges
        assert measured(HierarchicalError(parents), (torch.tensor([true]), torch.tensor([given]))) == edges
    preds, target = (torch.tensor(part) for part in zip(*pairs, strict=True))
    assert measured(HierarchicalError(parents), (preds, target)) == pytest.approx(np.mean(list(pairs.values())))


def test_hamming_error_of_sets():
    g = torch.Generator().manual_seed(1)
    preds, target = (2 * torch.randint(2, (30, 5), generator=g) - 1 for _ in range(2))
    expected = hamming_loss(target.numpy() > 0, preds.numpy() > 0)
    assert measured(HammingError(multilabel=True), (preds, target)) == pytest.approx(expected, abs=1e-6)
    assert measured(HammingError(False, True), (preds, target)) == pytest.approx(5 * expected, abs=1e-6)


def test_hamming_error_of_rows_counts_rows_with_a_label():
    preds, target = drawn()
    kept = target != -100
    expected = ((preds != target) & kept).sum() / kept.any(1).sum()
    assert measured(HammingError(normalize=False), (preds, target)) == pytest.approx(float(expected), abs=1e-6)


def test_bad_input():
    with pytest.raises(ValueError, match="cost"):
        MeanCost([[0.0, -1.0], [1.0, 0.0]], 2)
    with pytest.raises(ValueError, match=r"cost"):
        MeanCost(COST, 4)
    with pytest.raises(ValueError, match="parents: "):
        HierarchicalError([1, 0])
    with pytest.raises(ValueError, match=r"preds: label 3 is outside 0\.\.2"):
        MeanCost(COST, 3).update(torch.tensor([3]), torch.tensor([0]))
    MeanCost(COST, 3).update(torch.tensor([3]), torch.tensor([-100]))
    with pytest.raises(ValueError, match="target: row 0 has 0 for class 1"):
        HammingError(multilabel=True).update(torch.tensor([1, 1]), torch.tensor([1, 0]))
    with pytest.raises(TypeError, match="multilabel: got 1"):
        HammingError(multilabel=1)


def on_a_shard(rank):
    preds, target = drawn()
    rows = slice(0, 13) if rank == 0 else slice(13, None)
    metrics = MeanCost(COST, 3), HierarchicalError([3, 3, 4, 4, -1]), HammingError(), HammingError(normalize=False)
    return [measured(metric, (preds[rows], target[rows])) for metric in metrics]


@pytest.mark.slow
@pytest.mark.skipif(not available, reason="needs torch.distributed")
def test_two_processes_with_uneven_shards(tmp_path):
    preds, target = drawn()
    kept = target != -100
    tree = np.array([[0, 2, 3], [2, 0, 3], [3, 3, 0]])[target[kept].numpy(), preds[kept].numpy()].mean()
    wrong = float(((preds != target) & kept).sum())
    expected = [by_hand(preds, target), tree, wrong / float(kept.sum()), wrong / float(kept.any(1).sum())]
    for found in in_two_processes(on_a_shard, tmp_path):
        assert found == pytest.approx(expected, abs=1e-6)
