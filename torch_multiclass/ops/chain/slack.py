r"""Slack rescaling on a chain, ``\max_y c(y) [1 + d(y)]_+``, exactly: the cost of a labelling counts in whole units.

``V_c``, the best ``d(y)`` among the labellings of cost ``c``, follows from a dynamic program over (position, cost so
far, label). Where that is much work, a search over ``d + \lambda c`` comes first: it visits corners of the upper hull
of the points ``(c, V_c)`` and closes in on the corner with the largest product. Its lines bound every ``V_c`` from
above, so the dynamic program runs only over the costs, and for the sequences, that can still win.

Scores are relative to the gold, ``d(y*) = 0``; costs are ``(B, T, K)`` whole numbers, 0 beyond the length.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_multiclass.checks import values_readable
from torch_multiclass.ops.chain.structure import Chain
from torch_multiclass.ops.chain.viterbi import best_labels as viterbi

_SEARCH_FROM = 2e7  # sums in the dynamic program; below, it is as quick as the search
_ROUNDS = 6  # of the search before the dynamic program; each costs one Viterbi
_SEARCH = 40  # the same when the search is all there is; it stops by itself on an edge of the hull
_BUFFER = 1 << 18  # scores in the temporary of one max-plus product


_FRACTIONS = 60  # a unit may be the smallest positive cost over 1, 2, ... of these


def common_unit(costs: Tensor) -> tuple[float, int]:
    """The largest unit of which every entry is a whole multiple, and the largest multiple."""
    positive = torch.unique(costs.detach()[costs > 0].double())
    if len(positive) == 0:
        return 1.0, 0
    for fraction in range(1, _FRACTIONS + 1):
        unit = float(positive[0]) / fraction
        multiples = positive / unit
        if bool(((multiples - multiples.round()).abs() < 1e-5 * multiples).all()):
            return unit, int(multiples[-1].round())
    raise ValueError(
        f"cost: entries such as {float(positive[0]):g} and {float(positive[-1]):g} are not whole multiples of one "
        "unit; accepted for exact slack rescaling are whole costs, up to a common factor; any cost with exact=False"
    )


class Search(NamedTuple):
    """What the search over ``d + λ c`` knows of each sequence."""

    labels: Tensor  # (B, T) of the best corner, and its
    cost: Tensor  # (B,)
    score: Tensor  # (B,) d
    slopes: Tensor  # (rounds, B) λ
    ceilings: Tensor  # (rounds, B) max_y d + λ c


def best_labels(chain: Chain, costs: Tensor, most: int) -> Tensor:
    """A labelling that attains ``max_y c(y) [1 + d(y)]_+``, ``(B, T)``; of equal values, one of the lowest cost.

    Where the maximum is 0 the labelling means nothing.

    Args:
        chain: the scores ``d``.
        costs: ``(B, T, K)`` integers.
        most: no entry of ``costs`` is larger.
    """
    steps = costs.shape[1]
    work = most * costs.numel() * costs.shape[2] * steps / 2
    if not values_readable(costs) or work == 0 or work < _SEARCH_FROM:
        return _exact_labels(chain, costs, [most] * steps, 0, most * steps)
    found = search(chain, costs, _ROUNDS)
    most_at = costs.amax((0, 2)).tolist()
    if sum(most_at) == 0:
        return found.labels
    counts = torch.arange(1, sum(most_at) + 1, device=costs.device, dtype=found.score.dtype)
    value = (found.cost * (1 + found.score)).clamp(min=0).unsqueeze(1)
    bound = counts * (1 + ceiling(found, counts))
    hopeful = (bound >= value) & (bound > 0)
    own = counts == found.cost.unsqueeze(1)  # attained already; a cost of 0 attains nothing
    certain = ~(hopeful & ~own).any(1)
    rows = (~certain).nonzero().squeeze(1)
    if len(rows) == 0:
        return found.labels
    wanted = hopeful[rows].any(0).nonzero().squeeze(1)
    lowest, highest = int(wanted[0]) + 1, int(wanted[-1]) + 1
    part = _exact_labels(chain.rows(rows), costs[rows], most_at, lowest, highest)
    return found.labels.index_copy(0, rows, part)


def ceiling(found: Search, counts: Tensor) -> Tensor:
    """An upper bound on ``V_c`` for every count, ``(B, C)``: the lowest of the lines ``g(λ) - λ c``, up to rounding."""
    slopes, tops = found.slopes.unsqueeze(2), found.ceilings.unsqueeze(2)
    rounding = 16 * torch.finfo(tops.dtype).eps * (tops.abs() + slopes * counts + 1)
    return (tops - slopes * counts + rounding).amin(0)


def upper_bound(found: Search) -> Tensor:
    """The largest ``c [1 + V_c]_+`` that the lines of a search leave possible, ``(B,)``, for ``c`` any number >= 0.

    Under the lowest of the lines the product peaks where one line does, or where two lines cross.
    """
    slopes, tops = found.slopes, 1 + found.ceilings
    steeper = slopes.unsqueeze(1) - slopes
    crossings = (tops.unsqueeze(1) - tops) / torch.where(steeper == 0, 1.0, steeper)
    peaks = tops / torch.where(slopes > 0, 2 * slopes, 1.0)
    counts = torch.cat([crossings.flatten(0, 1), peaks]).clamp(min=0).t()  # (B, C)
    return (counts * (1 + ceiling(found, counts))).amax(1).clamp(min=0)


def search(
    chain: Any,
    costs: Tensor,
    rounds: int = _SEARCH,
    decode: Callable[[Any], Tensor] = viterbi,
    score: Callable[[Any, Tensor], Tensor] = Chain.score,
) -> Search:
    r"""Close in on the corner of the upper hull of ``(c, V_c)`` with the largest ``c (1 + V_c)``.

    A line of slope ``-λ`` that supports the hull at a corner ``(c, u)``, ``u = 1 + V_c``, shows on which side the best
    product lies: along the line, the product peaks at ``(u + λ c) / 2λ``. The next ``λ`` is the slope of the chord
    between the nearest corners known on either side.

    It serves any record with a ``plus``, of whose labellings ``decode`` finds the best and ``score`` is the score.

    Reference: Choi, Meshi and Srebro (2016), Fast and scalable structural SVM with slack rescaling.
    """
    weights = costs if costs.is_floating_point() else costs.to(chain.emissions.dtype)

    def corner(slope: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        labels = decode(chain.plus(slope[:, None, None] * weights))
        known = labels.clamp(min=0)
        cost = torch.where(labels >= 0, weights.gather(2, known.unsqueeze(2)).squeeze(2), 0.0).sum(1)
        return labels, cost, score(chain, known)

    slope = weights.new_zeros(len(weights))
    labels, cost, value = corner(slope)
    left = (cost, 1 + value)  # corners as (c, u)
    best = (labels, cost, value)
    slopes, ceilings = [slope], [value]
    right: tuple[Tensor, Tensor] | None = None
    slope = 1 + value.clamp(min=0)  # at this slope or above, the best product is on the left
    for _ in range(rounds - 1):
        labels, cost, value = corner(slope)
        slopes.append(slope)
        ceilings.append(value + slope * cost)
        better = cost * (1 + value).clamp(min=0) > best[1] * (1 + best[2]).clamp(min=0)
        best = (
            torch.where(better.unsqueeze(1), labels, best[0]),
            torch.where(better, cost, best[1]),
            torch.where(better, value, best[2]),
        )
        u = 1 + value
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


def slack_curve(chain: Chain, costs: Tensor, most: int) -> Tensor:
    """``V_c`` for ``c = 0 .. T * most``, ``(B, T * most + 1)``; ``-inf`` where no labelling has that cost."""
    steps = costs.shape[1]
    if steps == 0:
        return chain.emissions.new_zeros(costs.shape[0], 1)
    _, tables = _tables(chain, costs, [most] * steps, 0, most * steps)
    curve = _finished(tables[-1], chain.end).amax(0)
    if chain.lengths is None:
        return curve
    alone = torch.arange(curve.shape[1], device=curve.device) == 0
    return torch.where((chain.lengths > 0).unsqueeze(1), curve, torch.where(alone, 0.0, -math.inf))


def _finished(table: Tensor, end: Tensor) -> Tensor:
    return table + (end.view(-1, 1, 1) if end.ndim == 1 else end.t().unsqueeze(2))


@torch.no_grad()
def _tables(
    chain: Chain, costs: Tensor, most_at: list[int], lowest: int, highest: int
) -> tuple[list[int], list[Tensor]]:
    """For every position the best prefix score, ``(K, B, H)`` by last label and cost so far, and the first such cost.

    Only costs are kept from which a total in ``lowest..highest`` can still be reached.
    """
    emissions, lengths = chain.emissions, chain.lengths
    batch, steps, num_classes = emissions.shape
    first = [max(0, lowest - sum(most_at[t + 1 :])) for t in range(steps)]
    last = [max(first[t], min(highest, sum(most_at[: t + 1]))) for t in range(steps)]
    scores = emissions.permute(1, 2, 0).unsqueeze(3)  # (T, K, B, 1)
    added = costs.permute(1, 2, 0).unsqueeze(3)
    opening = _finished(scores[0], chain.start)
    counts = torch.arange(first[0], last[0] + 1, device=emissions.device)
    tables = [torch.where(added[0] == counts, opening, -math.inf)]
    for t in range(1, steps):
        new, cost = max_plus(tables[-1], chain.step(t)).add_(scores[t]), added[t]
        if lengths is not None:
            going = (t < lengths).view(1, -1, 1)
            new, cost = torch.where(going, new, tables[-1]), torch.where(going, cost, 0)
        height = new.shape[2]
        shift = first[t] - first[t - 1]
        counts = torch.arange(shift, shift + last[t] - first[t] + 1, device=emissions.device)
        source = counts - cost  # which earlier cost it was, counted from the first one kept
        source = torch.where((source < 0) | (source >= height), height, source)
        padded = torch.nn.functional.pad(new, (0, 1), value=-math.inf)
        tables.append(padded.gather(2, source.expand(num_classes, batch, -1)))
    return first, tables


def max_plus(prefixes: Tensor, moves: Tensor) -> Tensor:
    """``max_i prefixes[i, b, h] + moves[b, i, j]``, ``(K, B, H)``; long rows, the maximum over the outermost one."""
    num_classes, batch, height = prefixes.shape
    into = moves.permute(1, 2, 0).unsqueeze(3)  # (i, j, b, 1)
    rows = batch
    if prefixes.device.type == "cpu":  # the sums stay in cache
        rows = max(1, _BUFFER // max(1, height * num_classes * num_classes))
    out = torch.empty_like(prefixes)
    for begin in range(0, batch, max(rows, 1)):
        part = prefixes[:, begin : begin + rows].unsqueeze(1)
        own = into if into.shape[2] == 1 else into[:, :, begin : begin + rows]
        out[:, begin : begin + rows] = (part + own).amax(0)
    return out


@torch.no_grad()
def _exact_labels(chain: Chain, costs: Tensor, most_at: list[int], lowest: int, highest: int) -> Tensor:
    """The labelling with the largest ``c [1 + V_c]_+``, ``c`` in ``lowest..highest``, traced back from the tables."""
    lengths = chain.lengths
    batch, steps, _ = chain.emissions.shape
    labels = torch.full((batch, steps), -100, dtype=torch.long, device=costs.device)
    if steps == 0 or batch == 0:
        return labels
    first, tables = _tables(chain, costs, most_at, lowest, highest)
    curve, ending = _finished(tables[-1], chain.end).max(0)
    counts = torch.arange(first[-1], first[-1] + curve.shape[1], device=curve.device)
    count = (counts * (1 + curve).clamp(min=0)).argmax(1)  # the first of equal values: the lowest cost
    label = ending.gather(1, count.unsqueeze(1)).squeeze(1)
    count = count + first[-1]
    rows = torch.arange(batch, device=curve.device)
    for t in range(steps - 1, -1, -1):
        inside = None if lengths is None else t < lengths
        labels[:, t] = label if inside is None else torch.where(inside, label, -100)
        if t == 0:
            break
        count_before = count - costs[rows, t, label]
        slot = (count_before - first[t - 1]).clamp(0, tables[t - 1].shape[2] - 1)
        column = chain.step(t).expand(batch, -1, -1)[rows, :, label].t()
        before = (tables[t - 1][:, rows, slot] + column).argmax(0)
        label = before if inside is None else torch.where(inside, before, label)
        count = count_before if inside is None else torch.where(inside, count_before, count)
    return labels
