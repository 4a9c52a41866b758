"""Naive oracles: every formula as plain Python over one example, in double precision."""

import math


def rivals(f, y):
    return [k for k in range(len(f)) if k != y]


def margin(f, y):
    return f[y] - max((f[k] for k in rivals(f, y)), default=-math.inf)


def crammer_singer(f, y, margin_=1.0, power=1):
    return max(0.0, margin_ - margin(f, y)) ** power


def weston_watkins(f, y, margin_=1.0, power=1):
    return sum(max(0.0, margin_ - f[y] + f[k]) ** power for k in rivals(f, y))


def ramp(f, y, rho):
    return min(1.0, max(0.0, 1 - margin(f, y) / rho))


def signs(y, num_classes):
    return [1 if k == y else -1 for k in range(num_classes)]


def adaboost_mh(f, y):
    y = y if isinstance(y, list) else signs(y, len(f))
    return sum(math.exp(-s * v) for s, v in zip(y, f, strict=True) if s)


def adaboost_mr(f, y, normalize=False):
    y = y if isinstance(y, list) else signs(y, len(f))
    pairs = [(a, b) for a in range(len(f)) for b in range(len(f)) if y[a] == 1 and y[b] == -1]
    total = sum(math.exp(f[b] - f[a]) for a, b in pairs)
    return total / max(1, len(pairs)) if normalize else total


def adaboost_averaged(f, y):
    y = y if isinstance(y, list) else signs(y, len(f))
    return math.exp(-sum(s * v for s, v in zip(y, f, strict=True)) / sum(s != 0 for s in y))


def zero_one(num_classes):
    return [[float(a != b) for b in range(num_classes)] for a in range(num_classes)]


def m3n(f, y, cost=None):
    cost = cost or zero_one(len(f))
    return max(cost[y][k] + f[k] - f[y] for k in range(len(f)))


def svmstruct(f, y, cost=None):
    cost = cost or zero_one(len(f))
    return max(cost[y][k] * max(0.0, 1 + f[k] - f[y]) for k in range(len(f)))


def crf(f, y, cost=None, temperature=1.0):
    exponents = [((cost[y][k] if cost else 0.0) + f[k] - f[y]) / temperature for k in range(len(f))]
    top = max(exponents)
    return temperature * (top + math.log(sum(math.exp(e - top) for e in exponents)))


def perceptron(f, y):
    return max(f) - f[y]
