r"""The sum over second-order labellings in scaled probability space: one batched product a step.

With ``M_t(j, k)`` the mass of the prefixes that end in the labels ``j, k``, without the emission of ``k``,

.. math::
    M_{t+1}(j, k) = \sum_i M_t(i, j) x_{t, j} \exp(V_{ijk} + W_{jk}),

and its derivative is the same recursion backwards. Scores are taken below their best, so nothing overflows, and masses
are divided by their largest often enough that nothing underflows that may count: in one step they span at most
``E + 2 D + \log K``, where the emissions of a position differ by at most ``E`` and moves by at most ``D``. Where that
is more than float64 can hold, or something is forbidden and a mass came out too small to be told from nothing, the
caller goes through log space.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_multiclass.ops.chain.structure import row

SPAN = 300.0
"""Nats that masses may span in a step, and shrink by between two divisions; float64 holds 708 on either side of 1."""

SMALL = 1e-250
"""What no mass that is possible may fall below, where something is forbidden."""


class Scaled(NamedTuple):
    """What the forward pass leaves to the backward pass; float64."""

    value: Tensor  # (B,)
    masses: Tensor  # (T, K, B, K), M_t at [t], of no meaning at 0
    x: Tensor  # (T, B, K), exponentials of the emissions below their best
    triples: Tensor  # (K, K, K), [through, from, to]
    moves: Tensor | None  # (T-1, K, B | 1, K), where each step has its own
    divided: dict[int, Tensor]  # (B,), by what the masses were divided
    final: Tensor  # (B, K), the exponentials of the last emission and the end, over the mass of all labellings


def forward(
    emissions: Tensor, transitions: Tensor, second: Tensor, start: Tensor, end: Tensor, last: Tensor
) -> Scaled | None:
    """``log Z`` of sequences of two positions or more, the last of each given; None where log space is needed.

    What stands past the last position is 0.
    """
    batch, steps, k = emissions.shape
    top, e_span = _top(emissions, (-1,))
    w_top, w_span = _top(transitions, tuple(range(-2, 0)))
    v_top, v_span = _top(second, (0, 1, 2))
    s_top, s_span = _top(row(start), (-1,))
    f_top, f_span = _top(row(end), (-1,))
    span, shrink = (float(part) for part in torch.stack([e_span + 2 * (w_span + v_span), e_span + w_span + v_span]))
    ends = float(torch.maximum(s_span, f_span))
    if not max(span + math.log(k), ends + span) <= SPAN:
        return None
    every = max(1, int(SPAN / (shrink + math.log(k) + 1e-3)))

    x = (emissions - top).exp().transpose(0, 1).contiguous()
    pairs = (transitions - w_top).exp()
    triples = (second - v_top).exp()
    own = transitions.dim() > 2
    moves = pairs.permute(1, 2, 0, 3).contiguous() if own else None  # (T-1, j, B | 1, k)
    if not own:
        triples = triples * pairs
    triples = triples.transpose(0, 1).contiguous()
    masses = emissions.new_empty(steps, k, batch, k)
    into = emissions.new_empty(k, batch, k)
    divided: dict[int, Tensor] = {}
    before = (row(start) - s_top).exp() * x[0]
    first = pairs[None] if moves is None else moves[0].transpose(0, 1)  # (B | 1, j, k)
    masses[1] = (before[:, :, None] * first).transpose(0, 1)
    for t in range(2, steps):
        mass = masses[t]
        into.copy_((masses[t - 1] * x[t - 1]).transpose(0, 2))
        torch.bmm(into, triples, out=mass)
        if moves is not None:
            mass *= moves[t - 1]
        if t % every == 0:
            largest = mass.amax((0, 2))
            divided[t] = torch.where(largest > 0, largest, 1.0)
            mass /= divided[t][:, None]
    rows = torch.arange(batch, device=last.device)
    final = x[last, rows] * (row(end) - f_top).exp()
    total = (masses[last, :, rows] * final[:, None]).sum((1, 2)).clamp_min(0)
    if emissions.isinf().any() or not all(part.isfinite().all() for part in (transitions, second, start, end)):
        if not _told_apart(emissions, transitions, second, start, masses, last, total, end):
            return None
    elif not bool((total > 0).all()):
        return None
    value = total.log() + s_top[..., 0] + f_top[..., 0] + _up_to(top[..., 0], last)
    value = value + v_top.reshape(()) * (last - 1)
    if moves is None:
        value = value + w_top.reshape(()) * last
    else:
        value = value + _up_to(w_top[..., 0, 0].expand(batch, -1), last - 1)
    for t, by in divided.items():
        value = value + torch.where(last >= t, by.log(), 0.0)
    share = final / torch.where(total > 0, total, 1.0)[:, None]
    return Scaled(value, masses, x, triples, moves, divided, share)


def backward(found: Scaled, grad: Tensor, last: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The derivatives of ``sum(grad * value)`` for emissions, transitions, second, start and end, one row a sequence.

    Of the transitions ``(K, K)``, or ``(T-1, K, B, K)`` where each step has its own; of start and end ``(B, K)``.
    """
    masses, x = found.masses, found.x
    steps, k, batch, _ = masses.shape
    final = found.final * grad[:, None]
    at_last = (last == torch.arange(steps, device=last.device)[:, None]).to(final.dtype)[..., None]  # (T, B, 1)
    ragged = bool((last < steps - 1).any())
    turned = found.triples.mT.contiguous()
    back = (final * at_last[-1]).expand(k, batch, k).contiguous()  # the derivative for M_t as it stands
    both, into, scaled = torch.empty_like(back), torch.empty_like(back), torch.empty_like(back)
    by_emission = x.new_empty(steps, batch, k)
    by_moves = torch.zeros_like(back) if found.moves is None else torch.zeros_like(masses[1:])
    by_second = torch.zeros_like(turned)  # [through, from, to]
    for t in range(steps - 1, 0, -1):
        torch.mul(masses[t], back, out=both)
        torch.sum(both, 0, out=by_emission[t])
        if found.moves is None:
            by_moves += both
        else:
            by_moves[t - 1] = both
        if t == 1:
            break
        if t in found.divided:
            back /= found.divided[t][:, None]
        if found.moves is not None:
            back *= found.moves[t - 1]
        torch.mul(masses[t - 1], x[t - 1], out=scaled)
        by_second.baddbmm_(into.copy_(scaled.transpose(0, 2)).mT, back)
        torch.bmm(back, turned, out=into)  # [j, b, i]
        back.copy_(into.transpose(0, 2)).mul_(x[t - 1])
        if ragged:
            back += final * at_last[t - 1]
    by_start = both.sum(2).t()  # (B, j)
    by_emission[0] = by_start
    by_end = by_emission[last, torch.arange(batch, device=last.device)]
    by_transition = by_moves.sum(1) if found.moves is None else by_moves
    by_second = (by_second * found.triples).transpose(0, 1)
    return by_emission.transpose(0, 1), by_transition, by_second, by_start, by_end


def _top(scores: Tensor, dims: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The best over ``dims``, 0 where there is none, and by how much the finite ones differ at most."""
    best = scores.amax(dims, keepdim=True)
    best = torch.where(best == -torch.inf, 0.0, best)
    least = torch.where(scores == -torch.inf, best, scores).amin(dims, keepdim=True)
    return best, (best - least).amax()


def _up_to(values: Tensor, last: Tensor) -> Tensor:
    """The sum of ``values (B, T)`` up to the last position, the same however far they are padded."""
    return values.cumsum(1).gather(1, last[:, None])[:, 0]


def _told_apart(
    emissions: Tensor,
    transitions: Tensor,
    second: Tensor,
    start: Tensor,
    masses: Tensor,
    last: Tensor,
    total: Tensor,
    end: Tensor,
) -> bool:
    """Whether every mass that is possible is more than what rounds to nothing."""
    steps = emissions.shape[1]

    def one(scores: Tensor) -> Tensor:
        return (scores != -torch.inf).float()

    x, w, v = one(emissions).transpose(0, 1), one(transitions), one(second).transpose(0, 1).contiguous()

    def step(t: int) -> Tensor:
        return w[:, t - 1].transpose(0, 1) if w.dim() > 2 else w[:, None]

    possible = (one(row(start)) * x[0]).t()[:, :, None] * step(1)
    low = [((masses[1] < SMALL) & (possible > 0)).any()]
    reach = [possible]
    for t in range(2, steps):
        possible = ((possible.transpose(0, 2) * x[t - 1].t()[:, :, None]) @ v * step(t)).clamp_max(1)
        low.append(((masses[t] < SMALL) & (possible > 0) & (last >= t)[:, None]).any())
        reach.append(possible)
    rows = torch.arange(len(last), device=last.device)
    final = torch.stack(reach, 1)[:, last - 1, rows] * x[last, rows] * one(row(end))
    low.append(((final.sum((0, 2)) > 0) & (total < SMALL)).any())
    return not bool(torch.stack(low).any())


class ScaledValue(torch.autograd.Function):
    """``log Z`` by `forward`, whose derivative is `backward`; a second derivative goes through the caller's own sum."""

    @staticmethod
    def forward(ctx: Any, found: Scaled, last: Tensor, other: Any, *scores: Tensor) -> Tensor:
        """The value that was found."""
        ctx.found, ctx.last, ctx.other = found, last, other
        ctx.save_for_backward(*scores)
        return found.value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        """Its derivatives."""
        scores = ctx.saved_tensors
        if torch.is_grad_enabled():
            value = ctx.other(*scores)
            wanted = [part for part in scores if part.requires_grad]
            found = iter(torch.autograd.grad(value, wanted, grad, create_graph=True, materialize_grads=True))
            return None, None, None, *(next(found) if part.requires_grad else None for part in scores)
        emissions, transitions, second, start, end = backward(ctx.found, grad, ctx.last)
        if scores[1].dim() > 2:
            transitions = transitions.permute(2, 0, 1, 3).sum_to_size(scores[1].shape)
        ends = [g.sum(0) if part.dim() == 1 else g for g, part in zip((start, end), scores[3:], strict=True)]
        return None, None, None, emissions, transitions, second, *ends
