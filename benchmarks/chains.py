"""Chain likelihood and Viterbi against pytorch-crf and, where it is installed, torch-struct.

    python -m benchmarks.chains [--device cuda] [--repeats 9] [--scale 0.1]

A training step is the summed negative log-likelihood, forward and backward for emissions, transitions, start and end.
Transitions are uniform in ``[-scale, scale]`` (a CRF starts at 0.1), and again at 2, as wide as trained ones; "BIO"
forbids by -inf what BIO tags forbid, and is compared with the plain chain in the last column.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.timing import Timing, describe, table, take_turns
from torch_multiclass.ops import chain

SIZES = [(32, 32, 17), (64, 50, 50), (16, 128, 100), (8, 512, 20), (1, 4096, 9)]
WANTED = {SIZES[0]: (7, 3.5), SIZES[1]: (12, 6), SIZES[2]: (17, 5), SIZES[3]: (19, 2.2), SIZES[4]: (80, 8)}
Run = Callable[[], object]


@dataclass
class Problem:
    """Emissions, labels and the parameters of a chain, all with gradients."""

    emissions: Tensor
    labels: Tensor
    transitions: Tensor
    start: Tensor
    end: Tensor

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


def problem(size: tuple[int, int, int], scale: float, device: str, bio: bool = False) -> Problem:
    batch, steps, k = size
    generator = torch.Generator().manual_seed(0)
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
    return Problem(emissions, labels.to(device), transitions, start, end)


def ours(given: Problem) -> tuple[Run, Run]:
    def loss() -> Tensor:
        return chain.negative_log_likelihood(chain.Chain.of(*given.parts), given.labels).sum()

    @torch.no_grad()
    def decode() -> object:
        return chain.viterbi(chain.Chain.of(*given.parts))

    return given.step(loss), decode


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
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler announces its start and end otherwise
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        run()
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak / 2**20


def contestants(given: Problem, size: tuple[int, int, int]) -> dict[str, tuple[Run, Run]]:
    entered = {"ours": ours(given)}
    if importlib.util.find_spec("torchcrf"):
        entered["pytorch-crf"] = pytorch_crf(given)
    if importlib.util.find_spec("torch_struct") and size[0] * size[1] * size[2] ** 2 <= 2_000_000:
        entered["torch-struct"] = torch_struct(given)
    return entered


def against(peer: Timing | None, timing: Timing, wanted: float | None = None) -> str:
    if peer is None:
        return ""
    return f"{peer.median / timing.median:.1f}x" + (f" (>= {wanted:g})" if wanted else "")


def compare(size: tuple[int, int, int], scale: float, device: str, repeats: int) -> list[list[str]]:
    """A row of the table for every contestant at one size: training, decoding, memory."""
    entered = contestants(problem(size, scale, device), size)
    repeats = repeats if size[1] < 1000 else max(3, repeats // 3)
    train = take_turns({name: runs[0] for name, runs in entered.items()}, repeats, device=device)
    decode = take_turns({name: runs[1] for name, runs in entered.items()}, repeats, device=device)
    rows = []
    for name in entered:
        row = [str(size), f"{scale:g}", name]
        for timings, wanted in zip((train, decode), WANTED[size], strict=True):
            peer = timings.get("pytorch-crf") if name == "ours" else None
            row += [
                f"{timings[name].median * 1e3:.2f}",
                timings[name].spread,
                f"{sorted(timings[name].wall)[len(timings[name].wall) // 2] * 1e3:.2f}",
                against(peer, timings[name], wanted),
            ]
        rows.append([*row, f"{peak_memory(entered[name][0], device):.1f}", ""])
    return rows


def forbidden(size: tuple[int, int, int], scale: float, device: str, repeats: int) -> list[str]:
    """A row for a chain with the constraints of BIO tags, against the plain one."""
    runs = {
        "BIO": ours(problem(size, scale, device, bio=True)),
        "plain": ours(problem(size, scale, device)),
    }
    train = take_turns({name: run[0] for name, run in runs.items()}, repeats, device=device)
    decode = take_turns({name: run[1] for name, run in runs.items()}, repeats, device=device)
    row = [str(size), f"{scale:g}", "ours, BIO"]
    for timings in (train, decode):
        wall = sorted(timings["BIO"].wall)[len(timings["BIO"].wall) // 2] * 1e3
        row += [f"{timings['BIO'].median * 1e3:.2f}", timings["BIO"].spread, f"{wall:.2f}", ""]
    slower = [timings["BIO"].median / timings["plain"].median for timings in (train, decode)]
    return [*row, f"{peak_memory(runs['BIO'][0], device):.1f}", f"{slower[0]:.2f} / {slower[1]:.2f}"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--scale", type=float, nargs="+", default=[0.1, 2.0])
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="where received a uint8", category=UserWarning)
    rows = []
    for size in SIZES:
        for scale in options.scale:
            rows += compare(size, scale, options.device, options.repeats)
            rows.append(forbidden(size, scale, options.device, options.repeats))
    timed = "GPU ms" if options.device != "cpu" else "CPU ms"
    header = ["B, T, K", "scale", "", f"train {timed}", "min–max", "wall", "vs pytorch-crf"]
    header += [f"decode {timed}", "min–max", "wall", "vs pytorch-crf", "MiB", "BIO / plain"]
    print(table(header, rows, f"Chains ({describe(options.device)})"))


if __name__ == "__main__":
    main()
