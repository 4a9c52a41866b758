"""Costs of classes that are nodes of a graph or leaves of a tree."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.costs.cost import Matrix
from torch_multiclass.ops.constants import home


def graph(adjacency: Tensor | Sequence[Sequence[float]]) -> Matrix:
    r"""Classes as nodes of a graph: ``L(y, y')`` is the length of the shortest path from ``y`` to ``y'``.

    Args:
        adjacency: ``(K, K)`` edge lengths ``>= 0``; 0 off the diagonal means "no edge".

    Shape:
        ``(K, K)`` to ``(K, K)``.

    Raises:
        ValueError: a negative length, or two classes that no path joins.

    Reference: Floyd (1962), Algorithm 97: shortest path.

    Example:
        >>> graph([[0, 1, 0], [1, 0, 1], [0, 1, 0]]).matrix
        tensor([[0., 1., 2.],
                [1., 0., 1.],
                [2., 1., 0.]])
    """
    given = check.numbers("adjacency", adjacency, "a (K, K) matrix of numbers >= 0", booleans=True)
    check.with_values("adjacency", given)
    length = given.detach().to(torch.get_default_dtype(), copy=True)
    if length.ndim != 2 or length.shape[0] != length.shape[1] or len(length) == 0:
        raise ValueError(f"adjacency: got shape {tuple(length.shape)}; accepted is (K, K) with K >= 1")
    if bool((length < 0).any()) or not bool(length.isfinite().all()):
        raise ValueError(
            "adjacency: has a negative or infinite length; accepted are finite lengths >= 0, 0 for no edge"
        )
    length[length == 0] = torch.inf
    length.fill_diagonal_(0)
    for via in range(length.shape[0]):  # Floyd and Warshall: shortest paths through nodes 0..via
        length = torch.minimum(length, length[:, via : via + 1] + length[via : via + 1, :])
    if not bool(length.isfinite().all()):
        pair = (~length.isfinite()).nonzero()[0].tolist()
        raise ValueError(f"adjacency: no path joins classes {pair[0]} and {pair[1]}; accepted is a connected graph")
    return Matrix(length)


def hierarchy(parents: Sequence[int]) -> Matrix:
    r"""Classes as leaves of a tree: ``L(y, y')`` is the number of edges between the two leaves.

    Args:
        parents: ``parents[i]`` is the parent of node ``i``, and ``-1`` marks the root. The classes are the nodes that
            are nobody's parent, in order of their numbers.

    Shape:
        parents ``(nodes,)``; the matrix of the cost is ``(K, K)``.

    Raises:
        ValueError: no root or several, a parent that does not exist, or a cycle.

    Reference: Dekel, Keshet and Singer (2004), Large margin hierarchical classification, section 2, the tree-induced
    error.

    Example:
        Two families, {0, 1} under node 3 and {2} under the root 4:

        >>> hierarchy([3, 3, 4, 4, -1]).matrix
        tensor([[0., 2., 3.],
                [2., 0., 3.],
                [3., 3., 0.]])
    """
    numbers = check.numbers("parents", parents, "one node number, or -1, for each node")
    if numbers.ndim != 1 or numbers.is_floating_point():
        raise ValueError(
            f"parents: got {numbers.dtype} of shape {tuple(numbers.shape)}; accepted are whole numbers, one a node"
        )
    check.with_values("parents", numbers)
    parents = numbers.tolist()
    nodes = len(parents)
    paths = [_path_to_root(parents, node) for node in range(nodes)]
    inner = set(parents)
    leaves = [node for node in range(nodes) if node not in inner]
    ancestors = [set(path) for path in paths]
    matrix = torch.zeros(len(leaves), len(leaves), device=home())
    for row, a in enumerate(leaves):
        for column, b in enumerate(leaves):
            matrix[row, column] = len(ancestors[a] ^ ancestors[b])  # the nodes on one path to the root alone
    return Matrix(matrix)


def _path_to_root(parents: Sequence[int], node: int) -> list[int]:
    roots = [i for i, parent in enumerate(parents) if parent == -1]
    if len(roots) != 1:
        raise ValueError(f"parents: has {len(roots)} roots (entries -1); accepted is exactly one")
    path = [node]
    while parents[path[-1]] != -1:
        parent = parents[path[-1]]
        if not 0 <= parent < len(parents):
            raise ValueError(f"parents: node {path[-1]} has parent {parent}; accepted are -1 and 0..{len(parents) - 1}")
        if parent in path:
            raise ValueError(f"parents: node {parent} is its own ancestor; accepted is a tree")
        path.append(parent)
    return path
