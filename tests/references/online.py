"""Online learners by their definitions: Kesler's construction built out, one vector ``(K D)`` for each preference."""

from __future__ import annotations

import itertools

import numpy as np

P6 = np.array([[1, 0, 1], [0, 1, 1], [-1, -1, 1], [2, -1, 1], [-1, 2, 1], [-2, -1, 1]], dtype=float)
Y6 = [0, 1, 2, 0, 1, 2]
B6 = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 1, 0]], dtype=float)
RANKINGS6 = [[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1], [1, 0, 2], [2, 1, 0]]
MULTILABEL6 = [[1, 1, -1], [-1, 1, -1], [-1, -1, 1], [1, -1, -1], [-1, 1, 1], [-1, -1, 1]]


def of_class(y, K):
    return [(y, z) for z in range(K) if z != y]


def of_signs(row):
    return [(a, b) for a in range(len(row)) for b in range(len(row)) if row[a] > 0 > row[b]]


def of_ranking(order, closure=False):
    pairs = itertools.combinations(range(len(order)), 2) if closure else itertools.pairwise(range(len(order)))
    return [(order[i], order[j]) for i, j in pairs]


def of_ordinal(y, K):
    """``y ≻ y±1``, then ``y±1 ≻ y±2``, and so on, the lower side first."""
    pairs = []
    for far in range(K):
        pairs += [(y - far, y - far - 1)] if y - far - 1 >= 0 else []
        pairs += [(y + far, y + far + 1)] if y + far + 1 < K else []
    return pairs


def kesler(x, a, b, K):
    """``phi`` with ``W · phi = (w_a - w_b) · x``."""
    phi = np.zeros((K, len(x)))
    phi[a], phi[b] = x, -x
    return phi


def constraint_classifier(X, preferences, K, rule="conservative", *, rate=1.0, max_passes=100, steps=None):
    """Weights ``(K, D)``, their mean over all visits, updates of each pass, and the number of preferences used."""
    W = np.zeros((K, X.shape[1]))
    mean, visits, used, passes = np.zeros_like(W), 0, 0, []
    for _ in range(max_passes):
        passes.append(0)
        for i, x in enumerate(X):
            phis = [kesler(x, a, b, K) for a, b in preferences[i]]
            worth = [float(np.sum(W[a] * x)) - float(np.sum(W[b] * x)) for a, b in preferences[i]]
            violated = [phi for phi, value in zip(phis, worth, strict=True) if value <= 0]
            if rule == "conservative" and violated:
                violated = [phis[int(np.argmin(worth))]]
            if violated and np.any(x != 0):
                step = rate * (1 if steps is None else steps[i])
                share = step / len(violated) if rule == "uniform" else step
                W = W + share * sum(violated)
                passes[-1] += 1
                used += len(violated)
            visits += 1
            mean += W
        if passes[-1] == 0:
            break
    return W, mean / max(visits, 1), passes, used


def binary_perceptron(X, signs, max_passes=100):
    w, passes, history = np.zeros(X.shape[1]), [], []
    for _ in range(max_passes):
        passes.append(0)
        for x, y in zip(X, signs, strict=True):
            if y * float(w @ x) <= 0 and np.any(x != 0):
                w = w + y * x
                passes[-1] += 1
            history.append(w)
        if passes[-1] == 0:
            break
    return w, passes, history


def passive_aggressive(X, y, K, C=1.0, max_passes=1):
    """Weights and the losses met."""
    W, losses = np.zeros((K, X.shape[1])), []
    for _ in range(max_passes):
        for x, label in zip(X, y, strict=True):
            scores = W @ x
            z = max((k for k in range(K) if k != label), key=lambda k: (scores[k], -k))
            losses.append(max(0.0, 1 - scores[label] + scores[z]))
            if losses[-1] > 0:
                step = min(C, losses[-1] / (2 * float(x @ x)))
                W[label] += step * x
                W[z] -= step * x
    return W, losses


def winnow_binary(X, signs, r, theta, max_passes=100):
    plus, minus, passes = np.ones(X.shape[1]), np.ones(X.shape[1]), []
    for _ in range(max_passes):
        passes.append(0)
        for x, y in zip(X, signs, strict=True):
            guess = 1 if (plus - minus) @ x >= theta else -1
            if guess != y:
                plus, minus = plus * r ** (y * x), minus * r ** (-y * x)
                passes[-1] += 1
        if passes[-1] == 0:
            break
    return plus, minus, passes


def winnow(X, y, K, r, rule="conservative", max_passes=100):
    """For each violated preference the true class is promoted and the other demoted."""
    W, passes = np.ones((K, X.shape[1])), []
    for _ in range(max_passes):
        passes.append(0)
        for x, label in zip(X, y, strict=True):
            scores = W @ x
            violated = [z for z in range(K) if z != label and scores[z] >= scores[label]]
            if rule == "conservative" and violated:
                violated = [max(violated, key=lambda z: (scores[z], -z))]
            for z in violated:
                W[label] *= r**x
                W[z] *= r**-x
            passes[-1] += bool(violated)
        if passes[-1] == 0:
            break
    return W, passes


def chain_score(labels, X, weights):
    """``s(y)`` under ``(W, transitions, start, end)``."""
    W, moves, start, end = weights
    at = sum(float(np.sum(W[k] * x)) for k, x in zip(labels, X, strict=True))
    return at + sum(moves[j, k] for j, k in itertools.pairwise(labels)) + start[labels[0]] + end[labels[-1]]


def structured_perceptron(sequences, K, max_passes=100):
    """Decoded by enumeration, ties to the lowest last label, then backwards."""
    D = len(sequences[0][0][0])
    weights = np.zeros((K, D)), np.zeros((K, K)), np.zeros(K), np.zeros(K)
    mean, visits, passes = [np.zeros_like(part) for part in weights], 0, []
    for _ in range(max_passes):
        passes.append(0)
        for X, gold in sequences:
            labellings = [labels[::-1] for labels in itertools.product(range(K), repeat=len(gold))]
            best = max(labellings, key=lambda labels: chain_score(labels, X, weights))
            if tuple(gold) != best:
                passes[-1] += 1
                for labels, sign in ((gold, 1), (best, -1)):
                    for k, x in zip(labels, X, strict=True):
                        weights[0][k] += sign * np.asarray(x, float)
                    for j, k in itertools.pairwise(labels):
                        weights[1][j, k] += sign
                    weights[2][labels[0]] += sign
                    weights[3][labels[-1]] += sign
            visits += 1
            for total, part in zip(mean, weights, strict=True):
                total += part
        if passes[-1] == 0:
            break
    return weights, [total / visits for total in mean], passes
