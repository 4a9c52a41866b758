"""Squared Euclidean distances that are right to the dtype wherever the rows are."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_multiclass import checks as check
from torch_multiclass.ops.differences import squared_differences

_FEW = 8  # features, up to which differences are as quick as a matrix product
_LOST = 16.0  # an entry this much smaller than the squared lengths it is a difference of is computed anew
_MANY = 0.25  # share of such entries at which all are
_PAIRS = 1 << 22  # numbers gathered at a time


def squared_distances(left: Tensor, right: Tensor) -> Tensor:
    """``|x - x'|^2`` of all pairs of rows, in the rows' dtype, differentiable to any order.

    Differences of squared lengths, ``|x|^2 - 2 x · x' + |x'|^2`` from one matrix product, lose what the lengths have in
    common, so that rows of a cluster far from the others come out wrong, and by more or less as the batch has it. Here
    an entry that would lose digits is a sum of squared differences.

    Shape:
        left ``(A, D)`` and right ``(B, D)``, of one dtype, float32 or float64; the result ``(A, B)``.
    """
    if torch.compiler.is_compiling():
        return _differences(left, right)
    squared: Tensor = _SquaredDistances.apply(left, right)  # type: ignore[no-untyped-call]
    return squared


def distances(left: Tensor, right: Tensor) -> Tensor:
    """The root of `squared_distances`; its derivatives at 0, where there are none, are 0."""
    squared = squared_distances(left, right)
    apart = squared > 0
    return torch.where(apart, squared, 1).sqrt() * apart


def _differences(left: Tensor, right: Tensor) -> Tensor:
    return torch.cdist(left, right, compute_mode="donot_use_mm_for_euclid_dist").square()


def _products(left: Tensor, right: Tensor) -> Tensor:
    """By one product of centred rows, and by differences where that loses digits."""
    centre = right.mean(0, keepdim=True)
    a, b = left - centre, right - centre
    lengths = a.square().sum(1, keepdim=True) + b.square().sum(1)
    squared = torch.addmm(lengths, a, b.mT, alpha=-2.0)
    row, column = (squared > lengths.mul_(1 / _LOST)).logical_not_().nonzero(as_tuple=True)
    if len(row) > _MANY * squared.numel():
        return _differences(left, right)
    size = max(1, _PAIRS // left.shape[1])
    for i, j in zip(torch.split(row, size), torch.split(column, size), strict=True):
        squared[i, j] = (left[i] - right[j]).square().sum(1)
    return squared


class _SquaredDistances(torch.autograd.Function):
    """Its derivatives are written out, since those of torch's own end at the first."""

    generate_vmap_rule = True

    @staticmethod
    def forward(left: Tensor, right: Tensor) -> Tensor:
        if check.values_readable(left) and left.numel() and right.numel():
            squared = squared_differences(left, right)
            if squared is not None:
                return squared
            if left.shape[1] > _FEW:
                return _products(left, right)
        return _differences(left, right)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        """``2 sum_j G_ij (x_i - x'_j)``, and likewise for ``x'``."""
        left, right = ctx.saved_tensors
        (gradient,) = gradients
        return _pull(gradient, left, right), _pull(gradient.mT, right, left)

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor) -> Tensor:
        """``2 (x_i - x'_j) · (dx_i - dx'_j)``."""
        left, right = ctx.saved_tensors
        d_left, d_right = tangents
        own = (left * d_left).sum(1, keepdim=True) + (right * d_right).sum(1)
        change: Tensor = 2 * (own - left @ d_right.mT - d_left @ right.mT)
        return change


def _pull(gradient: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """``2 sum_j G_ij (x_i - x'_j)``, the origin being moved to the rows."""
    centre = right.detach().mean(0, keepdim=True) if len(right) else 0.0
    a, b = left - centre, right - centre
    pulled: Tensor = 2 * (gradient.sum(1, keepdim=True) * a - gradient @ b)
    return pulled
