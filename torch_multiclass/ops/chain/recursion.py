"""The recursions in scaled probability space: one product of matrices a step.

Emissions become probabilities ``x_t = softmax(e_t)`` and transitions ``W = exp(w - max w) <= 1``, so that

    alpha_t = (alpha_{t-1} W) * x_t / s_t,        beta_{t-1} = W (x_t * beta_t) / s_t,

with the scales ``s_t`` taken out every few steps. They lie in ``[exp(-range of w), 1]``: nothing overflows, and what
is lost to underflow is too small to matter as long as the range times the steps between two rescalings stays within
`BUDGET`. The backward recursion starts from the gradient of the value, so that unary marginals ``alpha * beta`` and
pairwise ones ``alpha_{t-1} W (x_t * beta_t)`` come out multiplied by it, and the transition gradient is one product.

Positions may be cut in pieces that run side by side (`plan.Cut`). A piece is entered with what a short warm-up over the
end of its neighbour gives: the recursion forgets where it started. Hilbert's projective metric measures what it has
not forgotten, and never grows along the recursion, so comparing each entry with the neighbour's own result bounds the
error (Seneta, Non-negative Matrices and Markov Chains, chapter 3).

All this runs on the CPU, in NumPy: a step on small matrices costs what calling the functions costs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch

from torch_multiclass.ops.chain import certificate
from torch_multiclass.ops.chain.arrays import (
    Array,
    divide,
    exp,
    filled,
    largest,
    ordered_sums,
    product,
    steps_product,
)
from torch_multiclass.ops.chain.pieces import Pieces
from torch_multiclass.ops.chain.table import Weights

BUDGET = {torch.float32: 30.0, torch.float64: 300.0}
"""How much, in nats, the transitions may shrink a product of forward and backward vectors between two rescalings."""

MILD = {4: 30.0, 8: 300.0}
"""By the size of a number: scores within so much of 0 are exponentiated as they are."""


class Probabilities(NamedTuple):
    """``x = exp(scores - shift) / sums``, with ``x (N, K)`` and the others ``(N,)``; ``x >= exp(-depth)`` or 0."""

    x: Array
    shift: Array
    sums: Array
    depth: float


def probabilities(scores: Array) -> Probabilities:
    """The soft-max of each row, in place."""
    low, high = float(np.minimum.reduce(scores, None)), float(np.maximum.reduce(scores, None))
    shift: Array = np.zeros(1)
    if not -MILD[scores.itemsize] <= low <= high <= MILD[scores.itemsize]:
        if low == -math.inf:
            low = float(np.min(scores, initial=high, where=scores > low))
        shift = largest(scores)
        scores -= shift[:, None]
    x = exp(scores)
    sums = ordered_sums(x)
    return Probabilities(divide(x, sums), shift, sums, high - low + math.log(x.shape[1]))


class Pass(NamedTuple):
    """What the forward pass leaves to the backward pass."""

    pieces: Pieces
    weights: Weights
    x: Array  # (N, K)
    xs: list[Array]  # the same, step by step
    alpha: Array
    beta: Array  # as yet of no meaning
    every: int
    scales: Array  # (n, P): what was divided out of alpha at each ``every``-th step
    total: Array  # (P,): the mass of alpha at the last position of each piece
    entered: Array | None  # what the pieces that follow others were entered with: their warm-up times W


def forward(x: Array, memory: Array, weights: Weights, pieces: Pieces, every: int) -> Pass:
    """The forward recursion over emission probabilities, with ``memory (2, N, K)`` for what it computes."""
    (alpha, beta), moves = memory, weights.moves
    xs, alphas = pieces.by_step(x), pieces.by_step(alpha)
    multiply = steps_product(*xs[0].shape)
    np.multiply(xs[0], weights.start, out=alphas[0])
    entered = None
    if pieces.joints is not None:
        entered = advance(xs, weights, pieces, every) @ moves
        alphas[0][pieces.joints.follow] = entered * xs[0][pieces.joints.follow]
    scales = np.ones(((len(xs) - 1) // every, len(xs[0])), x.dtype)
    for i in range(1, len(xs)):
        mass = alphas[i]
        multiply(alphas[i - 1][: len(mass)], moves, mass)
        np.multiply(mass, xs[i], out=mass)
        if i % every == 0:
            scale = scales[i // every - 1, : len(mass)]
            scale[:] = filled(ordered_sums(mass))
            divide(mass, scale)
    last = alpha[pieces.final]
    total = last.dot(weights.end)
    if pieces.joints is not None:
        total[pieces.joints.lead] = ordered_sums(last[pieces.joints.lead])
    return Pass(pieces, weights, x, xs, alpha, beta, every, scales, total, entered)


def advance(xs: list[Array], weights: Weights, pieces: Pieces, every: int) -> Array:
    """Warm up: through the last steps of the pieces that lead, normalised."""
    assert pieces.joints is not None
    lead, warm = pieces.joints.lead, pieces.joints.warm
    first, *later = xs[-warm:]
    multiply = steps_product(len(lead), first.shape[1])
    mass = first[lead]
    ahead, own = np.empty_like(mass), np.empty_like(mass)
    for i, x in enumerate(later, 1):
        multiply(mass, weights.moves, ahead)
        x.take(lead, 0, out=own, mode="clip")
        np.multiply(ahead, own, out=mass)
        if i % every == 0:
            divide(mass, filled(ordered_sums(mass)))
    return divide(mass, filled(ordered_sums(mass)))


def log_mass(done: Pass) -> Array:
    """``log`` of all that the forward pass took out of ``alpha``, ``(B,)`` in float64; 0 for an empty sequence."""
    logs = np.log(done.total.astype(np.float64))
    if len(done.scales) > 0:
        logs += np.log(done.scales.astype(np.float64)).sum(0)
    return done.pieces.by_piece(logs)


def backward(done: Pass, grad: Array) -> tuple[Array, Array, Array | None]:
    """Unary marginals ``(N, K)`` and transition counts, each sequence's multiplied by its ``grad (B,)``.

    And which sequences are sound, None for all. Leaves ``x * beta / s`` where ``x`` was: a pass goes back once.
    """
    pieces, weights, x, alpha, beta, every = done.pieces, done.weights, done.x, done.alpha, done.beta, done.every
    weight = grad[pieces.sequence]
    xs, betas = done.xs, pieces.by_step(beta)
    back = np.ascontiguousarray(weights.moves.T)
    beta[pieces.final] = (weight / done.total)[:, None] * weights.end
    if pieces.joints is not None:
        lead = pieces.joints.lead
        leave, left = retreat(xs, back, pieces, weights, every), alpha[pieces.final[lead]]
        beta[pieces.final[lead]] = leave * (weight[lead] / filled(ordered_sums(left * leave)))[:, None]
    multiply = steps_product(*xs[0].shape)
    for i in range(len(xs) - 1, 0, -1):
        arrive = np.multiply(xs[i], betas[i], out=xs[i])
        if i % every == 0:
            divide(arrive, done.scales[i // every - 1, : len(arrive)])
        multiply(arrive, back, betas[i - 1][: len(arrive)])
        if i % 64 == 0:  # rounding drifts the total by about 1e-7 sqrt(steps)
            found = ordered_sums(alpha[pieces.offsets[i - 1] : pieces.offsets[i]] * betas[i - 1])
            betas[i - 1] *= np.where(found == 0, 1, weight[: len(found)] / found)[:, None]
    counts = product(alpha[pieces.prior].T, x[pieces.later])
    agreed = None
    if pieces.joints is not None:
        follow = pieces.joints.follow
        arrive = xs[0][follow] * betas[0][follow]
        counts += (left / done.total[lead][:, None]).T @ arrive
        live = (left > 0) & (weight[follow] != 0)[:, None]
        agreed = certificate.agree(leave * live, np.abs(arrive @ back) * live, pieces)
    beta *= alpha
    counts *= weights.moves
    return beta, counts, agreed


def retreat(xs: list[Array], back: Array, pieces: Pieces, weights: Weights, every: int) -> Array:
    """Warm up backwards: ``W (x * beta)`` over the first steps of the pieces that follow."""
    assert pieces.joints is not None
    joints = pieces.joints
    mass = np.ones((len(joints.follow), len(back)), back.dtype)
    mass[joints.short] = weights.end  # a follower that ends within the warm-up is entered where it ends
    for i, count in reversed(list(enumerate(pieces.active(joints.follow, joints.warm)))):
        arrive = xs[i].take(joints.follow[:count], 0)
        arrive *= mass[:count]
        np.dot(arrive, back, out=mass[:count])
        if i % every == 0:
            divide(mass, filled(ordered_sums(mass)))
    return mass


def rescale_every(span: float, dtype: torch.dtype) -> int:
    """How many steps may pass between two rescalings when the table's entries span ``span`` nats."""
    return max(1, min(1 << 20, math.floor(BUDGET[dtype] / max(span, 1e-4))))
