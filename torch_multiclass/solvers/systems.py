"""Symmetric positive definite linear systems: solved outright, or by conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def solve_positive(matrix: Tensor, right: Tensor) -> Tensor:
    """The solution of a symmetric system, positive definite but for rounding."""
    lower, failed = torch.linalg.cholesky_ex(matrix)
    if bool(failed):
        answer: Tensor = torch.linalg.lstsq(matrix.cpu(), right[:, None].cpu(), driver="gelsd").solution
        return answer.squeeze(1).to(right.device)
    return torch.cholesky_solve(right[:, None], lower).squeeze(1)


def conjugate_gradient(
    matrix: Callable[[Tensor], Tensor],
    right: Tensor,
    product: Callable[[Tensor, Tensor], Tensor],
    goal: float,
    steps: int,
) -> tuple[Tensor, bool]:
    """The solution of ``matrix(x) = right``, and whether its residual's squared length came down to ``goal``.

    ``product`` is the inner product in which ``matrix`` is symmetric.

    Reference: Hestenes and Stiefel (1952), *Methods of conjugate gradients for solving linear systems*.
    """
    solution, residual, direction = torch.zeros_like(right), right, right
    old = float(product(right, right))
    for _ in range(steps):
        if old <= goal:
            return solution, True
        applied = matrix(direction)
        curvature = float(product(direction, applied))
        if not curvature > 0:  # rounding has eaten the direction
            return solution, False
        length = old / curvature
        solution, residual = solution + length * direction, residual - length * applied
        new = float(product(residual, residual))
        direction, old = residual + (new / old) * direction, new
    return solution, old <= goal
