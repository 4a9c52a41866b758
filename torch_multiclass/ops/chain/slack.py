r"""Slack rescaling on a chain, ``\max_y c(y) [1 + d(y)]_+``, exactly: the cost of a labelling counts in whole units.

``V_c``, the best ``d(y)`` among the labellings of cost ``c``, follows from a dynamic program over (position, cost so far,
label). Where values may be read, a search over ``d + \lambda c`` comes first: it visits corners of the upper hull of the
points ``(c, V_c)`` and closes in on the corner with the largest product. Its lines bound every ``V_c`` from above, so the
dynamic program runs only over the costs, and for the sequences, that can still win.

Chains are compact; scores are relative to the gold, ``d(y*) = 0``; costs are ``(B, T, K)`` whole numbers, 0 beyond the length.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass._validation import values_readable
from torch_multiclass.ops.chain import viterbi
from torch_multiclass.ops.chain.conditional import Parts, step
from torch_multiclass.ops.chain.path import path_terms

_SEARCH_FROM = 8  # positions; below, the dynamic program is as quick as the search
_ROUNDS = 6  # of the search before the dynamic program; each costs one Viterbi
_SEARCH = 40  # the same when the search is all there is; it stops by itself on an edge of the hull
_BUFFER = 1 << 18  # scores in the temporary of one max-plus product


class Search(NamedTuple):
    """What the search over ``d + λ c`` knows of each sequence."""

    labels: Tensor  # (B, T) of the best corner, and its
    cost: Tensor  # (B,)
    score: Tensor  # (B,) d
    slopes: Tensor  # (rounds, B) λ
    ceilings: Tensor  # (rounds, B) max_y d + λ c


def slack_labels(chain: Parts, costs: Tensor, most: int) -> Tensor:
    """A labelling that attains ``max_y c(y) [1 + d(y)]_+``, ``(B, T)``; of equal values, one of the lowest cost.

    Where the maximum is 0 the labelling means nothing.

    Args:
        chain: emissions, transitions, start, end, lengths.
        costs: ``(B, T, K)`` integers.
        most: no entry of ``costs`` is larger.
    """
    steps = costs.shape[1]
    if not values_readable(costs) or steps < _SEARCH_FROM:
        return _exact_labels(chain, costs, [most] * steps, 0, most * steps)
    found = search(chain, costs, _ROUNDS)
    most_at = costs.amax((0, 2)).tolist()
    if sum(most_at) == 0:
        return found.labels
    counts = torch.arange(1, sum(most_at) + 1, device=costs.device, dtype=found.score.dtype)
    value = (found.cost * (1 + found.score)).clamp(min=0).unsqueeze(1)
    bound = counts * (1 + ceiling(found, counts))
    hopeful = (bound >= value) & (bound > 0)
    certain = (hopeful.sum(1) == 0) | ((hopeful.sum(1) == 1) & hopeful.gather(1, _slot(found.cost, hopeful)).squeeze(1))
    rows = (~certain).nonzero().squeeze(1)
    if len(rows) == 0:
        return found.labels
    wanted = hopeful[rows].any(0).nonzero().squeeze(1)
    lowest, highest = int(wanted[0]) + 1, int(wanted[-1]) + 1
    part = tuple(None if x is None else _rows(x, rows, costs.shape[0], n) for n, x in enumerate(chain))
    return found.labels.index_copy(0, rows, _exact_labels(part, costs[rows], most_at, lowest, highest))  # type: ignore[arg-type]


def _slot(cost: Tensor, counts: Tensor) -> Tensor:
    return (cost.long() - 1).clamp(0, counts.shape[1] - 1).unsqueeze(1)


def _rows(part: Tensor, rows: Tensor, batch: int, position: int) -> Tensor:
    """The given rows of a part of a chain, if it has a batch dimension."""
    batched = part.ndim == (3, 4, 2, 2, 1)[position] and (position == 0 or part.shape[0] == batch)
    return part[rows] if batched else part


def ceiling(found: Search, counts: Tensor) -> Tensor:
    """An upper bound on ``V_c`` for every count, ``(B, C)``: the lowest of the lines ``g(λ) - λ c``, up to rounding."""
    slopes, tops = found.slopes.unsqueeze(2), found.ceilings.unsqueeze(2)
    rounding = 16 * torch.finfo(tops.dtype).eps * (tops.abs() + slopes * counts + 1)
    return (tops - slopes * counts + rounding).amin(0)


def search(chain: Parts, costs: Tensor, rounds: int = _SEARCH) -> Search:
    r"""Close in on the corner of the upper hull of ``(c, V_c)`` with the largest ``c (1 + V_c)``.

    A line of slope ``-λ`` that supports the hull at a corner ``(c, u)``, ``u = 1 + V_c``, shows on which side the best
    product lies: along the line, the product peaks at ``(u + λ c) / 2λ``. The next ``λ`` is the slope of the chord between the
    nearest corners known on either side.

    Reference: Choi, Meshi and Srebro (2016), Fast and scalable structural SVM with slack rescaling.
    """
    emissions, transitions, start, end, lengths = chain
    weights = costs.to(emissions.dtype)

    def corner(slope: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        labels, _ = viterbi(emissions + slope.view(-1, 1, 1) * weights, transitions, start, end, lengths)
        known = labels.clamp(min=0)
        cost = torch.where(labels >= 0, weights.gather(2, known.unsqueeze(2)).squeeze(2), 0.0).sum(1)
        score = path_terms(emissions, transitions, start, end, lengths, known.unsqueeze(1)).sum(2).squeeze(1)
        return labels, cost, score

    slope = emissions.new_zeros(emissions.shape[0])
    labels, cost, score = corner(slope)
    left = (cost, 1 + score)  # corners as (c, u)
    best = (labels, cost, score)
    slopes, ceilings = [slope], [score]
    right: tuple[Tensor, Tensor] | None = None
    slope = 1 + score.clamp(min=0)  # at this slope or above, the best product is on the left
    for _ in range(rounds - 1):
        labels, cost, score = corner(slope)
        slopes.append(slope)
        ceilings.append(score + slope * cost)
        better = cost * (1 + score).clamp(min=0) > best[1] * (1 + best[2]).clamp(min=0)
        best = (
            torch.where(better.unsqueeze(1), labels, best[0]),
            torch.where(better, cost, best[1]),
            torch.where(better, score, best[2]),
        )
        u = 1 + score
        if right is None:
            right = (cost, u)
        else:
            line = u + slope * cost
            known_line = left[1] + slope * left[0]
            edge = line <= known_line + 4 * torch.finfo(line.dtype).eps * known_line.abs()
            go_right = (u > slope * cost) & ~edge
            go_left = ~go_right & ~edge
            left = (torch.where(go_right, cost, left[0]), torch.where(go_right, u, left[1]))
            right = (torch.where(go_left, cost, right[0]), torch.where(go_left, u, right[1]))
            if values_readable(edge) and bool(edge.all()):
                break
        wide = right[0] > left[0]
        chord = (left[1] - right[1]) / torch.where(wide, right[0] - left[0], 1.0)
        slope = torch.where(wide, chord.clamp(min=0), slope)
    return Search(*best, torch.stack(slopes), torch.stack(ceilings))


def slack_curve(chain: Parts, costs: Tensor, most: int) -> Tensor:
    """``V_c`` for ``c = 0 .. T * most``, ``(B, T * most + 1)``; ``-inf`` where no labelling has that cost."""
    steps = costs.shape[1]
    if steps == 0:
        return chain[0].new_zeros(costs.shape[0], 1)
    _, tables = _tables(chain, costs, [most] * steps, 0, most * steps)
    end = chain[3]
    final = tables[-1] if end is None else tables[-1] + _over_counts(end)
    curve = final.amax(2)
    if chain[4] is None:
        return curve
    alone = torch.arange(curve.shape[1], device=curve.device) == 0
    return torch.where((chain[4] > 0).unsqueeze(1), curve, torch.where(alone, 0.0, -math.inf))


def _over_counts(scores: Tensor) -> Tensor:
    return scores if scores.ndim == 1 else scores.unsqueeze(1)


@torch.no_grad()
def _tables(
    chain: Parts, costs: Tensor, most_at: list[int], lowest: int, highest: int
) -> tuple[list[int], list[Tensor]]:
    """For every position, the best score of a prefix by (cost so far, last label), ``(B, H, K)``, and the first cost.

    Only costs are kept from which a total in ``lowest..highest`` can still be reached.
    """
    emissions, transitions, start, _, lengths = chain
    batch, steps, num_classes = emissions.shape
    first = [max(0, lowest - sum(most_at[t + 1 :])) for t in range(steps)]
    last = [max(first[t], min(highest, sum(most_at[: t + 1]))) for t in range(steps)]
    scores = emissions[:, 0] if start is None else emissions[:, 0] + start
    counts = torch.arange(first[0], last[0] + 1, device=emissions.device).view(-1, 1)
    tables = [torch.where(costs[:, :1] == counts, scores.unsqueeze(1), -math.inf)]
    for t in range(1, steps):
        before = tables[-1]
        new = max_plus(before, step(transitions, t)) + emissions[:, t].unsqueeze(1)
        added = costs[:, t].unsqueeze(1)
        if lengths is not None:
            going = (t < lengths).view(-1, 1, 1)
            new, added = torch.where(going, new, before), torch.where(going, added, 0)
        height = last[t - 1] - first[t - 1] + 1
        counts = torch.arange(first[t], last[t] + 1, device=emissions.device).view(-1, 1)
        source = counts - added - first[t - 1]
        source = torch.where((source < 0) | (source >= height), height, source)
        padded = torch.nn.functional.pad(new, (0, 0, 0, 1), value=-math.inf)
        tables.append(padded.gather(1, source.expand(batch, -1, num_classes)))
    return first, tables


def max_plus(prefixes: Tensor, moves: Tensor) -> Tensor:
    """``max_i prefixes[b, h, i] + moves[(b,) i, j]``, ``(B, H, K)``; the maximum runs over the outermost dimension."""
    batch, height, num_classes = prefixes.shape
    moves = moves.unsqueeze(1) if moves.ndim == 2 else moves.transpose(0, 1).unsqueeze(2)  # (i, 1, j) or (i, B, 1, j)
    rows = max(1, _BUFFER // max(1, height * num_classes * num_classes))
    if prefixes.device.type != "cpu" or rows >= batch:
        rows = max(batch, 1)
    out = torch.empty_like(prefixes)
    for begin in range(0, batch, rows):
        part = prefixes[begin : begin + rows]
        into = moves if moves.ndim == 3 or moves.shape[1] == 1 else moves[:, begin : begin + rows]
        if into.ndim == 3:
            into = into.unsqueeze(1)
        torch.amax(part.permute(2, 0, 1).unsqueeze(3) + into, 0, out=out[begin : begin + rows])
    return out


@torch.no_grad()
def _exact_labels(chain: Parts, costs: Tensor, most_at: list[int], lowest: int, highest: int) -> Tensor:
    """The labelling with the largest ``c [1 + V_c]_+`` for ``c`` in ``lowest..highest``, traced back through the tables."""
    emissions, transitions, _, end, lengths = chain
    batch, steps, num_classes = emissions.shape
    labels = torch.full((batch, steps), -100, dtype=torch.long, device=emissions.device)
    if steps == 0 or batch == 0:
        return labels
    first, tables = _tables(chain, costs, most_at, lowest, highest)
    curve, ending = (tables[-1] if end is None else tables[-1] + _over_counts(end)).max(2)
    counts = torch.arange(first[-1], first[-1] + curve.shape[1], device=curve.device)
    count = (counts * (1 + curve).clamp(min=0)).argmax(1)  # the first of equal values: the lowest cost
    label = ending.gather(1, count.unsqueeze(1)).squeeze(1)
    count = count + first[-1]
    rows = torch.arange(batch, device=curve.device)
    for t in range(steps - 1, -1, -1):
        inside = torch.ones_like(label, dtype=torch.bool) if lengths is None else t < lengths
        labels[:, t] = torch.where(inside, label, -100)
        if t:
            count_before = count - costs[rows, t, label]
            slot = (count_before - first[t - 1]).clamp(0, tables[t - 1].shape[1] - 1)
            into = step(transitions, t)
            column = into[:, label].t() if into.ndim == 2 else into.expand(batch, -1, -1)[rows, :, label]
            before = (tables[t - 1][rows, slot] + column).argmax(1)
            label = torch.where(inside, before, label)
            count = torch.where(inside, count_before, count)
    return labels
