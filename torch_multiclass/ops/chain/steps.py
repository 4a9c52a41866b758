"""The value of a chain in plain steps of torch, for derivatives in forward mode, of any order and in any mix.

Tangents go through each step; the recursions that are one node have none. As slow as the number of steps.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torch_multiclass.checks import transformed
from torch_multiclass.ops.chain.logspace import Gradients, relative
from torch_multiclass.ops.chain.structure import Chain, log_sum_exp, row, work_dtype


def value(chain: Chain, labels: Tensor | None) -> Tensor:
    """As the operator ``chain_value``."""
    dtype, chain = work_dtype(chain.emissions.dtype), chain.double()
    if labels is None:
        return log_partition(chain).to(dtype)
    if labels.dim() == 3:
        rest = log_partition(chain.but(emissions=torch.where(labels, chain.emissions, -torch.inf)))
        dead = rest == -torch.inf
    else:
        chain = relative(chain, labels)
        terms = chain.terms(labels[:, None])[:, 0]
        rest, dead = torch.where(terms == -torch.inf, 0.0, terms).sum(1), (terms == -torch.inf).any(1)
    found = log_partition(chain) - torch.where(dead, 0.0, rest)
    return torch.where(dead, torch.inf, found).to(dtype)


def log_partition(chain: Chain) -> Tensor:
    """``log Z``, ``(B,)``, of a chain in float64."""
    batch, steps, _ = chain.emissions.shape
    if batch == 0 or steps == 0:
        return chain.emissions.sum((1, 2))
    inside = chain.inside()
    emissions = torch.where(inside[..., None], chain.emissions, 0.0)
    mass = emissions[:, 0] + row(chain.start)
    for t in range(1, steps):
        moved = log_sum_exp(mass[:, :, None] + chain.step(t), 1) + emissions[:, t]
        mass = torch.where(inside[:, t, None], moved, mass)
    return torch.where(inside[:, 0], log_sum_exp(mass + row(chain.end), 1), 0.0)


def gradient(grad: Tensor, chain: Chain, labels: Tensor | None) -> Gradients:
    """As the operator ``chain_gradient``."""

    def total(*scores: Tensor) -> Tensor:
        return (grad * value(Chain._make([*scores, chain.lengths]), labels)).sum()

    if transformed():
        return torch.func.grad(total, argnums=(0, 1, 2, 3))(*chain[:4])  # type: ignore[no-any-return]
    with torch.enable_grad():
        own = [part if part.requires_grad else part.view_as(part).requires_grad_() for part in chain[:4]]
        return torch.autograd.grad(total(*own), own, create_graph=True, materialize_grads=True)  # type: ignore[return-value]


def curvature(grad: Tensor, along: tuple[Tensor, ...], chain: Chain, labels: Tensor | None) -> tuple[Tensor, ...]:
    """As the operator ``chain_curvature``, inside a transform of `torch.func`."""

    def slopes(grad: Tensor, *scores: Tensor) -> Gradients:
        return gradient(grad, Chain._make([*scores, chain.lengths]), labels)

    pull = torch.func.vjp(slopes, grad, *chain[:4])[1]
    found: tuple[Tensor, ...] = pull(along)
    return found
