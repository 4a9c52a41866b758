"""Words of errors, numbers and names, and whether values may be read."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, KeysView, Mapping, Set
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import forward_ad

from torch_multiclass.checks.spelling import nearest, spelling

IGNORE = -100
"""The target value that marks "no label here" inside the library (users may choose another, `ignore_index`)."""

TEMPERATURES = (1e-20, 1e20)
"""Between these, scores over a temperature stay within float32."""

_EXACT = 2**53  # whole numbers up to here are floats, and fit torch's integers


def shown(given: object) -> str:
    """``given`` in at most a line, for a message."""
    if isinstance(given, type) and _ours(given):
        return f"the class {given.__name__} (write {made(given)})"
    try:
        text = " ".join(repr(given).split())
    except Exception:  # an integer of more than 4,300 digits has no repr
        return f"one {type(given).__name__}"
    return text if len(text) <= 120 else f"{text[:117]}..."


def came(given: object) -> str:
    """What kind of thing ``given`` is, for a message; of a class or a function, which."""
    if isinstance(given, type):
        return shown(given) if _ours(given) else f"the class {given.__name__}"
    return f"the function {given.__name__}" if inspect.isroutine(given) else type(given).__name__


def _ours(kind: type) -> bool:
    """Whether a class is of this library or derives from one: most likely one that was made is meant."""
    return any(base.__module__.partition(".")[0] == __name__.partition(".")[0] for base in kind.__mro__)


def made(kind: type) -> str:
    """How one of a class is made, ``Kind()`` or ``Kind(...)``."""
    rest = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    arguments = inspect.signature(kind).parameters.values()
    asked = any(one.default is one.empty and one.kind not in rest for one in arguments)
    return f"{kind.__name__}({'...' if asked else ''})"


def captured() -> bool:
    """Whether code has to be plain steps of torch that read no value: `torch.compile`, `torch.export`,
    `torch.jit.trace` or a functorch transform runs it, or tangents go through it, in forward mode.
    """
    return torch.compiler.is_compiling() or traced() or transformed() or forward_mode()


def traced() -> bool:
    """Whether `torch.jit.trace` writes down what this code does with tensors."""
    return torch._C._is_tracing()


def transformed() -> bool:
    """Whether a transform of `torch.func` runs this code."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def forward_mode() -> bool:
    """Whether derivatives in forward mode are asked for, by `torch.func.jvp` or `torch.autograd.forward_ad`."""
    level: int = forward_ad._current_level
    return level >= 0


def values_readable(tensor: Tensor, validate_args: bool | None = None) -> bool:
    """Whether value checks may read ``tensor``: on request, else on the CPU only, and never under capture."""
    kind = tensor.device.type
    if captured() or kind == "meta" or (type(tensor) is not Tensor and isinstance(tensor, FakeTensor)):
        return False
    return kind == "cpu" if validate_args is None else validate_args


def named(name: str, given: object, accepted: Iterable[str], hint: Callable[[str], str] | None = None) -> str:
    """The one of the ``accepted`` names that is given, in whatever spelling; raise where it is none.

    The one place where the name of a head, a code, a loss or a cost is read. ``hint`` says of another what is meant.
    """
    accepted = list(accepted)
    if not (isinstance(given, str) and given in accepted):
        given = next((one for one in accepted if isinstance(given, str) and spelling(one) == spelling(given)), given)
        choice(name, given, accepted, hint=hint(given) if hint and isinstance(given, str) else "")
    return str(given)


def choice(name: str, given: object, accepted: Iterable[str], *, optional: bool = False, hint: str = "") -> None:
    """Raise unless ``given`` is one of the ``accepted`` names (or None); ``hint`` says what is meant."""
    accepted = list(accepted)
    if not (isinstance(given, str) and given in accepted) and not (optional and given is None):
        none = " and None" if optional else ""
        hint = hint or (nearest(given, accepted) if isinstance(given, str) else "")
        raise ValueError(f"{name}: got {shown(given)}; accepted are {', '.join(map(repr, accepted))}{none}{hint}")


def flag(name: str, given: object, *, optional: bool = False) -> None:
    """Raise unless ``given`` is True or False (or None)."""
    if not isinstance(given, (bool, np.bool_)) and not (optional and given is None):
        accepted = "True, False and None" if optional else "True and False"
        raise TypeError(f"{name}: got {shown(given)}; accepted are {accepted}")


def maker(name: str, given: object, kind: type, accepted: str) -> None:
    """Raise unless ``given`` is a function that may make things of a ``kind``; of classes, one of that kind."""
    if not callable(given) or isinstance(given, kind) or (isinstance(given, type) and not issubclass(given, kind)):
        raise TypeError(f"{name}: got {shown(given)}; accepted is {accepted}")


def keywords(name: str, given: object, of: str) -> dict[str, Any]:
    """``given`` as a dictionary; raise unless it holds keyword arguments."""
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise TypeError(f"{name}: got {shown(given)}; accepted are keyword arguments of {of}")
    return dict(given)


def label_names(name: str, given: Iterable[str]) -> list[str]:
    """The names as a list; raise unless they are strings, at least one, and not one string.

    Of a mapping of names to ``0..K-1`` in the order of those; a set has no order.
    """
    if isinstance(given, Mapping):
        if any(type(number) is not int for number in given.values()) or sorted(given.values()) != [*range(len(given))]:
            raise ValueError(
                f"{name}: got {shown(given)}; accepted is a sequence of strings, one for each label, or a mapping of "
                "them to 0..K-1"
            )
        given = sorted(given, key=given.__getitem__)
    if isinstance(given, Set) and not isinstance(given, KeysView):
        raise TypeError(f"{name}: got a set, which has no order; accepted is a sequence of strings, one for each label")
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


def temperature(given: object, hint: str = "") -> float:
    """``given`` as a number of Python's; raise unless a soft-max at it can be computed."""
    if type(given) is float and given == 1:
        return given
    number = positive("temperature", given)
    if not TEMPERATURES[0] <= number <= TEMPERATURES[1]:
        raise ValueError(
            f"temperature: got {shown(given)}; accepted are {TEMPERATURES[0]:g} to {TEMPERATURES[1]:g}{hint}"
        )
    return number


def share(name: str, given: object) -> float:
    """``given`` as a number of Python's; raise unless it is one from 0 to 1."""
    if isinstance(given, bool) or not isinstance(given, (int, Real)) or not 0 <= _number(given) <= 1:
        raise ValueError(f"{name}: got {shown(given)}; accepted is a number from 0 to 1")
    return float(given)


def real(given: object) -> float:
    """``given`` as a float; NaN where it is no number, or one beyond all floats."""
    if isinstance(given, bool) or not isinstance(given, (int, Real)):
        return math.nan
    try:
        return float(given)
    except OverflowError:
        return math.nan


def _number(given: int | Real) -> float:
    """An integer that floats hold exactly as itself, anything else as the nearest float."""
    if isinstance(given, int) and abs(given) <= _EXACT:
        return given
    try:
        return float(given)
    except OverflowError:
        return float("inf")


def plain(given: object, *, floats: bool = False) -> object:
    """A tensor or an array of one integer and no dimension, as counting gives it, as that; others as they are.

    With ``floats`` that of any one number: where no gradient is asked for.
    """
    if isinstance(given, np.ndarray) and given.ndim == 0 and given.dtype.kind in ("iuf" if floats else "iu"):
        return given.item()
    if not isinstance(given, Tensor) or given.is_nested or given.layout != torch.strided or given.ndim:
        return given
    if given.dtype == torch.bool or given.is_complex() or (given.is_floating_point() and not floats):
        return given
    if given.is_meta or isinstance(given, FakeTensor) or transformed():
        return given
    return given.item()


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
    """``given`` as an integer of Python's; raise unless it is one >= ``least`` that fits int64, or a tensor of one."""
    if type(given) is int and least <= given <= _EXACT:
        return given
    given = plain(given)
    if isinstance(given, bool) or not isinstance(given, Integral) or not least <= int(given) < 2**63:
        raise ValueError(f"{name}: got {shown(given)}; accepted is a whole number >= {least} (and < 2^63)")
    return int(given)
