"""Labels on the nodes of a tree."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.ops.forest import depths, joined
from torch_multiclass.ops.precision import upcast
from torch_multiclass.ops.tree import Tree
from torch_multiclass.scores._chain_checks import broadcasts, check_part, check_positions
from torch_multiclass.scores._emitted import Emitted
from torch_multiclass.scores._travel import registered
from torch_multiclass.scores.recorded import Recorded

__all__ = ["TreeScores"]


@registered
@dataclass(eq=False)
class TreeScores(Emitted, Recorded):
    r"""The score of every labelling of the nodes of a tree, or of several (a forest).

    .. math::
        s(y) = \sum_t e_{t, y_t} + \sum_{t: parent(t) \ge 0} trans_{y_{parent(t)}, y_t}

    With parents ``-1, 0, 1, 2, ...`` it is `ChainScores`. Masked nodes are taken out: what hangs on one hangs on the
    nearest node above it that counts, or becomes a root. ``-inf`` forbids a label or a move. All trees of a batch are
    solved level by level, at once. Exact slack rescaling is not offered: ``SVMStructLoss(exact=False)``.

    Args:
        emissions: ``(*, T, K)``; half precision is computed in float32.
        transitions: ``(K, K)`` scores ``[label of the parent, label of the child]``; or ``(*, T, K, K)``, one matrix
            into each node, where that of a root is of no meaning.
        parents: ``(*, T)`` or ``(T,)``, the number of each node's parent, -1 for a root. Nodes may be in any order.
        mask: ``(*, T)`` bool, True where a node counts.
        lengths: ``(*)`` numbers of nodes in ``0..T``, the first ones; an alternative to ``mask``.
        reference, allowed, sharpness, costs, factor: set by verbs, see `Structured`.

    Raises:
        ValueError: shapes, dtypes or devices that disagree, no label at all (K = 0), a parent outside ``-1..T-1``, a
            node that is its own ancestor.
        TypeError: scores that are not floating-point tensors, parents or lengths that are not integers, a mask that is
            not bool.

    Reference: Pearl (1988), Probabilistic reasoning in intelligent systems, chapter 4.

    Example:
        >>> import torch
        >>> star = torch.tensor([-1, 0, 0, 0])
        >>> emissions = torch.tensor([[[0.0, 0.5], [1.0, 0.0], [1.0, 0.0], [0.0, 0.1]]])
        >>> TreeScores(emissions, torch.eye(2), star).decode()
        Decoded(labels=tensor([[0, 0, 0, 0]]), score=tensor([5.]))
    """

    emissions: Tensor
    transitions: Tensor
    parents: Tensor
    mask: Tensor | None = field(default=None, kw_only=True)
    lengths: Tensor | None = field(default=None, kw_only=True)
    leading: ClassVar[str] = "emissions"

    def __post_init__(self) -> None:
        """Check what was given."""
        if self.lengths is not None:
            self.lengths = check.signed(self.lengths)
        self.parents = check.signed(self.parents)
        check.floating("emissions", self.emissions)
        shape = tuple(self.emissions.shape)
        if len(shape) < 2 or shape[-1] == 0:
            raise ValueError(f"emissions: got shape {shape}; accepted is (*, T, K) with K >= 1 labels")
        *lead, steps, k = shape
        batch, like = tuple(lead), ("emissions", self.emissions)
        check_part("transitions", self.transitions, like)
        moves = tuple(self.transitions.shape)
        if moves != (k, k) and not (moves[-3:] == (steps, k, k) and broadcasts(moves[:-3], batch)):
            raise ValueError(
                f"transitions: got shape {moves}; accepted are {(k, k)}, [parent, child], and {(*batch, steps, k, k)}, "
                "one matrix into each node"
            )
        check_positions(self.mask, self.lengths, like, batch, steps)
        check.integers("parents", self.parents, "numbers of nodes")
        check.same_device("parents", self.parents, *like)
        own = tuple(self.parents.shape)
        if own != ((steps,) if len(own) == 1 else (*batch, steps)):
            raise ValueError(
                f"parents: got shape {own}; accepted are {(steps,)} and {(*batch, steps)}, the parent of each node"
            )
        if self.parents.numel() > 0 and check.values_readable(self.parents):
            self._check_parents()
        super().__post_init__()

    def _check_parents(self) -> None:
        steps = self.sites[-1]
        parents, counted = self.parents.long().expand(self.sites), self._counted()
        outside = (parents < -1) | (parents >= steps)
        below = depths(_known(parents)) < 0
        if counted is not None:
            outside, below = outside & counted, below & counted
        if bool(outside.any()):
            node = int(outside.nonzero()[0, -1])
            raise ValueError(
                f"parents: node {node} has parent {int(parents[outside][0])}; accepted are -1, for a root, and "
                f"0..{steps - 1}"
            )
        if bool(below.any()):
            node = int(below.nonzero()[0, -1])
            raise ValueError(f"parents: node {node} hangs on a cycle; accepted are trees, with -1 for each root")

    # ------------------------------------------------------------------------------------------------------ the record

    @property
    def raw(self) -> Tree:
        """The record of the raw scores, in float32 at least, masked nodes taken out."""
        steps, k = self.emissions.shape[-2:]
        batch = math.prod(self.batch_shape)
        transitions = upcast(self.transitions)
        if transitions.ndim > 2:
            transitions = transitions.expand(*self.sites, k, k).reshape(batch, steps, k, k)
        parents = _known(self.parents.long()).expand(self.sites).reshape(batch, steps)
        counted = self._counted()
        mask = None if counted is None else counted.reshape(batch, steps)
        emissions = upcast(self.emissions).reshape(batch, steps, k)
        return Tree(emissions, transitions, parents if mask is None else joined(parents, mask), mask)


def _known(parents: Tensor) -> Tensor:
    """Parents with -1 for those that are no node, which nodes that do not count may have."""
    return torch.where((parents >= 0) & (parents < parents.shape[-1]), parents, -1)
