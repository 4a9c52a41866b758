"""Projections that the duals of the hinge losses need, for many rows at once."""

from __future__ import annotations

import torch
from torch import Tensor

_STEPS = 100  # Newton's method ends after finitely many steps; five to eight in practice


def project_simplex(values: Tensor, total: Tensor, start: Tensor | None = None) -> tuple[Tensor, Tensor]:
    r"""Each row's nearest point of ``{b : b >= 0, sum_l b_l = total}``, namely ``b = [v - t]_+`` for one ``t``.

    ``t`` is the root of the convex, decreasing ``sum_l [v_l - t]_+ - total``. Newton's method started left of it never
    overshoots; started right of it (a ``start`` from an earlier, similar call) its first step lands on the left.

    Args:
        values: what to project.
        total: positive, one for each row.
        start: where to begin looking for ``t``.

    Shape:
        values ``(N, K)``; total and start ``(N, 1)``. Returns the projection ``(N, K)`` and ``t`` ``(N, 1)``.

    Example:
        >>> import torch
        >>> project_simplex(torch.tensor([[0.5, 1.5, -1.0]]), torch.tensor([[1.0]]))[0]
        tensor([[0., 1., 0.]])
    """
    top = values.amax(1, keepdim=True)
    threshold = top - total if start is None else torch.minimum(start, top - 1e-3 * total)
    close = 10 * torch.finfo(values.dtype).eps
    for _ in range(_STEPS):
        above = (values - threshold).clamp_min_(0)
        step = (above.sum(1, keepdim=True) - total) / above.sign().sum(1, keepdim=True).clamp_min_(1)
        threshold = threshold + step
        if bool((step.abs() <= close * (total + threshold.abs())).all()):
            break
    return (values - threshold).clamp_min_(0), threshold


def project_coupled_box(values: Tensor, upper: Tensor, offset: Tensor) -> Tensor:
    r"""Each row's minimiser of ``½ |b - v|^2 + ½ (sum_l b_l - offset)^2`` over ``0 <= b <= upper``.

    It is ``b = clip(v - m, 0, upper)`` with ``m = sum_l b_l - offset``, the root of a decreasing, piecewise linear
    function: Newton's method inside a bracket.

    Shape:
        values ``(N, K)``; upper ``(N, K)`` or ``(N, 1)``; offset ``(N, 1)``.

    Example:
        >>> import torch
        >>> project_coupled_box(torch.tensor([[1.0, 1.0]]), torch.tensor([[5.0]]), torch.tensor([[0.0]]))
        tensor([[0.3333, 0.3333]])
    """
    low, high = -offset, upper.expand_as(values).sum(1, keepdim=True) - offset
    shift = torch.zeros_like(offset).clamp(low, high)
    rounding = 10 * torch.finfo(values.dtype).eps * (high - low + values.abs().amax(1, keepdim=True))
    low, high = low - rounding, high + rounding  # the root may be an end, which Newton's step then has to reach
    for _ in range(_STEPS):
        box = torch.minimum((values - shift).clamp_min_(0), upper)
        excess = box.sum(1, keepdim=True) - offset - shift
        found = excess.abs() <= rounding
        if bool(found.all()):
            break
        low, high_now = torch.where(excess > 0, shift, low), torch.where(excess < 0, shift, high)
        high = high_now
        slope = 1 + ((box > 0) & (box < upper)).sum(1, keepdim=True)
        newton = shift + excess / slope
        step = torch.where((newton > low) & (newton < high), newton, (low + high) / 2)
        shift = torch.where(found, shift, step)  # what is found stays: from an end of its bracket it would be halved
    return torch.minimum((values - shift).clamp_min_(0), upper)
