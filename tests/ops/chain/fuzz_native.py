"""Random chains by the native library against log space in float64.

    python -m tests.ops.chain.fuzz_native [PROBLEMS] [FIRST_SEED]

Up to 130 labels and 40 positions, lengths from 0 on, -inf anywhere, scores that span up to 1e4, an offset of up to 1e4,
gold labels drawn at random, the best ones, or raised until they are likely. Prints what is out of bounds, and the worst
of each quantity.
"""

from __future__ import annotations

import random
import sys
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass.ops import _native
from torch_multiclass.ops.chain import best_labels, engine, logspace, native
from torch_multiclass.ops.chain.structure import Chain
from torch_multiclass.ops.chain.viterbi import by_torch

INF = float("inf")


class Problem(NamedTuple):
    chain: Chain
    labels: Tensor | None
    grad: Tensor
    likely: bool  # whether the labels are the best ones, or raised


def problem(seed: int) -> Problem:
    draw, generator = random.Random(seed), torch.Generator().manual_seed(seed)

    def normal(*shape: int, scale: float) -> Tensor:
        return torch.randn(*shape, generator=generator) * scale

    def some(*shape: int, share: float) -> Tensor:
        return torch.rand(*shape, generator=generator) < share

    k = draw.choice([1, 2, 3, 4, 8, 9, 16, 17, 33, 64, 65, 100, 130]) if draw.random() < 0.4 else draw.randint(2, 24)
    batch, steps = draw.randint(1, 6), draw.randint(1, 40 if k < 30 else 10)
    spread = 10 ** draw.uniform(-2, 4)
    wide = 10 ** draw.uniform(-2, 4 if draw.random() < 0.3 else 1)
    emissions = normal(batch, steps, k, scale=spread)
    transitions, start, end = normal(k, k, scale=wide), normal(k, scale=wide), normal(k, scale=wide)
    if draw.random() < 0.3:
        emissions += 10 ** draw.uniform(0, 4)
    if draw.random() < 0.4:
        share = draw.random() * 0.6
        transitions[some(k, k, share=share)] = -INF
        start[some(k, share=share / 2)] = -INF
        end[some(k, share=share / 2)] = -INF
        emissions[some(batch, steps, k, share=share / 4)] = -INF
    lengths = torch.randint(0, steps + 1, (batch,), generator=generator) if draw.random() < 0.5 else None
    chain = Chain(emissions, transitions, start, end, lengths)
    kind = draw.choice(["none", "random", "random", "best"])
    labels = None if kind == "none" else torch.randint(k, (batch, steps), generator=generator)
    if kind == "best":
        labels = by_torch(chain.double())
    if kind == "random" and spread < 30 and draw.random() < 0.5:
        kind, sure = "best", torch.full((batch, steps, 1), spread * 10 ** draw.uniform(0.3, 1.3))
        chain = chain._replace(emissions=emissions.scatter_add(2, labels[..., None], sure))  # type: ignore[index]
    return Problem(chain, labels, torch.rand(batch, generator=generator), kind == "best")


BOUNDS = {
    "value": 1e-7,
    "value of likely labels": 1e-7,
    "value beside a gradient": 1e-7,
    "emissions": 1e-6,
    "transitions": 1e-5,
    "path": 1e-9,
}
"""Beside 1 or the largest value, beside the largest entry of the gradient, beside 1 or the best score."""

FLOOR = 1e-4
"""Below this the gradients in log space have no digits: differences of numbers near 1, from scores near 1e4."""


def errors(seed: int) -> dict[str, float]:
    """What a problem's results are off, in the units of `BOUNDS`."""
    chain, labels, grad, likely = problem(seed)
    solution = engine.solve(chain, labels, "auto")
    wanted, exact = logspace.value(chain, labels), logspace.gradient(grad, chain, labels)
    finite = wanted.isfinite()
    assert torch.equal(solution.value[~finite], wanted[~finite]), f"seed {seed}: {solution.value} for {wanted}"
    if labels is not None:
        assert bool((solution.value >= 0).all()), f"seed {seed}: negative likelihood {solution.value}"
    found = solution.gradient(grad.clone())

    def largest(part: Tensor) -> float:
        return float(part.abs().max()) if part.numel() else 0.0

    name = "value of likely labels" if likely else "value"
    off = {name: largest((solution.value - wanted)[finite]) / max(1, largest(wanted[finite]))}
    together = native.vouched(chain, labels, gradient=True)
    beside = solution.value if together is None else together.value
    off["value beside a gradient"] = largest((beside - wanted)[finite]) / max(1, largest(wanted[finite]))
    off["emissions"] = largest(found[0] - exact[0]) / max(FLOOR, largest(exact[0]))
    off["transitions"] = max(
        largest(part - own) / max(FLOOR, largest(own)) for part, own in zip(found[1:], exact[1:], strict=True)
    )
    wide = chain.double()
    best = wide.score(by_torch(wide))
    mine = wide.score(best_labels(chain))
    legal = best.isfinite()
    off["path"] = largest((mine - best)[legal]) / max(1, largest(best[legal]))
    return off


def main(problems: int = 10_000, first: int = 0) -> int:
    print(_native.backends()["native"])
    torch.set_num_threads(1)
    worst, failures = dict.fromkeys(BOUNDS, 0.0), 0
    for seed in range(first, first + problems):
        for name, off in errors(seed).items():
            worst[name] = max(worst[name], off)
            if not off <= BOUNDS[name]:
                failures += 1
                print(f"seed {seed}: {name} off by {off:.2e}, {BOUNDS[name]:.0e} allowed")
    print(", ".join(f"{name} {off:.1e}" for name, off in worst.items()))
    return failures


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
