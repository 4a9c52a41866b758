"""The network below a head, the recipes' own or the user's: made, and looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from ..names import networks
from ..start import one_line

__all__ = ["check_features", "fitting"]


def fitting(argument: str, make: Callable[[Any], nn.Module], source: Any) -> nn.Module:
    """A network made from a vocabulary or the shape of a row.

    Raises:
        TypeError: it cannot be made from that, or has no ``num_features``.
    """
    try:
        made = make(source)
    except TypeError as problem:
        raise TypeError(unfit(argument, name_of(make), one_line(problem, 200))) from None
    if not isinstance(getattr(made, "num_features", None), int):
        raise TypeError(unfit(argument, type(made).__name__, "it has no num_features that is a whole number"))
    return made


def unfit(argument: str, name: str, why: str) -> str:
    """The words for a network that does not fit."""
    return f"{argument}: {name} does not fit ({why}); accepted are {networks(argument)}"


def name_of(make: Any) -> str:
    """The class that is made, also where a command line makes it by a function."""
    parts = [make, getattr(make, "func", None), *getattr(make, "args", ())]
    return next((part.__name__ for part in reversed(parts) if isinstance(part, type)), "the function")


def check_features(encoder: nn.Module, features: Any, shape: tuple[int, ...]) -> None:
    """Raise ``ValueError`` where an encoder gives anything but features of each word."""
    got = f"shape {tuple(features.shape)}" if isinstance(features, Tensor) else type(features).__name__
    if got != f"shape {shape}":
        raise ValueError(
            f"encoder: {type(encoder).__name__} gives {got}; accepted is a tensor (sentences, words, num_features), "
            f"here {shape}"
        )
