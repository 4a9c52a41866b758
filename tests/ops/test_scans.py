"""The recursions as scans: what the operators answer, ties and forbidden moves included."""

import pytest
import torch

from torch_multiclass.ops.forest import joined
from torch_multiclass.ops.scans import chain, kbest, rows, second_order, segments, solve, tree
from torch_multiclass.ops.tree import Tree

OPS = torch.ops.torch_multiclass
B, K, S = 3, 3, 3


def same(found, expected):
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def drawn(seed, steps):
    """Scores, with many ties for odd seeds and a forbidden move in every third."""
    g = torch.Generator().manual_seed(seed)

    def scores(*shape):
        return torch.randint(-1, 2, shape, generator=g).float() if seed % 2 else torch.randn(shape, generator=g)

    moves, ends = scores(K, K), (scores(K), scores(K))
    if seed % 3 == 0:
        moves[0, 1] = -torch.inf
    lengths = torch.randint(0, steps + 1, (B,), generator=g) if seed % 4 > 1 else None
    return scores, moves, *ends, lengths, torch.randn(B, generator=g)


every_case = pytest.mark.parametrize(("seed", "steps"), [(seed, 1 + seed % 7) for seed in range(12)])


@every_case
@pytest.mark.parametrize("by_step", [False, True])
def test_chains(seed, steps, by_step):
    scores, moves, start, end, lengths, grad = drawn(seed, steps)
    moves = scores(B, steps - 1, K, K) if by_step else moves
    parts = scores(B, steps, K), moves, start, end, lengths
    allowed = torch.ones(B, steps, K, dtype=torch.bool)
    allowed[:, 0, 0] = False
    same(chain.best_labels(*parts, None), OPS.chain_best_labels(*parts, None))
    for sets in (None, allowed):
        same(chain.value(*parts, sets, "auto"), OPS.chain_value(*parts, sets, "auto"))
    same(chain.gradient(grad, *parts, None, "auto")[0], OPS.chain_gradient(grad, *parts, None, "auto")[0])


@every_case
@pytest.mark.parametrize("by_step", [False, True])
def test_second_order_chains(seed, steps, by_step):
    scores, moves, start, end, lengths, grad = drawn(seed, steps)
    moves = scores(B, steps - 1, K, K) if by_step else moves
    parts = scores(B, steps, K), moves, scores(K, K, K), start, end, lengths
    same(second_order.best_labels(*parts), OPS.second_order_best_labels(*parts))
    same(second_order.value(*parts), OPS.second_order_value(*parts))
    same(second_order.gradient(grad, *parts)[0], OPS.second_order_gradient(grad, *parts)[0])


@every_case
def test_segments(seed, steps):
    scores, moves, start, end, lengths, grad = drawn(seed, steps)
    parts = scores(B, steps, S, K), moves, start, end, lengths, [3, 1, 2]
    same(segments.best_labels(*parts), OPS.segments_best_labels(*parts))
    same(segments.value(*parts), OPS.segments_value(*parts))
    same(segments.gradient(grad, *parts)[0], OPS.segments_gradient(grad, *parts)[0])


@pytest.mark.parametrize("n", [1, 2, 5])
def test_linear_systems(n):
    g = torch.Generator().manual_seed(n)
    matrix, right = (torch.randn(4, 2, n, m, generator=g, dtype=torch.float64) for m in (n, 3))
    matrix[0, 0, 0, 0] = 0.0 if n > 1 else 1.0  # a pivot that has to be looked for
    same(solve.linalg_solve(matrix, right), torch.linalg.solve(matrix, right))
    same(solve.linalg_solve(matrix, right[..., 0]), torch.linalg.solve(matrix, right[..., 0]))
    same(solve.linalg_solve(matrix, right.mT, left=False), torch.linalg.solve(matrix, right.mT, left=False))


@every_case
@pytest.mark.parametrize("by_step", [False, True])
@pytest.mark.parametrize("k", [1, 3, 50])
def test_k_best(seed, steps, by_step, k):
    scores, moves, start, end, lengths, _ = drawn(seed, steps)
    moves = scores(B, steps - 1, K, K) if by_step else moves
    parts = scores(B, steps, K), moves, start, end, lengths
    for found, expected in zip(kbest.k_best(*parts, k), OPS.chain_k_best(*parts, k), strict=True):
        same(found, expected)


@pytest.mark.parametrize("seed", range(8))
def test_which_labelling_comes_first(seed):
    """The best; of equal ones that with the lowest last label, then that before it."""
    g = torch.Generator().manual_seed(seed)
    labels, scores = torch.randint(2, (B, 9, 4), generator=g), torch.randint(2, (B, 9), generator=g).float()
    expected = [min(range(9), key=lambda c: (-float(scores[b, c]), labels[b, c].tolist()[::-1], c)) for b in range(B)]
    assert kbest.first_best(labels, scores).tolist() == OPS.first_best(labels, scores).tolist() == expected


@every_case
@pytest.mark.parametrize("by_step", [False, True])
def test_trees(seed, steps, by_step):
    scores, moves, _, _, lengths, grad = drawn(seed, steps)
    g = torch.Generator().manual_seed(seed)
    parents = torch.stack([torch.randint(-1, max(t, 1), (B,), generator=g).clamp(max=t - 1) for t in range(steps)], 1)
    turned = torch.randperm(steps, generator=g)  # parents may stand after their children
    parents = torch.where(parents < 0, -1, turned[parents.clamp(min=0)])[:, turned.argsort()]
    mask = None if lengths is None else torch.arange(steps) < lengths[:, None]
    if mask is not None:
        parents = joined(parents, mask)
    parts = scores(B, steps, K), scores(B, steps, K, K) if by_step else moves, parents, mask
    same(tree.value(*parts), OPS.tree_value(*parts))
    same(tree.gradient(grad, *parts)[0], OPS.tree_gradient(grad, *parts)[0])
    ours, theirs = tree.best_labels(*parts), OPS.tree_best_labels(*parts)
    if seed % 2:  # ties, of which one is chosen
        terms = [Tree(*parts).terms(labels[:, None]).sum(2) for labels in (ours, theirs)]
        same(*terms)
        assert torch.equal(ours < 0, theirs < 0)
    else:
        same(ours, theirs)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_running_maxima_and_distances(dim):
    values = torch.randint(5, (4, 3, 6))
    for found, expected in zip(rows.cummax(values, dim), values.cummax(dim), strict=True):
        assert torch.equal(found, expected)
    left, right = torch.randn(2, 4, 3), torch.randn(2, 5, 3)
    same(rows.cdist(left, right, 2.0, None), torch.cdist(left, right))
    with pytest.raises(ValueError, match=r"p: got 1\.0"):
        rows.cdist(left, right, 1.0, None)
