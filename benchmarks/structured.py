"""Structured machines on handwritten words: seconds to a certified gap, and those of a plain NumPy loop.

    python -m benchmarks.structured --path letters.npz

The peer is block-coordinate Frank-Wolfe word by word, as one writes it: decode, exact step, averaged iterate.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from benchmarks.timing import describe, table
from recipes.data.letters import Words
from torch_multiclass.solvers import CuttingPlane, FrankWolfe

CASES = (("C = 1, s = 3, gap 1e-2", 1.0, 3.0, 1e-2), ("C = 1, s = 1, gap 1e-3", 1.0, 1.0, 1e-3))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--path", default="letters.npz", help="the words")
    parser.add_argument("--no-peer", action="store_true", help="leave out the loop, which takes minutes")
    options = parser.parse_args()
    torch.set_num_threads(1)
    words = Words.read(options.path)
    batch = words.batch((words.fold == 0).nonzero().squeeze(1))
    features, inside = batch.features.double(), batch.inside
    lists = [(features[i, m].numpy(), batch.labels[i, m].numpy()) for i, m in enumerate(inside)]
    lines = []
    for name, C, scale, tol in CASES:
        peer = np.nan if options.no_peer else seconds(lambda c=C, s=scale, t=tol: loop(lists, c, s, t))
        for solver in (FrankWolfe, CuttingPlane):
            machine = solver(C, transition_scale=scale, tol=tol, progress=False)
            ours = seconds(lambda m=machine: m.fit(features, batch.labels, lengths=batch.lengths))
            lines.append([f"{solver.__name__}, {name}", f"{ours:.2f}", f"{peer:.1f}", f"{peer / ours:.1f}"])
    print(table(["case", "ours, CPU s", "NumPy loop, CPU s", "ratio"], lines, f"fold 0, 626 words ({describe('cpu')})"))


def seconds(run: object) -> float:
    """Of the processor."""
    start = time.process_time()
    run()  # type: ignore[operator]
    return time.process_time() - start


def decode(emissions: np.ndarray, transitions: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Viterbi's best labels."""
    steps = len(emissions)
    back = np.zeros(emissions.shape, dtype=int)
    value = emissions[0] + start
    for t in range(1, steps):
        sums = value[:, None] + transitions
        back[t] = sums.argmax(0)
        value = sums.max(0) + emissions[t]
    labels = np.empty(steps, dtype=int)
    labels[-1] = (value + end).argmax()
    for t in range(steps - 1, 0, -1):
        labels[t - 1] = back[t, labels[t]]
    return labels


def loop(words: list, C: float, scale: float, tol: float, labels: int = 26, most: int = 400) -> float:
    """Block-coordinate Frank-Wolfe, one word after the other; the gap it ends with."""
    width = words[0][0].shape[1]
    size = labels * width + labels * labels + 2 * labels
    w, average = np.zeros(size), np.zeros(size)
    own, offset = np.zeros((len(words), size)), np.zeros(len(words))

    def parts(v: np.ndarray) -> tuple:
        a, b = labels * width, labels * width + labels * labels
        pairs = v[a:b].reshape(labels, labels) * scale
        return v[:a].reshape(labels, width), pairs, v[b : b + labels] * scale, v[b + labels :] * scale

    def worst(v: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float, float]:
        weight, pairs, start, end = parts(v)
        scores = x @ weight.T
        found = decode(scores + (np.arange(labels) != y[:, None]), pairs, start, end)
        total = 0.0
        for z, sign in ((found, 1.0), (y, -1.0)):
            total += sign * (scores[np.arange(len(z)), z].sum() + pairs[z[:-1], z[1:]].sum() + start[z[0]] + end[z[-1]])
        cost = float((found != y).sum())
        return found, cost, cost + total

    def direction(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        move = np.zeros(size)
        weight, a, b = move[: labels * width].reshape(labels, width), labels * width, labels * width + labels * labels
        for k, sign in ((y, C), (z, -C)):
            np.add.at(weight, k, sign * x)
            np.add.at(move[a:b], k[:-1] * labels + k[1:], sign * scale)
            move[b + k[0]] += sign * scale
            move[b + labels + k[-1]] += sign * scale
        return move

    generator, step = np.random.default_rng(0), 0
    best, gap = np.inf, np.inf
    for _ in range(most):
        for i in generator.permutation(len(words)):
            x, y = words[i]
            z, cost, _ = worst(w, x, y)
            target = direction(x, y, z)
            move = own[i] - target
            square = move @ move
            if square > 0:
                size_of_step = min(max((move @ w - offset[i] + C * cost) / square, 0.0), 1.0)
                own[i] -= size_of_step * move
                w -= size_of_step * move
                offset[i] += size_of_step * (C * cost - offset[i])
            average += 2 / (step + 2) * (w - average)
            step += 1
        for v in (w, average):
            best = min(best, 0.5 * v @ v + C * sum(worst(v, x, y)[2] for x, y in words))
        gap = (best - (offset.sum() - 0.5 * w @ w)) / max(1.0, best)
        if gap <= tol:
            break
    return gap


if __name__ == "__main__":
    main()
