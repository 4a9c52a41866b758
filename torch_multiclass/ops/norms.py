"""Group norms over classes, their duals and proximal steps, on the vector of the classes' own norms."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_GRID, _ROUNDS, _NEWTON, _POLISH = 64, 2, 10, 3


def group_norm(norms: Tensor, p: float) -> Tensor:
    r"""``(sum_l |w_l|^p)^{1/p}`` from the ``|w_l|``, the largest of them for ``p = inf``.

    Shape:
        norms ``(*, K)``; the result ``(*)``.

    Reference: Mohri, Rostamizadeh and Talwalkar, *Foundations of Machine Learning*, §9.2.

    Example:
        >>> import torch
        >>> group_norm(torch.tensor([3.0, 4.0]), 2.0), group_norm(torch.tensor([3.0, 4.0]), float("inf"))
        (tensor(5.), tensor(4.))
    """
    if not p >= 1:
        raise ValueError(f"p: got {p!r}; accepted is a number >= 1, or infinity")
    if p in (1, 2, math.inf):
        result: Tensor = torch.linalg.vector_norm(norms, p, dim=-1)
        return result
    # of numbers up to 1: the powers of others leave the floating-point numbers where p is large
    largest = norms.detach().abs().amax(-1, keepdim=True)
    scaled: Tensor = torch.linalg.vector_norm(norms / largest.where(largest > 0, 1), p, dim=-1)
    return scaled * largest.squeeze(-1)


def dual_exponent(p: float) -> float:
    """``q`` with ``1/p + 1/q = 1``."""
    if p == 1:
        return math.inf
    return 1.0 if p == math.inf else p / (p - 1)


def shrink_group_norm(norms: Tensor, weight: float, p: float) -> Tensor:
    r"""The minimiser over ``u >= 0`` of ``½ |u - r|^2 + (weight/2) (sum_l u_l^p)^{2/p}``.

    Stationarity is ``u_l + weight N^{2-p} u_l^{p-1} = r_l`` with ``N`` the norm of ``u``: for a fixed ``N`` each
    ``u_l`` is the root of a monotone function, and the one right ``N`` is closed in on by a grid of ever finer steps.

    Shape:
        norms ``(K)``; the result ``(K)``.

    Example:
        >>> import torch
        >>> shrink_group_norm(torch.tensor([3.0, 4.0]), 1.0, 2.0)
        tensor([1.5000, 2.0000])
    """
    r = norms.double()
    if float(r.amax()) == 0:
        return norms.clone()
    if p == 2:
        return norms / (1 + weight)
    if p == 1:
        return _shrink_sum(r, weight).to(norms.dtype)
    if (
        p == math.inf
    ):  # Moreau: what is taken away is the proximal step of the conjugate, half a squared sum over weight
        return (r - _shrink_sum(r, 1 / weight)).to(norms.dtype)
    low, high = r.new_zeros(()), group_norm(r, p)
    for _ in range(_ROUNDS):
        grid = low + (high - low) * torch.linspace(1 / _GRID, 1, _GRID, dtype=r.dtype, device=r.device)
        too_small = group_norm(_norms_given(grid, r, weight, p), p) > grid
        below = too_small.sum().clamp_max(_GRID - 1)
        low, high = torch.where(below > 0, grid[below - 1], low), grid[below]
    u = _norms_given(high[None], r, weight, p)[0]
    for _ in range(_POLISH):  # Newton's method on all the u at once
        size = group_norm(u, p)
        error = u + weight * size * (u / size) ** (p - 1) - r
        better = u - shrink_group_norm_slope(r, u, weight, p) @ error
        u = torch.where((better > 0) & (better <= r), better, u)
    return u.to(norms.dtype)


def shrink_group_norm_slope(norms: Tensor, shrunk: Tensor, weight: float, p: float) -> Tensor:
    r"""The derivative of `shrink_group_norm`, ``du/dr = (I + weight H)^{-1}``.

    ``H`` is the Hessian of half the squared norm at ``u``, where nothing is 0
    ``(p - 1) N^{2-p} diag(u^{p-2}) + (2 - p) N^{2-2p} u^{p-1} (u^{p-1})^T``. Classes shrunk to 0 stay there
    (``p = 1``); those cut down to the largest move together (``p = inf``).

    Args:
        norms: ``r``, what was shrunk.
        shrunk: ``u``.
        weight, p: as there.

    Shape:
        norms and shrunk ``(K)``; the result ``(K, K)``.

    Example:
        >>> import torch
        >>> r = torch.tensor([3.0, 2.0, 0.1])
        >>> shrink_group_norm_slope(r, shrink_group_norm(r, 1.0, 1.0), 1.0, 1.0)
        tensor([[ 0.6667, -0.3333,  0.0000],
                [-0.3333,  0.6667,  0.0000],
                [ 0.0000,  0.0000,  0.0000]])
    """
    size = float(group_norm(shrunk, p))
    if size == 0 or p == 2:
        return torch.eye(len(shrunk), dtype=shrunk.dtype, device=shrunk.device) / (1 + weight)
    if p == math.inf:
        cut = (norms > shrunk).to(shrunk.dtype)
        return torch.diag(1 - cut) + torch.outer(cut, cut) / (cut.sum() + weight)
    share = shrunk / size
    kept = (share > 0).to(share.dtype)
    share = share.clamp_min(torch.finfo(share.dtype).tiny)
    alone = kept / (1 + weight * (p - 1) * share ** (p - 2))
    slopes = share ** (p - 1)
    pull = weight * (2 - p)
    moved = alone * slopes
    return torch.diag(alone) - pull / (1 + pull * (slopes * moved).sum()) * torch.outer(moved, moved)


def _shrink_sum(r: Tensor, weight: float) -> Tensor:
    """``p = 1``: ``u = [r - weight s]_+`` with ``s = sum u``; the number of survivors is found by sorting."""
    ordered = r.sort(descending=True).values
    count = torch.arange(1, len(r) + 1, device=r.device)
    total = ordered.cumsum(0) / (1 + weight * count)
    keep = int((ordered > weight * total).sum())
    return (r - weight * total[max(keep, 1) - 1]).clamp_min(0)


def _norms_given(grid: Tensor, r: Tensor, weight: float, p: float) -> Tensor:
    """For each ``N`` of the grid, the roots ``u`` in ``[0, r]`` of ``u + weight N^{2-p} u^{p-1} = r``.

    In ``u`` for ``p >= 2``, else in ``v = u^{p-1}``, the left side is convex, so Newton's method from above comes
    down to the root.
    """
    pull = (weight * grid ** (2 - p))[:, None].clamp(1e-150, 1e150)
    power = p - 1 if p >= 2 else 1 / (p - 1)
    linear, steep = (torch.ones_like(pull), pull) if p >= 2 else (pull, torch.ones_like(pull))
    root = torch.minimum(r / linear, (r / steep) ** (1 / power))
    for _ in range(_NEWTON):
        slope = linear + power * steep * root ** (power - 1)
        root = (root - (linear * root + steep * root**power - r) / slope).clamp_min(0)
    return root if p >= 2 else root**power
