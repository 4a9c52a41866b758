"""Structures beyond the first-order chain: a training step against that of the chain and against semi-Markov packages.

    python -m benchmarks.structures [--repeats 9]

A step is the likelihood, forward and backward for all scores. The peers of semi-Markov segments are flash-semicrf and
torch-struct, where they are installed (``pip install --no-deps flash-semicrf torch-struct``); both are given the scores
of segments and moves as the edges ``(B, T-1, S, K, K)`` that they take, made once and outside of what is timed.
"""

from __future__ import annotations

import argparse
import importlib.util
import warnings
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

import torch_multiclass as tm
from benchmarks.chains import peak_memory
from benchmarks.timing import Row, describe, table, take_turns

Run = Callable[[], object]


def step(parts: list[Tensor], loss: Callable[..., Tensor]) -> Run:
    """A training step without the optimiser."""

    def run() -> None:
        for part in parts:
            part.grad = None
        loss(*parts).backward()

    return run


def draw(*shapes: tuple[int, ...]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).mul_(0.3).requires_grad_() for shape in shapes]


def chains(batch: int, steps: int, k: int) -> dict[str, Run]:
    """The first-order chain, and what else can be said of the same emissions."""
    e, w, v, start, end = draw((batch, steps, k), (k, k), (k, k, k), (k,), (k,))
    labels = torch.randint(k, (batch, steps), generator=torch.Generator().manual_seed(1))
    parents = (torch.arange(steps) - 1) // 2
    loss = tm.CRFLoss(reduction="sum")
    return {
        "chain": step([e, w, start, end], lambda e, w, s, f: loss(tm.ChainScores(e, w, start=s, end=f), labels)),
        "second order": step(
            [e, w, v, start, end], lambda e, w, v, s, f: loss(tm.SecondOrderScores(e, w, v, start=s, end=f), labels)
        ),
        "tree": step([e, w], lambda e, w: loss(tm.TreeScores(e, w, parents), labels)),
    }


def segments(batch: int, steps: int, k: int, most: int) -> dict[str, Run]:
    """Ours and the peers; of torch-struct only where its memory allows."""
    scores, w = draw((batch, steps, most, k), (k, k))
    gold = tm.SegmentScores(scores.detach(), w.detach()).sample(1, generator=torch.Generator().manual_seed(1))[:, 0]
    loss = tm.CRFLoss(reduction="sum")
    runs = {"ours": step([scores, w], lambda s, w: loss(tm.SegmentScores(s, w), gold))}
    edges = (scores[:, 1:, :, :, None] + w.t()).detach().requires_grad_()
    if importlib.util.find_spec("flash_semicrf"):
        from flash_semicrf.semimarkov import SemiMarkov
        from flash_semicrf.semirings import LogSemiring

        def flash(edges: Tensor) -> Tensor:
            total: Tensor = SemiMarkov(LogSemiring).logpartition(edges, use_linear_scan=True, use_vectorized=True)[0]
            return total.sum()

        runs["flash-semicrf"] = step([edges], flash)
    if importlib.util.find_spec("torch_struct"):
        from torch_struct import SemiMarkovCRF

        runs["torch-struct"] = step([edges], lambda edges: SemiMarkovCRF(edges).partition.sum())
    return runs


def rows(repeats: int) -> Iterator[Row]:
    """The lines of the one table."""
    warnings.filterwarnings("ignore", category=UserWarning)
    size = (32, 32, 17)
    runs = chains(*size)
    timed = take_turns(runs, repeats)
    for name in ("second order", "tree"):
        asked = 1 / 25 if name == "second order" else None
        memory = peak_memory(runs[name], "cpu")
        yield Row(f"{name} {size}, step", timed[name], "first-order chain", timed["chain"], asked, memory)
    for steps in (128, 512):
        size = (16, steps, 8, 8)
        runs = segments(*size)
        slow = runs.pop("torch-struct", None)
        if slow is not None and steps == 128:  # seconds for each step
            yield Row(
                f"segments {size}, step, once more", take_turns({"ours": runs["ours"]}, 3)["ours"], "torch-struct",
                take_turns({"theirs": slow}, 1, 0)["theirs"], 1 / 4, peak_memory(runs["ours"], "cpu"),
            )  # fmt: skip
        timed = take_turns(runs, max(3, repeats // 2))
        memory = peak_memory(runs["ours"], "cpu")
        theirs = timed.get("flash-semicrf")
        peer = "flash-semicrf" if theirs else ""
        yield Row(f"segments {size}, step", timed["ours"], peer, theirs, 1 / 4 if theirs else None, memory)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = []
    for row in rows(options.repeats):
        theirs = row.theirs
        ours = row.ours if isinstance(row.ours, float) else row.ours.median
        other = theirs if theirs is None or isinstance(theirs, float) else theirs.median
        ratio = "" if other is None else f"{other / ours:.3g}x" + (f" (>= {row.asked:g})" if row.asked else "")
        shown = "" if other is None else f"{other * 1e3:.2f}"
        memory = "" if row.memory is None else f"{row.memory:.1f}"
        found.append([row.name, f"{ours * 1e3:.2f}", row.peer, shown, ratio, memory])
    print(table(["", "CPU ms", "peer", "CPU ms", "times as fast", "MiB"], found, f"Structures ({describe('cpu')})"))


if __name__ == "__main__":
    main()
