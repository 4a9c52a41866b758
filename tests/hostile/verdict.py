"""What is wrong with a call, if anything."""

from __future__ import annotations

import dataclasses
import inspect
import re
import signal
import time
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tests.hostile.frames import FRAMES
from tests.hostile.values import FLOATS, INTEGERS

SECONDS = 20.0


@dataclasses.dataclass
class Fault:
    """What was wrong with a call."""

    subject: str
    what: str
    given: dict[str, Any]
    trace: str = ""
    earlier: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    """What the object was made of and asked before."""


def tensors_in(thing: Any) -> Iterator[Tensor]:
    """The tensors of an argument or a result."""
    if isinstance(thing, Tensor):
        yield thing
    elif isinstance(thing, (list, tuple)):
        for entry in thing:
            yield from tensors_in(entry)
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        for field in dataclasses.fields(thing):
            yield from tensors_in(getattr(thing, field.name))
    elif isinstance(thing, nn.Module):
        yield from (*thing.parameters(), *thing.buffers())


def plain(made: Tensor) -> bool:
    """Whether a tensor has values of the usual dtypes that can be read."""
    readable = made.layout == torch.strided and not made.is_nested and made.device.type == "cpu"
    return readable and made.dtype in (*FLOATS, *INTEGERS, torch.bool)


def most(made: Tensor) -> float:
    """Up to where a number is moderate; products of two of float16 must not overflow."""
    return 64.0 if made.dtype == torch.float16 else 1e4


def moderate(thing: Any) -> bool:
    """Whether all numbers in an argument are finite and none is large."""
    if isinstance(thing, (bool, str)) or thing is None:
        return True
    if isinstance(thing, (int, float)):
        return abs(thing) <= 1e4
    if isinstance(thing, np.ndarray):
        return thing.dtype.kind in "iufb" and bool(np.isfinite(thing).all())
    if isinstance(thing, (list, tuple)):
        return all(map(moderate, thing))
    return all(
        plain(t) and (not t.is_floating_point() or not t.numel() or bool(t.detach().abs().max() <= most(t)))
        for t in tensors_in(thing)
    )


def calm(given: dict[str, Any]) -> bool:
    """Whether a call was given nothing that is large, or that may make NaN: a factor in a tensor is not read, and is to
    be above 0."""
    factors = [given[name] for name in ("factor", "sharpness", "temperature") if isinstance(given.get(name), Tensor)]
    return all(map(moderate, given.values())) and all(plain(t) and bool((t.double() > 0).all()) for t in factors)


def fingerprint(given: dict[str, Any]) -> list[Any]:
    """What must be the same after the call."""
    marks: list[Any] = []
    for value in given.values():
        if isinstance(value, np.ndarray):
            marks.append(value.tobytes() if value.dtype.kind != "O" else None)
        elif isinstance(value, (list, dict, set)):
            marks.append(str(type(value)) + (repr(value) if not list(tensors_in(value)) else ""))
        else:
            marks += [(t._version, t.requires_grad, written(t)) for t in tensors_in(value)]
    return marks


def written(made: Tensor) -> bytes | None:
    """The values, which C++ and NumPy can change without a new version."""
    if not plain(made) or not made.numel():
        return None
    return made.detach().flatten().clone().view(torch.uint8).numpy().tobytes()


class _Hang(BaseException):
    pass


def ring(*_: object) -> None:
    """A call waits, or it computes; on a busy machine it does neither, and is given longer."""
    if time.process_time() - _begun[1] < SECONDS / 2 and time.monotonic() - _begun[0] < 10 * SECONDS:
        signal.setitimer(signal.ITIMER_REAL, SECONDS / 2)
    else:
        raise _Hang


_begun = [0.0, 0.0]  # of this call, by the wall and by the processor


def complaint(error: BaseException, names: set[str]) -> str | None:
    """What is wrong with the way in which a call was refused, if anything."""
    text = str(error)
    if re.search(r"missing \d+ required positional argument", text):  # of a structure that a head hands on
        return None
    if isinstance(error, MemoryError) or "can't allocate memory" in text or "Storage size" in text:
        return None
    kind = type(error)
    if kind not in (TypeError, ValueError):
        return f"{kind.__name__}: {text}"
    named = re.match(r"([A-Za-z_]\w*)[^:]{0,40}: ", text)
    if not named or named[1] not in names:
        return f"{kind.__name__} without the argument's name: {text}"
    if not re.search(r"; accepted |is outside |, but |accepts?", text):
        return f"{kind.__name__} that does not say what is accepted: {text}"
    return None


def foreign(subject: str, error: BaseException) -> bool:
    """Whether scikit-learn refused what its own conventions refuse, in its own words."""
    if not subject.startswith("sklearn.") or not isinstance(error, (TypeError, ValueError, OverflowError)):
        return False
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    known = [file for file in files if "/sklearn/" in file or "torch_multiclass" in file]  # below are numpy's
    return "/site-packages/sklearn/" in known[-1]


def judge(
    subject: str,
    call: Callable[..., Any],
    given: dict[str, Any],
    names: set[str],
    quiet: bool = True,
    earlier: list[dict[str, Any]] | None = None,
    within: str = "",
) -> tuple[Any, Fault | None]:
    """The result of a call (None where it was refused) and what was wrong with it; ``quiet`` objects hold no NaN.

    ``within`` is the name of what is set around the call, see `FRAMES`.
    """
    result, fault = judged(subject, call, given, names, quiet, within)
    if fault is not None:
        fault.what += f" (within {within})" if within else ""
        fault.earlier = list(earlier or [])
    return result, fault


def judged(
    subject: str, call: Callable[..., Any], given: dict[str, Any], names: set[str], quiet: bool, within: str = ""
) -> tuple[Any, Fault | None]:
    """As `judge`."""
    before, quiet = fingerprint(given), quiet and calm(given)
    trusted = given.get("validate_args", True) is False
    _begun[:] = time.monotonic(), time.process_time()
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with FRAMES[within]():
            result = call(**given)
            if isinstance(result, types.GeneratorType):
                result = list(result)
        leaves = [t for value in given.values() for t in tensors_in(value) if t.requires_grad and t.is_leaf]
        smooth = [t for t in tensors_in(result) if t.grad_fn is not None and t.is_floating_point()]
        gradients: tuple[Tensor | None, ...] = ()
        if leaves and smooth and not isinstance(result, nn.Module):
            total = sum(t.double().sum() for t in smooth)
            gradients = torch.autograd.grad(total, leaves, allow_unused=True)
    except _Hang:
        return None, Fault(subject, f"hangs for {SECONDS} s", given)
    except Exception as error:
        wrong = None if trusted or foreign(subject, error) else complaint(error, names)
        return None, Fault(subject, wrong, given, traceback.format_exc()) if wrong else None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if fingerprint(given) != before:
        return result, Fault(subject, "changed an argument", given)
    function = type(call).forward if isinstance(call, nn.Module) else call
    answers = "" if inspect.isclass(call) else str(inspect.signature(function).return_annotation)
    expected = {"Tensor": Tensor, "float": float, "None": type(None)}.get(answers)
    if expected and not isinstance(result, expected):
        return result, Fault(subject, f"returned {type(result).__name__}", given)
    if quiet and any(plain(t) and bool(t.detach().isnan().any()) for t in tensors_in(result)):
        return result, Fault(subject, "NaN in the value", given)
    if quiet and any(g is not None and bool(g.isnan().any()) for g in gradients):
        return result, Fault(subject, "NaN in the gradient", given)
    return result, None
