"""The best labelling: keep the max values only, and find the best predecessors again along the one path read back.

A label "ended" with index K joins those of a ragged batch: it can only be followed by itself, costs nothing, and is
entered at the end score, so that no step needs to know where a sequence ends.

Long sequences are cut in chunks that run side by side. The values of two chains that started differently soon differ
by a constant only, and a constant changes no argmax: a chunk starts some steps early, and is right if its first values
then differ by a constant from those its neighbour ends with. Reading back likewise starts some steps late, and is
right if it meets its neighbour's path.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from torch_multiclass.checks import IGNORE
from torch_multiclass.ops.chain import native, plan
from torch_multiclass.ops.chain.structure import Chain, row

SMALL = 8.0
"""Up to here, what the transitions share is not taken out."""


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
    dead = (top == -torch.inf)[:, None]
    if dead.device.type == "cpu" and not bool(dead.any()):
        return labels
    return torch.where(dead, IGNORE, labels)


def max_path(chain: Chain) -> tuple[Tensor, Tensor]:
    """`best_labels` by operators of torch, and the best of the values at the end, ``(B,)``.

    The values are the scores but for a constant, and -inf where no labelling is legal.
    """
    _, steps, num_labels = chain.emissions.shape
    chain = levelled(chain)
    if chain.transitions.dim() > 2:
        return by_steps(chain.centred())
    emissions, transitions = with_ended(chain)
    values = labels = None
    if emissions.device.type == "cpu":  # what did not meet after a short warm-up gets a long one
        for size, warm in (plan.viterbi_chunks(emissions), plan.viterbi_chunks(emissions, 96)):
            if values is None and size < steps:
                values = chunked_values(emissions, transitions, size, warm)
    if values is None:
        values = max_values(emissions, transitions)
    if emissions.device.type == "cpu":
        for size, warm in (plan.read_back_chunks(emissions), plan.read_back_chunks(emissions, 96)):
            if labels is None and size < steps:
                labels = read_back_chunked(values, transitions, size, warm)
    top = values[-1].amax(1)
    if labels is None:
        labels = read_back(values, transitions, values[-1].argmax(1))
    return (labels if chain.lengths is None else labels.masked_fill_(labels == num_labels, IGNORE)).t(), top


def levelled(chain: Chain) -> Chain:
    """The chain less what all labellings share, where that is large: sums over time would lose digits to it."""
    moves = chain.transitions
    small = moves.numel() == 0 or (moves.device.type == "cpu" and abs(moves.amax().item()) <= SMALL)
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


def max_values(emissions: Tensor, transitions: Tensor, out: Tensor | None = None) -> Tensor:
    """``v_t(k) = e_t(k) + max_j (v_{t-1}(j) + W(j, k))``, time-major; ``v_0 = e_0``, or as ``out`` has it."""
    steps, batch, num_labels = emissions.shape
    if out is None:
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


def chunked_values(emissions: Tensor, transitions: Tensor, size: int, warm: int) -> Tensor | None:
    """`max_values` up to a constant for each chunk; None if a chunk was not entered as its neighbour was left."""
    steps, batch, num_labels = emissions.shape
    count = -(-steps // size)
    padded = emissions.new_zeros(size, count, batch, num_labels)
    full, rest = divmod(steps, size)
    padded[:, :full] = emissions[: full * size].view(full, size, batch, num_labels).transpose(0, 1)
    if rest:
        padded[:rest, full] = emissions[full * size :]
    lead = padded[size - warm :, :-1].flatten(1, 2)
    entry = max_values(lead.contiguous(), transitions)[-1]
    values = torch.empty_like(padded)
    values[0, 0] = padded[0, 0]
    values[0, 1:] = ((entry[:, :, None] + transitions).amax(1)).view(count - 1, batch, -1) + padded[0, 1:]
    max_values(padded.flatten(1, 2), transitions, values.flatten(1, 2))
    left = values[-1, :-1].flatten(0, 1)
    same = (entry == -torch.inf) & (left == -torch.inf)
    apart = torch.where(same, torch.nan, entry - left)
    high = torch.where(apart.isnan(), -torch.inf, apart).amax(1)
    low = torch.where(apart.isnan(), torch.inf, apart).amin(1)
    rounding = 16 * torch.finfo(left.dtype).eps * torch.where(left.isfinite(), left.abs(), 0).amax(1)
    agreed = bool(((high - low <= rounding) | same.all(1)).all())
    return values.transpose(0, 1).flatten(0, 1)[:steps] if agreed else None


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


def read_back_chunked(values: Tensor, transitions: Tensor, size: int, warm: int) -> Tensor | None:
    """`read_back` from the best last label, chunks side by side; None if a chunk does not meet its neighbour's path."""
    steps, batch, _ = values.shape
    count = -(-steps // size)
    extent = size + warm  # positions that a chunk reads: its own, then the first of its neighbour's
    reach = (torch.arange(count) * size)[None, :] + torch.arange(extent)[:, None]
    # Past the end stands the last position again: its best label is the start there, whatever was read before.
    past = reach >= steps - 1
    rows = values[reach.clamp_max(steps - 1)].flatten(1, 2)
    into = transitions.t().contiguous()
    path = torch.empty((extent, count * batch), dtype=torch.long)
    last = values[-1].argmax(1).repeat(count)
    path[-1] = rows[-1].argmax(1)
    fixed = past.repeat_interleave(batch, 1)
    stops = past.any(1).tolist()
    paths, seen = path.unbind(0), rows.unbind(0)
    score = torch.empty_like(seen[0])
    for i in range(extent - 1, 0, -1):
        torch.index_select(into, 0, paths[i], out=score)
        score.add_(seen[i - 1])
        torch.argmax(score, 1, out=paths[i - 1])
        if stops[i - 1]:
            torch.where(fixed[i - 1], last, paths[i - 1], out=paths[i - 1])
    path = path.view(extent, count, batch)
    if not torch.equal(path[size, :-1], path[0, 1:]):
        return None
    return path[:size].transpose(0, 1).flatten(0, 1)[:steps]


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
