"""Whether planes in the parameters of a scorer of one's own prove anything, and whether its scores allow the labels."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from torch_multiclass.losses.base import Loss
from torch_multiclass.losses.structured import SVMStructLoss
from torch_multiclass.scores import Scores
from torch_multiclass.scores.recorded import Recorded
from torch_multiclass.scores.structured import Structured
from torch_multiclass.solvers.problem import forbidden_labels

_ROUNDING = 1e-5  # of the largest score; a scorer may compute in float32 within
SOME = 4
"""On so many examples linearity is tried."""


def check_linear(scores: Callable[[Tensor], Tensor | Scores], like: Tensor, kind: str) -> None:
    """Raise unless ``s(v + w) + s(0) = s(v) + s(w)`` at two random weights: what is linear in them, and what is fixed.

    Args:
        scores: of a few examples, at a weight ``(P)``.
        like: the weight 0.
        kind: the scorer's name.
    """
    draws = torch.Generator().manual_seed(0)
    one, other = (torch.randn(like.shape, generator=draws, dtype=like.dtype) for _ in range(2))
    parts = [_numbers(scores(weight)) for weight in (like, one, other, one + other)]
    for zero, first, second, both in zip(*parts, strict=True):
        if not zero.shape == first.shape == second.shape == both.shape:
            raise not_linear(kind)
        largest = max((float(part.abs().max()) for part in (zero, first, second, both) if part.numel()), default=0.0)
        if not bool(((both + zero - first - second).abs() <= _ROUNDING * largest).all()):
            raise not_linear(kind)


def not_linear(kind: str) -> TypeError:
    """That the scorer is none of those."""
    return TypeError(
        f"scorer: got {kind}, whose scores are not linear in its parameters; accepted is None or a scorer linear in "
        "its parameters (others are trained by an optimiser, as Head(scorer, M3NLoss()))"
    )


def _numbers(scores: Tensor | Scores) -> list[Tensor]:
    """What the scores are made of, without what is forbidden (``-inf``)."""
    parts = [part for part in pytree.tree_leaves(scores) if isinstance(part, Tensor) and part.is_floating_point()]
    return [part.detach()[part != -torch.inf].double() for part in parts]


def check_scores(scores: Tensor | Scores, target: Tensor, positions: Tensor, loss: Loss) -> None:
    """Raise where the labels of an example, one of ``positions``, go where its scores let none; or the loss has no
    exact value, which alone is convex."""
    if isinstance(loss, SVMStructLoss) and isinstance(scores, Recorded) and not hasattr(scores.raw, "as_chain"):
        raise ValueError(
            f"loss: got 'svmstruct' with {type(scores).__name__}, of which solvers know no exact slack rescaling; "
            "accepted is loss='m3n'"
        )
    if isinstance(scores, Structured):
        row = _first(scores.forbidden(target).flatten(1).any(1), positions)
        if row is not None:
            raise forbidden_labels(row)
        return
    if not isinstance(scores, Tensor) or (scores.ndim, target.ndim) != (2, 1):
        return
    if int(target.max()) < scores.shape[1]:  # of another label the loss says what is wrong
        row = _first(scores.gather(1, target.unsqueeze(1)).squeeze(1) == -torch.inf, positions)
        if row is not None:
            raise ValueError(f"target: row {row} has a label of score -inf; accepted are labels that the scorer allows")


def _first(bad: Tensor, positions: Tensor) -> int | None:
    """The position of the first of the examples that are ``bad``."""
    return int(positions[int(bad.nonzero()[0])]) if bool(bad.any()) else None
