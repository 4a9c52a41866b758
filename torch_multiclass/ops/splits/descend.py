"""From rows to leaves: all trees of an ensemble at once, by gathers on any device or by the native library."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from torch_multiclass import checks as check
from torch_multiclass.ops import _native
from torch_multiclass.ops._native import pointer
from torch_multiclass.ops.precision import no_autocast
from torch_multiclass.ops.splits.tree import Index, Tree

pack_descend = struct.Struct("@14q").pack
"""The fields of ``TmDescend`` in ``native/descend.cpp``."""

TOGETHER = 32
"""Trees whose leaves are looked up at once."""


@dataclass(eq=False, repr=False)
class Nodes:
    """The nodes of some trees, those that ask first, then the leaves, which lead to themselves.

    What `pack` makes, and a scorer of trees, which has them as buffers.
    """

    feature: Tensor
    """``(N)``, int64; from ``D`` on, inner products with `directions`, then distances from `centres`."""
    threshold: Tensor
    """``(N)``."""
    missing: Tensor
    """``(N)``, bool: whether a missing value is a yes."""
    branches: Tensor
    """``(N, 2)``, int64: where no leads, and yes."""
    roots: Tensor
    """``(T)``, int64."""
    values: Tensor
    """``(leaves, K)``."""
    directions: Tensor
    """``(H, D)``."""
    centres: Tensor
    """``(S, D)``."""
    subset: Tensor
    """``(N)``, int64, or nothing: the row of `subsets` of a question about categories, -1 of others."""
    subsets: Tensor
    """``(Q, categories + 1)``, bool: the categories that are a yes, and whether an unknown one is."""


def pack(trees: Sequence[Tree], dtype: torch.dtype) -> Nodes:
    """The nodes of all trees."""
    sizes = np.array([tree.nodes for tree in trees])
    first, width = sizes.cumsum() - sizes, trees[0].features
    asked = np.concatenate([tree.feature for tree in trees])
    asking, ends = np.flatnonzero(asked >= 0), np.flatnonzero(asked < 0)
    place = np.empty(len(asked), np.int64)
    place[asking], place[ends] = np.arange(len(asking)), np.arange(len(asking), len(asked))

    directions = np.concatenate([tree.directions.reshape(-1, width) for tree in trees])
    centres = np.concatenate([tree.centres.reshape(-1, width) for tree in trees])
    own, turned = _counts([len(tree.directions) for tree in trees], sizes)
    _, centred = _counts([len(tree.centres) for tree in trees], sizes)
    shift = np.where(asked >= width + own, len(directions) - own + centred, np.where(asked >= width, turned, 0))

    def of_nodes(parts: Sequence[NDArray[Any]], at_leaves: Any) -> NDArray[Any]:
        found = np.concatenate(parts)[asking]
        return np.concatenate([found, np.full(len(ends), at_leaves, found.dtype)])

    leaves = np.repeat(np.arange(len(asking), len(asked))[:, None], 2, 1)
    children = [
        np.concatenate([side + start for side, start in zip(part, first, strict=True)])
        for part in ([tree.no for tree in trees], [tree.yes for tree in trees])
    ]
    branches = np.concatenate([place[np.stack(children, 1)[asking]], leaves])
    subset, subsets = _subsets(trees, sizes)
    return Nodes(
        torch.from_numpy(of_nodes([asked + shift], 0)),
        torch.from_numpy(of_nodes([tree.threshold for tree in trees], np.inf)).to(dtype),
        torch.from_numpy(of_nodes([tree.missing for tree in trees], True)),
        torch.from_numpy(branches),
        torch.from_numpy(place[first]),
        torch.from_numpy(np.concatenate([tree.values for tree in trees])[ends]).to(dtype),
        torch.from_numpy(directions).to(dtype),
        torch.from_numpy(centres).to(dtype),
        torch.from_numpy(of_nodes([subset], -1) if len(subset) else subset),
        torch.from_numpy(subsets),
    )


def _counts(own: Sequence[int], sizes: Index) -> tuple[Index, Index]:
    """For each node, a number of its tree, and the sum of those of the trees before."""
    counts = np.array(own, np.int64)
    return counts.repeat(sizes), (counts.cumsum() - counts).repeat(sizes)


def _subsets(trees: Sequence[Tree], sizes: Index) -> tuple[Index, NDArray[np.bool_]]:
    """For each node the row of its question about categories, or nothing where there is none; and these rows."""
    categories = max(tree.subsets.shape[1] for tree in trees)
    some = [tree.subsets for tree in trees if len(tree.subsets)]
    filled = [np.concatenate([one[:, :-1], one[:, -1:].repeat(categories + 1 - one.shape[1], 1)], 1) for one in some]
    if not some:
        return np.zeros(0, np.int64), np.zeros((0, categories), np.bool_)
    _, before = _counts([len(tree.subsets) for tree in trees], sizes)
    which = np.concatenate([tree.subset if len(tree.subsets) else np.full(tree.nodes, -1) for tree in trees])
    return np.where(which >= 0, which + before, -1), np.concatenate(filled)


def depth(branches: Tensor, leaves: int) -> int:
    """How many questions at most lead to one of the ``leaves``, the last nodes; raise where some never do."""
    to = branches.cpu().numpy()
    inner = len(to) - leaves
    if ((to < 0) | (to >= len(to))).any():
        raise ValueError(f"branches: holds nodes outside 0..{len(to) - 1}; accepted are nodes of the trees")
    done, todo, rounds = np.arange(len(to)) >= inner, np.arange(inner), 0
    while len(todo):
        ready = done[to[todo]].all(1)
        if not ready.any():
            raise ValueError("branches: lead in circles; accepted are trees")
        done[todo[ready]] = True
        todo, rounds = todo[~ready], rounds + 1
    return rounds


def answers(features: Tensor, nodes: Nodes) -> Tensor:
    """``(B, D + H + S)``: all that questions may be about."""
    with no_autocast(features):
        parts = [features]
        if len(nodes.directions):
            parts.append(features @ nodes.directions.mT)
        if len(nodes.centres):
            parts.append(distances(features, nodes.centres))
        return torch.cat(parts, 1) if len(parts) > 1 else features


def distances(features: Tensor, centres: Tensor) -> Tensor:
    """``(B, S)``: Euclidean distances, by differences, which do not cancel."""
    return torch.cdist(features, centres, compute_mode="donot_use_mm_for_euclid_dist")


def leaves_of(features: Tensor, nodes: Nodes, depth: int, roots: Tensor | None = None) -> Tensor:
    """``(B, T)``: the leaf of each row in each tree, or in those with these roots, by gathers."""
    values, leaves = answers(features, nodes), nodes.feature.shape[0] - nodes.values.shape[0]
    node = (nodes.roots if roots is None else roots).expand(features.shape[0], -1)
    children = nodes.branches.reshape(-1)
    for _ in range(depth):
        value = values.gather(1, nodes.feature[node])
        yes = value <= nodes.threshold[node]
        unknown = value.isnan()
        if nodes.subset.shape[0]:
            among = nodes.subset[node]
            last = nodes.subsets.shape[1] - 1
            category = value.nan_to_num(0.0).clamp(-1, last)
            whole = (category == category.floor()) & (category >= 0)
            category = torch.where(whole, category, last).long()
            yes = torch.where(among >= 0, nodes.subsets[among.clamp(min=0), category], yes)
        yes = torch.where(unknown, nodes.missing[node], yes)
        node = children[2 * node + yes]
    return node - leaves


def summed(features: Tensor, nodes: Nodes, weights: Tensor | None, depth: int) -> Tensor:
    """``(B, K)``: the weighted sum over the trees of the values of each row's leaves."""
    if _plain(features, nodes):
        library = _native.library()
        return (
            _by_numpy(features, nodes, weights) if library is None else _by_library(library, features, nodes, weights)
        )
    if weights is None:
        return nodes.values[leaves_of(features, nodes, depth)[:, 0]]
    total = nodes.values.new_zeros(features.shape[0], nodes.values.shape[1])
    largest = weights.abs().amax()
    unit = torch.where(largest > 0, largest, 1.0)
    shares = weights / unit  # equal weights are 1, so that equally many votes are equal sums in any order
    for first in range(0, nodes.roots.shape[0], TOGETHER):
        roots, weight = (part[first : first + TOGETHER] for part in (nodes.roots, shares))
        total = total + (nodes.values[leaves_of(features, nodes, depth, roots)] * weight[:, None]).sum(1)
    return total * unit


PLAIN = (Tensor, nn.Parameter)
"""The types of tensors that have their numbers where `data_ptr` says."""


def _plain(features: Tensor, nodes: Nodes) -> bool:
    """Whether these are numbers in memory, and questions about single features of one order."""
    parts = (features, nodes.feature, nodes.threshold, nodes.missing, nodes.branches, nodes.roots, nodes.values)
    if check.captured() or any(type(part) not in PLAIN or part.device.type != "cpu" for part in parts):
        return False
    simple = not (nodes.directions.shape[0] or nodes.centres.shape[0] or nodes.subset.shape[0])
    return simple and features.dtype == nodes.values.dtype and features.dtype in (torch.float32, torch.float64)


def _by_library(library: _native.Library, features: Tensor, nodes: Nodes, weights: Tensor | None) -> Tensor:
    """The same by the native library."""
    inputs = features.detach(), nodes.feature, nodes.threshold, nodes.missing, nodes.branches, nodes.roots, nodes.values
    kept = [part.contiguous() for part in inputs]
    made = nodes.values.new_zeros(len(features), nodes.values.shape[1])
    sizes = len(features), features.shape[1], len(nodes.feature) - len(nodes.values), len(nodes.roots), made.shape[1]
    rest = (None if weights is None else weights.contiguous()), made
    own, whole = made.dtype, torch.int64
    kinds = own, whole, own, torch.bool, whole, whole, own, own, own
    library.function("tm_descend_f32" if own == torch.float32 else "tm_descend_f64")(
        pack_descend(*map(pointer, (*kept, *rest), kinds), *sizes)
    )
    return made


def _by_numpy(features: Tensor, nodes: Nodes, weights: Tensor | None) -> Tensor:
    """The same, a tree at a time, whose nodes stay in the cache, and only the rows that are not at a leaf yet."""
    flat, width = features.detach().contiguous().numpy().ravel(), features.shape[1]
    feature, threshold, missing = nodes.feature.numpy(), nodes.threshold.numpy(), nodes.missing.numpy()
    branches, values = nodes.branches.numpy().ravel(), nodes.values.numpy()
    inner, some = len(feature) - len(values), bool(features.isnan().any())
    total = np.zeros((len(features), values.shape[1]), values.dtype)
    for number, root in enumerate(nodes.roots.tolist()):
        leaf = np.full(len(features), root)
        rows, node = np.arange(len(features)), leaf
        while root < inner and len(rows):
            value = flat[rows * width + feature[node]]
            yes = value <= threshold[node]
            if some:
                yes |= np.isnan(value) & missing[node]
            node = branches[2 * node + yes]
            going = node < inner
            if 8 * np.count_nonzero(going) < 7 * len(rows):
                leaf[rows] = node
                rows, node = rows[going], node[going]
        total += values[leaf - inner] if weights is None else values[leaf - inner] * values.dtype.type(weights[number])
    return torch.from_numpy(total)
