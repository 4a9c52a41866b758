"""Naive oracles of the support vector machines: loops over rows and classes, and a small quadratic program."""

import math

import numpy as np
from scipy.optimize import LinearConstraint, minimize


def crammer_singer(scores, label, cost):
    return max(cost[k] + scores[k] - scores[label] for k in range(len(scores)))


def weston_watkins(scores, label, cost):
    return sum(max(0.0, cost[k] + scores[k] - scores[label]) for k in range(len(scores)) if k != label)


def group_norm(norms, p):
    return max(norms) if p == math.inf else sum(v**p for v in norms) ** (1 / p)


def primal(weight, features, target, uppers, costs, loss=crammer_singer, p=2.0):
    """``½ (sum_l |w_l|^p)^{2/p} + sum_i C_i loss_i``."""
    norms = [math.sqrt(sum(v * v for v in row)) for row in weight]
    total = 0.5 * group_norm(norms, p) ** 2
    for x, y, upper, cost in zip(features, target, uppers, costs, strict=True):
        scores = [sum(a * b for a, b in zip(row, x, strict=True)) for row in weight]
        total += upper * loss(scores, y, cost)
    return total


def mixture(classes, rows, dimensions, spread=0.35, generator=None):
    """A Gaussian mixture with equal classes: means ``N(0, spread^2)``, noise ``N(0, 1)``, all over ``sqrt(D)``."""
    import torch

    means = torch.randn(classes, dimensions, generator=generator) * spread
    target = torch.arange(rows) % classes
    features = means[target] + torch.randn(rows, dimensions, generator=generator)
    return features / dimensions**0.5, target


def dual_by_quadratic_program(gram, target, classes, upper, cost, free=False):
    """The optimum of the Crammer-Singer dual, by scipy, over ``alpha`` as it is written in the text; with a bias that
    is ``free``, those of each class sum to 0."""
    n = len(target)
    onehot = np.eye(classes)[target]

    def negative(alpha):
        a = alpha.reshape(n, classes)
        return (cost * a).sum() + 0.5 * np.einsum("ik,jk,ij->", a, a, gram)

    def gradient(alpha):
        return (cost + gram @ alpha.reshape(n, classes)).ravel()

    bounds = [(None, upper * hot) for hot in onehot.ravel()]
    rows = np.kron(np.eye(n), np.ones(classes))
    each = np.kron(np.ones(n), np.eye(classes))[:-1]  # the last follows from the rows and the others
    sums = LinearConstraint(np.concatenate([rows, each]) if free else rows, 0, 0)
    found = minimize(
        negative,
        np.zeros(n * classes),
        jac=gradient,
        bounds=bounds,
        constraints=sums,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert found.success, found.message
    return -found.fun


def primal_by_quadratic_program(features, target, classes, uppers, cost, direct=False):
    """The optimum of the primal with a bias that is not regularised, by scipy: a slack for each row, or with ``direct``
    (Weston and Watkins) for each row and class."""
    n, d = len(target), len(features[0])
    pairs = [(i, k) for i in range(n) for k in range(classes) if k != target[i]]
    slacks = len(pairs) if direct else n
    effects, costs = np.zeros((len(pairs), classes * (d + 1) + slacks)), np.zeros(len(pairs))
    for row, (i, k) in enumerate(pairs):
        for label, sign in ((target[i], 1), (k, -1)):
            effects[row, label * (d + 1) : (label + 1) * (d + 1)] += sign * np.append(features[i], 1.0)
        effects[row, classes * (d + 1) + (row if direct else i)] = 1
        costs[row] = cost[i][k]
    charged = np.concatenate([np.tile(np.append(np.ones(d), 0.0), classes), np.zeros(slacks)])
    each = [uppers[i] for i, _ in pairs] if direct else list(uppers)
    linear = np.concatenate([np.zeros(classes * (d + 1)), each])
    start = np.concatenate([np.zeros(classes * (d + 1)), costs if direct else [max(cost[i]) for i in range(n)]])
    found = minimize(
        lambda v: 0.5 * (charged * v * v).sum() + linear @ v,
        start,
        jac=lambda v: charged * v + linear,
        bounds=[(None, None)] * (classes * (d + 1)) + [(0, None)] * slacks,
        constraints=LinearConstraint(effects, costs, np.inf),
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-13},
    )
    assert found.success, found.message
    return found.fun
