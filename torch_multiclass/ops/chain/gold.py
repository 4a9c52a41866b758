"""The gold labelling in the terms of the scaled recursions: its mass, and what the other labellings have beside it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from torch_multiclass.ops.chain.arrays import Array, at_labels, filled, ordered_sums
from torch_multiclass.ops.chain.pieces import Pieces
from torch_multiclass.ops.chain.recursion import Pass
from torch_multiclass.ops.chain.table import Weights

TINY = {4: 1e-37, 8: 1e-307}
"""By the size of a number: below this a probability has lost digits."""


class Gold(NamedTuple):
    """The gold labels, and which entries of the table they take."""

    labels: Array  # (N,)
    entries: Array  # (M,): flat, of moves, start and end
    owners: Array  # (M,): of which sequence each entry is

    @classmethod
    def of(cls, labels: Array, pieces: Pieces, k: int) -> Gold:
        """From labels ``(B, T)``."""
        gold = pieces.gather(labels)
        starting, ending = gold[pieces.starting], gold[pieces.ends]
        moves = gold[pieces.prior] * k + gold[pieces.later]
        if pieces.rows is None:
            owners = np.concatenate([pieces.owners, pieces.sequence])
        else:
            owners = pieces.owners[pieces.later]
            if pieces.joints is not None:
                lead, follow = pieces.joints.lead, pieces.joints.follow
                moves = np.append(moves, gold[pieces.final[lead]] * k + gold[follow])
                owners = np.append(owners, pieces.sequence[follow])
            outer = pieces.sequence[pieces.starting], pieces.sequence[pieces.ending]
            owners = np.concatenate([owners, *outer])
        return cls(gold, np.concatenate([moves, starting + k * k, ending + (k * k + k)]), owners)

    def of_moves(self, weights: Weights, batch: int) -> Array:
        """``(B,)``: the log of what the gold moves, start and end weigh."""
        return np.bincount(self.owners, weights.log.take(self.entries), batch)

    def counts(self, grad: Array, k: int) -> Array:
        """``(K, K)``: how often each move is made, each time with the ``grad (B,)`` of its sequence."""
        found = np.bincount(self.entries, grad.take(self.owners), k * k + 2 * k)
        return found[: k * k].reshape(k, k)

    def of_emissions(self, x: Array, pieces: Pieces) -> Array:
        """``(B,)``: the log of the gold probabilities, -inf where one of them has lost digits."""
        found = x.take(at_labels(x.shape[1], self.labels)).astype(np.float64)
        found[found < TINY[x.itemsize]] = 0
        return pieces.sums(np.log(found, out=found))

    def of_scores(self, scores: Array, shift: Array, sums: Array, pieces: Pieces) -> Array:
        """The same from the scores ``(N, K)``, differences first, since these may be large."""
        depth = scores.take(at_labels(scores.shape[1], self.labels)) - shift
        return pieces.sums(depth.astype(np.float64) - np.log(sums.astype(np.float64)))

    def after(self, pieces: Pieces) -> Array:
        """``(N,)``: the label at the next position, of no meaning at the last."""
        out = np.zeros_like(self.labels)
        out[pieces.prior] = self.labels[pieces.later]
        if pieces.joints is not None:
            out[pieces.final[pieces.joints.lead]] = self.labels[pieces.joints.follow]
        return out

    def beside(self, done: Pass, near: Array) -> Array:
        """``- log p(gold)`` of the sequences that are ``near (B,)``, 0 of the others: nothing cancels, however small.

        Read backwards a chain is a Markov chain, ``p(y_t = j | y_{t+1}) ~ alpha_t(j) W(j, y_{t+1})``, and minus the log
        of what this gives the gold label is ``log1p`` of what it gives the others, over its own.
        """
        pieces, weights = done.pieces, done.weights
        owners = pieces.owners
        into = weights.moves.T.take(self.after(pieces), 0)
        into[pieces.ends] = weights.end
        places = np.flatnonzero(near[owners])
        joint = into[places] * done.alpha[places]
        at = at_labels(joint.shape[1], self.labels[places])
        own = filled(joint.take(at))
        joint.put(at, 0)
        each = np.log1p(ordered_sums(joint).astype(np.float64) / own)
        return np.bincount(owners[places], each, pieces.batch)
