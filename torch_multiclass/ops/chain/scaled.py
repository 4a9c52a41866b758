"""The recursions in scaled probability space: one product of matrices a step.

Emissions become probabilities ``x_t = softmax(e_t)`` and transitions ``W = exp(w - max w) <= 1``, so that

    alpha_t = (alpha_{t-1} W) * x_t / s_t,        beta_{t-1} = W (x_t * beta_t) / s_t,

with the scales ``s_t`` taken out every few steps. They lie in ``[exp(-range of w), 1]``: nothing overflows, and what
is lost to underflow is too small to matter as long as the range times the steps between two rescalings stays within
`BUDGET`. The backward recursion starts from the gradient of the value, so that unary marginals ``alpha * beta`` and
pairwise ones ``alpha_{t-1} W (x_t * beta_t)`` come out multiplied by it, and the transition gradient is one product.

Positions may be cut in chunks that run side by side (`Layout`). A chunk is entered with what a short warm-up over the
end of its neighbour gives: the recursion forgets where it started. Hilbert's projective metric measures what it has
not forgotten, and never grows along the recursion, so comparing each entry with the neighbour's own result bounds the
error (Seneta, Non-negative Matrices and Markov Chains, chapter 3).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass.ops.chain.logspace import Gradients
from torch_multiclass.ops.chain.structure import Chain

BUDGET = {torch.float32: 30.0, torch.float64: 300.0}
"""How much, in nats, the transitions may shrink a product of forward and backward vectors between two rescalings."""

SAFE = {torch.float32: 33.0, torch.float64: 330.0}
"""How many nats the transitions may span for the recursion to be right whatever the emissions."""

TINY = {torch.float32: 1e-37, torch.float64: 1e-307}
"""Below this a probability has lost digits."""

CLEAR = {torch.float32: 1e-30, torch.float64: 1e-290}
"""What is at least this large has all its digits, and so has its quotient with anything up to 1."""

MARGIN = 40.0
"""So many nats below the total, a score is no part of it."""

AGREEMENT = {torch.float32: 4e-6, torch.float64: 1e-12}
"""How far, relatively, the entry of a chunk may lie from the end of the chunk before."""


class Layout(NamedTuple):
    """Positions cut in ``chunks`` of ``size``, each entered after ``warm`` steps over its neighbour."""

    size: int
    chunks: int
    warm: int

    def cut(self, rows: Tensor) -> Tensor:
        """``(B, T, ...)`` as ``(size, chunks * B, ...)``, zeros past ``T``."""
        batch, steps = rows.shape[:2]
        if self.chunks == 1:
            return rows.transpose(0, 1).clone(memory_format=torch.contiguous_format)
        out = rows.new_empty(self.size, self.chunks, batch, *rows.shape[2:])
        full, rest = divmod(steps, self.size)
        chunks = rows[:, : full * self.size].reshape(batch, full, self.size, *rows.shape[2:])
        out[:, :full].copy_(chunks.movedim(2, 0).transpose(1, 2))
        if full < self.chunks:
            out[:rest, full].copy_(rows[:, full * self.size :].transpose(0, 1))
            out[rest:, full:].zero_()
        return out.flatten(1, 2)

    def join(self, rows: Tensor, batch: int, steps: int) -> Tensor:
        """The inverse of `cut`."""
        if self.chunks == 1:
            return rows.transpose(0, 1)
        chunks = rows.view(self.size, self.chunks, batch, *rows.shape[2:]).movedim(0, 2)
        return chunks.transpose(0, 1).flatten(1, 2)[:, :steps]


class Weights(NamedTuple):
    """Transitions, start (the last row) and end (the last column) in one ``(K+1, K+1)`` table."""

    log: Tensor
    prob: Tensor
    moves: Tensor
    top: tuple[float, float, float]  # what was taken out of transitions, start and end
    span: float  # between the largest and the smallest finite entry
    forbids: bool  # whether an entry is -inf


def tabulate(chain: Chain, dtype: torch.dtype) -> Weights:
    """The table of a chain with one transition matrix, its blocks each or all together brought down to 0 at most."""
    width = chain.emissions.shape[2] + 1
    moves, first, last = (part.to(dtype) for part in chain[1:4])
    inner = torch.cat([moves, last[:, None]], 1)
    log = torch.cat([inner.flatten(), first, first[:1]]).view(width, width)
    low, high = (bound.item() for bound in log.aminmax())
    forbids = low == -math.inf
    if high - low <= SAFE[torch.float32]:
        top = (high, high, high)
        log.sub_(high)
    else:
        blocks = log[:-1, :-1], log[-1, :-1], log[:-1, -1]
        top = (blocks[0].max().item(), blocks[1].max().item(), blocks[2].max().item())
        for block, high in zip(blocks, top, strict=True):
            block.sub_(high)
        low, high = log.masked_fill(log == -torch.inf, 0).min().item(), 0.0
    if chain.lengths is not None:
        log[-1, -1] = 0  # where the path of a gold labelling stays after its end
    prob = log.exp()
    return Weights(log, prob, prob[:-1, :-1], top, high - low, forbids)


class Pass(NamedTuple):
    """What the forward pass leaves to the backward pass."""

    layout: Layout
    weights: Weights
    x: Tensor  # (size, chunks * B, K), zero past the end of a sequence
    alpha: Tensor
    xs: tuple[Tensor, ...]  # x step by step
    scales: dict[int, Tensor]
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


def filled(mass: Tensor) -> Tensor:
    """The mass to divide by: 1 where there is none."""
    return mass.masked_fill_(mass == 0, 1)


def forward(
    x: Tensor, weights: Weights, layout: Layout, every: int, last: Tensor | None, batch: int
) -> tuple[Pass, Tensor | None]:
    """The forward recursion over emission probabilities ``x (size, chunks * B, K)``, the end folded in.

    ``last (chunks * B,)`` is the local position at which each row's sequence ends or leaves the chunk, -1 where the row
    is empty, and None if all rows are full. Also returns what the chunks after the first were entered with: their
    warm-up times ``W``.
    """
    size, moves = layout.size, weights.moves
    alpha = torch.empty_like(x)
    xs, alphas = x.unbind(0), alpha.unbind(0)
    entered, begin = None, weights.prob[-1, :-1]
    if layout.chunks == 1:
        torch.mul(xs[0], begin, out=alphas[0])
    else:
        warm = tuple(x_i[:-batch] for x_i in xs[size - layout.warm :])
        entry = advance(warm[0], warm[1:], moves, every)
        torch.mul(xs[0][:batch], begin, out=alphas[0][:batch])
        entered = entry @ moves
        torch.mul(entered, xs[0][batch:], out=alphas[0][batch:])
    mm, scales = torch.mm, {}
    for i in range(1, size):
        mass = alphas[i]
        mm(alphas[i - 1], moves, out=mass)
        mass.mul_(xs[i])
        if i % every == 0:
            scales[i] = scale = filled(mass.sum(1, keepdim=True))
            mass.div_(scale)
    if last is None:
        total, ends = alphas[-1].sum(1, keepdim=True), None
    else:
        at = last.clamp_min(0)[None, :, None].expand(1, -1, x.shape[2])
        total = torch.where(last[:, None] < 0, 1, alpha.gather(0, at)[0].sum(1, keepdim=True))
        ends = torch.zeros_like(x[..., :1]).scatter_(0, at[..., :1], (last >= 0).to(x.dtype)[None, :, None])
        if layout.chunks > 1:  # a row that leaves its chunk into a non-empty one does not end there
            ends[-1, :-batch].mul_((last[batch:] < 0)[:, None])
    return Pass(layout, weights, x, alpha, xs, scales, total, ends), entered


def log_mass(done: Pass, batch: int) -> Tensor:
    """``log`` of all that the forward pass took out of ``alpha``, ``(B,)`` in float64."""
    logs = torch.cat([done.total, *done.scales.values()], 1).log_()
    return logs.sum(1, dtype=torch.float64).view(-1, batch).sum(0)


def distance(one: Tensor, other: Tensor) -> Tensor:
    """Hilbert's projective distance of positive vectors; entries that are zero in both do not count."""
    ratio = torch.where((one == 0) & (other == 0), torch.nan, one / other)
    top = torch.where(ratio.isnan(), 0, ratio).amax(1)
    low = torch.where(ratio.isnan(), torch.inf, ratio).amin(1)
    return torch.where(top > 0, top / low - 1, 0)


def agree(entered: Tensor, done: Pass, batch: int) -> Tensor:
    """``(B,)``: whether the chunks were entered as the ones before them were left."""
    left = done.alpha[-1, :-batch] @ done.weights.moves
    return distance(entered, left).view(-1, batch).amax(0) <= AGREEMENT[left.dtype]


def backward(done: Pass, grad: Tensor, every: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """Unary marginals and transition counts, each row multiplied by its ``grad (B,)``; whether chunks agreed.

    Leaves ``x * beta / s`` where ``x`` was: a pass goes back once.
    """
    layout, x, alpha, ends = done.layout, done.x, done.alpha, done.ends
    batch, size = len(grad), layout.size
    back = done.weights.moves.t()
    weight = (grad.repeat(layout.chunks) if layout.chunks > 1 else grad)[:, None]
    beta = torch.empty_like(x)
    xs, betas = done.xs, beta.unbind(0)
    finish = weight / done.total
    if ends is None:
        betas[-1].copy_(finish.expand_as(betas[-1]))
    else:
        beta.copy_((ends * finish).expand_as(beta))
    agreed = None
    if layout.chunks > 1:
        leave = retreat(done, batch, every)
        inner = weight[:-batch] / filled((alpha[-1, :-batch] * leave).sum(1, keepdim=True))
        if ends is None:
            torch.mul(leave, inner, out=betas[-1][:-batch])
        else:
            betas[-1][:-batch].addcmul_(leave, inner)
    mm, scales = torch.mm, done.scales
    for i in range(size - 1, 0, -1):
        arrive = xs[i].mul_(betas[i])
        if i in scales:
            arrive.div_(scales[i])
        if ends is None:
            mm(arrive, back, out=betas[i - 1])
        else:
            betas[i - 1].addmm_(arrive, back)
        if i % 64 == 0:  # rounding drifts the total by about 1e-7 sqrt(steps)
            found = (alpha[i - 1] * betas[i - 1]).sum(1, keepdim=True)
            betas[i - 1].mul_(torch.where(found == 0, 1, weight / found))
    num_labels = x.shape[2]
    counts = alpha[:-1].reshape(-1, num_labels).t() @ x[1:].reshape(-1, num_labels)
    if layout.chunks > 1:
        arrive = xs[0].mul_(betas[0])[batch:]
        left = alpha[-1, :-batch]
        counts.addmm_((left / done.total[:-batch]).t(), arrive)
        whole = (arrive @ back).abs_()
        live = (whole > 0) & (left > 0)
        apart = distance(leave * live, whole * live).view(-1, batch).amax(0)
        agreed = apart <= AGREEMENT[x.dtype]
    return beta.mul_(alpha), counts.mul_(done.weights.moves), agreed


def retreat(done: Pass, batch: int, every: int) -> Tensor:
    """Warm up backwards: ``W (x * beta)`` over the first steps of each chunk's successor, normalised."""
    xs, ends, warm = done.xs, done.ends, done.layout.warm
    back = done.weights.moves.t()
    mass = torch.ones_like(xs[0][batch:])
    arrive = torch.empty_like(mass)
    for i in range(warm - 1, -1, -1):
        torch.mul(xs[i][batch:], mass, out=arrive)
        torch.mm(arrive, back, out=mass)
        if ends is not None and i > 0:  # a successor that ends within the warm-up is entered where it ends
            mass.add_(ends[i - 1, batch:])
        if i % every == 0:
            mass.div_(filled(mass.sum(1, keepdim=True)))
    return mass


class Scaled:
    """``log Z``, or ``log Z - s(labels)``, of a chain with one ``(K, K)`` matrix, and what its gradient needs."""

    def __init__(
        self, chain: Chain, labels: Tensor | None, weights: Weights, layout: Layout, certified: bool = False
    ) -> None:
        self.chain, self.labels = chain, labels
        self.every = every = rescale_every(weights.span, weights.log.dtype) if not certified else 4
        batch, steps, _ = chain.emissions.shape
        emissions = chain.emissions.to(weights.log.dtype)
        probs = emissions.softmax(2)
        x = layout.cut(probs)
        self.final: tuple[Tensor, Tensor] | None = None  # where each sequence ends, in the layout
        last = None
        lengths = chain.lengths
        if lengths is None and layout.size * layout.chunks != steps:
            lengths = torch.full((batch,), steps, device=x.device)
        if lengths is not None:
            offset = torch.arange(layout.chunks, device=x.device)[:, None] * layout.size
            last = ((lengths - offset).clamp(0, layout.size) - 1).flatten()
            x.masked_fill_((torch.arange(layout.size, device=x.device)[:, None] > last)[..., None], 0)
            end = (lengths - 1).clamp_min(0)
            chunk = end.div(layout.size, rounding_mode="floor")
            rows = chunk * batch + torch.arange(batch, device=x.device)
            self.final = end - chunk * layout.size, rows
        origin = self.origin(emissions, probs, weights)
        if self.final is None:
            (x[-1] if layout.chunks == 1 else x[-1, -batch:]).mul_(weights.prob[:-1, -1])
        else:
            x[self.final] = x[self.final] * weights.prob[:-1, -1]
        self.done, entered = forward(x, weights, layout, every, last, batch)
        mass = log_mass(self.done, batch)
        self.value = mass + origin
        self.sound = self.value.isfinite()
        if labels is not None and not bool(self.sound.all()):
            self.value = mass + self.origin(emissions, probs, weights, exact=True)
            self.sound = self.value.isfinite()
        if entered is not None:
            self.sound &= agree(entered, self.done, batch)
        if certified:
            self.sound &= self.certify(emissions, probs, mass)

    def origin(self, emissions: Tensor, probs: Tensor, weights: Weights, exact: bool = False) -> Tensor:
        """What the recursion measures from, ``(B,)`` in float64: the gold labelling, or the tops of the scores."""
        _, steps, num_labels = emissions.shape
        lengths = self.chain.lengths
        if self.labels is None:
            each = emissions.amax(2).double() - probs.amax(2).double().log()
            move, first, last = weights.top
            if lengths is None:
                return each.sum(1) + ((steps - 1) * move + first + last)
            kept = torch.arange(steps, device=each.device) < lengths[:, None]
            tops = torch.where(lengths > 0, (lengths.double() - 1) * move + first + last, 0)
            return torch.where(kept, each, 0).sum(1) + tops
        labels = self.labels
        if lengths is not None:
            kept = torch.arange(steps, device=labels.device) < lengths[:, None]
            labels = labels.masked_fill(~kept, num_labels)
        path = torch.nn.functional.pad(labels, (1, 1), value=num_labels)  # the table's index of "outside"
        self.moves = torch.add(path[:, 1:], path[:, :-1], alpha=num_labels + 1)
        moves = weights.log.take(self.moves)
        self.labels = labels = labels if lengths is None else labels.clamp_max_(num_labels - 1)
        if exact:
            top = emissions.amax(2) - probs.amax(2).log_()
            chosen = emissions.gather(2, labels[..., None])[..., 0] - top
        else:  # log of a probability that has lost digits: -inf, to be told apart
            chosen = torch.threshold(probs.gather(2, labels[..., None])[..., 0], TINY[probs.dtype], 0).log_()
        if lengths is not None:
            chosen = torch.where(kept, chosen, 0)
        moves[:, 1:].add_(chosen)
        return moves.sum(1, dtype=torch.float64).neg_()

    def certify(self, emissions: Tensor, probs: Tensor, mass: Tensor) -> Tensor:
        """``(B,)``: whether no label that can be reached came near underflow.

        All factors are at most 1, so a score below ``log Z`` (as measured in `forward`) by `MARGIN` and more cannot
        matter: it counts as forbidden, like -inf. The labels whose ``alpha`` is well above underflow must then be
        exactly those that can be reached in one step from such labels before them, and by induction from the start.
        """
        done, lengths = self.done, self.chain.lengths
        batch, steps, _ = probs.shape
        floor = mass - MARGIN
        table = done.weights.log > torch.where(mass.isfinite(), floor, 0).min()
        positive = probs > 0
        lost = ~positive
        if lengths is not None:
            kept = (torch.arange(steps, device=mass.device) < lengths[:, None])[..., None]
            lost, positive = lost & kept, positive & kept
        if bool(lost.any()):
            depth = emissions - emissions.amax(2, keepdim=True)
            lost &= depth > floor[:, None, None]
            sound = ~lost.flatten(1).any(1)
        else:
            sound = torch.ones_like(mass, dtype=torch.bool)
        possible = done.layout.cut(positive)
        possible[0, :batch] &= table[-1, :-1]
        if self.final is None:
            possible[-1, -batch:] &= table[:-1, -1]
        else:
            possible[self.final] = possible[self.final] & table[:-1, -1]
        found = done.alpha >= CLEAR[probs.dtype]
        reach = table[:-1, :-1].to(probs.dtype)
        before = found.to(probs.dtype)
        possible[1:] &= (before[:-1].flatten(0, 1) @ reach > 0).view_as(possible[1:])
        if done.layout.chunks > 1:
            possible[0, batch:] &= before[-1, :-batch] @ reach > 0
        # The backward vectors of labels that cannot be reached are bounded by nothing: take them out.
        done.x.masked_fill_(~found, 0)
        same = (possible == found).all(2).all(0)
        return sound & same.view(-1, batch).all(0)

    def forget(self, rows: Tensor) -> None:
        """Take the ``rows`` of the batch out of what the gradient is made of."""
        done = self.done
        for mass in (done.x, done.alpha):
            mass.view(len(mass), done.layout.chunks, -1, mass.shape[2])[:, :, rows] = 0
        for scale in (done.total, *done.scales.values()):
            scale.view(done.layout.chunks, -1)[:, rows] = 1

    def gradient(self, grad: Tensor) -> tuple[Gradients, Tensor | None]:
        """The gradient of ``sum(grad * value)``, and which rows of it are sound (None: all)."""
        batch, steps, num_labels = self.chain.emissions.shape
        grad = grad.to(self.done.x.dtype)
        unary, moves, sound = backward(self.done, grad, self.every)
        by_emission = self.done.layout.join(unary, batch, steps)
        if self.labels is not None:
            own = grad.neg()[:, None].expand(batch, steps + 1)
            here = own[:, 1:, None]
            if self.chain.lengths is not None:
                here = here * (torch.arange(steps, device=grad.device) < self.chain.lengths[:, None])[..., None]
            by_emission.scatter_add_(2, self.labels[..., None], here)
            table = moves.new_zeros((num_labels + 1) ** 2).index_add_(0, self.moves.flatten(), own.flatten())
            moves.add_(table.view(num_labels + 1, -1)[:-1, :-1])
        last = by_emission[:, -1] if self.chain.lengths is None else self.at_last(by_emission)
        return (by_emission, moves, by_emission[:, 0].sum(0), last.sum(0)), sound

    def at_last(self, rows: Tensor) -> Tensor:
        """``(B, K)``: the row at each sequence's last position."""
        assert self.chain.lengths is not None
        at = (self.chain.lengths - 1).clamp_min(0)[:, None, None]
        return rows.gather(1, at.expand(-1, 1, rows.shape[2]))[:, 0]


def rescale_every(span: float, dtype: torch.dtype) -> int:
    """How many steps may pass between two rescalings when the table's entries span ``span`` nats."""
    return max(1, min(1 << 20, math.floor(BUDGET[dtype] / max(span, 1e-4))))
