"""Logistic curves of one variable, many at once."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus


def logistic_lines(f: Tensor, goal: Tensor, weight: Tensor) -> Tensor:
    """Minimise ``sum_i w_is [log(1 + e^{u_is}) - t_is u_is]``, ``u = a_s f_is + b_s``, for each column: ``(2, L)``.

    In units in which ``f`` has mean 0 and variance 1, so that neither the unit nor the zero of the margins matters.
    """
    count = weight.sum(0).clamp(min=1)
    largest = f.abs().amax(0).clamp(min=torch.finfo(f.dtype).tiny)  # first, so that no square overflows
    f = f / largest
    mean = (weight * f).sum(0) / count
    f = torch.where(weight > 0, f - mean, 0.0)
    spread = ((weight * f.square()).sum(0) / count).sqrt()
    spread = torch.where(spread > 1e-14, spread, 1.0)  # a column of one margin: the slope stays 0
    slope, offset = descended(f / spread, goal, weight)
    slope = slope / spread
    return torch.stack([slope / largest, offset - slope * mean])


def descended(f: Tensor, goal: Tensor, weight: Tensor, steps: int = 100) -> Tensor:
    """Newton's method from slope 0 and the offset of the mean, a step being halved until it descends: ``(2, L)``."""

    def value(line: Tensor) -> Tensor:
        u = line[0] * f + line[1]
        return (weight * (softplus(u, threshold=1e9) - goal * u)).sum(0)

    share = ((weight * goal).sum(0) / weight.sum(0).clamp(min=1)).clamp(1e-12, 1 - 1e-12)
    line = torch.stack([torch.zeros_like(share), torch.logit(share)])
    now = value(line)
    for _ in range(steps):
        p = torch.sigmoid(line[0] * f + line[1])
        residual, curve = weight * (p - goal), weight * p * (1 - p)
        g_slope, g_offset = (residual * f).sum(0), residual.sum(0)
        h_ss, h_so, h_oo = (curve * f * f).sum(0) + 1e-12, (curve * f).sum(0), curve.sum(0) + 1e-12
        determinant = (h_ss * h_oo - h_so * h_so).clamp(min=1e-24)
        step = torch.stack([h_oo * g_slope - h_so * g_offset, h_ss * g_offset - h_so * g_slope]) / determinant
        slope_along = step[0] * g_slope + step[1] * g_offset
        length = torch.ones_like(now)
        for _ in range(40):
            following = value(line - length * step)
            ok = following <= now - 1e-4 * length * slope_along
            if bool(ok.all()):
                break
            length = torch.where(ok, length, length / 2)
        moved = torch.where(ok, length, 0.0) * step
        line, now = line - moved, torch.where(ok, following, now)
        if not bool((slope_along > 1e-14 * (1 + now)).any()):  # below the rounding of the sum
            break
    return line
