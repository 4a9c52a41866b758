"""Keyword arguments that many functions and modules share, as typed dictionaries to unpack.

``def f(..., **frame: Unpack[Frame])`` lets a type checker refuse a keyword that does not exist; at run time
`torch_multiclass.checks.known_keywords` does.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from typing_extensions import TypedDict

Weight = Tensor | Sequence[float] | None


class Frame(TypedDict, total=False):
    """Keyword arguments of every loss that say how its scores and targets are laid out."""

    ignore_index: int
    """The label that marks an example (or, in a sequence, a position) without a label; default -100."""
    class_dim: int
    """The dimension of a plain tensor of scores that holds the classes; default the last."""
    validate_args: bool | None
    """Whether values are checked: None (default) checks on the CPU only, True on any device, False never."""


class LossOptions(Frame, total=False):
    """Keyword arguments of every loss module."""

    weight: Weight
    """``(K,)`` a weight for each class."""
    reduction: str
    """``"mean"``, ``"sum"``, ``"none"`` or ``"token_mean"``."""


class Factory(TypedDict, total=False):
    """Where and in which precision a module makes its parameters, as in `torch.nn`."""

    device: torch.device | str | int | None
    dtype: torch.dtype | None


FRAME = tuple(Frame.__annotations__)
LOSS_OPTIONS = tuple(LossOptions.__annotations__)
FACTORY = tuple(Factory.__annotations__)
