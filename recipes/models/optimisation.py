"""The optimiser and the schedule of a recipe, each of which a configuration may change."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import CyclicLR, LambdaLR, LRScheduler, OneCycleLR

from torch_multiclass import checks as check

MakeOptimizer = Callable[[Iterable], Optimizer]
"""Makes an optimiser from parameters."""
Schedule = Literal["one_cycle", "linear", "cosine", "constant"]
MakeSchedule = Callable[[Optimizer], LRScheduler]
"""Makes a schedule from an optimiser; it steps once an epoch, a cyclic one at each step."""


def one_cycle(progress: float, rise: float = 0.25) -> float:
    """The factor of the learning rate: up from 0.05 to 1 in the first part of a run, then a cosine to 0."""
    if progress < rise:
        return 0.05 + 0.95 * progress / rise
    return cosine((progress - rise) / (1 - rise))


def cosine(progress: float) -> float:
    """From 1 to 0."""
    return 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))


def factor(name: Schedule, step: int, steps: int) -> float:
    """The factor of the learning rate at a step of so many; `linear` rises first, over a tenth or 100 of them."""
    if name == "one_cycle":
        return one_cycle(step / steps)
    if name == "linear":
        return min((step + 1) / min(100, 1 + steps // 10), max(0.0, 1 - step / steps))
    return cosine(step / steps) if name == "cosine" else 1.0


def optimised(
    module: Any,
    parameters: Iterable[nn.Parameter],
    default: MakeOptimizer,
    optimizer: MakeOptimizer | None,
    learning_rate: float | None,
    schedule: Schedule | MakeSchedule,
    monitor: str,
) -> dict[str, Any]:
    """What Lightning's `configure_optimizers` returns.

    Args:
        module: the Lightning module.
        parameters: what to train.
        default: the recipe's own optimiser.
        optimizer: another.
        learning_rate: what it is set to, whatever the optimiser came with.
        schedule: the name of one over the steps of the run, or what makes one over its epochs.
        monitor: the logged value that a schedule may watch.
    """
    made = (optimizer or default)(parameters)
    if learning_rate is not None:
        check.positive("learning_rate", learning_rate)
        for group in made.param_groups:
            group["lr"] = learning_rate
    if not isinstance(schedule, str):
        other = schedule(made)
        interval = "step" if isinstance(other, (OneCycleLR, CyclicLR)) else "epoch"
        return {"optimizer": made, "lr_scheduler": {"scheduler": other, "interval": interval, "monitor": monitor}}
    steps = module.trainer.estimated_stepping_batches
    # LambdaLR keeps no length in the checkpoint, so that a resumed run may be made longer.
    over_steps = LambdaLR(made, lambda step: factor(schedule, step, steps))
    return {"optimizer": made, "lr_scheduler": {"scheduler": over_steps, "interval": "step"}}


def adamw(weight_decay: float, lr: float) -> MakeOptimizer:
    """AdamW."""
    return lambda parameters: torch.optim.AdamW(parameters, lr, weight_decay=weight_decay)
