r"""Labels on the nodes of trees: belief propagation, level by level, all trees of a batch at once.

.. math::
    s(y) = \sum_t e_{t, y_t} + \sum_{t: parent(t) \ge 0} W_{y_{parent(t)}, y_t}

Every node tells its parent what the part of the tree below it is worth for each label of the parent,

.. math::
    m_t(j) = \operatorname{total}_k [b_t(k) + W_{jk}], \qquad b_t(k) = e_{t, k} + \sum_{c: parent(c) = t} m_c(k).

Reference: Pearl (1988), Probabilistic reasoning in intelligent systems, chapter 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass.ops import chain as chains
from torch_multiclass.ops.algebra import BEST, SUM, Algebra, Choose, drawn, lowest, scaled
from torch_multiclass.ops.chain import expected as expectations
from torch_multiclass.ops.chain.expected import Expected
from torch_multiclass.ops.chain.structure import Chain, below_best, work_dtype
from torch_multiclass.ops.forest import depths
from torch_multiclass.ops.kbest import k_best
from torch_multiclass.ops.operators import Differentiable, operator, without_derivative


class Tree(NamedTuple):
    """The scores that a labelling of the nodes of each of ``B`` forests adds up.

    Shape:
        emissions ``(B, T, K)``; transitions ``[from parent, to child]``, ``(K, K)`` or, one matrix into each node,
        ``(B | 1, T, K, K)`` (that of a root is of no meaning); parents ``(B, T)``, of the nodes that count among each
        other, -1 for a root; mask ``(B, T)``, which nodes count, or None. What stands at a node that does not count is
        of no meaning.
    """

    emissions: Tensor
    transitions: Tensor
    parents: Tensor
    mask: Tensor | None

    @property
    def num_labels(self) -> int:
        """``K``."""
        return self.emissions.shape[2]

    def map(self, change: Callable[[Tensor], Tensor]) -> Tree:
        """The same with every tensor of scores changed."""
        return self._replace(emissions=change(self.emissions), transitions=change(self.transitions))

    def work(self) -> Tree:
        """The same in the dtype it is computed in."""
        dtype = work_dtype(self.emissions.dtype)
        return self.map(lambda part: part.to(dtype))

    def clean(self) -> Tree:
        """The same with zeros where scores are of no meaning."""
        tree = self
        if self.mask is not None:
            tree = tree._replace(emissions=torch.where(self.mask[..., None], self.emissions, 0.0))
        if self.transitions.dim() == 4:
            hangs = (self.inside() & (self.parents >= 0))[..., None, None]
            tree = tree._replace(transitions=torch.where(hangs, self.transitions, 0.0))
        return tree

    def inside(self) -> Tensor:
        """``(B, T)``: which nodes count."""
        return torch.ones_like(self.parents, dtype=torch.bool) if self.mask is None else self.mask

    def rows(self, rows: Tensor) -> Tree:
        """The structures of the given rows ``(n,)`` of the batch."""
        transitions = self.transitions
        if transitions.dim() == 4 and len(transitions) > 1:
            transitions = transitions[rows]
        mask = None if self.mask is None else self.mask[rows]
        return Tree(self.emissions[rows], transitions, self.parents[rows], mask)

    # ----------------------------------------------------------------------------------------------- score and algebra

    def terms(self, labels: Tensor) -> Tensor:
        """The terms of ``n`` labellings of each forest, ``(B, n, 2T)``: emissions, and the moves from the parents."""
        batch, n, steps = labels.shape
        k, inside = self.num_labels, self.inside()[:, None]
        labels = labels.clamp(0, k - 1)
        at = self.emissions.gather(2, labels.transpose(1, 2)).transpose(1, 2)
        above = labels.gather(2, self.parents.clamp_min(0)[:, None].expand(batch, n, steps))
        pairs = above * k + labels
        if self.transitions.dim() == 2:
            moves = self.transitions.reshape(-1).index_select(0, pairs.reshape(-1)).view(pairs.shape)
        else:
            flat = self.transitions.flatten(2).expand(batch, -1, -1)
            moves = flat.gather(2, pairs.transpose(1, 2)).transpose(1, 2)
        hangs = inside & (self.parents >= 0)[:, None]
        return torch.cat([torch.where(inside, at, 0.0), torch.where(hangs, moves, 0.0)], 2)

    def expected(self, q: Tensor) -> Expected:
        """The mean of each term, and what is forbidden of it, for independent labels of probabilities ``(B, T, K)``."""
        inside, k = self.inside(), self.num_labels
        hangs = inside & (self.parents >= 0)
        q = torch.where(inside[..., None], q, 0.0)
        above = q.gather(1, self.parents.clamp_min(0)[..., None].expand(-1, -1, k))
        tree = self.clean()
        at = expectations.of_labels(tree.emissions, q).where(inside)
        return expectations.joined(at, expectations.of_pairs(tree.transitions, above, q).where(hangs))

    def by_position(self, terms: Tensor) -> tuple[Tensor, Tensor]:
        """The terms ``(B, 2T)`` of a labelling as two ``(B, T)``: emissions, and moves into the nodes."""
        at, moves = terms.chunk(2, 1)
        return at, moves

    def plus(self, unary: Tensor) -> Tree:
        """With ``unary (B, T, K | 1)`` added to the emissions."""
        return self._replace(emissions=self.emissions + unary)

    def times(self, factor: float | Tensor) -> Tree:
        """With every score multiplied by the factor."""
        return self.clean().map(scaled(factor))

    def below_best(self) -> Tree:
        """Transitions less the best of each matrix: every labelling of a forest loses the same."""
        return self._replace(transitions=below_best(self.transitions, (-2, -1)))

    def centred(self) -> Tree:
        """Emissions less the best of their node, which changes no comparison of labellings."""
        return self._replace(emissions=below_best(self.emissions, (-1,)))

    # ------------------------------------------------------------------------------------------------------ recursions

    def best_labels(self) -> Tensor:
        """The best labelling ``(B, T)``, -100 where masked; ties go to the lowest last label, then backwards."""
        labels: Tensor = best_labels(*self.work())
        return labels

    def k_best(self, k: int) -> tuple[Tensor, Tensor]:
        """The ``k`` best labellings ``(B, k, T)`` and their scores ``(B, k)``; -100 and -inf where fewer exist."""
        return k_best(self, k)

    def log_partition(self) -> Tensor:
        """``log sum_y exp s(y)``, ``(B,)``."""
        return value(*self.work())

    def marginals(self) -> Tensor:
        """``P(y_t = k)``, ``(B, T, K)``; 0 where masked."""
        return value.gradients(*self.work())[0]

    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """``n`` labellings drawn from ``p(y) ~ exp s(y)``, ``(B, n, T)``; -100 where masked."""
        with torch.no_grad():
            return torch.where(
                self.inside()[:, None], _read_down(self.map(Tensor.double), SUM, drawn(generator), n), -100
            )


class Levels(NamedTuple):
    """The nodes of a batch as one list ``b * T + t``, by their depth."""

    nodes: list[Tensor]
    """Of each depth, roots first."""
    parents: list[Tensor]
    """Of the nodes of each depth but the first."""


def _levels(tree: Tree) -> Levels:
    batch, steps = tree.parents.shape
    depth = torch.where(tree.inside(), depths(tree.parents), steps).flatten()
    parents = (tree.parents + torch.arange(batch, device=depth.device)[:, None] * steps).flatten()
    order = depth.argsort(stable=True)
    sizes = torch.bincount(depth, minlength=steps + 1)[:steps].tolist()
    nodes = [level for level in torch.split(order[: sum(sizes)], sizes) if len(level)]
    return Levels(nodes, [parents[level] for level in nodes[1:]])


def _into(tree: Tree, transitions: Tensor, nodes: Tensor) -> Tensor:
    """The matrices ``[child, parent]`` into the nodes: ``(K, K)`` or ``(N, K, K)``."""
    if transitions.dim() == 2:
        return transitions.t()
    batch, steps = tree.parents.shape
    if transitions.shape[0] == batch:
        return transitions.flatten(0, 1)[nodes].mT
    return transitions[0, nodes % steps].mT


def _beliefs(tree: Tree, levels: Levels, algebra: Algebra) -> Tensor:
    """``b``, ``(B T, K)``: what each label of a node is worth together with all that is below it."""
    emissions, transitions = tree.clean()[:2]
    belief = emissions.flatten(0, 1)
    for nodes, parents in zip(levels.nodes[:0:-1], levels.parents[::-1], strict=True):
        into = _into(tree, transitions, nodes)
        below = belief[nodes]
        if into.dim() == 2:
            message = algebra.product(below, into)
        else:
            message = algebra.product(below[:, None], into)[:, 0]
        belief = belief.index_add(0, parents, message)
    return belief


def _log_partition(emissions: Tensor, transitions: Tensor, parents: Tensor, mask: Tensor | None) -> Tensor:
    batch, steps, _ = emissions.shape
    if emissions.numel() == 0:
        return emissions.sum((1, 2))
    tree = Tree(emissions, transitions, parents, mask).map(Tensor.double)
    levels = _levels(tree)
    if not levels.nodes:
        return tree.clean().emissions.sum((1, 2)).to(emissions.dtype)  # nothing counts: 0
    roots = levels.nodes[0]
    totals = SUM.total(_beliefs(tree, levels, SUM)[roots], 1)
    total = totals.new_zeros(batch).index_add(0, roots // steps, totals).to(emissions.dtype)
    return torch.where(total == -torch.inf, -torch.inf, total)  # no gradient to the trees beside an impossible one


value = Differentiable("tree", _log_partition, ("emissions", "transitions"), "Tensor parents, Tensor? mask")


def _best_labels(emissions: Tensor, transitions: Tensor, parents: Tensor, mask: Tensor | None) -> Tensor:
    """The best labelling of each forest, -100 where masked."""
    tree = Tree(emissions, transitions, parents, mask)
    inside = tree.inside()
    if _is_chain(tree):
        moves = transitions if transitions.dim() == 2 else transitions[:, 1:]
        start = emissions.new_zeros(emissions.shape[2])
        chain = Chain(emissions, moves, start, start, inside.sum(1))
        return torch.where(inside, chains.best_labels(chain), -100)
    tree = tree.map(Tensor.double)
    labels, tied = _best(tree)
    if bool(tied.any()):
        rows = tied.nonzero()[:, 0]
        labels[rows] = _first_of_the_best(tree.rows(rows))
    return torch.where(inside, labels, -100)


best_labels = operator(
    "tree_best_labels(Tensor emissions, Tensor transitions, Tensor parents, Tensor? mask) -> Tensor",
    _best_labels,
    lambda emissions, *_: emissions.new_empty(emissions.shape[:2], dtype=torch.long),
)
without_derivative(best_labels)


def _is_chain(tree: Tree) -> bool:
    """Whether every forest is the path 0, 1, 2, ... with nothing masked but its end."""
    steps, inside = tree.parents.shape[1], tree.inside()
    left = torch.arange(steps, device=inside.device) < inside.sum(1, keepdim=True)
    before = torch.arange(-1, steps - 1, device=inside.device)
    return bool(((inside == left) & ((tree.parents == before) | ~inside)).all())


def _read_down(tree: Tree, algebra: Algebra, choose: Choose, n: int) -> Tensor:
    """``n`` labellings ``(B, n, T)``, each label chosen after that of the parent."""
    batch, steps, k = tree.emissions.shape
    levels = _levels(tree)
    labels = tree.parents.new_zeros(batch * steps, n)
    belief = _beliefs(tree, levels, algebra) if levels.nodes else labels
    for depth, nodes in enumerate(levels.nodes):
        scores = belief[nodes][:, None].expand(-1, n, k)
        if depth:
            above = labels[levels.parents[depth - 1]]
            into = _into(tree, tree.transitions, nodes).mT
            moved = into[above] if into.dim() == 2 else into.gather(1, above[..., None].expand(-1, -1, k))
            scores = scores + moved
        labels[nodes] = choose(scores)
    return labels.view(batch, steps, n).transpose(1, 2)


def _best(tree: Tree) -> tuple[Tensor, Tensor]:
    """The best labelling ``(B, T)``, and in which forests another may be as good, up to rounding."""
    tied = torch.zeros_like(tree.parents, dtype=torch.bool).flatten()
    slack = _rounding(tree)
    seen: list[Tensor] = []

    def choose(scores: Tensor) -> Tensor:
        best = scores.amax(-1, keepdim=True)
        seen.append(((scores >= best - slack) & (scores > -torch.inf)).sum(-1)[:, 0] > 1)
        return lowest(scores)

    labels = _read_down(tree, BEST, choose, 1)[:, 0]
    for nodes, several in zip(_levels(tree).nodes, seen, strict=True):
        tied[nodes] = several
    return labels.clone(), tied.view_as(tree.parents).any(1)


def _rounding(tree: Tree) -> float:
    """What two sums of the same scores may differ by."""
    emissions, transitions = tree.clean()[:2]
    largest = max(float(torch.where(part.isfinite(), part.abs(), 0.0).amax()) for part in (emissions, transitions))
    return 4 * tree.parents.shape[1] * torch.finfo(emissions.dtype).eps * largest


def _first_of_the_best(tree: Tree) -> Tensor:
    """Of the best labellings that with the lowest last label, then backwards."""
    inside, node = tree.inside(), torch.arange(tree.parents.shape[1], device=tree.parents.device)
    while True:
        best = _labels_of_the_best(tree)
        open_ = (best.sum(-1) > 1) & inside
        if not bool(open_.any()):
            return best.int().argmax(-1)
        last = torch.where(open_, node, -1).amax(1)
        lowest_there = best.int().argmax(-1).gather(1, last.clamp(min=0)[:, None])
        chosen = torch.arange(best.shape[-1], device=node.device) == lowest_there
        there = node == last[:, None]
        emissions = torch.where(there[..., None] & ~chosen[:, None], -torch.inf, tree.emissions)
        tree = tree._replace(emissions=emissions)


def _labels_of_the_best(tree: Tree) -> Tensor:
    """``(B, T, K)``: which labels the best labellings have at each node, up to rounding."""
    levels, slack = _levels(tree), _rounding(tree)
    belief = _beliefs(tree, levels, BEST)
    found = torch.zeros_like(belief, dtype=torch.bool)

    def best_of(scores: Tensor) -> Tensor:
        return (scores >= scores.amax(-1, keepdim=True) - slack) & (scores > -torch.inf)

    for depth, nodes in enumerate(levels.nodes):
        if depth == 0:
            found[nodes] = best_of(belief[nodes])
        else:
            moved = belief[nodes][:, None] + _into(tree, tree.transitions, nodes).mT  # (N, parent's label, own)
            found[nodes] = (best_of(moved) & found[levels.parents[depth - 1]][..., None]).any(1)
    return found.view_as(tree.emissions)
