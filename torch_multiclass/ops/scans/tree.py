"""Trees: the nodes one after the other, children before parents and back."""

from __future__ import annotations

import torch
from torch import Tensor

from torch_multiclass.checks import IGNORE
from torch_multiclass.ops.forest import depths
from torch_multiclass.ops.scans.base import NEVER, log_total, scan
from torch_multiclass.ops.tree import Tree


def _upwards(tree: Tree, best: bool) -> tuple[Tensor, Tensor]:
    """What each label of a node is worth with all that is below it, ``(B, T, K)``; nodes in order, roots first."""
    emissions, parents, inside = tree.emissions, tree.parents, tree.inside()
    emissions = torch.where(inside[..., None], emissions, 0.0)
    steps, k = emissions.shape[1:]
    order = torch.where(inside, depths(parents), steps).argsort(dim=1, stable=True)

    def step(belief: Tensor, node: Tensor, parents: Tensor, inside: Tensor, moves: Tensor) -> tuple[Tensor, ...]:
        own = belief.gather(1, node[:, None, None].expand(-1, 1, k))  # (B, 1, K)
        sums = own + _into(moves, node)  # (B, label of the parent, own label)
        told = sums.amax(2) if best else log_total(sums, [2])
        parent = torch.where(inside.gather(1, node[:, None]), parents.gather(1, node[:, None]), -1)
        hears = torch.arange(belief.shape[1], device=node.device) == parent
        found = torch.where(hears[..., None], belief + told[:, None], belief)
        return found, node  # a scan has to find something

    fixed = [parents, inside, tree.transitions]
    belief, _ = scan(step, [emissions], [order.t()], fixed, reverse=True)
    return belief, order


def _into(moves: Tensor, node: Tensor) -> Tensor:
    """The matrices ``[parent, child]`` into a node of each tree, ``(B | 1, K, K)``."""
    if moves.dim() == 2:
        return moves[None]
    k = moves.shape[3]
    return moves.expand(node.shape[0], -1, -1, -1).gather(1, node[:, None, None, None].expand(-1, 1, k, k))[:, 0]


def best_labels(emissions: Tensor, transitions: Tensor, parents: Tensor, mask: Tensor | None) -> Tensor:
    """As the operator ``tree_best_labels``, but that ties go to the lowest label, roots first."""
    tree = Tree(emissions, transitions, parents, mask).map(Tensor.double)
    belief, order = _upwards(tree, best=True)

    def step(
        labels: Tensor, node: Tensor, belief: Tensor, parents: Tensor, inside: Tensor, moves: Tensor
    ) -> tuple[Tensor, ...]:
        at = node[:, None]
        parent = torch.where(inside.gather(1, at), parents.gather(1, at), -1)
        above = labels.gather(1, parent.clamp(min=0))  # (B, 1)
        k = belief.shape[2]
        moved = _into(moves, node).expand(node.shape[0], k, k).gather(1, above[..., None].expand(-1, 1, k))[:, 0]
        own = belief.gather(1, at[..., None].expand(-1, 1, k))[:, 0]
        label = torch.where(parent >= 0, own + moved, own).argmax(1, keepdim=True)
        here = torch.arange(labels.shape[1], device=node.device) == at
        return torch.where(here, label, labels), node

    fixed = [belief, parents, tree.inside(), tree.transitions]
    labels, _ = scan(step, [torch.zeros_like(parents)], [order.t()], fixed)
    return torch.where(tree.inside(), labels, IGNORE)


def value(emissions: Tensor, transitions: Tensor, parents: Tensor, mask: Tensor | None) -> Tensor:
    """As the operator ``tree_value``."""
    tree = Tree(emissions, transitions, parents, mask).map(Tensor.double)
    belief, _ = _upwards(tree, best=False)
    roots = tree.inside() & (parents < 0)
    return torch.where(roots, log_total(belief, [2]), 0.0).sum(1).to(emissions.dtype)


def gradient(
    grad: Tensor, emissions: Tensor, transitions: Tensor, parents: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """As the operator ``tree_gradient``, for emissions: the others are NaN."""
    tree = Tree(emissions, transitions, parents, mask).map(Tensor.double)
    belief, order = _upwards(tree, best=False)
    possible = log_total(belief, [2]) != NEVER  # at the roots: of the whole tree

    def step(
        share: Tensor, node: Tensor, belief: Tensor, parents: Tensor, inside: Tensor, moves: Tensor
    ) -> tuple[Tensor, ...]:
        at = node[:, None]
        parent = torch.where(inside.gather(1, at), parents.gather(1, at), -1)
        k = belief.shape[2]
        own = belief.gather(1, at[..., None].expand(-1, 1, k))  # (B, 1, K)
        above = share.gather(1, parent.clamp(min=0)[..., None].expand(-1, 1, k))  # (B, 1, K)
        given = (above @ _softmax(own + _into(moves, node)))[:, 0]  # of the labels of the parent
        found = torch.where(parent >= 0, given, _softmax(own)[:, 0])
        here = torch.arange(share.shape[1], device=node.device) == at
        return torch.where(here[..., None], found[:, None], share), node

    fixed = [belief, parents, tree.inside(), tree.transitions]
    share, _ = scan(step, [torch.zeros_like(belief)], [order.t()], fixed)
    roots = tree.inside() & (parents < 0)
    legal = (possible | ~roots).all(1)  # one tree that is impossible leaves nothing of its forest
    kept = tree.inside() & legal[:, None]
    share = torch.where(kept[..., None], share * grad[:, None, None], 0.0).to(emissions.dtype)
    return share.contiguous(), torch.full_like(transitions, torch.nan)


def _softmax(scores: Tensor) -> Tensor:
    """Over the last dimension; 0 where everything is -inf."""
    total = log_total(scores, [-1])[..., None]
    never = total == NEVER
    return torch.where(never, 0.0, (scores - torch.where(never, 0.0, total)).exp())
