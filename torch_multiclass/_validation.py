"""What every part checks about its arguments, and the words it uses to say so.

Messages read ``argument: what came; what is accepted``. Checks of shapes and dtypes always run; checks of values
read the tensor, so they run by default on the CPU only (`validate_args=True` asks for them on any device), and never
while a graph is being captured, where there is no value to read.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

IGNORE = -100
"""The target value that marks "no label here" inside the library (users may choose another, `ignore_index`)."""


def captured() -> bool:
    """Whether `torch.compile`, `torch.export` or a functorch transform is running this code without values."""
    return torch.compiler.is_compiling() or torch._C._functorch.peek_interpreter_stack() is not None


def values_readable(tensor: Tensor, validate_args: bool | None = None) -> bool:
    """Whether value checks may read ``tensor``: on request, else on the CPU only, and never under capture."""
    if captured() or tensor.device.type == "meta" or isinstance(tensor, FakeTensor):
        return False
    return tensor.device.type == "cpu" if validate_args is None else validate_args


def choice(name: str, given: object, accepted: Iterable[str]) -> None:
    """Raise unless ``given`` is one of the ``accepted`` names."""
    accepted = list(accepted)
    if given not in accepted:
        raise ValueError(f"{name}: got {given!r}; accepted are {', '.join(map(repr, accepted))}")


def positive(name: str, given: object, *, zero: bool = False) -> None:
    """Raise unless ``given`` is a finite number > 0 (or >= 0)."""
    number = float(given) if isinstance(given, Real) else -1.0
    if isinstance(given, bool) or not (0 <= number < float("inf")) or (number == 0 and not zero):
        raise ValueError(f"{name}: got {given!r}; accepted is a finite number {'>= 0' if zero else '> 0'}")


def whole(name: str, given: object, *, least: int = 1) -> None:
    """Raise unless ``given`` is an integer >= ``least``."""
    if isinstance(given, bool) or not isinstance(given, Integral) or int(given) < least:
        raise ValueError(f"{name}: got {given!r}; accepted is a whole number >= {least}")


def is_tensor(name: str, given: object) -> None:
    """Raise unless ``given`` is a tensor."""
    if not isinstance(given, Tensor):
        raise TypeError(f"{name}: got {type(given).__name__}; accepted is a torch.Tensor")


def floating(name: str, tensor: Tensor) -> None:
    """Raise unless ``tensor`` is a real floating-point tensor."""
    is_tensor(name, tensor)
    if not tensor.is_floating_point():
        raise TypeError(f"{name}: got dtype {tensor.dtype}; accepted are float16, bfloat16, float32 and float64")


def same_device(name: str, tensor: Tensor, reference_name: str, reference: Tensor) -> None:
    """Raise unless both tensors live on one device."""
    if tensor.device != reference.device:
        raise ValueError(
            f"{name}: is on {tensor.device}, but {reference_name} is on {reference.device}; accepted is one device"
        )


def shape(name: str, tensor: Tensor, expected: tuple[int, ...], meaning: str) -> None:
    """Raise unless ``tensor`` has exactly the ``expected`` shape, which ``meaning`` spells out."""
    if tuple(tensor.shape) != tuple(expected):
        raise ValueError(f"{name}: got shape {tuple(tensor.shape)}; accepted is {tuple(expected)}, {meaning}")


def integers(name: str, tensor: Tensor, meaning: str) -> None:
    """Raise unless ``tensor`` holds integers, which ``meaning`` spells out."""
    is_tensor(name, tensor)
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(f"{name}: got dtype {tensor.dtype}; accepted are {meaning} of an integer dtype")


def class_indices(name: str, target: Tensor) -> None:
    """Raise unless ``target`` holds integers."""
    integers(name, target, "class indices")


def label_range(
    name: str, target: Tensor, num_classes: int, kept: Tensor | None = None, validate_args: bool | None = None
) -> None:
    """Raise unless every label (of those ``kept``) lies in ``0..num_classes-1``."""
    if target.numel() == 0 or not values_readable(target, validate_args):
        return
    lowest, highest = target.aminmax()
    if int(lowest) >= 0 and int(highest) < num_classes:  # the usual case, in one pass
        return
    outside = (target < 0) | (target >= num_classes)
    if kept is not None:
        outside = outside & kept
    if not bool(outside.any()):
        return
    bad = int(target[outside][0])
    labels = target if kept is None else target[kept]
    from_one = bad == num_classes and int(labels.min()) == 1 and int(labels.max()) == num_classes
    hint = "; labels start at 0 here: subtract 1" if from_one else ""
    raise ValueError(f"{name}: label {bad} is outside 0..{num_classes - 1} ({num_classes} classes){hint}")
