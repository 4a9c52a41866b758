"""The objective of structured machines by enumeration, one labelling after the other."""

import itertools

import torch


def chain_score(weight, transitions, start, end, x, y):
    """Of one sequence."""
    score = float(start[y[0]] + end[y[-1]])
    for t, label in enumerate(y):
        score += float(weight[label] @ x[t])
        if t:
            score += float(transitions[y[t - 1], label])
    return score


def loss(score, gold, labels, cost, kind):
    """``max_y L + s(y) - s(y*)`` or ``max_y L [1 + s(y) - s(y*)]_+`` over all sequences of the labels."""
    best, own = 0.0, score(gold)
    for y in itertools.product(range(labels), repeat=len(gold)):
        paid = sum(float(cost[a][b]) for a, b in zip(gold, y, strict=True))
        d = score(y) - own
        best = max(best, paid + d if kind == "m3n" else paid * max(0.0, 1 + d))
    return best


def primal(parameters, words, C, *, scale=1.0, cost=None, kind="m3n", weights=None):
    """``½ (|W|^2 + (|transitions|^2 + |start|^2 + |end|^2)/s^2) + C sum_i loss_i`` of pairs of rows and labels."""
    weight, transitions, start, end = (part.detach().double() for part in parameters)
    labels = len(weight)
    cost = (1 - torch.eye(labels)).tolist() if cost is None else cost
    total = 0.5 * float(weight.square().sum())
    total += 0.5 * float(transitions.square().sum() + start.square().sum() + end.square().sum()) / scale**2
    for i, (x, y) in enumerate(words):
        own = loss(lambda z, x=x: chain_score(weight, transitions, start, end, x, z), y, labels, cost, kind)
        total += C * (1.0 if weights is None else weights[i]) * own
    return total
