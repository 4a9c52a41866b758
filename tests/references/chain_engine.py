"""Oracles for the chain engine: all K^T labellings, and the plain log-space recursion in float64 under autograd."""

import itertools

import torch


def step(transitions, row, t):
    """The matrix from position t-1 to t for one row."""
    if transitions.dim() == 4:
        return transitions[min(row, len(transitions) - 1), t - 1]
    return transitions[row] if transitions.dim() == 3 else transitions


def vector(scores, row, like):
    if scores is None:
        return like.new_zeros(like.shape[-1])
    return scores[row] if scores.dim() == 2 else scores


def rows(emissions, lengths):
    for row in range(len(emissions)):
        yield row, emissions.shape[1] if lengths is None else int(lengths[row])


def row_score(emissions, transitions, start, end, row, labels):
    """s(y) of one labelling (a list of ints) of one row, in float64."""
    if len(labels) == 0:
        return emissions.new_zeros((), dtype=torch.float64)
    total = vector(start, row, emissions)[labels[0]].double() + vector(end, row, emissions)[labels[-1]].double()
    for t, label in enumerate(labels):
        total = total + emissions[row, t, label].double()
        if t:
            total = total + step(transitions, row, t)[labels[t - 1], label].double()
    return total


def enumerate_row(emissions, transitions, start, end, row, length):
    """All labellings of one row in the order of ties (lowest last label first, then backwards), and their scores."""
    paths = [p[::-1] for p in itertools.product(range(emissions.shape[2]), repeat=length)]
    return paths, torch.stack([row_score(emissions, transitions, start, end, row, p) for p in paths])


def enumerated_log_partition(emissions, transitions, start, end, lengths):
    values = []
    for row, length in rows(emissions, lengths):
        scores = enumerate_row(emissions, transitions, start, end, row, length)[1]
        values.append(scores.logsumexp(0) if length else scores.sum())
    return torch.stack(values)


def enumerated_marginals(emissions, transitions, start, end, lengths):
    """Unary (B, T, K) and pairwise (B, T-1, K, K) marginals; zero where there is no legal labelling."""
    batch, steps, k = emissions.shape
    unary = torch.zeros(batch, steps, k, dtype=torch.float64)
    pair = torch.zeros(batch, max(steps - 1, 0), k, k, dtype=torch.float64)
    for row, length in rows(emissions, lengths):
        paths, scores = enumerate_row(emissions, transitions, start, end, row, length)
        if length == 0 or scores.max() == -torch.inf:
            continue
        for path, p in zip(paths, scores.softmax(0), strict=True):
            for t, label in enumerate(path):
                unary[row, t, label] += p
                if t:
                    pair[row, t - 1, path[t - 1], label] += p
    return unary, pair


def enumerated_viterbi(emissions, transitions, start, end, lengths):
    """The first best labelling in the order of ties, padded with -100, and its score."""
    labels = torch.full(emissions.shape[:2], -100)
    best = []
    for row, length in rows(emissions, lengths):
        paths, scores = enumerate_row(emissions, transitions, start, end, row, length)
        top = int(scores.argmax())
        labels[row, :length] = torch.tensor(paths[top], dtype=torch.long)
        best.append(scores[top])
    return labels, torch.stack(best)


def log_partition_plain(emissions, transitions, start, end, lengths):
    """log Z by the textbook recursion, float64, differentiable by autograd (finite scores)."""
    values = []
    for row, length in rows(emissions, lengths):
        if length == 0:
            values.append(emissions.new_zeros((), dtype=torch.float64))
            continue
        scores = emissions[row].double()
        mass = scores[0] + vector(start, row, scores).double()
        for t in range(1, length):
            mass = torch.logsumexp(mass[:, None] + step(transitions, row, t).double(), 0) + scores[t]
        values.append(torch.logsumexp(mass + vector(end, row, scores).double(), 0))
    return torch.stack(values)


def scores_of(emissions, transitions, start, end, lengths, labels):
    """s(labels) of each row."""
    return torch.stack(
        [
            row_score(emissions, transitions, start, end, row, labels[row, :length].tolist())
            for row, length in rows(emissions, lengths)
        ]
    )
