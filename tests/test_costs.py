"""Costs between labels."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torch_multiclass import costs


@given(st.integers(1, 9), st.integers(0, 2**31))
def test_graph_is_scipys_shortest_path(size, seed):
    from scipy.sparse.csgraph import shortest_path

    generator = torch.Generator().manual_seed(seed)
    lengths = torch.rand(size, size, generator=generator)
    lengths = lengths * (torch.rand(size, size, generator=generator) < 0.5)
    for node in range(size):  # a ring keeps it connected
        lengths[node, (node + 1) % size] = 0.9
    lengths.fill_diagonal_(0)
    expected = torch.tensor(shortest_path(lengths.numpy()))
    torch.testing.assert_close(costs.graph(lengths).matrix.double(), expected, rtol=1e-6, atol=1e-6)


@given(st.integers(2, 12), st.integers(0, 2**31))
def test_hierarchy_is_the_shortest_path_in_the_tree(nodes, seed):
    generator = torch.Generator().manual_seed(seed)
    parents = [-1] + [int(torch.randint(node, (1,), generator=generator)) for node in range(1, nodes)]
    edges = torch.zeros(nodes, nodes)
    for node, parent in enumerate(parents):
        if parent >= 0:
            edges[node, parent] = edges[parent, node] = 1
    leaves = [node for node in range(nodes) if node not in parents]
    matrix = costs.hierarchy(parents).matrix
    assert torch.equal(matrix, costs.graph(edges).matrix[leaves][:, leaves])
    assert torch.equal(matrix, matrix.T)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: costs.hierarchy([0, 1]), r"parents: has 0 roots"),
        (lambda: costs.hierarchy([-1, -1]), r"parents: has 2 roots"),
        (lambda: costs.hierarchy([-1, 7]), r"parents: node 1 has parent 7; accepted are -1 and 0..1"),
        (lambda: costs.hierarchy([-1, 2, 1]), r"parents: node 1 is its own ancestor"),
        (lambda: costs.graph([[0, 0], [0, 0]]), r"adjacency: no path joins classes 0 and 1"),
        (lambda: costs.graph([[0, -1], [1, 0]]), r"adjacency: has a negative"),
        (lambda: costs.graph([[0, 1]]), r"adjacency: got shape \(1, 2\)"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_costs_broadcast_over_positions():
    """One matrix for each of two sequences, and labels (2, 3)."""
    matrices = torch.rand(2, 4, 4) * (1 - torch.eye(4))
    y = torch.randint(4, (2, 3))
    rows = costs.Matrix(matrices).rows(y, 4, torch.float32)
    for b in range(2):
        for t in range(3):
            assert torch.equal(rows[b, t], matrices[b, y[b, t]])
    assert repr(costs.Matrix(matrices)) == "Matrix(2 x 4 x 4)"
    assert repr(costs.Hamming(normalize=True)) == "Hamming(normalize=True)"
    assert "2" in repr(costs.as_cost([[0, 1], [1, 0]]))


def test_parents_may_be_a_tensor_or_an_array():
    parents = [3, 3, 4, 4, -1]
    expected = costs.hierarchy(parents).matrix
    assert torch.equal(costs.hierarchy(torch.tensor(parents)).matrix, expected)
    assert torch.equal(costs.hierarchy(torch.tensor(parents).numpy()).matrix, expected)
