"""The structured losses on sequences beside the margin-rescaled one, and exact slack rescaling on long sequences.

    python -m benchmarks.sequence_losses [--device cuda] [--repeats 9]

A step is forward and backward for emissions, transitions, start and end, the value checks of `ChainScores` included.
Slack rescaling is wanted within 12 times margin rescaling at (32, 32, 17), and (8, 200, K) within 60 s and 16 GiB. In
the table of everything it stands beside a step of pytorch-crf, which has the likelihood only.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import torch

import torch_multiclass as tm
from benchmarks.chains import peak_memory, problem, pytorch_crf
from benchmarks.timing import Row, describe, table, take_turns

USES_LIBRARY = True
SIZES = [(32, 32, 17), (64, 50, 50), (16, 128, 100)]
LONG = [(8, 200, 17), (8, 200, 50)]
LOSSES = {
    "M3NLoss": tm.M3NLoss(),
    "StructuredPerceptronLoss": tm.StructuredPerceptronLoss(),
    "CRFLoss": tm.CRFLoss(),
    "CRFLoss(cost)": tm.CRFLoss("hamming"),
    "SVMStructLoss": tm.SVMStructLoss(),
    "SVMStructLoss(exact=False)": tm.SVMStructLoss(exact=False),
}


def steps(size: tuple[int, int, int], device: str) -> dict[str, Callable[[], None]]:
    """A training step of every loss."""
    given = problem(size, 1.0, device)
    emissions, transitions, start, end = given.parts

    def step(loss: tm.Loss) -> Callable[[], None]:
        return given.step(lambda: loss(tm.ChainScores(emissions, transitions, start=start, end=end), given.labels))

    return {name: step(loss) for name, loss in LOSSES.items()}


def rows(repeats: int) -> Iterator[Row]:
    """Lines of the one table: exact slack rescaling and margin rescaling."""
    for size in ((32, 32, 17), (8, 512, 20), (1, 4096, 9)):
        ours = steps(size, "cpu")
        runs = {name: ours[name] for name in ("SVMStructLoss", "M3NLoss")}
        runs["pytorch-crf"] = pytorch_crf(problem(size, 1.0, "cpu"))[0]
        timed = take_turns(runs, 3 if size[1] > 1000 else min(repeats, 5), warmup=1)
        for name in ("SVMStructLoss", "M3NLoss"):
            memory = peak_memory(ours[name], "cpu")
            yield Row(f"{name} {size}, train", timed[name], "pytorch-crf", timed["pytorch-crf"], None, memory)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(describe(arguments.device))
    rows = []
    for size in SIZES + LONG:
        timings = take_turns(
            steps(size, arguments.device), 3 if size in LONG else arguments.repeats, warmup=1, device=arguments.device
        )
        for name, timing in timings.items():
            memory = peak_memory(steps(size, arguments.device)[name], arguments.device)
            ratio = timing.median / timings["M3NLoss"].median
            rows.append(
                [str(size), name, f"{timing.median * 1e3:.2f}", timing.spread, f"{ratio:.2f}x", f"{memory:.1f}"]
            )
    print(table(["(B, T, K)", "loss", "step, ms", "spread", "to M3NLoss", "peak MiB"], rows))


if __name__ == "__main__":
    main()
