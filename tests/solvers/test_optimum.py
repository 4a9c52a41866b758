"""The optimum of structured machines by another way: projected ascent on the dual of all labellings, written out; and
the bounds on that of handwriting, by a third."""

import itertools
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from torch_multiclass.solvers import CuttingPlane, FrankWolfe

LETTERS = Path(os.environ.get("TORCH_MULTICLASS_DATA", "")) / "ocr" / "letters.npz"
both = pytest.mark.parametrize("solver", [FrankWolfe, CuttingPlane])


def counts(x, y, labels, scale):
    """What the weights of a labelling's letters, transitions, start and end are multiplied by."""
    rows, moves, start, end = np.zeros((labels, x.shape[1])), np.zeros((labels, labels)), np.zeros(labels), 0
    for t, label in enumerate(y):
        rows[label] += x[t]
        if t:
            moves[y[t - 1], label] += scale
    start[y[0]], end = scale, scale * np.eye(labels)[y[-1]]
    return np.concatenate([rows.ravel(), moves.ravel(), start, end])


def within(shares, owner, most):
    """The nearest shares that are not negative and add up to at most ``most`` for each example."""
    shares = np.maximum(shares, 0)
    for i, limit in enumerate(most):
        own = owner == i
        if shares[own].sum() > limit:
            down = np.sort(shares[own])[::-1]
            excess = (np.cumsum(down) - limit) / np.arange(1, len(down) + 1)
            shares[own] = np.maximum(shares[own] - excess[np.nonzero(down > excess)[0][-1]], 0)
    return shares


def optimum(words, labels, C, scale, cost, kind):
    """Of ``½ |w|^2 + C sum_i max_y L + d`` (or ``L [1 + d]``): its dual and primal."""
    slopes, paid, owner = [], [], []
    for i, (x, gold) in enumerate(words):
        for y in itertools.product(range(labels), repeat=len(gold)):
            price = float(sum(cost[a][b] for a, b in zip(gold, y, strict=True)))
            d = counts(x, y, labels, scale) - counts(x, gold, labels, scale)
            slopes.append(d if kind == "m3n" else price * d)
            paid.append(price)
            owner.append(i)
    slopes, paid, owner = np.array(slopes), np.array(paid), np.array(owner)
    gram, most = slopes @ slopes.T, np.full(len(words), C)
    step = 1 / max(np.linalg.eigvalsh(gram)[-1], 1e-9)
    point = ahead = np.zeros(len(paid))
    speed = 1.0
    for round_ in range(100_000):
        new = within(ahead + step * (paid - gram @ ahead), owner, most)
        speed = 1.0 if (new - point) @ (ahead - new) > 0 else speed
        faster = (1 + np.sqrt(1 + 4 * speed**2)) / 2
        ahead, point, speed = new + (speed - 1) / faster * (new - point), new, faster
        if round_ % 200 == 0:
            w = -slopes.T @ point
            margins = paid + slopes @ w
            primal = 0.5 * w @ w + C * sum(margins[owner == i].max() for i in range(len(words)))
            dual = paid @ point - 0.5 * w @ w
            if primal - dual < 1e-8 * max(1, primal):
                break
    return dual, primal


@both
@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_is_between_dual_and_primal(solver, seed):
    r = np.random.default_rng(seed)
    labels, width, kind = 2 + seed % 2, 1 + seed % 3, ["m3n", "svmstruct"][seed // 2 % 2]
    C, scale = [0.05, 0.5, 2.0][seed % 3], [1.0, 3.0][seed // 3 % 2]
    words = []
    for _ in range(1 + seed % 4):
        length = int(r.integers(1, 4))
        words.append((r.integers(-2, 3, (length, width)).astype(float), r.integers(labels, size=length).tolist()))
    words.append((np.zeros((2, width)), [0, labels - 1]))  # letters without ink
    cost = r.integers(1, 4, (labels, labels)) if seed % 3 == 0 else np.ones((labels, labels))
    cost = (cost * (1 - np.eye(labels))).tolist()
    dual, primal = optimum(words, labels, C, scale, cost, kind)
    x = torch.full((len(words), 3, width), torch.nan, dtype=torch.float64)
    y = torch.full((len(words), 3), -100)
    for i, (rows, gold) in enumerate(words):
        x[i, : len(gold)], y[i, : len(gold)] = torch.tensor(rows), torch.tensor(gold)
    options = {"loss": kind, "cost": cost, "transition_scale": scale, "tol": 1e-7}
    report = solver(C, **options).fit(x, y, lengths=(y >= 0).sum(1), num_classes=labels).report
    slack = 2e-8 * max(1, primal)
    assert report.dual <= primal + slack
    assert report.primal >= dual - slack
    assert report.primal == pytest.approx(primal, rel=3e-7, abs=3e-7)


@pytest.mark.skipif(not LETTERS.is_file(), reason="needs TORCH_MULTICLASS_DATA, a folder with ocr/letters.npz")
@pytest.mark.parametrize(
    ("solver", "C", "tol", "low", "high"),
    [
        (FrankWolfe, 0.1, 1e-4, 375.327, 375.401),
        (FrankWolfe, 1.0, 1e-4, 2151.633, 2153.751),
        (CuttingPlane, 0.1, 1e-4, 375.327, 375.401),
        (CuttingPlane, 1.0, 1e-3, 2151.633, 2153.751),
    ],
)
def test_handwriting(solver, C, tol, low, high):
    """One fold, letters of norm 1: a NumPy loop over planes bounded the optimum from both sides."""
    from recipes.data.letters import Words

    words = Words.read(str(LETTERS))
    fold = words.batch((words.fold == 0).nonzero().squeeze(1))
    report = solver(C, tol=tol).fit(fold.features, fold.labels, lengths=fold.lengths).report
    assert report.converged
    assert report.dual <= high
    assert low <= report.primal <= high * (1 + tol)
