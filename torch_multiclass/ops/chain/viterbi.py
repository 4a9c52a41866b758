"""The best labelling: keep the max values only, and find the best predecessors again along the one path read back.

A label "ended" with index K joins those of a ragged batch: it can only be followed by itself, costs nothing, and is
entered at the end score, so that no step needs to know where a sequence ends.

On the CPU `maxplus` does the same in NumPy, where one matrix serves all steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from torch_multiclass.checks import IGNORE
from torch_multiclass.ops.chain import maxplus, native
from torch_multiclass.ops.chain.structure import Chain, row


def best_labels(chain: Chain) -> Tensor:
    """``argmax_y s(y)``, ``(B, T)``, -100 past the length; ties go to the lowest last label, then backwards.

    Where no labelling is legal, the labels mean nothing.
    """
    return by_library(chain, by_torch)[0]


def legal_labels(chain: Chain) -> Tensor:
    """The same with -100 where no labelling is legal."""
    return by_library(chain, legal_by_torch)[0]


def best_path(chain: Chain) -> tuple[Tensor, Tensor]:
    """The same, and the score of these labels in float64, ``(B,)``, -inf where no labelling is legal."""
    labels, score, rows = by_library(chain, legal_by_torch)
    if score is None:
        return labels, score_of(chain, labels)
    if rows is not None:
        score[rows] = score_of(chain.rows(rows), labels[rows])
    return labels, score


def score_of(chain: Chain, labels: Tensor) -> Tensor:
    """The score of labels in float64, -inf where all are -100 though the sequence is not empty."""
    dead = (chain.inside() & (labels == IGNORE)).any(1)
    return torch.where(dead, -torch.inf, chain.double().score(labels))


def by_library(chain: Chain, otherwise: Callable[[Chain], Tensor]) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The best labels, and what the library has besides: their score in float64, and the rows where it has none.

    Where the library does not compute, or not these rows, the labels are those of ``otherwise``.
    """
    batch, steps = chain.emissions.shape[:2]
    if batch == 0 or steps == 0:
        return chain.emissions.new_full((batch, steps), IGNORE, dtype=torch.long), None, None
    path = native.best_path(chain)
    if path is None:
        return otherwise(chain), None, None
    if path.unsound == 0:
        return path.labels, path.score, None
    rows = (~path.sound).nonzero()[:, 0]
    path.labels[rows] = otherwise(chain.rows(rows))
    return path.labels, path.score, rows


def by_torch(chain: Chain) -> Tensor:
    """`best_labels` by operators of torch."""
    return max_path(chain)[0]


def legal_by_torch(chain: Chain) -> Tensor:
    """`legal_labels` by operators of torch."""
    labels, top = max_path(chain)
    if top.is_cpu and not bool(np.isneginf(top.numpy()).any()):
        return labels
    return torch.where((top == -torch.inf)[:, None], IGNORE, labels)


def max_path(chain: Chain) -> tuple[Tensor, Tensor]:
    """`best_labels` by operators of torch, and the best of the values at the end, ``(B,)``.

    The values are the scores but for a constant, and -inf where no labelling is legal.
    """
    if maxplus.takes(chain):
        return maxplus.max_path(chain)
    num_labels = chain.num_labels
    chain = levelled(chain)
    if chain.transitions.dim() > 2:
        return by_steps(chain.centred())
    emissions, transitions = with_ended(chain)
    values = max_values(emissions, transitions)
    labels = read_back(values, transitions, values[-1].argmax(1))
    top = values[-1].amax(1)
    return (labels if chain.lengths is None else labels.masked_fill_(labels == num_labels, IGNORE)).t(), top


def levelled(chain: Chain) -> Chain:
    """The chain less what all labellings share, where that is large: sums over time would lose digits to it."""
    moves = chain.transitions
    small = moves.numel() == 0 or (moves.device.type == "cpu" and abs(moves.amax().item()) <= maxplus.SMALL)
    return chain if small else chain.below_best()


def with_ended(chain: Chain) -> tuple[Tensor, Tensor]:
    """Time-major emissions and transitions, start and end folded in, with the label "ended" in a ragged batch.

    Emissions are measured from the largest at each position, which keeps the digits of values added up over time.
    """
    batch, steps, num_labels = chain.emissions.shape
    emissions, transitions = chain.emissions.transpose(0, 1), chain.transitions
    top = chain.emissions.amax(2, keepdim=True).transpose(0, 1)
    top = top.nan_to_num_(0, 0, 0)
    if chain.lengths is None:
        out = emissions.new_empty(steps, batch, num_labels)
        torch.sub(emissions, top, out=out)
        out[0] += row(chain.start)
        out[-1] += row(chain.end)
        return out, transitions
    out = emissions.new_empty(steps, batch, num_labels + 1)
    torch.sub(emissions, top, out=out[..., :-1])
    out[0, :, :-1] += row(chain.start)
    kept = chain.inside().t()
    out[..., :-1].masked_fill_(~kept[..., None], -torch.inf)
    out[..., -1] = torch.where(kept, -torch.inf, 0.0)
    wide = transitions.new_full((num_labels + 1, num_labels + 1), -torch.inf)
    wide[:-1, :-1] = transitions
    if chain.end.dim() == 2:  # an end of each sequence's own is added where it ends
        at = (chain.lengths - 1).clamp_min(0)
        rows = torch.arange(batch, device=at.device)
        out[at, rows, :-1] += chain.end
        wide[:, -1] = 0
    else:
        wide[:-1, -1] = chain.end
        wide[-1, -1] = 0
        whole = chain.lengths == steps
        out[-1, :, :-1] += torch.where(whole[:, None], chain.end, 0)
    return out, wide


def max_values(emissions: Tensor, transitions: Tensor) -> Tensor:
    """``v_t(k) = e_t(k) + max_j (v_{t-1}(j) + W(j, k))``, time-major; ``v_0 = e_0``."""
    steps, batch, num_labels = emissions.shape
    out = torch.empty_like(emissions)
    out[0] = emissions[0]
    # The reduced label comes first in memory: the max over it then runs along whole vectors.
    sums = emissions.new_empty(num_labels, batch, num_labels)
    matrix = transitions[:, None, :].contiguous()
    values, columns, adds = out.unbind(0), out.transpose(1, 2).unsqueeze(3).unbind(0), emissions.unbind(0)
    add, amax = torch.add, torch.amax
    for t in range(1, steps):
        add(columns[t - 1], matrix, out=sums)
        amax(sums, 0, out=values[t])
        values[t].add_(adds[t])
    return out


def read_back(values: Tensor, transitions: Tensor, last: Tensor) -> Tensor:
    """The path ``(T, B)`` that ends in the labels ``last (B,)``, from time-major values."""
    steps, batch, num_labels = values.shape
    into = transitions.t().contiguous()
    labels = torch.empty((steps, batch), dtype=torch.long, device=values.device)
    labels[-1] = last
    path, rows = labels.unbind(0), values.unbind(0)
    score = values.new_empty(batch, num_labels)
    select, argmax = torch.index_select, torch.argmax
    for t in range(steps - 1, 0, -1):
        select(into, 0, path[t], out=score)
        score.add_(rows[t - 1])
        argmax(score, 1, out=path[t - 1])
    return labels


def by_steps(chain: Chain) -> tuple[Tensor, Tensor]:
    """`max_path` for matrices that differ between steps or sequences."""
    batch, steps, num_labels = chain.emissions.shape
    kept = chain.inside().t()
    emissions = chain.emissions.transpose(0, 1)
    best = torch.empty_like(emissions, memory_format=torch.contiguous_format)
    best[0] = emissions[0] + row(chain.start)
    for t in range(1, steps):
        best[t] = (best[t - 1, :, :, None] + chain.step(t)).amax(1) + emissions[t]
    labels = torch.empty((steps, batch), dtype=torch.long, device=emissions.device)
    labels[-1] = (best[-1] + row(chain.end)).argmax(1)
    for t in range(steps - 1, 0, -1):
        into = chain.step(t).expand(batch, -1, -1)
        into = into.gather(2, labels[t, :, None, None].expand(batch, num_labels, 1))[..., 0]
        ending = ~kept[t, :, None]
        labels[t - 1] = (best[t - 1] + torch.where(ending, row(chain.end), into)).argmax(1)
    top = (best[chain.last(), torch.arange(batch, device=labels.device)] + row(chain.end)).amax(1)
    return torch.where(kept, labels, IGNORE).t(), torch.where(kept[0], top, 0)
