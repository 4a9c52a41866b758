"""Kinds, shapes and devices of tensors."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.utils.rnn import PackedSequence

from torch_multiclass.checks.values import came, shown

FLOATING = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""The dtypes that scores, margins and features may have; half precision is computed in float32."""

INTEGERS = (
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
    *(torch.uint16, torch.uint32, torch.uint64),
)
"""The dtypes that labels may have; they are read as int64."""


def is_tensor(name: str, given: object) -> None:
    """Raise unless ``given`` is a tensor."""
    if not isinstance(given, Tensor):
        raise no_tensor(name, given)


def no_tensor(name: str, given: object) -> TypeError:
    """The error of what is no tensor; of an array, of lists or of a table it says what makes one of it."""
    how = ""
    if isinstance(given, PackedSequence):
        how = f", as pad_packed_sequence({name}, batch_first=True)[0]"
    elif isinstance(given, tuple) and given and isinstance(given[0], Tensor):
        how = f", as {name}[0] where a layer gives its output and its state"
    elif isinstance(given, (np.ndarray, list, tuple)):
        how = f", as torch.as_tensor({name})"
    elif hasattr(given, "to_numpy"):
        how = f", as torch.as_tensor({name}.to_numpy())"
    return TypeError(f"{name}: got {came(given)}; accepted is a torch.Tensor{how}")


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
        how = f", as {name}.float()" if tensor.dtype in (*INTEGERS, torch.bool) else ""
        how += "; labels stand behind them" if name == "scores" and tensor.dtype in INTEGERS else ""
        raise TypeError(f"{name}: got dtype {tensor.dtype}; accepted are float16, bfloat16, float32 and float64{how}")
    if tensor.is_nested or (not sparse and tensor.layout != torch.strided):
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
        how = f", as {name}.bool()" if tensor.dtype in INTEGERS else ""
        raise TypeError(f"{name}: got dtype {tensor.dtype}; accepted is torch.bool, {meaning}{how}")
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
    read: Tensor = signed(tensor)
    return read


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


def signed(given: Any) -> Any:
    """A tensor of integers as one that torch computes with: of those without a sign it knows little but uint8."""
    wide = isinstance(given, Tensor) and given.dtype in (torch.uint16, torch.uint32, torch.uint64)
    return given.long() if wide and not given.is_nested else given


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
    if tensor.is_nested:  # which has none
        dense(name, tensor)
    if tuple(tensor.shape) != tuple(expected):
        how, given = "", tuple(tensor.shape)
        for axis in (-1, 1):  # one too many, where classes stand
            at = axis % max(1, len(given))
            if given[:at] + given[at + 1 :] == tuple(expected) and len(given) > 1:
                if given[at] == 1:
                    how = how or f", as {name}.squeeze({axis})"
                elif tensor.dtype in INTEGERS:
                    how = how or f", as {name}.argmax({axis}) where it is one-hot"
        raise ValueError(f"{name}: got shape {tuple(tensor.shape)}; accepted is {tuple(expected)}, {meaning}{how}")


def integers(name: str, tensor: Tensor, meaning: str) -> None:
    """Raise unless ``tensor`` holds integers, which ``meaning`` spells out."""
    is_tensor(name, tensor)
    if tensor.dtype not in INTEGERS:
        how = f", as {name}.long()" if tensor.dtype in FLOATING else ""
        raise TypeError(f"{name}: got dtype {tensor.dtype}; accepted are {meaning} of an integer dtype{how}")
    dense(name, tensor)
