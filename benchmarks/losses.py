"""The flat losses on (1024, 10,000) logits, forward and backward, against PyTorch's own.

    python -m benchmarks.losses [--device cuda]

The limit is memory traffic: read the scores once, write their gradient once. The last row measures that limit.
"""

from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F

import torch_multiclass as tm
from benchmarks.timing import describe, table, take_turns

ROWS, CLASSES = 1024, 10_000
PEERS = {
    "CrammerSingerLoss": "F.cross_entropy",
    "WestonWatkinsLoss": "F.multi_margin_loss",
    "CRFLoss": "F.cross_entropy",
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(ROWS, CLASSES, generator=generator)
    target = torch.randint(CLASSES, (ROWS,), generator=generator)
    scores[torch.arange(0, ROWS, 2), target[::2]] += 8  # half of the labels on top, as in training
    scores, target = scores.to(options.device).requires_grad_(), target.to(options.device)

    def step(loss):
        def run() -> None:
            scores.grad = None
            loss(scores, target).backward()

        return run

    def limit() -> None:
        scores.detach().amax(-1)
        torch.zeros_like(scores)

    contestants = {
        "F.cross_entropy": step(F.cross_entropy),
        "F.multi_margin_loss": step(F.multi_margin_loss),
        "CrammerSingerLoss": step(tm.CrammerSingerLoss()),
        "WestonWatkinsLoss": step(tm.WestonWatkinsLoss()),
        "CRFLoss": step(tm.CRFLoss()),
        "M3NLoss": step(tm.M3NLoss()),
        "read once, write once": limit,
    }
    timings = take_turns(contestants, options.repeats, device=options.device)
    rows = []
    for name, timing in timings.items():
        peer = PEERS.get(name)
        ratio = f"{timings[peer].median / timing.median:.2f}x {peer}" if peer else ""
        rows.append([name, f"{timing.median * 1e3:.2f}", timing.spread, ratio])
    title = f"Flat losses, {ROWS} x {CLASSES}, forward and backward ({describe(options.device)})"
    print(table(["loss", "ms", "min–max", "faster than"], rows, title))


if __name__ == "__main__":
    main()
