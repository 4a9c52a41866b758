"""Semi-Markov chains: what may come before a segment of each length is carried along."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_multiclass.checks import IGNORE
from torch_multiclass.ops.chain.structure import row
from torch_multiclass.ops.scans.base import NEVER, log_total, probability, scan, times
from torch_multiclass.ops.segments import Segments, by_last_labels


def _numbers(values: Sequence[int], device: torch.device) -> Tensor:
    """`torch.tensor` of the values, as a graph that is being rewritten may hold them."""
    return torch.cat([torch.full((1,), number, device=device) for number in values])


def _exists(segments: Segments) -> Tensor:
    """As `Segments.exists`."""
    steps, most = segments.scores.shape[1:3]
    device = segments.scores.device
    length = torch.arange(most, device=device)
    begun = length <= torch.arange(steps, device=device)[:, None]
    short = length[:, None] < _numbers(segments.longest, device)
    return segments.inside()[:, :, None, None] & begun[:, :, None] & short


def _ways(segments: Segments, best: bool) -> tuple[Tensor, Tensor]:
    """The totals of the labellings that end at each position by each segment, ``(T, B, S, K)``, and of all."""
    scores = torch.where(_exists(segments), segments.scores, NEVER)
    batch, _, most, k = scores.shape
    _, inside = times(scores, segments.lengths)

    def total(values: Tensor, dim: int) -> Tensor:
        return values.amax(dim) if best else log_total(values, [dim])

    def step(before: Tensor, last: Tensor, at: Tensor, inside: Tensor, transitions: Tensor) -> tuple[Tensor, ...]:
        ways = at + before
        ended = total(ways, 1)  # (B, K)
        after = total(ended[:, :, None] + transitions, 1)
        keep = inside[:, None]
        return torch.cat([after[:, None], before[:, :-1]], 1), torch.where(keep, ended, last), ways

    start = row(segments.start).expand(batch, k)
    begun = torch.arange(most, device=scores.device)[:, None] == 0
    before = torch.where(begun, start[:, None], NEVER)
    _, last, ways = scan(
        step, [before, torch.full_like(start, NEVER)], [scores.transpose(0, 1), inside], [segments.transitions]
    )
    return ways, total(last + row(segments.end), 1)


def best_labels(
    scores: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    longest: list[int],
) -> Tensor:
    """As the operator ``segments_best_labels``."""
    segments = Segments(scores, transitions, start, end, lengths, tuple(longest))
    batch, _, most, k = scores.shape
    position, inside = times(scores, lengths)
    order = by_last_labels(most, k).to(scores.device)
    goes_on = _numbers(segments.goes_on(), scores.device)
    ways, _ = _ways(segments, best=True)
    ending = row(end).expand(batch, k)

    def step(
        begin: Tensor, kind: Tensor, ways: Tensor, t: Tensor, last: Tensor, ending: Tensor, transitions: Tensor,
        order: Tensor, goes_on: Tensor,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        after = torch.where((last == t)[:, None], ending, transitions.t()[kind])
        picked = order[(ways + after[:, None]).flatten(1)[:, order].argmax(1)]
        ends = begin - 1 == t
        begin = torch.where(ends, t - torch.div(picked, k, rounding_mode="floor"), begin)
        kind = torch.where(ends, picked % k, kind)
        return begin, kind, torch.where(begin == t, kind, goes_on[kind])

    last = segments.last()
    fixed = [last, ending, transitions, order, goes_on]
    *_, labels = scan(step, [last + 1, torch.zeros_like(last)], [ways, position], fixed, reverse=True)
    return torch.where(inside, labels, IGNORE).t().contiguous()


def value(
    scores: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor | None, longest: list[int]
) -> Tensor:
    """As the operator ``segments_value``."""
    segments = Segments(scores, transitions, start, end, lengths, tuple(longest)).map(Tensor.double)
    _, inside = times(scores, lengths)
    return torch.where(inside.any(0), _ways(segments, best=False)[1], 0.0).to(scores.dtype)


def gradient(
    grad: Tensor,
    scores: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    longest: list[int],
) -> tuple[Tensor, ...]:
    """As the operator ``segments_gradient``, for the segments: the others are NaN."""
    segments = Segments(scores, transitions, start, end, lengths, tuple(longest)).map(Tensor.double)
    ways, log_z = _ways(segments, best=False)
    share = probability(ways + _after(segments)[:, :, None], log_z[:, None, None]) * grad[:, None, None]
    share = torch.where(_exists(segments), share.transpose(0, 1), 0.0).to(scores.dtype)
    return share.contiguous(), *(torch.full_like(part, torch.nan) for part in (transitions, start, end))


def _after(segments: Segments) -> Tensor:
    """The log-sums over what follows a segment of each kind that ends at each position, ``(T, B, K)``."""
    scores = torch.where(_exists(segments), segments.scores, NEVER)
    batch, _, _, k = scores.shape
    position, _ = times(scores, segments.lengths)

    def step(
        begun: Tensor, v: Tensor, at: Tensor, t: Tensor, last: Tensor, ending: Tensor, transitions: Tensor
    ) -> tuple[Tensor, ...]:
        v = torch.where((last == t)[:, None], ending, v)
        both = torch.stack([begun, at + v[:, None]])  # begun[:, s]: that begin at t - s and end later, or here
        begun = log_total(both, [0])
        before = log_total(begun[:, :1] + transitions, [2])
        return torch.cat([begun[:, 1:], torch.full_like(begun[:, :1], NEVER)], 1), before, v

    nothing = torch.full_like(scores[:, 0], NEVER)
    fixed = [segments.last(), row(segments.end).expand(batch, k), segments.transitions]
    return scan(step, [nothing, nothing[:, 0]], [scores.transpose(0, 1), position], fixed, reverse=True)[2]
