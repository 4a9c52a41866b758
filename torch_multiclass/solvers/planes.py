r"""Cutting planes: what any loss of any scorer that is linear in its parameters has for a lower bound at a weight.

For scores linear in the parameters ``w`` and a convex loss, ``l_i(w') >= l_i(w) + <g_i, w' - w> = b_i + <g_i, w'>``,
with a subgradient ``g_i``, the slope, and the offset ``b_i``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.func import functional_call

from torch_multiclass import checks as check
from torch_multiclass.losses.base import Loss
from torch_multiclass.ops.precision import undisturbed
from torch_multiclass.scorers.base import Scorer

__all__ = ["Planes", "planes"]


class Planes(NamedTuple):
    """The planes of ``B`` examples at a weight of ``P`` parameters.

    Shape:
        slope ``(B, P)``, the parameters in the order of ``scorer.parameters()``; offset and loss ``(B)``.

    Reference: Joachims, Finley and Yu (2009), *Cutting-plane training of structural SVMs*, section 3.

    Example:
        >>> import torch, torch_multiclass as tm
        >>> scorer = tm.LinearScorer(2, 3, bias=False)
        >>> found = tm.solvers.planes(scorer, tm.M3NLoss(), torch.eye(2), torch.tensor([0, 2]), weight=torch.zeros(6))
        >>> found.slope.shape, found.offset
        (torch.Size([2, 6]), tensor([1., 1.]))
    """

    slope: Tensor
    offset: Tensor
    loss: Tensor


@undisturbed
def planes(
    scorer: Scorer,
    loss: Loss,
    features: Tensor,
    target: Tensor,
    *,
    weight: Tensor | None = None,
    **structure: Tensor,
) -> Planes:
    r"""The cutting plane of each example's loss, ``l_i(w') >= offset_i + <slope_i, w'>`` for every ``w'``.

    Args:
        scorer: linear in its parameters, which are ``w`` unless a ``weight`` is given.
        loss: convex in the scores, such as `M3NLoss`; each example is an argument of it by itself.
        features: one row or sequence for each example.
        target: their labels.
        weight: all parameters in one vector, instead of the scorer's own.
        structure: what else the scorer takes, one entry for each example: mask, lengths, parents.

    Shape:
        features ``(B, D)`` or ``(B, T, D)``; target ``(B)`` or ``(B, T)``; weight ``(P)``; see `Planes`.

    Raises:
        ValueError: features, target and structure of different numbers of examples; a weight of another length; a
            loss that says of itself that it is not convex.
        TypeError: a scorer or loss that is not one of this library.

    Reference: Joachims, Finley and Yu (2009), *Cutting-plane training of structural SVMs*, section 3; Lacoste-Julien,
    Jaggi, Schmidt and Pletscher (2013), *Block-coordinate Frank-Wolfe optimization for structural SVMs*, section 3.

    Example:
        >>> import torch
        >>> import torch_multiclass as tm
        >>> scorer = tm.LinearScorer(2, 3, bias=False)
        >>> zero = torch.zeros(6)
        >>> slope, offset, loss = planes(scorer, tm.M3NLoss(), torch.eye(2), torch.tensor([0, 2]), weight=zero)
        >>> slope + 0  # no sign of zeros
        tensor([[-1.,  0.,  1.,  0.,  0.,  0.],
                [ 0.,  1.,  0.,  0.,  0., -1.]])
        >>> offset, loss
        (tensor([1., 1.]), tensor([1., 1.]))
    """
    own = dict(scorer.named_parameters()) if isinstance(scorer, Scorer) else {}
    _check(scorer, loss, {"features": features, "target": target, **structure}, weight, own)
    held = {name: part.detach() for name, part in own.items()} if weight is None else shaped(weight.detach(), own)
    flat = torch.cat([part.flatten() for part in held.values()])
    slopes, losses = flat.new_empty(len(target), len(flat)), flat.new_empty(len(target))
    for i in range(len(target)):
        with torch.inference_mode(False), torch.enable_grad():
            parameters = {name: part.clone().requires_grad_() for name, part in held.items()}
            others = {name: part[i] for name, part in structure.items()}
            value = loss(functional_call(scorer, parameters, (features[i],), others), target[i])
            parts = torch.autograd.grad(value, list(parameters.values()), allow_unused=True, materialize_grads=True)
        losses[i], slopes[i] = value.detach(), torch.cat([part.flatten() for part in parts])
    return Planes(slopes, losses - slopes @ flat, losses)


def _check(
    scorer: object, loss: object, given: dict[str, Tensor], weight: Tensor | None, own: Mapping[str, Tensor]
) -> None:
    """Raise unless all are of their kinds, and of as many examples and parameters."""
    if not isinstance(scorer, Scorer):
        raise TypeError(f"scorer: got {check.shown(scorer)}; accepted is a scorer that is linear in its parameters")
    if not isinstance(loss, Loss):
        raise TypeError(f"loss: got {check.shown(loss)}; accepted is a loss that is convex in the scores")
    if not loss.convex:
        raise ValueError(f"loss: got {check.shown(loss)}, which is not convex; accepted is a loss convex in the scores")
    check.floating("features", given["features"])
    if given["features"].ndim < 2:
        raise ValueError(f"features: got shape {tuple(given['features'].shape)}; accepted is (B, D) or (B, T, D)")
    for name, part in given.items():
        check.is_tensor(name, part)
        check.dense(name, part)
        if part.ndim == 0 or len(part) != len(given["features"]):
            raise ValueError(
                f"{name}: got shape {tuple(part.shape)}; accepted is ({len(given['features'])}, ...), an entry for "
                "each example"
            )
    if weight is not None:
        check.floating("weight", weight)
        check.shape("weight", weight, (sum(part.numel() for part in own.values()),), "all parameters in one vector")


def shaped(weight: Tensor, like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """One vector in the shapes of the parameters."""
    parts = torch.split(weight, [part.numel() for part in like.values()])
    return {name: part.view_as(own) for (name, own), part in zip(like.items(), parts, strict=True)}
