"""Boosting written naively: all questions tried one by one, all pairs weighted one by one, in Python's own floats."""

import math
from itertools import pairwise, product


def stumps(rows):
    """All questions ``(feature, threshold)``, thresholds between neighbouring values."""
    for feature in range(len(rows[0])):
        values = sorted({row[feature] for row in rows})
        for low, high in pairwise(values):
            yield feature, (low + high) / 2


def best_stump(rows, sums):
    """The question with the least error, and the sums ``(yes, no)``: each side votes by itself for each column."""
    columns = range(len(sums[0]))
    best = None
    for feature, threshold in stumps(rows):
        sides = [[0.0 for _ in columns] for _ in range(2)]
        for row, own in zip(rows, sums, strict=True):
            side = sides[0 if row[feature] <= threshold else 1]
            for c in columns:
                side[c] += own[c]
        edge = sum(abs(value) for side in sides for value in side)
        if best is None or edge > best[0] + 2e-12:
            best = edge, feature, threshold, sides
    if best is None:
        whole = [sum(own[c] for own in sums) for c in columns]
        return 0, math.inf, [whole, whole]
    return best[1:]


def answers(rows, sums):
    """The stump, and its votes for every row."""
    feature, threshold, sides = best_stump(rows, sums)
    votes = [[1 if value > 1e-12 else -1 for value in side] for side in sides]
    return (feature, threshold), [votes[0 if row[feature] <= threshold else 1] for row in rows]


def adaboost_mh(rows, signs, rounds):
    """Figure 9.1 with the pairs that have no sign left out: a list of (stump, error, alpha, Z), and the scores."""
    pairs = [(i, c) for i in range(len(rows)) for c in range(len(signs[0])) if signs[i][c]]
    d = {pair: 1 / len(pairs) for pair in pairs}
    scores = [[0.0] * len(signs[0]) for _ in rows]
    found = []
    for _ in range(rounds):
        sums = [[d.get((i, c), 0.0) * signs[i][c] for c in range(len(signs[0]))] for i in range(len(rows))]
        stump, h = answers(rows, sums)
        error = sum(d[i, c] for i, c in pairs if h[i][c] != signs[i][c])
        if not 0 < error < 0.5 - 1e-9:
            break
        alpha = 0.5 * math.log((1 - error) / error)
        new = {(i, c): d[i, c] * math.exp(-alpha * signs[i][c] * h[i][c]) for i, c in pairs}
        z = sum(new.values())
        d = {pair: value / z for pair, value in new.items()}
        for i in range(len(rows)):
            for c in range(len(signs[0])):
                scores[i][c] += alpha * h[i][c]
        found.append((stump, error, alpha, z))
    return found, scores


def rank_boost(rows, signs, rounds):
    """RankBoost on all pairs (relevant, irrelevant) of each row: (stump, W+, W-, alpha, Z) a round, and the scores."""
    labels = range(len(signs[0]))
    pairs = [(i, a, b) for i, a, b in product(range(len(rows)), labels, labels) if signs[i][a] > 0 > signs[i][b]]
    d = {pair: 1 / len(pairs) for pair in pairs}
    scores = [[0.0] * len(signs[0]) for _ in rows]
    found = []
    for _ in range(rounds):
        sums = [[0.0] * len(signs[0]) for _ in rows]
        for (i, a, b), value in d.items():
            sums[i][a] += value
            sums[i][b] -= value
        stump, h = answers(rows, sums)
        differences = {(i, a, b): (h[i][a] - h[i][b]) / 2 for i, a, b in pairs}
        shares = {sign: sum(d[pair] for pair in pairs if differences[pair] == sign) for sign in (-1, 0, 1)}
        if shares[1] - shares[-1] <= 2e-9 or shares[-1] == 0:
            break
        alpha = 0.5 * math.log(shares[1] / shares[-1])
        new = {pair: value * math.exp(-alpha * differences[pair]) for pair, value in d.items()}
        z = sum(new.values())
        d = {pair: value / z for pair, value in new.items()}
        for i in range(len(rows)):
            for label in labels:
                scores[i][label] += alpha * h[i][label]
        found.append((stump, shares[1], shares[-1], alpha, z))
    return found, scores
