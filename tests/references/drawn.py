"""What tests draw at random: chains and their targets, codes and their margins."""

from __future__ import annotations

import math

import torch
from hypothesis import strategies as st

import torch_multiclass as tm
from tests.references.chain import Enumerated, enumerate_chain

INF, NAN = math.inf, math.nan


def draw_chain(
    seed: int,
    batch: tuple[int, ...] = (2,),
    steps: int = 3,
    k: int = 3,
    *,
    masking: str = "none",
    per_step: bool = False,
    ends: str = "shared",
    forbidden: float = 0.0,
    shift: float = 0.0,
    ties: bool = False,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
) -> tm.ChainScores:
    """Random scores; whatever is masked holds NaN or an infinity."""
    g = torch.Generator().manual_seed(seed)

    def numbers(*shape: int) -> torch.Tensor:
        x = torch.randn(shape, generator=g, dtype=torch.float64)
        x = (x * 1.5).round() if ties else x
        return torch.where(torch.rand(shape, generator=g) < forbidden, -INF, x).to(dtype)

    emissions = numbers(*batch, steps, k) + shift
    transitions = numbers(*batch, max(steps - 1, 0), k, k) if per_step else numbers(k, k)
    start, end = {
        "none": lambda: (None, None),
        "shared": lambda: (numbers(k), numbers(k)),
        "rows": lambda: (numbers(*batch, k), numbers(*batch, k)),
    }[ends]()
    mask = lengths = None
    if masking == "lengths":
        lengths = torch.randint(0, steps + 1, batch, generator=g)
        kept = torch.arange(steps) < lengths.unsqueeze(-1)
    else:
        kept = torch.rand(*batch, steps, generator=g) < (0.6 if masking == "holes" else 2)
        mask = kept if masking == "holes" else None
    junk = torch.tensor([NAN, INF, -INF], dtype=dtype)[torch.randint(3, (*batch, steps, k), generator=g)]
    emissions = torch.where(kept.unsqueeze(-1), emissions, junk)
    move = [None if x is None else x.to(device) for x in (emissions, transitions, start, end, mask, lengths)]
    return tm.ChainScores(move[0], move[1], start=move[2], end=move[3], mask=move[4], lengths=move[5])


def draw_target(scores: tm.ChainScores, seed: int, unobserved: float = 0.3) -> torch.Tensor:
    g = torch.Generator().manual_seed(seed + 1)
    shape = scores.emissions.shape[:-1]
    labels = torch.randint(scores.num_classes, shape, generator=g)
    missing = torch.rand(shape, generator=g) < unobserved
    junk = torch.randint(-200, 200, shape, generator=g)  # any label where masked
    labels = torch.where(missing, -100, labels)
    return torch.where(scores.positions.cpu(), labels, junk).to(scores.emissions.device)


def rows(scores: tm.ChainScores) -> list[Enumerated]:
    """The enumeration of each sequence of the batch."""
    steps, k = scores.emissions.shape[-2:]
    n = scores.batch_shape.numel()
    e = scores.emissions.reshape(n, steps, k)
    t = scores.transitions
    t = t.reshape(n, max(steps - 1, 0), k, k) if t.ndim > 2 else [t] * n
    ends = [
        [None] * n if x is None else x.expand(*scores.batch_shape, k).reshape(n, k) for x in (scores.start, scores.end)
    ]
    kept = scores.positions.reshape(n, steps)
    return [enumerate_chain(e[b], t[b], ends[0][b], ends[1][b], kept[b]) for b in range(n)]


chains = st.builds(
    draw_chain,
    seed=st.integers(0, 10**6),
    batch=st.sampled_from([(), (0,), (1,), (3,), (2, 2)]),
    steps=st.integers(0, 4),
    k=st.integers(1, 3),
    masking=st.sampled_from(["none", "lengths", "holes"]),
    per_step=st.booleans(),
    ends=st.sampled_from(["none", "shared", "rows"]),
    forbidden=st.sampled_from([0.0, 0.0, 0.3]),
    shift=st.sampled_from([0.0, 0.0, 1e4, -1e4]),
    ties=st.booleans(),
)
seeds = st.integers(0, 10**6)


def stacked(values: list[torch.Tensor], like: torch.Tensor) -> torch.Tensor:
    return torch.stack(values).view(like.shape) if values else like.new_zeros(like.shape)


def close(ours: torch.Tensor, expected: list[torch.Tensor], *, absolute: float = 1e-9) -> None:
    """Equality to enumeration; scores near 1e4 leave 1e-12 of themselves to rounding in the enumeration."""
    expected_ = stacked([e.double() for e in expected], ours)
    torch.testing.assert_close(ours, expected_, atol=absolute, rtol=1e-12)


def leaves(scores: tm.ChainScores) -> tuple[tm.ChainScores, list[torch.Tensor]]:
    parts = [scores.emissions, scores.transitions, scores.start, scores.end]
    own = [None if p is None else p.detach().clone().requires_grad_() for p in parts]
    made = tm.ChainScores(own[0], own[1], start=own[2], end=own[3], mask=scores.mask, lengths=scores.lengths)
    return made, [p for p in own if p is not None]


def ternary(k, columns, seed, zeros=True):
    """A random code whose rows differ and whose columns are not all zero."""
    g = torch.Generator().manual_seed(seed)
    while True:
        code = torch.randint(-1, 2, (k, columns), generator=g, dtype=torch.int8)
        code = code if zeros else torch.where(code == 0, 1, code)
        if len(set(map(tuple, code.tolist()))) == k and bool((code != 0).any(0).all()):
            return code


def margins_like(code, rows, seed, scale=1.0):
    g = torch.Generator().manual_seed(seed)
    return scale * torch.randn(rows, code.shape[1], generator=g, dtype=torch.float64)
