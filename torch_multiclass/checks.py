"""What every part checks about its arguments, and the words it uses to say so.

Messages read ``argument: what came; what is accepted``. Checks of shapes and dtypes always run; checks of values
read the tensor, so they run by default on the CPU only (`validate_args=True` asks for them on any device), and never
while a graph is being captured, where there is no value to read.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

IGNORE = -100
"""The target value that marks "no label here" inside the library (users may choose another, `ignore_index`)."""


FLOATING = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""The dtypes that scores, margins and features may have; half precision is computed in float32."""

INTEGERS = (
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
    *(torch.uint16, torch.uint32, torch.uint64),
)
"""The dtypes that labels may have; they are read as int64."""

_EXACT = 2**53  # whole numbers up to here are floats, and fit torch's integers


def shown(given: object) -> str:
    """``given`` in at most a line, for a message."""
    try:
        text = " ".join(repr(given).split())
    except Exception:  # an integer of more than 4,300 digits has no repr
        return f"one {type(given).__name__}"
    return text if len(text) <= 120 else f"{text[:117]}..."


def captured() -> bool:
    """Whether `torch.compile`, `torch.export` or a functorch transform is running this code without values."""
    return torch.compiler.is_compiling() or torch._C._functorch.peek_interpreter_stack() is not None


def values_readable(tensor: Tensor, validate_args: bool | None = None) -> bool:
    """Whether value checks may read ``tensor``: on request, else on the CPU only, and never under capture."""
    kind = tensor.device.type
    if captured() or kind == "meta" or (type(tensor) is not Tensor and isinstance(tensor, FakeTensor)):
        return False
    return kind == "cpu" if validate_args is None else validate_args


def choice(name: str, given: object, accepted: Iterable[str]) -> None:
    """Raise unless ``given`` is one of the ``accepted`` names."""
    accepted = list(accepted)
    if not isinstance(given, str) or given not in accepted:
        raise ValueError(f"{name}: got {shown(given)}; accepted are {', '.join(map(repr, accepted))}")


def flag(name: str, given: object, *, optional: bool = False) -> None:
    """Raise unless ``given`` is True or False (or None)."""
    if not isinstance(given, (bool, np.bool_)) and not (optional and given is None):
        accepted = "True, False and None" if optional else "True and False"
        raise TypeError(f"{name}: got {shown(given)}; accepted are {accepted}")


def label_names(name: str, given: Iterable[str]) -> list[str]:
    """The names as a list; raise unless they are strings, at least one, and not one string."""
    if isinstance(given, (str, bytes, Tensor)) or not hasattr(given, "__len__") or getattr(given, "shape", None) == ():
        raise TypeError(f"{name}: got {shown(given)}; accepted is a sequence of strings, one for each label")
    names = list(given)
    odd = [entry for entry in names if not isinstance(entry, str)]
    if odd:
        raise TypeError(f"{name}: holds {shown(odd[0])}; accepted are strings, one for each label")
    if not names:
        raise ValueError(f"{name}: is empty; accepted is one string for each label")
    return names


def positive(name: str, given: object, *, zero: bool = False) -> float:
    """``given`` as a number of Python's; raise unless it is finite and > 0 (or >= 0)."""
    if type(given) is float or (type(given) is int and given <= _EXACT):
        number = given
    elif isinstance(given, bool) or not isinstance(given, (int, Real)):
        number = -1.0
    else:
        number = _number(given)
    if not (0 <= number < float("inf")) or (number == 0 and not zero):
        raise ValueError(f"{name}: got {shown(given)}; accepted is a finite number {'>= 0' if zero else '> 0'}")
    return number


def _number(given: int | Real) -> float:
    """An integer that floats hold exactly as itself, anything else as the nearest float."""
    if isinstance(given, int) and abs(given) <= _EXACT:
        return given
    try:
        return float(given)
    except OverflowError:
        return float("inf")


def integer(name: str, given: object) -> int:
    """``given`` as an integer of Python's; raise unless it is one that fits int64."""
    if type(given) is int and -_EXACT <= given <= _EXACT:
        return given
    if isinstance(given, bool) or not isinstance(given, Integral):
        raise TypeError(f"{name}: got {shown(given)}; accepted is an integer")
    if not -(2**63) <= int(given) < 2**63:
        raise ValueError(f"{name}: got {shown(given)}; accepted is an integer of 64 bits")
    return int(given)


def whole(name: str, given: object, *, least: int = 1) -> int:
    """``given`` as an integer of Python's; raise unless it is one >= ``least`` that fits int64."""
    if isinstance(given, bool) or not isinstance(given, Integral) or not least <= int(given) < 2**63:
        raise ValueError(f"{name}: got {shown(given)}; accepted is a whole number >= {least} (and < 2^63)")
    return int(given)


def is_tensor(name: str, given: object) -> None:
    """Raise unless ``given`` is a tensor."""
    if not isinstance(given, Tensor):
        raise TypeError(f"{name}: got {type(given).__name__}; accepted is a torch.Tensor")


def field(name: str, given: object) -> bool:
    """Whether a field of a score class holds a tensor; raise for what was meant as one.

    False for the placeholders with which tree utilities rebuild the class.
    """
    if isinstance(given, Tensor):
        return True
    if isinstance(given, (np.ndarray, list, str)):
        raise TypeError(f"{name}: got {type(given).__name__}; accepted is a torch.Tensor")
    return False


def dense(name: str, tensor: Tensor) -> None:
    """Raise unless ``tensor`` has an entry for every index."""
    if tensor.is_nested:
        raise TypeError(f"{name}: got a nested tensor; accepted are dense ones (torch.strided)")
    if tensor.layout != torch.strided:
        raise TypeError(f"{name}: got a tensor of layout {tensor.layout}; accepted are dense ones (torch.strided)")


def with_values(name: str, tensor: Tensor) -> None:
    """Raise unless the entries of ``tensor`` can be read here."""
    if tensor.device.type == "meta" or isinstance(tensor, FakeTensor):
        raise ValueError(f"{name}: is on {tensor.device} and has no values; accepted is a tensor with values")


def floating(name: str, tensor: Tensor, *, sparse: bool = False) -> None:
    """Raise unless ``tensor`` is a real floating-point tensor of at least 16 bits, dense unless ``sparse``."""
    is_tensor(name, tensor)
    if tensor.dtype not in FLOATING:
        raise TypeError(f"{name}: got dtype {tensor.dtype}; accepted are float16, bfloat16, float32 and float64")
    if not sparse and (tensor.layout != torch.strided or tensor.is_nested):
        dense(name, tensor)


def broadcasts(name: str, tensor: Tensor, onto_name: str, onto: Tensor) -> None:
    """Raise unless ``tensor`` is floating-point and takes the shape of ``onto`` by broadcasting."""
    floating(name, tensor)
    same_device(name, tensor, onto_name, onto)
    pairs = zip(reversed(tensor.shape), reversed(onto.shape), strict=False)
    if tensor.ndim > onto.ndim or any(own not in (1, size) for own, size in pairs):
        raise ValueError(
            f"{name}: got shape {tuple(tensor.shape)}; accepted are those that broadcast to {tuple(onto.shape)}"
        )


def boolean(name: str, tensor: Tensor, meaning: str) -> None:
    """Raise unless ``tensor`` holds booleans, which ``meaning`` spells out."""
    is_tensor(name, tensor)
    if tensor.dtype != torch.bool:
        raise TypeError(f"{name}: got dtype {tensor.dtype}; accepted is torch.bool, {meaning}")
    dense(name, tensor)


def numbers(name: str, given: object, accepted: str, *, booleans: bool = False) -> Tensor:
    """``given``, a tensor, an array or nested lists, as a dense tensor of real numbers; else raise.

    Floating-point numbers that are not of a tensor or an array get torch's default dtype; integers become int64 where
    torch computes little with their own dtype.
    """
    if isinstance(given, Tensor):
        tensor = given
    elif isinstance(given, (str, bytes)) or not hasattr(given, "__len__"):
        raise TypeError(f"{name}: got {shown(given)}; accepted is {accepted}")
    elif torch.compiler.is_compiling():  # lists of numbers only; numpy's own conversion is not traced
        tensor = torch.as_tensor(given)
    else:
        array = _array(name, given, accepted)
        tensor = torch.as_tensor(array)
        if tensor.is_meta:  # the default device: what is written down has values all the same
            tensor = torch.as_tensor(array, device="cpu")
    if tensor.is_floating_point() and not isinstance(given, (Tensor, np.ndarray)):
        tensor = tensor.to(torch.get_default_dtype())
    if tensor.dtype not in (*FLOATING, *INTEGERS, *([torch.bool] if booleans else [])):
        raise TypeError(f"{name}: got dtype {tensor.dtype}; accepted is {accepted}")
    dense(name, tensor)
    return tensor.long() if tensor.dtype in (torch.uint16, torch.uint32, torch.uint64) else tensor


def _array(name: str, given: object, accepted: str) -> np.ndarray[Any, Any]:
    """``given`` as a new array of a dtype that torch knows; else raise."""
    try:
        array = np.array(given, order="C")
    except Exception as error:
        raise ValueError(
            f"{name}: is no table of numbers (rows of different lengths?); accepted is {accepted}"
        ) from error
    if array.dtype.kind not in "iufb":
        odd = [type(entry).__name__ for entry in array.flat if not isinstance(entry, Real)]
        raise TypeError(f"{name}: holds {odd[0] if odd else 'integers beyond 64 bits'}; accepted is {accepted}")
    if array.dtype.kind == "b" or array.dtype in (np.float16, np.float32):
        return array
    # torch knows no other byte orders, no long doubles and few unsigned integers
    with np.errstate(all="ignore"):
        return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)


def generator(given: object, device: torch.device | None = None) -> None:
    """Raise unless ``given`` is None or a generator, of the kind of ``device`` where one is named."""
    if given is None:
        return
    if not isinstance(given, torch.Generator):
        raise TypeError(
            f"generator: got {shown(given)}; accepted is None or a torch.Generator, such as "
            "torch.Generator().manual_seed(0)"
        )
    if device is not None and device.type not in (given.device.type, "meta"):
        raise ValueError(f"generator: is on {given.device}, but the scores are on {device}; accepted is one device")


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
    if tensor.dtype not in INTEGERS:
        raise TypeError(f"{name}: got dtype {tensor.dtype}; accepted are {meaning} of an integer dtype")
    dense(name, tensor)


def class_indices(name: str, target: Tensor) -> None:
    """Raise unless ``target`` holds integers."""
    integers(name, target, "class indices")


class Target(NamedTuple):
    """Labels that were checked once, at the door, and that every verb trusts."""

    labels: Tensor
    """int64, safe to index with: 0 where no label is known."""
    kept: Tensor
    """bool: where a label is known at a position that counts."""
    complete: bool
    """Whether every position that counts is known to have a label; False where that was not read."""


def usual_labels(
    name: str, given: Tensor, shape: tuple[int, ...], num_classes: int, like: Tensor, validate_args: bool | None
) -> Target | None:
    """What `labels` makes of them where they are int64 and count everywhere, in few steps; None where it is to look."""
    if type(given) is not Tensor or given.dtype != torch.int64 or given.shape != shape or given.device != like.device:
        return None
    if given.layout != torch.strided or not values_readable(given, validate_args):
        return None
    known = given != IGNORE
    complete = label_range(name, given, num_classes, known, validate_args)
    return Target(given if complete else torch.where(known, given, 0), known, complete)


def labels(
    name: str,
    given: Tensor,
    shape_and_meaning: tuple[tuple[int, ...], str],
    num_classes: int,
    like: tuple[str, Tensor],
    *,
    counts: Tensor | None = None,
    ignore_index: int = IGNORE,
    validate_args: bool | None = None,
) -> Target:
    """The target behind labels of that shape, on the device of ``like``, in ``0..num_classes-1`` where they count.

    Args:
        name: of the argument.
        given: labels; ``ignore_index`` and -100 mark those that are not known.
        shape_and_meaning: what `shape` takes.
        num_classes: ``K``.
        like: name and tensor that the labels have to share their device with.
        counts: where a label counts, None for everywhere.
        ignore_index: the label that marks "no label here".
        validate_args: whether the values are read.
    """
    if not _usual(given, shape_and_meaning[0], like[1]):  # what most calls bring needs no more than one look
        class_indices(name, given)
        shape(name, given, *shape_and_meaning)
        same_device(name, given, *like)
        given = given.long()
    known = given != IGNORE
    if ignore_index != IGNORE:
        known = known & (given != ignore_index)
    kept = known if counts is None else known & counts
    if label_range(name, given, num_classes, kept, validate_args) and counts is None and ignore_index == IGNORE:
        return Target(given, kept, True)  # every entry is a label
    complete = values_readable(kept, validate_args) and bool((known if counts is None else known | ~counts).all())
    return Target(torch.where(kept, given, 0), kept, complete)


def _usual(given: object, expected: tuple[int, ...], like: Tensor) -> bool:
    if type(given) is not Tensor or given.dtype != torch.int64 or given.is_nested or given.layout != torch.strided:
        return False
    return given.shape == expected and given.device == like.device


def label_range(
    name: str, target: Tensor, num_classes: int, kept: Tensor | None = None, validate_args: bool | None = None
) -> bool:
    """Raise unless every label (of those ``kept``) lies in ``0..num_classes-1``; whether all were seen to do so."""
    if target.numel() == 0 or not values_readable(target, validate_args):
        return False
    lowest, highest = target.aminmax()
    if int(lowest) >= 0 and int(highest) < num_classes:  # the usual case, in one pass
        return True
    outside = (target < 0) | (target >= num_classes)
    if kept is not None:
        outside = outside & kept
    if not bool(outside.any()):
        return False
    bad = int(target[outside][0])
    seen = target if kept is None else target[kept]
    from_one = bad == num_classes and int(seen.min()) == 1 and int(seen.max()) == num_classes
    hint = "; labels start at 0 here: subtract 1" if from_one else ""
    raise ValueError(f"{name}: label {bad} is outside 0..{num_classes - 1} ({num_classes} classes){hint}")
