"""The flat losses and the head of one label, at (32, 10) and (1024, 10,000), against PyTorch's own.

    python -m benchmarks.losses [--device cuda] [--repeats 9]

A step is a loss forward and backward. On the large logits the limit is memory traffic: read the scores once, write
their gradient once; the small ones show what a call costs. Costs are matrices; their peer is the same loss without one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

import torch_multiclass as tm
from benchmarks.chains import peak_memory
from benchmarks.timing import Row, Timing, describe, table, take_turns

Run = Callable[[], object]
SMALL, LARGE = (32, 10), (1024, 10_000)
PEER = "F.cross_entropy"
# how many times as fast as cross-entropy each is asked to be, on small and on large scores
LOSSES: dict[str, tuple[tm.Loss, float, float | None]] = {
    "CrammerSingerLoss": (tm.CrammerSingerLoss(), 1 / 3.5, None),
    "WestonWatkinsLoss": (tm.WestonWatkinsLoss(), 1 / 5, None),
    "MarginRampLoss": (tm.MarginRampLoss(rho=1.0), 1 / 5, None),
    "AdaBoostLoss mh": (tm.AdaBoostLoss("mh"), 1 / 5, 1.0),
    "AdaBoostLoss averaged": (tm.AdaBoostLoss("averaged"), 1 / 5, 1.0),
    "AdaBoostLoss mr": (tm.AdaBoostLoss("mr"), 1 / 5, 0.8),
    "M3NLoss": (tm.M3NLoss(), 1 / 5, None),
    "SVMStructLoss": (tm.SVMStructLoss(), 1 / 5, 1.5),
    "CRFLoss": (tm.CRFLoss(), 1 / 5, None),
    "StructuredPerceptronLoss": (tm.StructuredPerceptronLoss(), 1 / 5, None),
}
# which loss is the plain one of each with a cost
COSTLY = {
    "CrammerSingerLoss": tm.CrammerSingerLoss,
    "WestonWatkinsLoss": tm.WestonWatkinsLoss,
    "M3NLoss": tm.M3NLoss,
    "SVMStructLoss": tm.SVMStructLoss,
    "CRFLoss": tm.CRFLoss,
}


def problem(rows: int, classes: int, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, labels, half of them on top as in training, and a cost matrix."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(rows, classes, generator=generator)
    target = torch.randint(classes, (rows,), generator=generator)
    scores[torch.arange(0, rows, 2), target[::2]] += 8 if classes > 100 else 2
    cost = torch.randint(4, (classes, classes), generator=generator).float().fill_diagonal_(0)
    return scores.to(device).requires_grad_(), target.to(device), cost.to(device)


def steps(size: tuple[int, int], device: str) -> dict[str, Run]:
    """A step of each loss, by its name."""
    scores, target, matrix = problem(*size, device)
    loops = 100 if size == SMALL else 1

    def step(loss: Callable[[Tensor, Tensor], Tensor]) -> Run:
        def run() -> None:
            for _ in range(loops):
                loss(scores, target).backward()
                scores.grad = None

        return run

    runs = {PEER: step(F.cross_entropy), "F.multi_margin_loss": step(F.multi_margin_loss)}
    runs |= {name: step(loss) for name, (loss, _, _) in LOSSES.items()}
    cost = tm.costs.Matrix(matrix)
    return runs | {f"{name}, cost": step(make(cost=cost)) for name, make in COSTLY.items()}


def each(timings: dict[str, Timing], loops: int) -> dict[str, Timing]:
    """Seconds of one of the ``loops`` calls that a run makes."""
    return {
        name: Timing([seconds / loops for seconds in timing.seconds], [seconds / loops for seconds in timing.wall])
        for name, timing in timings.items()
    }


def rows(repeats: int, device: str = "cpu") -> Iterator[Row]:
    """The lines of the one table."""
    pairs: list[tuple[str, str, float | None]]
    for size in (SMALL, LARGE):
        runs = steps(size, device)
        loops = 100 if size == SMALL else 1
        timed = each(
            take_turns({name: run for name, run in runs.items() if ", " not in name}, repeats, device=device), loops
        )
        for name in LOSSES:
            asked = LOSSES[name][1 if size == SMALL else 2]
            memory = peak_memory(runs[name], device) if size == LARGE else None
            yield Row(f"{name} {size}", timed[name], PEER, timed[PEER], asked, memory)
        pairs = [(f"{name}, cost", name, 0.5) for name in COSTLY]  # in turns by themselves: what one frees, one takes
        pairs += [("M3NLoss", "CrammerSingerLoss", 0.95), ("WestonWatkinsLoss", "F.multi_margin_loss", None)]
        for name, peer, asked in pairs:
            two = each(take_turns({name: runs[name], peer: runs[peer]}, repeats, device=device), loops)
            memory = peak_memory(runs[name], device) if size == LARGE else None
            yield Row(f"{name} {size}, against {peer}", two[name], peer, two[peer], asked, memory)
    yield from head_rows(repeats, device)


def head_rows(repeats: int, device: str) -> Iterator[Row]:
    """Predictions of 32 rows of features that are given; 100 µs are asked."""
    head = tm.MulticlassHead(64, 10).to(device)
    scores = head(torch.randn(32, 64, device=device)).detach()
    calls: dict[str, Callable[[Tensor], Tensor]] = {
        "predict": head.predict,
        "predict_proba": head.predict_proba,
        "argmax": lambda scores: scores.argmax(-1),
    }

    def loop(call: Callable[[Tensor], Tensor]) -> Run:
        def run() -> None:
            for _ in range(100):
                call(scores)

        return run

    timed = each(take_turns({name: loop(call) for name, call in calls.items()}, repeats, device=device), 100)
    for name in ("predict", "predict_proba"):
        yield Row(f"MulticlassHead.{name}, 32 rows", timed[name], "100 µs", 1e-4, 1.0)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = []
    for name, ours, peer, theirs, asked, memory in rows(options.repeats, options.device):
        assert isinstance(ours, Timing)
        other = theirs.median if isinstance(theirs, Timing) else theirs or 0.0
        ratio = f"{other / ours.median:.2f}x" + (f" (>= {asked:.2f})" if asked else "")
        held = "" if memory is None else f"{memory:.0f}"
        found.append([name, f"{ours.median * 1e3:.3f}", ours.spread, peer, f"{other * 1e3:.3f}", ratio, held])
    header = ["loss", "ms", "min–max", "peer", "ms", "times as fast", "MiB"]
    print(table(header, found, f"Flat losses, forward and backward ({describe(options.device)})"))


if __name__ == "__main__":
    main()
