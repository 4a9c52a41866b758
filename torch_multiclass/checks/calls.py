"""How a function is called: said where a call does not fit it, and where a warning belongs."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MethodType
from typing import Any, TypeVar

from torch_multiclass.checks.spelling import meant
from torch_multiclass.checks.values import came, made

_Call = TypeVar("_Call", bound=Callable[..., Any])
_OURS = str(Path(__file__).parents[1])


def told(function: _Call, elsewhere: Mapping[str, str] | None = None) -> _Call:
    """The function, or ``__init__``, which says what it takes, and what for, where a call does not fit it.

    Args:
        function: what is called.
        elsewhere: keywords that it does not take, and what does.

    Raises:
        TypeError: a call that does not fit the signature; else what the function raises.

    Example:
        >>> @told
        ... def area(width, *, height):
        ...     return width * height
        >>> area(2, 3)
        Traceback (most recent call last):
        ...
        TypeError: area: too many positional arguments; accepted is area(width, height=...)
    """

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except TypeError:
            words = _misfit(function, elsewhere, given, named)
            if words is None:
                raise
        raise TypeError(words)

    return call  # type: ignore[return-value]


def _misfit(
    function: Callable[..., Any], elsewhere: Mapping[str, str] | None, given: tuple[Any, ...], named: Mapping[str, Any]
) -> str | None:
    """What is said of a call that does not fit; None of one that does."""
    signature = inspect.signature(function)  # here: what compiles a call can hold none
    made = type(given[0]) if function.__name__ == "__init__" and given else None
    fault = _fault(made or function, signature, given, named)
    if fault is None:
        return None
    open_ones = [name for name in signature.parameters if name not in named]
    strange = [name for name in named if name not in signature.parameters]
    goes = elsewhere or {}
    hints = (f"; {goes[name]}" if name in goes else meant(name, open_ones) for name in strange)
    accepted = _shape(made or function, signature) + next(filter(None, hints), "")
    return f"{(made or function).__name__}: {fault}; accepted is {accepted}"


class Told:
    """A class that says what it takes where it is made by a call that does not fit.

    Example:
        >>> class Circle(Told):
        ...     def __init__(self, radius):
        ...         self.radius = radius
        >>> Circle(1, 2)
        Traceback (most recent call last):
        ...
        TypeError: Circle: too many positional arguments; accepted is Circle(radius)
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = told(vars(cls)["__init__"])  # type: ignore[method-assign]


class Verb:
    """A method that says of a call that does not fit what does, and of one on the class that one has to be made first.

    Example:
        >>> class Circle:
        ...     @Verb
        ...     def grow(self, by):
        ...         return by
        >>> Circle().grow(2)
        2
        >>> Circle.grow(2)
        Traceback (most recent call last):
        ...
        TypeError: Circle.grow: got int for self; accepted is one that was made, write Circle().grow(by)
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)  # type: ignore[arg-type]
        self._call = told(function)

    def __get__(self, one: object, kind: type) -> Callable[..., Any]:
        if one is not None:
            return MethodType(self._call, one)

        @functools.wraps(self._call)
        def call(*given: Any, **named: Any) -> Any:
            if given and isinstance(given[0], kind):
                return self._call(*given, **named)
            shape, _, _ = _shape(self._call, inspect.signature(self._call)).partition(", by name")
            got = came(given[0]) if given else "nothing"
            raise TypeError(
                f"{kind.__name__}.{self._call.__name__}: got {got} for self; accepted is one that was made, "
                f"write {made(kind)}.{shape}"
            )

        return call


def takes(name: str, method: Callable[..., Any], named: Iterable[str]) -> None:
    """Raise, in the name of who hands keywords on to a method, unless it takes all of them."""
    function = getattr(method, "__func__", method)
    accepted = _keywords(function)
    for one in named:
        if accepted is not None and one not in accepted:
            shape = _shape(function, inspect.signature(function))
            raise TypeError(
                f"{name}: got an unexpected keyword argument {one!r}; accepted is {shape}{meant(one, accepted)}"
            )


@functools.lru_cache(maxsize=256)
def _keywords(function: Callable[..., Any]) -> tuple[str, ...] | None:
    """The names of the arguments that a method takes; None where it takes any."""
    parameters = list(inspect.signature(function).parameters.values())
    anything = any(one.kind is one.VAR_KEYWORD for one in parameters)
    return None if anything else tuple(one.name for one in parameters if one.name != "self")


def _fault(
    function: Callable[..., Any], signature: inspect.Signature, given: tuple[Any, ...], named: Mapping[str, Any]
) -> str | None:
    """What is wrong with a call; None where it fits."""
    parameters = signature.parameters
    try:
        bound = signature.bind_partial(*given, **named)
    except TypeError as error:
        return str(error)
    lost = [name for name, one in parameters.items() if _asked(one) and name not in bound.arguments]
    return f"misses {', '.join(name + _meaning(function, name) for name in lost)}" if lost else None


def _asked(parameter: inspect.Parameter) -> bool:
    """Whether a call must give it."""
    rest = (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    return parameter.default is parameter.empty and parameter.kind not in rest


def _meaning(function: Callable[..., Any], name: str) -> str:
    """What the docstring says of an argument, in brackets."""
    found = re.search(rf"^ +{name}: (.+)$", function.__doc__ or "", re.MULTILINE)
    return f" ({found[1].replace('``', '').rstrip('.')})" if found else ""


def _shape(function: Callable[..., Any], signature: inspect.Signature) -> str:
    """The call, ``f(a, b=...)``: what it must have, then the names of what it may."""
    must, may = [], []
    for one in signature.parameters.values():
        if one.name == "self" or one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL):
            continue
        if one.default is not one.empty:
            may.append(one.name)
        else:
            must.append(f"{one.name}=..." if one.kind is one.KEYWORD_ONLY else one.name)
    return f"{function.__name__}({', '.join(must)})" + (f", by name also {', '.join(may)}" if may else "")


def caller() -> int:
    """The ``stacklevel`` with which a function of this library warns of the line that called the library."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _inner(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    return level


def _inner(path: str) -> bool:
    """Whether a line of this file is none of the caller's."""
    return path.startswith(_OURS) or "torch/utils/_contextlib" in path.replace("\\", "/")
