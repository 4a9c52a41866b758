"""From a weight in feature space to a scorer, certified as it is stored."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import torch
from torch import Tensor, nn

from torch_multiclass.kernels.gram import not_definite
from torch_multiclass.scorers.features import NystromFeatures
from torch_multiclass.scorers.kernel import KernelScorer, NystromScorer
from torch_multiclass.scorers.linear import LinearScorer
from torch_multiclass.solvers.base import relative_gap
from torch_multiclass.solvers.space import KernelSpace, Space

_ROUNDING = 1e-6

Primal = Callable[[Tensor], float]


def settle(
    weight: Tensor, dtype: torch.dtype, tol: float, certify: Callable[[Tensor], tuple[float, float]], computed: Primal
) -> tuple[Tensor, float, float]:
    """A weight rounded to ``dtype``, or to float64 where that would lose the tolerance; its primal and dual.

    ``certify`` measures them exactly, ``computed`` the primal with the scores as a scorer of the weight's dtype
    computes them: both must keep the tolerance.
    """
    rounded = weight.to(dtype)
    primal, dual = certify(rounded)
    if dtype != torch.float64 and relative_gap(max(primal, computed(rounded)), dual) > tol:
        wide = weight.double()
        wide_primal, wide_dual = certify(wide)
        if relative_gap(wide_primal, wide_dual) <= tol:
            return wide, wide_primal, wide_dual
    return rounded, primal, dual


def check_weak_duality(space: Space, primal: float, dual: float) -> None:
    """Raise where a dual above the primal shows that a user's kernel is none."""
    own = isinstance(space, KernelSpace) and not space.kernel.any_dtype
    if own and relative_gap(primal, dual) < -_ROUNDING:
        raise not_definite(f"the dual objective {dual:.8g} exceeds the primal {primal:.8g}")


def as_scorer(space: Space, weight: Tensor, bias: bool, mapped: NystromFeatures | None = None) -> nn.Module:
    """The scorer of a settled weight, in the weight's dtype."""
    if isinstance(space, KernelSpace):
        return _kernel_scorer(space, weight)
    outputs, inner = weight.shape[0], weight.shape[1] - bias
    linear = LinearScorer(inner, outputs, bias, device=weight.device, dtype=weight.dtype)
    linear.weight.data.copy_(weight[:, :inner])
    if linear.bias is not None:
        linear.bias.data.copy_(weight[:, -1])
    return linear if mapped is None else NystromScorer(mapped, outputs, linear=linear)


def _kernel_scorer(space: KernelSpace, weight: Tensor) -> KernelScorer:
    """An expansion over the support vectors; what the kernel learns is copied, so that it stays as it was certified."""
    coefficients = weight[0]
    support = (coefficients != 0).any(1)
    points = space.given[support]
    kernel = deepcopy(space.kernel) if any(True for _ in space.kernel.parameters()) else space.kernel
    scorer = KernelScorer(
        points.to(weight.dtype) if kernel.any_dtype else points, coefficients.shape[1], kernel, bias=space.bias
    )
    scorer.coefficients = nn.Parameter(coefficients[support].clone())
    if scorer.bias is not None:
        scorer.bias = nn.Parameter(space.offset(weight))
    return scorer
