"""What fitted columns come from: rows, code, call and learner, described so that two fits can be compared by name."""

from __future__ import annotations

import functools
import hashlib
import inspect
import pickle
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from torch_multiclass.kernels import Kernel
from torch_multiclass.ops.sparse_rows import is_sparse
from torch_multiclass.solvers.arguments import Arguments

_SILENT = {"progress", "on_step", "verbose", "n_jobs", "training"}  # options that change nothing of a fit
_SHORT = 30  # characters up to which both values of a difference are shown


def origin_of(**parts: Any) -> dict[str, str]:
    """Each part, and each option of it, by name; equal for equal parts, in another process too."""
    return {name: text for part, value in parts.items() for name, text in _facts(part, value, set())}


def check_origin(given: Mapping[str, str], own: Mapping[str, str], where: str) -> None:
    """Raise where finished columns are of something else, and say what that is."""
    other = [name for name in {**own, **given} if given.get(name) != own.get(name)]
    if other:
        said = [_said(name, given.get(name, "not set"), own.get(name, "not set")) for name in other[:5]]
        more = f" and {len(other) - 5} more" if len(other) > 5 else ""
        raise ValueError(
            f"resume: {where} has columns of other rows, another code or another learner: {', '.join(said)}{more}; "
            "accepted are those of the same fit"
        )


def _said(name: str, given: str, own: str) -> str:
    short = len(given) <= _SHORT and len(own) <= _SHORT
    return f"{name} was {given} and is {own}" if short else f"{name} differs"


def _facts(name: str, value: Any, above: set[int]) -> Iterator[tuple[str, str]]:
    """The value as text, or the facts of what it is made of."""
    text = _text(value)
    if text is not None:
        yield name, text
        return
    if id(value) in above:  # an object that holds itself
        yield name, "above"
        return
    above = above | {id(value)}
    if not isinstance(value, (Mapping, list, tuple)):
        yield name, _path(type(value))
    for key, part in _parts(value):
        yield from _facts(f"{name}.{key}", part, above)


def _text(value: Any) -> str | None:
    """What has no parts."""
    if isinstance(value, np.generic):
        return repr(value.item())
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, torch.dtype, torch.device)):
        return repr(value)
    if isinstance(value, type):
        return _path(value)
    if isinstance(value, torch.Generator):
        return f"seed {value.initial_seed()}"
    if isinstance(value, (Tensor, np.ndarray)):
        return f"{value.dtype} {tuple(value.shape)} {_digest(_bytes(value))}"
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return _digest(pickle.dumps(value))
    if isinstance(value, (set, frozenset)):
        return repr(sorted(map(repr, value)))
    if isinstance(value, BuiltinFunctionType):
        return _path(value)
    return None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts that make a value what it is, by name."""
    if isinstance(value, Mapping):
        yield from ((str(key), part) for key, part in value.items())
    elif isinstance(value, (list, tuple)):
        yield from ((str(number), part) for number, part in enumerate(value))
    elif isinstance(value, FunctionType):
        yield "code", f"{_path(value)} {_digest(_code(value.__code__).encode())}"
        yield "defaults", (value.__defaults__, value.__kwdefaults__)
        yield "closure", [cell.cell_contents for cell in value.__closure__ or ()]
    elif isinstance(value, MethodType):
        yield from (("of", value.__self__), ("function", value.__func__))
    elif isinstance(value, functools.partial):
        yield from (("function", value.func), ("arguments", value.args), ("options", value.keywords))
    elif isinstance(value, nn.Module):
        held = {**_options(value), **value._parameters, **value._buffers, **value._modules}
        yield from ((key, part) for key, part in held.items() if key not in _SILENT)
    else:
        yield from ((key, part) for key, part in _options(value).items() if key not in _SILENT)


def _options(value: Any) -> Mapping[str, Any]:
    """What an object was made with: scikit-learn's parameters, or its arguments and public attributes."""
    ours = isinstance(value, (Arguments, Kernel))  # whose attributes may be set since, or are functions
    if callable(getattr(value, "get_params", None)) and not ours:
        given: Mapping[str, Any] = value.get_params(deep=False)
        return given
    try:
        arguments = list(inspect.signature(type(value)).parameters)
    except (TypeError, ValueError):  # of a type that C has made
        arguments = []
    public = [name for name in getattr(value, "__dict__", {}) if not name.startswith("_") and not name.endswith("_")]
    held = {name: getattr(value, name) for name in dict.fromkeys(arguments + public) if hasattr(value, name)}
    return {name: part for name, part in held.items() if getattr(part, "__self__", None) is not value}


def _code(code: CodeType) -> str:
    """The instructions of a function, those within it included."""
    constants = [_code(c) if isinstance(c, CodeType) else _text(c) or repr(c) for c in code.co_consts]
    return repr((code.co_code, constants, code.co_names))


def _bytes(value: Tensor | np.ndarray[Any, Any]) -> Any:
    """The numbers in memory."""
    if isinstance(value, Tensor):
        if is_sparse(value):
            return b"".join(_bytes(part) for part in (value.crow_indices(), value.col_indices(), value.values()))
        return value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return repr(value.tolist()).encode() if value.dtype == object else np.ascontiguousarray(value)


def _path(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def _digest(content: Any) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
