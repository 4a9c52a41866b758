"""Structured machines on handwritten words: seconds to a certified gap, and those of a plain NumPy loop.

    python -m benchmarks.structured [--path letters.npz]

``--path`` takes the handwriting set as `recipes.data.letters` reads it, of which the first fold is used; without it
words of the same shape are drawn. The peer is block-coordinate Frank-Wolfe word by word, as one writes it: decode,
exact step, averaged iterate, 400 passes at most. It is timed once, since it takes minutes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from benchmarks.timing import Row, describe, table, take_turns
from recipes.data.letters import Batch, Words
from torch_multiclass.solvers import CuttingPlane, FrankWolfe, PlaneCertificate

USES_LIBRARY = True
CASES = (("C = 1, scale 3, gap 1e-2", 1.0, 3.0, 1e-2), ("C = 1, scale 1, gap 1e-3", 1.0, 1.0, 1e-3))
SOLVERS = (FrankWolfe, CuttingPlane)


def main() -> None:
    """Print the table, and with it what each fit has proved."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", help="the words")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--no-peer", action="store_true", help="leave out the loop, which takes minutes")
    options = parser.parse_args()
    torch.set_num_threads(1)
    words, lines = handwriting(options.path), []
    for name, C, scale, tol in CASES:
        theirs = None if options.no_peer else once(lambda c=C, s=scale, t=tol: loop(lists(words), c, s, t))
        for solver in SOLVERS:
            reports: list[PlaneCertificate] = []
            run = fitted(solver(C, transition_scale=scale, tol=tol, progress=False), words, reports)
            ours = take_turns({"ours": run}, options.repeats, warmup=0)["ours"].median
            line = [f"{solver.__name__}, {name}", f"{ours:.2f}", "", "", *proved(reports[-1])]
            if theirs is not None:
                line[2:4] = [f"{theirs:.1f}", f"{theirs / ours:.1f}×"]
            lines.append(line)
    header = ["case", "ours, CPU s", "NumPy loop, CPU s", "faster", "primal", "dual", "gap"]
    print(table(header, lines, f"{len(words.lengths)} words ({describe('cpu')})"))


def rows(repeats: int, path: str | None = None) -> Iterator[Row]:
    """Both solvers to each gap, the peer once."""
    words = handwriting(path)
    for name, C, scale, tol in CASES:
        theirs = once(lambda c=C, s=scale, t=tol: loop(lists(words), c, s, t))
        contestants = {
            solver.__name__: fitted(solver(C, transition_scale=scale, tol=tol, progress=False), words)
            for solver in SOLVERS
        }
        for solver, ours in take_turns(contestants, min(repeats, 3), warmup=0).items():
            yield Row(f"{solver}, {len(words.lengths)} words, {name}", ours, "NumPy loop, word by word", theirs, 1.0)


def fitted(
    machine: FrankWolfe | CuttingPlane, words: Batch, reports: list[PlaneCertificate] | None = None
) -> Callable[[], object]:
    """A fit of the words; its report is appended."""
    features = words.features.double()

    def run() -> None:
        report = machine.fit(features, words.labels, lengths=words.lengths).report
        if reports is not None:
            reports.append(report)

    return run


def proved(report: PlaneCertificate) -> list[str]:
    """Primal, dual and gap."""
    return [f"{report.primal:.3f}", f"{report.dual:.3f}", f"{report.gap:.1e}"]


def once(run: Callable[[], object]) -> float:
    """Seconds of the processor."""
    start = time.process_time()
    run()
    return time.process_time() - start


def handwriting(path: str | None) -> Batch:
    """The words of the first fold, or as many that look like them: pictures of 16 × 8 dots, of norm 1."""
    if path is not None:
        words = Words.read(path)
        return words.batch((words.fold == 0).nonzero().squeeze(1))
    g = torch.Generator().manual_seed(0)
    lengths = torch.randint(3, 14, (626,), generator=g)
    inside = torch.arange(14) < lengths[:, None]
    moves = torch.rand(26, 26, generator=g) ** 4  # some letters follow others far more often
    labels = torch.randint(26, (626, 14), generator=g)
    for t in range(1, 14):
        labels[:, t] = torch.multinomial(moves[labels[:, t - 1]], 1, generator=g).squeeze(1)
    ink = 0.05 + 0.5 * torch.rand(26, 128, generator=g)
    pictures = (ink[labels] > torch.rand(626, 14, 128, generator=g)).float()
    pictures = torch.nn.functional.normalize(pictures, dim=2) * inside[..., None]
    return Batch(pictures, labels.masked_fill(~inside, -100), lengths)


def lists(words: Batch) -> list[tuple[np.ndarray, np.ndarray]]:
    """Features and labels of each word."""
    features: Tensor = words.features.double()
    return [(features[i, m].numpy(), words.labels[i, m].numpy()) for i, m in enumerate(words.inside)]


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
