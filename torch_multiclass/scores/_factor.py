"""The factor of `scale`."""

from __future__ import annotations

from torch import Tensor

from torch_multiclass import checks as check


def check_factor(name: str, factor: float | Tensor, like: tuple[str, Tensor]) -> float | Tensor:
    """The factor; raise unless it is a number > 0, or one in a tensor, which is not read."""
    if not isinstance(factor, Tensor):
        return check.positive(name, factor)
    check.floating(name, factor)
    if factor.numel() != 1:
        raise ValueError(f"{name}: got shape {tuple(factor.shape)}; accepted is one number")
    check.same_device(name, factor, *like)
    return factor.reshape(())  # of more dimensions it would add them to whatever it is multiplied with


def is_one(factor: float | Tensor) -> bool:
    """Whether a factor changes nothing, as far as that can be told without reading a tensor."""
    return not isinstance(factor, Tensor) and isinstance(factor, (float, int)) and factor == 1
