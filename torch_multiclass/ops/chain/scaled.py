"""The recursions in scaled probability space: one product of matrices a step.

Emissions become probabilities ``x_t = softmax(e_t)`` and transitions ``W = exp(w - max w) <= 1``, so that

    alpha_t = (alpha_{t-1} W) * x_t / s_t,        beta_{t-1} = W (x_t * beta_t) / s_t,

with the scales ``s_t`` taken out every few steps. They lie in ``[exp(-range of w), 1]``: nothing overflows, and what
is lost to underflow is too small to matter as long as the range times the steps between two rescalings stays within
`BUDGET`. The backward recursion starts from the gradient of the value, so that unary marginals ``alpha * beta`` and
pairwise ones ``alpha_{t-1} W (x_t * beta_t)`` come out multiplied by it, and the transition gradient is one product.

Positions may be cut in chunks that run side by side (`plan.Cut`). A chunk is entered with what a short warm-up over the
end of its neighbour gives: the recursion forgets where it started. Hilbert's projective metric measures what it has
not forgotten, and never grows along the recursion, so comparing each entry with the neighbour's own result bounds the
error (Seneta, Non-negative Matrices and Markov Chains, chapter 3).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass.ops.chain import certificate
from torch_multiclass.ops.chain.logspace import Gradients
from torch_multiclass.ops.chain.plan import Cut
from torch_multiclass.ops.chain.structure import Chain
from torch_multiclass.ops.chain.table import Weights, beside_gold, filled, from_gold, from_tops

BUDGET = {torch.float32: 30.0, torch.float64: 300.0}
"""How much, in nats, the transitions may shrink a product of forward and backward vectors between two rescalings."""

NEAR = 10.0
"""Below so many nats a likelihood loss is computed from what differs from the gold labelling."""


class Pass(NamedTuple):
    """What the forward pass leaves to the backward pass."""

    cut: Cut
    weights: Weights
    x: Tensor  # (size, chunks * B, K), zero past the end of a sequence
    alpha: Tensor
    xs: tuple[Tensor, ...]  # x step by step
    every: int
    scales: Tensor  # (n, chunks * B, 1): what was divided out of alpha at each ``every``-th step
    total: Tensor  # (chunks * B, 1): the mass of alpha at the last position of each row of chunks
    ends: Tensor | None  # (size, chunks * B, 1): one where a sequence ends; None where all end with the last step


def advance(first: Tensor, later: tuple[Tensor, ...], moves: Tensor, every: int) -> Tensor:
    """Warm up: from ``first`` through the ``later`` emissions, normalised."""
    mass = first.clone()
    product = torch.empty_like(mass)
    for i, x in enumerate(later, 1):
        torch.mm(mass, moves, out=product)
        torch.mul(product, x, out=mass)
        if i % every == 0:
            mass.div_(filled(mass.sum(1, keepdim=True)))
    return mass.div_(filled(mass.sum(1, keepdim=True)))


def forward(
    x: Tensor, weights: Weights, cut: Cut, every: int, last: Tensor | None, batch: int
) -> tuple[Pass, Tensor | None]:
    """The forward recursion over emission probabilities ``x (size, chunks * B, K)``, the end folded in.

    ``last (chunks * B,)`` is the local position at which each row's sequence ends or leaves the chunk, -1 where the row
    is empty, and None if all rows are full. Also returns what the chunks after the first were entered with: their
    warm-up times ``W``.
    """
    size, moves = cut.size, weights.moves
    alpha = torch.empty_like(x)
    xs, alphas = x.unbind(0), alpha.unbind(0)
    entered, begin = None, weights.prob[-1, :-1]
    if cut.chunks == 1:
        torch.mul(xs[0], begin, out=alphas[0])
    else:
        warm = tuple(x_i[:-batch] for x_i in xs[size - cut.warm :])
        entry = advance(warm[0], warm[1:], moves, every)
        torch.mul(xs[0][:batch], begin, out=alphas[0][:batch])
        entered = entry @ moves
        torch.mul(entered, xs[0][batch:], out=alphas[0][batch:])
    mm, scales = torch.mm, x.new_empty((size - 1) // every, x.shape[1], 1)
    each = iter(scales.unbind(0))
    for i in range(1, size):
        mass = alphas[i]
        mm(alphas[i - 1], moves, out=mass)
        mass.mul_(xs[i])
        if i % every == 0:
            mass.div_(filled(torch.sum(mass, 1, keepdim=True, out=next(each))))
    if last is None:
        total, ends = alphas[-1].sum(1, keepdim=True), None
    else:
        at = last.clamp_min(0)[None, :, None].expand(1, -1, x.shape[2])
        total = torch.where(last[:, None] < 0, 1, alpha.gather(0, at)[0].sum(1, keepdim=True))
        ends = torch.zeros_like(x[..., :1]).scatter_(0, at[..., :1], (last >= 0).to(x.dtype)[None, :, None])
        if cut.chunks > 1:  # a row that leaves its chunk into a non-empty one does not end there
            ends[-1, :-batch].mul_((last[batch:] < 0)[:, None])
    return Pass(cut, weights, x, alpha, xs, every, scales, total, ends), entered


def log_mass(done: Pass, batch: int) -> Tensor:
    """``log`` of all that the forward pass took out of ``alpha``, ``(B,)`` in float64."""
    logs = torch.cat([done.total[None], done.scales]).double().log_()
    return logs.sum(0).view(-1, batch).sum(0)


def backward(done: Pass, grad: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    """Unary marginals and transition counts, each row multiplied by its ``grad (B,)``; whether chunks agreed.

    Leaves ``x * beta / s`` where ``x`` was: a pass goes back once.
    """
    cut, x, alpha, ends, every = done.cut, done.x, done.alpha, done.ends, done.every
    batch, size = len(grad), cut.size
    back = done.weights.moves.t()
    weight = (grad.repeat(cut.chunks) if cut.chunks > 1 else grad)[:, None]
    beta = torch.empty_like(x)
    xs, betas = done.xs, beta.unbind(0)
    finish = weight / done.total
    if ends is None:
        betas[-1].copy_(finish.expand_as(betas[-1]))
    else:
        beta.copy_((ends * finish).expand_as(beta))
    agreed = None
    if cut.chunks > 1:
        leave = retreat(done, batch)
        inner = weight[:-batch] / filled((alpha[-1, :-batch] * leave).sum(1, keepdim=True))
        if ends is None:
            torch.mul(leave, inner, out=betas[-1][:-batch])
        else:
            betas[-1][:-batch].addcmul_(leave, inner)
    mm, scales = torch.mm, done.scales
    for i in range(size - 1, 0, -1):
        arrive = xs[i].mul_(betas[i])
        if i % every == 0:
            arrive.div_(scales[i // every - 1])
        if ends is None:
            mm(arrive, back, out=betas[i - 1])
        else:
            betas[i - 1].addmm_(arrive, back)
        if i % 64 == 0:  # rounding drifts the total by about 1e-7 sqrt(steps)
            found = (alpha[i - 1] * betas[i - 1]).sum(1, keepdim=True)
            betas[i - 1].mul_(torch.where(found == 0, 1, weight / found))
    num_labels = x.shape[2]
    counts = alpha[:-1].reshape(-1, num_labels).t() @ x[1:].reshape(-1, num_labels)
    if cut.chunks > 1:
        arrive = xs[0].mul_(betas[0])[batch:]
        left = alpha[-1, :-batch]
        counts.addmm_((left / done.total[:-batch]).t(), arrive)
        live = (left > 0) & (weight[batch:] != 0)
        agreed = certificate.agree(leave * live, (arrive @ back).abs_() * live, batch)
    return beta.mul_(alpha), counts.mul_(done.weights.moves), agreed


def retreat(done: Pass, batch: int) -> Tensor:
    """Warm up backwards: ``W (x * beta)`` over the first steps of each chunk's successor, normalised."""
    xs, ends, warm = done.xs, done.ends, done.cut.warm
    back = done.weights.moves.t()
    mass = torch.ones_like(xs[0][batch:])
    arrive = torch.empty_like(mass)
    for i in range(warm - 1, -1, -1):
        torch.mul(xs[i][batch:], mass, out=arrive)
        torch.mm(arrive, back, out=mass)
        if ends is not None and i > 0:  # a successor that ends within the warm-up is entered where it ends
            mass.add_(ends[i - 1, batch:])
        if i % done.every == 0:
            mass.div_(filled(mass.sum(1, keepdim=True)))
    return mass


def soft_max(scores: Tensor) -> Tensor:
    """`torch.softmax` over the last dimension, which torch computes row by row where rows are short."""
    if scores.shape[-1] >= 16 or scores.numel() < 512:
        return scores.softmax(-1)
    found = (scores - scores.amax(-1, keepdim=True)).exp_()
    return found.div_(found.sum(-1, keepdim=True))


CANCELLED = 0.04
"""A gradient for transitions, start or end below this share of what it sums has too few digits left in float32."""


class Scaled:
    """``log Z``, or ``log Z - s(labels)``, of a chain with one ``(K, K)`` matrix, and what its gradient needs."""

    def __init__(
        self, chain: Chain, labels: Tensor | None, weights: Weights, cut: Cut, certified: bool = False
    ) -> None:
        self.chain = chain
        every = rescale_every(weights.span, weights.prob.dtype) if not certified else 4
        batch, steps, num_labels = chain.emissions.shape
        emissions = chain.emissions.to(weights.prob.dtype)
        probs = soft_max(emissions)
        x = cut.split(probs)
        self.final: tuple[Tensor, Tensor] | None = None  # where each sequence ends, in the cut
        last = None
        lengths = chain.lengths
        if lengths is None and cut.size * cut.chunks != steps:
            lengths = torch.full((batch,), steps, device=x.device)
        if lengths is not None:
            offset = torch.arange(cut.chunks, device=x.device)[:, None] * cut.size
            last = ((lengths - offset).clamp(0, cut.size) - 1).flatten()
            x.masked_fill_((torch.arange(cut.size, device=x.device)[:, None] > last)[..., None], 0)
            end = (lengths - 1).clamp_min(0)
            chunk = end.div(cut.size, rounding_mode="floor")
            rows = chunk * batch + torch.arange(batch, device=x.device)
            self.final = end - chunk * cut.size, rows
        if self.final is None:
            (x[-1] if cut.chunks == 1 else x[-1, -batch:]).mul_(weights.prob[:-1, -1])
        else:
            x[self.final] = x[self.final] * weights.prob[:-1, -1]
        self.done, entered = forward(x, weights, cut, every, last, batch)
        mass = log_mass(self.done, batch)
        self.path: Tensor | None = None  # (B, T + 2): the gold labels between two "outside", K
        self.places: Tensor | None = None  # (B, T + 1): where its moves stand in the table
        if labels is None:
            self.value = mass + from_tops(chain, emissions, probs, weights)
        else:
            outside = labels if chain.lengths is None else labels.masked_fill(~chain.inside(), num_labels)
            self.path = path = torch.nn.functional.pad(outside, (1, 1), value=num_labels)
            self.places = torch.add(path[:, 1:], path[:, :-1], alpha=num_labels + 1)
            self.value = self.loss(mass, emissions, probs)
        self.cancelled = False  # whether sums in `gradient` lost digits
        self.sound = self.value.isfinite()
        if entered is not None:
            left = self.done.alpha[-1, :-batch] @ weights.moves
            self.sound &= certificate.agree(entered, left, batch)
        if certified:
            self.sound &= self.certify(emissions, probs, mass)

    def loss(self, mass: Tensor, emissions: Tensor, probs: Tensor) -> Tensor:
        """``log Z - s(labels)``, ``(B,)`` in float64."""
        assert self.path is not None
        assert self.places is not None
        path, moves = self.path, self.done.weights.log.take(self.places)
        kept = None if self.chain.lengths is None else self.chain.inside()
        value = mass - from_gold(path, kept, moves, emissions, probs)
        lowest, highest = (bound.item() for bound in value.aminmax())
        if lowest > NEAR and highest < math.inf:  # the usual case, in one pass
            return value
        exact = mass - from_gold(path, kept, moves, emissions, probs, exact=True)
        value = torch.where(value.isfinite(), value, exact)
        near = (value < NEAR) & mass.isfinite()
        if bool(near.any()):
            cut, rows = self.done.cut, near.nonzero()[:, 0]
            here, after = cut.split(path[rows, 1:-1]), cut.split(path[rows, 2:])
            alpha = cut.take(self.done.alpha, rows)
            each = beside_gold(alpha, self.done.weights.moves, here, after)
            value[rows] = each.sum(0, dtype=torch.float64).view(cut.chunks, -1).sum(0)
        return value

    def certify(self, emissions: Tensor, probs: Tensor, mass: Tensor) -> Tensor:
        """``(B,)``: whether nothing that matters came near underflow, by `certificate`."""
        done = self.done
        batch = probs.shape[0]
        floor = mass - certificate.MARGIN
        table = done.weights.log > torch.where(mass.isfinite(), floor, 0).min()
        counts, lost = probs > floor.exp()[:, None, None], probs == 0
        if self.chain.lengths is not None:
            kept = self.chain.inside()[..., None]
            counts, lost = counts & kept, lost & kept
        if bool(lost.any()):
            lost &= emissions - emissions.amax(2, keepdim=True) > floor[:, None, None]
        counts = done.cut.split(counts)
        counts[0, :batch] &= table[-1, :-1]
        if self.final is None:
            counts[-1, -batch:] &= table[:-1, -1]
        else:
            counts[self.final] = counts[self.final] & table[:-1, -1]
        found = certificate.clear(done.alpha, done.scales, done.every)
        done.x.masked_fill_(~found, 0)
        return certificate.all_possible_clear(counts, found, table[:-1, :-1], batch) & ~lost.flatten(1).any(1)

    def forget(self, rows: Tensor) -> None:
        """Take the ``rows`` of the batch out of what the gradient is made of."""
        done = self.done
        for mass, blank in ((done.x, 0), (done.alpha, 0), (done.total[None], 1), (done.scales, 1)):
            mass.view(len(mass), done.cut.chunks, len(self.value), mass.shape[2])[:, :, rows] = blank

    def gradient(self, grad: Tensor) -> tuple[Gradients, Tensor | None]:
        """The gradient of ``sum(grad * value)``, and which rows of it are sound (None: all)."""
        batch, steps, num_labels = self.chain.emissions.shape
        grad = grad.to(self.done.x.dtype)
        unit = out_of_range(*(bound.item() for bound in grad.aminmax()))
        unary, moves, sound = backward(self.done, grad if unit is None else grad / unit)
        if unit is not None:
            unary, moves = unary.mul_(unit), moves.mul_(unit)
        by_emission = self.done.cut.join(unary, batch, steps)
        if self.path is not None and self.places is not None:
            gold = self.path[:, 1:-1, None]
            if self.chain.lengths is not None:
                gold = gold.clamp_max(num_labels - 1)
            by_emission.scatter_(2, gold, 0)  # p - 1 of the gold label is what the others have, with all their digits
            by_emission.scatter_(2, gold, by_emission.sum(2, keepdim=True).neg_())
            own = grad.neg()[:, None].expand(batch, steps + 1)
            table = moves.new_zeros((num_labels + 1) ** 2)
            table.index_add_(0, self.places.flatten(), own.flatten())
            counts = table.view(num_labels + 1, -1)[:-1, :-1]
            moves.add_(counts)
            self.cancelled = cancelled(moves, counts)
        first, last = by_emission[:, 0], by_emission[:, -1] if self.chain.lengths is None else self.at_last(by_emission)
        start, end = first.sum(0), last.sum(0)
        if self.path is not None and batch > 1:
            self.cancelled |= cancelled(start, first) or cancelled(end, last)
        return (by_emission, moves, start, end), sound

    def at_last(self, rows: Tensor) -> Tensor:
        """``(B, K)``: the row at each sequence's last position."""
        return rows.gather(1, self.chain.last()[:, None, None].expand(-1, 1, rows.shape[2]))[:, 0]


def cancelled(total: Tensor, parts: Tensor) -> bool:
    """Whether a sum is small beside what it sums."""
    whole, most = (float(torch.linalg.vector_norm(entries, math.inf)) for entries in (total, parts))
    return whole < CANCELLED * most


def out_of_range(low: float, high: float) -> float | None:
    """The size of an incoming gradient if it is to be taken out, so that products with it stay within range."""
    size = max(abs(low), abs(high))
    return size if 0 < size < 1e-6 or 1e6 < size < math.inf else None


def rescale_every(span: float, dtype: torch.dtype) -> int:
    """How many steps may pass between two rescalings when the table's entries span ``span`` nats."""
    return max(1, min(1 << 20, math.floor(BUDGET[dtype] / max(span, 1e-4))))
