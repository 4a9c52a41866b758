"""Naive oracles for codes: one class, one column, one number at a time, in decimal arithmetic of 120 digits."""

from decimal import Decimal, localcontext

import numpy as np

LOSSES = ("hinge", "squared", "squared_hinge", "logistic", "exponential", "sigmoid", "zero_one")

FIGURE_2 = [  # Allwein, Schapire and Singer (2000), figure 2
    [-1, 0, -1, -1, 1, -1, -1],
    [1, -1, 0, 1, 1, 1, -1],
    [1, 0, -1, -1, -1, 1, 1],
    [-1, -1, 1, 0, -1, -1, 1],
]
FIGURE_2_MARGINS = [0.5, -7.0, -1.0, -2.0, -10.0, -12.0, 9.0]

FIGURE_9_5 = [  # Mohri, Rostamizadeh and Talwalkar, figure 9.5
    [-1, -1, -1, 1, -1, -1],
    [1, -1, -1, -1, -1, -1],
    [-1, 1, 1, -1, 1, -1],
    [1, 1, -1, -1, -1, -1],
    [1, 1, -1, -1, 1, -1],
    [-1, -1, 1, 1, -1, 1],
    [-1, -1, 1, -1, -1, -1],
    [-1, 1, -1, 1, -1, -1],
]
FIGURE_9_5_ANSWERS = [-1, 1, 1, -1, 1, 1]


def binary_loss(z, loss):
    """The loss of one margin, exactly rounded to the digits of the context."""
    z = Decimal(z)
    if loss == "hinge":
        return max(Decimal(0), 1 - z)
    if loss == "squared":
        return (1 - z) ** 2
    if loss == "squared_hinge":
        return max(Decimal(0), 1 - z) ** 2
    if loss == "logistic":
        return (1 + (-2 * z).exp()).ln()
    if loss == "exponential":
        return (-z).exp()
    if loss == "sigmoid":
        return 1 / (1 + (2 * z).exp())
    return Decimal(1 - (z > 0) + (z < 0)) / 2


def distances(margins, code, loss):
    """The distance of one example to every row, as decimals."""
    with localcontext() as context:
        context.prec = 120
        return [
            sum(binary_loss(int(bit) * Decimal(float(f)), loss) for bit, f in zip(row, margins, strict=True))
            for row in np.asarray(code)
        ]


def nearest(margins, code, loss, absent=()):
    """The lowest class among the nearest of those not absent."""
    d = distances(margins, code, loss)
    return min((r for r in range(len(d)) if r not in absent), key=lambda r: (d[r], r))


def training_loss(margins, code, label, loss):
    """The sum over the columns that do not ignore the label."""
    row = np.asarray(code)[label]
    return float(
        sum(binary_loss(int(bit) * Decimal(float(f)), loss) for bit, f in zip(row, margins, strict=True) if bit)
    )


def row_distance(u, v):
    """Columns that differ, and a half for each in which either is 0."""
    return sum(0.5 if a == 0 or b == 0 else float(a != b) for a, b in zip(u, v, strict=True))


def min_row_distance(code):
    rows = np.asarray(code).tolist()
    return min(row_distance(u, v) for i, u in enumerate(rows) for v in rows[:i])


def knock_out(margins, k):
    """The winner of a bracket played match by match."""
    pairs = {}
    for i in range(k):
        for j in range(i + 1, k):
            pairs[i, j] = float(margins[len(pairs)])
    alive = list(range(k))
    while len(alive) > 1:
        following = [a if pairs[a, b] >= 0 else b for a, b in zip(alive[::2], alive[1::2], strict=False)]
        alive = following + alive[2 * (len(alive) // 2) :]
    return alive[0]


def vote(margins, k):
    """Wins of each class over all pairs, half a win for a margin of 0."""
    wins, column = [0.0] * k, 0
    for i in range(k):
        for j in range(i + 1, k):
            f = float(margins[column])
            wins[i] += 1.0 if f > 0 else 0.5 if f == 0 else 0.0
            wins[j] += 1.0 if f < 0 else 0.5 if f == 0 else 0.0
            column += 1
    return wins
