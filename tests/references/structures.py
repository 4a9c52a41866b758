"""Naive oracles of the structures beyond the chain: the score of every labelling, position by position."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from tests.references.chain import INF, Enumerated, enumerate_chain


def enumerate_second_order(
    emissions: Tensor,
    transitions: Tensor,
    second: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    mask: Tensor | None = None,
) -> Enumerated:
    """A chain with a score for three labels in a row, second (K, K, K)."""
    every = enumerate_chain(emissions, transitions, start, end, mask)
    for n in range(2, len(every.where)):
        every.scores = every.scores + second.double()[tuple(every.labels[:, n - 2 : n + 1].T)]
    return every


def enumerate_independent(emissions: Tensor, mask: Tensor | None = None) -> Enumerated:
    """Positions that know nothing of each other: emissions (T, K)."""
    k = emissions.shape[1]
    return enumerate_chain(emissions, torch.zeros(k, k), mask=mask)


def enumerate_tree(
    emissions: Tensor, transitions: Tensor, parents: list[int], mask: Tensor | None = None
) -> Enumerated:
    """Emissions (T, K), transitions (K, K) or (T, K, K), a masked node's children hang on the node it hangs on."""
    steps, k = emissions.shape
    where = [t for t in range(steps) if mask is None or bool(mask[t])]
    every = enumerate_chain(emissions, torch.zeros(k, k), mask=mask)
    for n, t in enumerate(where):
        above = parents[t]
        while above != -1 and above not in where:
            above = parents[above]
        if above != -1:
            move = (transitions if transitions.ndim == 2 else transitions[t]).double()
            every.scores = every.scores + move[every.labels[:, where.index(above)], every.labels[:, n]]
    return every


def enumerate_segments(
    scores: Tensor,
    transitions: Tensor,
    start: Tensor | None = None,
    end: Tensor | None = None,
    mask: Tensor | None = None,
    longest: tuple[int, ...] | None = None,
) -> Enumerated:
    """Scores (T, S, K) of segments by end, length - 1 and kind; labels B-k = k, then the I-k of kinds longer than 1."""
    steps, most, k = scores.shape
    longest = (most,) * k if longest is None else longest
    inner = [kind for kind in range(k) if longest[kind] > 1]
    where = [t for t in range(steps) if mask is None or bool(mask[t])]
    paths = [y[::-1] for y in itertools.product(range(k + len(inner)), repeat=len(where))]
    values = [_segmentation(y, where, scores.double(), transitions.double(), start, end, longest, inner) for y in paths]
    labels = torch.tensor(paths, dtype=torch.long).view(len(paths), len(where))
    return Enumerated(labels, torch.tensor(values, dtype=torch.float64), where, steps, k + len(inner))


def _segmentation(y, where, scores, transitions, start, end, longest, inner) -> float:
    k, total, before, n = scores.shape[2], 0.0, None, 0
    while n < len(y):
        if y[n] >= k:
            return -INF  # a segment that does not begin
        kind, length = y[n], 1
        while n + length < len(y) and y[n + length] >= k:
            if inner[y[n + length] - k] != kind:
                return -INF
            length += 1
        if length > longest[kind]:
            return -INF
        total += float(scores[where[n + length - 1], length - 1, kind])
        if before is not None:
            total += float(transitions[before, kind])
        elif start is not None:
            total += float(start[kind])
        before, n = kind, n + length
    if before is not None and end is not None:
        total += float(end[before])
    return total
