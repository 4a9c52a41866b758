"""Chain likelihood and Viterbi against pytorch-crf and, where it is installed, torch-struct.

    python -m benchmarks.chains [--device cuda] [--repeats 9] [--scale 0.1 2] [--no-library]

A training step is `CRFLoss` with the sum over the sequences, forward and backward for emissions, transitions, start and
end, and decoding is `ViterbiDecoder`, both from `ChainScores` made anew, with all that is checked by default.
Transitions are uniform in ``[-scale, scale]`` (a CRF starts at 0.1), and again at 2, as wide as trained ones. "BIO"
forbids by -inf what BIO tags forbid; "padded" has sequences of lengths from half of T on, as many tokens as the full
batch and a mask; both are compared with the plain, full chain. What is wanted is checked at the scale 0.1.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import subprocess
import sys
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

import torch_multiclass as tm
from benchmarks.timing import Row, Timing, describe, table, take_turns
from torch_multiclass.ops import _native

Size = tuple[int, int, int]
SIZES: list[Size] = [(4, 8, 5), (32, 32, 17), (64, 50, 50), (16, 128, 100), (8, 512, 20), (1, 4096, 9)]
USES_LIBRARY = True
BY_LIBRARY = dict(zip(SIZES, [(7, 10), (25, 40), (45, 45), (55, 30), (150, 90), (1000, 350)], strict=True))
BY_TORCH = dict(zip(SIZES, [(2.5, 1.5), (7, 4.5), (18, 7), (30, 5), (40, 6), (300, 35)], strict=True))
SLOWER = 1.25
"""What a padded or a constrained chain may cost, beside the plain one."""

TURN = 0.01
"""Seconds that a turn lasts at least."""

Run = Callable[[], object]


@dataclass
class Problem:
    """Emissions, labels and the parameters of a chain, all with gradients."""

    emissions: Tensor
    labels: Tensor
    transitions: Tensor
    start: Tensor
    end: Tensor
    mask: Tensor | None = None

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """All that is differentiated."""
        return self.emissions, self.transitions, self.start, self.end

    def step(self, loss: Callable[[], Tensor]) -> Run:
        """A training step without the optimiser."""

        def run() -> None:
            for part in self.parts:
                part.grad = None
            loss().backward()

        return run


def problem(size: Size, scale: float, device: str, *, bio: bool = False, padded: bool = False) -> Problem:
    batch, steps, k = size
    generator = torch.Generator().manual_seed(0)
    lengths = None
    if padded:  # three quarters of the positions count: a third more sequences, or longer ones
        steps = steps * 4 // 3 if batch < 4 else steps
        batch = batch if batch < 4 else batch * 4 // 3
        lengths = torch.linspace(0.5, 1, batch).mul(steps).round().long() if batch > 1 else torch.tensor([size[1]])
    emissions = torch.randn(batch, steps, k, generator=generator)
    labels = torch.randint(k, (batch, steps), generator=generator)
    transitions = torch.empty(k, k).uniform_(-scale, scale, generator=generator)
    start, end = torch.empty(2, k).uniform_(-scale, scale, generator=generator)
    if bio:  # tags O, B-1, I-1, B-2, I-2, ...: I-n follows only B-n and I-n
        labels = labels.clamp_max(0)
        for inner in range(2, k, 2):
            allowed = transitions[[inner - 1, inner], inner].clone()
            transitions[:, inner] = start[inner] = -torch.inf
            transitions[[inner - 1, inner], inner] = allowed
    parts = (part.to(device).requires_grad_() for part in (emissions, transitions, start, end))
    emissions, transitions, start, end = parts
    mask = None
    if lengths is not None:
        mask = (torch.arange(steps) < lengths[:, None]).to(device)
        labels = torch.where(mask.cpu(), labels, -100)
    return Problem(emissions, labels.to(device), transitions, start, end, mask)


def ours(given: Problem) -> tuple[Run, Run]:
    criterion, decoder = tm.CRFLoss(reduction="sum"), tm.ViterbiDecoder()

    def scores() -> tm.ChainScores:
        return tm.ChainScores(given.emissions, given.transitions, start=given.start, end=given.end, mask=given.mask)

    return given.step(lambda: criterion(scores(), given.labels)), lambda: decoder(scores())


def pytorch_crf(given: Problem) -> tuple[Run, Run]:
    from torchcrf import CRF

    crf = CRF(given.emissions.shape[2], batch_first=True)
    crf.transitions, crf.start_transitions, crf.end_transitions = map(torch.nn.Parameter, given.parts[1:])
    crf.to(given.emissions.device)

    def loss() -> Tensor:
        crf.zero_grad(set_to_none=True)
        return -crf(given.emissions, given.labels, reduction="sum")

    @torch.no_grad()
    def decode() -> object:
        return crf.decode(given.emissions)

    return given.step(loss), decode


def struct_potentials(given: Problem) -> Tensor:
    """``(B, T-1, to, from)``, contiguous; start and the first emission go into the first, end into the last."""
    e, w, start, end = given.parts
    scores = e[:, 1:, :, None] + w.t()
    first = torch.zeros_like(scores)
    first[:, 0] = (e[:, 0] + start)[:, None, :]
    first[:, -1] += end[:, None]
    return (scores + first).contiguous()


def torch_struct(given: Problem) -> tuple[Run, Run]:
    struct = importlib.import_module("torch_struct")

    def loss() -> Tensor:
        dist = struct.LinearChainCRF(struct_potentials(given))
        gold = struct.LinearChainCRF.struct.to_parts(given.labels, given.emissions.shape[2])
        return -dist.log_prob(gold.to(given.emissions)).sum()

    @torch.no_grad()
    def decode() -> object:
        return struct.LinearChainCRF.struct.from_parts(struct.LinearChainCRF(struct_potentials(given)).argmax)

    return given.step(loss), decode


def peak_memory(run: Run, device: str) -> float:
    """MiB that a run holds at most above what it starts with."""
    run()
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    tracemalloc.start()  # what NumPy holds, which torch knows nothing of
    run()
    arrays = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler announces its start and end otherwise
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        run()
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return (peak + arrays) / 2**20


def contestants(size: Size, scale: float, device: str, peers: bool = True) -> dict[str, tuple[Run, Run]]:
    """Training step and decoding of each, by name."""
    given = problem(size, scale, device)
    entered = {
        "ours": ours(given),
        "padded": ours(problem(size, scale, device, padded=True)),
        "BIO": ours(problem(size, scale, device, bio=True)),
    }
    if peers and importlib.util.find_spec("torchcrf"):
        entered["pytorch-crf"] = pytorch_crf(given)
    if peers and importlib.util.find_spec("torch_struct") and size[0] * size[1] * size[2] ** 2 <= 2_000_000:
        entered["torch-struct"] = torch_struct(given)
    return entered


def rows(repeats: int = 9, scale: float = 0.1, device: str = "cpu") -> Iterator[Row]:
    """Lines of the one table: each size, training and decoding, beside pytorch-crf; padded and BIO beside plain."""
    warnings.filterwarnings("ignore", message="where received a uint8", category=UserWarning)
    wanted = BY_TORCH if _native.library() is None else BY_LIBRARY
    for size in SIZES:
        entered = contestants(size, scale, device)
        rounds = repeats if size[1] < 1000 else max(3, repeats // 3)
        for at, what in enumerate(("train", "decode")):
            runs = {name: pair[at] for name, pair in entered.items()}
            # a step of torch-struct is 200 times as long, and what it leaves in memory slows down whoever comes next
            apart = {name: runs.pop(name) for name in ("torch-struct",) if name in runs}
            timed = take_turns(runs, rounds, device=device, turn_seconds=TURN)
            memory = peak_memory(runs["ours"], device)
            if "pytorch-crf" in timed:
                asked = wanted[size][at] if scale == 0.1 and device == "cpu" else None
                yield Row(f"chain {size}, {what}", timed["ours"], "pytorch-crf", timed["pytorch-crf"], asked, memory)
            for peer, run in apart.items():
                two = take_turns({"ours": runs["ours"], peer: run}, rounds, device=device, turn_seconds=TURN)
                yield Row(f"chain {size}, {what}", two["ours"], peer, two[peer], None, memory)
            for name in ("padded", "BIO"):
                yield Row(f"chain {size}, {what}, {name}", timed[name], "plain", timed["ours"], 1 / SLOWER)


def cells(row: Row) -> list[str]:
    """A line of the table."""
    assert isinstance(row.ours, Timing)
    assert isinstance(row.theirs, Timing)
    ratio = row.theirs.median / row.ours.median
    if row.peer == "plain":
        said = f"{1 / ratio:.2f} of plain (<= {SLOWER:g})"
    else:
        said = f"{ratio:.1f}x {row.peer}" + (f" (>= {row.asked:g})" if row.asked else "")
    wall = sorted(row.ours.wall)[len(row.ours.wall) // 2]
    memory = "" if row.memory is None else f"{row.memory:.1f}"
    return [row.name, f"{row.ours.median * 1e3:.3f}", row.ours.spread, f"{wall * 1e3:.3f}", said, memory]


def main() -> None:
    """Print the table, with the library and, in a second process, without it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--scale", type=float, nargs="+", default=[0.1, 2.0])
    parser.add_argument("--no-library", action="store_true", help="by torch alone, in this process")
    options = parser.parse_args()
    if options.no_library:
        os.environ[_native.SWITCH] = "0"
    torch.set_num_threads(1)
    by = "torch alone" if _native.library() is None else "the native library"
    timed = "GPU ms" if options.device != "cpu" else "CPU ms"
    header = ["B, T, K", timed, "min–max", "wall", "beside", "MiB"]
    for scale in options.scale:
        lines = [cells(row) for row in rows(options.repeats, scale, options.device)]
        print(table(header, lines, f"Chains by {by}, scale {scale:g} ({describe(options.device)})"), flush=True)
    if _native.library() is not None and options.device == "cpu":
        command = [sys.executable, "-m", "benchmarks.chains", "--no-library", "--repeats", str(options.repeats)]
        subprocess.run([*command, "--scale", *map(str, options.scale)], check=True)


if __name__ == "__main__":
    main()
