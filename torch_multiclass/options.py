"""Keyword arguments that many functions and modules share, as typed dictionaries to unpack.

``def f(..., **frame: Unpack[Frame])`` lets a type checker refuse a keyword that does not exist; at run time
`known_keywords` does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor
from typing_extensions import TypedDict

from torch_multiclass import checks as check
from torch_multiclass.checks.spelling import meant

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


class HeadOptions(Factory, total=False):
    """Keyword arguments of every head."""

    bias: bool
    """Whether the linear scores have a bias; default True."""
    weight: Weight | str
    """``(K,)`` a weight for each class, or ``"balanced"``: `Head.balance` then counts the labels."""
    label_smoothing: float
    """The share that each label gives to all classes; default 0."""


FRAME = tuple(Frame.__annotations__)
LOSS_OPTIONS = tuple(LossOptions.__annotations__)
FACTORY = tuple(Factory.__annotations__)
HEAD_OPTIONS = ("bias", "weight", "label_smoothing", *FACTORY)


def known_keywords(of: Callable[..., object], given: Iterable[str], shared: tuple[str, ...]) -> None:
    """Raise unless every keyword ``given`` beyond those in the signature of ``of`` is one of the ``shared``."""
    for name in given:
        if name not in shared:
            raise TypeError(_unknown_keyword(of, name, shared))


def _unknown_keyword(of: Callable[..., object], name: str, shared: tuple[str, ...]) -> str:
    open_ended = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    own = [own for own, parameter in inspect.signature(of).parameters.items() if parameter.kind not in open_ended]
    accepted = ", ".join(dict.fromkeys([*own, *shared]))
    return f"{name}: is no argument of {of.__name__}; accepted are {accepted}{meant(name, [*own, *shared])}"


def factory(device: object, dtype: object) -> None:
    """Raise unless a module can make its parameters on this device, in this dtype; None means torch's defaults."""
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype in check.FLOATING):
        accepted = ", ".join(map(str, check.FLOATING))
        raise TypeError(f"dtype: got {check.shown(dtype)}; accepted are None, {accepted}")
    accepted = "None, a name such as 'cuda:0', a number of a GPU and a torch.device"
    if not isinstance(device, (str, int, torch.device, type(None))) or isinstance(device, bool):
        raise TypeError(f"device: got {check.shown(device)}; accepted are {accepted}")
    if isinstance(device, (str, int)):
        try:
            torch.device(device)
        except (RuntimeError, ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"device: got {check.shown(device)}; accepted are {accepted}") from error
