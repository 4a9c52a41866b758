"""The space in which scores are linear: norms of weights, and lengths of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from torch_multiclass.kernels import Gaussian, Laplacian
from torch_multiclass.scorers import (
    KernelScorer,
    LinearScorer,
    MultilabelScorer,
    NystromScorer,
    RandomFourierScorer,
    Scorer,
)

__all__ = ["Space", "linear_part", "space_of"]


class Space(NamedTuple):
    """Scores are ``<w_l, Phi(x)>``, a bias being one more weight of a constant feature 1."""

    norms: Tensor
    """``|w_l|``, (K,)."""
    squares: Callable[[Tensor], Tensor]
    """``|Phi(x)|^2`` of rows ``(N, D)``."""
    radius: float | None
    """What no row's length can be above, where that is known beforehand."""
    bias: bool


def space_of(scorer: Scorer) -> Space | None:
    """The space of a linear or kernel machine; None for others."""
    with torch.no_grad():
        if type(scorer) is LinearScorer:
            return _space(scorer.class_norms(), scorer.bias, lambda rows: rows.square().sum(-1), None)
        if type(scorer) is KernelScorer:
            radius = 1.0 if isinstance(scorer.kernel, (Gaussian, Laplacian)) else None
            return _space(scorer.class_norms(), scorer.bias, scorer.kernel.diagonal, radius)
        if isinstance(scorer, (NystromScorer, RandomFourierScorer)):
            mapped = scorer.features
            return _space(scorer.class_norms(), scorer.linear.bias, lambda rows: mapped(rows).square().sum(-1), None)
    return None


def _space(norms: Tensor, bias: Tensor | None, squares: Callable[[Tensor], Tensor], radius: float | None) -> Space:
    norms = norms.detach().double().cpu()
    if bias is None:
        return Space(norms, squares, radius, False)
    with_bias = (norms.square() + bias.detach().double().cpu().square()).sqrt()
    longer = None if radius is None else (radius**2 + 1) ** 0.5
    return Space(with_bias, lambda rows: squares(rows) + 1, longer, True)


def linear_part(scorer: Scorer) -> Scorer:
    """What gives the scores of single labels."""
    return scorer.margins if isinstance(scorer, MultilabelScorer) else scorer
