"""The recursions as scans: what the operators answer, ties and forbidden moves included."""

import pytest
import torch

from torch_multiclass.ops.scans import chain, second_order, segments, solve

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
