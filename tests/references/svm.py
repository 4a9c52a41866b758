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


def dual_by_quadratic_program(gram, target, classes, upper, cost):
    """The optimum of the Crammer-Singer dual, by scipy, over ``alpha`` as it is written in the text."""
    n = len(target)
    onehot = np.eye(classes)[target]

    def negative(alpha):
        a = alpha.reshape(n, classes)
        return (cost * a).sum() + 0.5 * np.einsum("ik,jk,ij->", a, a, gram)

    def gradient(alpha):
        return (cost + gram @ alpha.reshape(n, classes)).ravel()

    bounds = [(None, upper * hot) for hot in onehot.ravel()]
    sums = LinearConstraint(np.kron(np.eye(n), np.ones(classes)), 0, 0)
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
