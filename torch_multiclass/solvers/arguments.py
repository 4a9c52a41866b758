"""What an object was made with: asked for and changed by name, as scikit-learn does."""

from __future__ import annotations

import copy
import inspect
from typing import Any

from typing_extensions import Self

from torch_multiclass import checks as check


class Arguments:
    """Remembers its arguments, so that searches can change them: ``C``, or ``learner__C`` of what it holds.

    An attribute that is set afterwards is no argument.
    """

    _given: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Keep the arguments; ``__init__`` checks them."""
        made = super().__new__(cls)
        made._given = args, options
        return made

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments by name, and where ``deep`` those of what they hold, as ``learner__C``."""
        inner = getattr(self, "options", None)
        found: dict[str, Any] = {
            name: getattr(inner, name, None) if default is inspect.Parameter.empty else default
            for name, default in known(type(self)).items()
        } | self._named()
        if deep:
            for name, part in list(found.items()):
                if hasattr(part, "get_params") and not isinstance(part, type):
                    found |= {f"{name}__{key}": value for key, value in part.get_params().items()}
        return found

    def set_params(self, **given: Any) -> Self:
        """Make it anew with other arguments, which are checked; all others stay.

        Raises:
            ValueError: a name that is no argument; what the arguments are refused for.
        """
        own, names = self._named(), self.get_params(deep=False)
        inner: dict[str, dict[str, Any]] = {}
        for name, value in given.items():
            head, _, rest = name.partition("__")
            check.choice("set_params", head, list(names), hint=self._within(head))
            if rest:
                inner.setdefault(head, {})[rest] = value
            else:
                own[head] = value
        for head, parts in inner.items():
            held = own.get(head, names[head])
            if not hasattr(held, "set_params"):
                raise ValueError(
                    f"{head}: is {check.shown(held)}, whose {', '.join(parts)} is not changed by name; accepted is "
                    f"another {head}: search {head} over a list of them"
                )
            own[head] = held.set_params(**parts)
        self.__dict__ = type(self)(**own).__dict__
        return self

    def _within(self, name: str) -> str:
        """Which argument of an argument has this name, for a message; "" where none has."""
        found = [given for given in self.get_params() if given.endswith(f"__{name}")]
        return f"; meant may be {found[0]!r}" if found else ""

    def _named(self) -> dict[str, Any]:
        """The arguments that were given."""
        args, options = self._given
        return {**dict(zip(known(type(self)), args, strict=False)), **options}

    def __sklearn_clone__(self) -> Self:  # with attributes that were set
        return copy.deepcopy(self)


def known(kind: type) -> dict[str, Any]:
    """The names and defaults of the arguments of a class, those of ``**options: Unpack[...]`` included.

    Of an option whose default another object has, `inspect.Parameter.empty`.
    """
    found: dict[str, Any] = {}
    makers: list[Any] = [vars(base)["__init__"] for base in kind.__mro__ if "__init__" in vars(base)]
    defaults = [inspect.signature(maker).parameters for maker in makers[:-1]]  # the last is object's
    for parameter in list(defaults[0].values())[1:]:
        if parameter.kind is not parameter.VAR_KEYWORD:
            found[parameter.name] = parameter.default
            continue
        shared = inspect.unwrap(makers[0]).__globals__[
            str(parameter.annotation).removeprefix("Unpack[").removesuffix("]")
        ]
        for name in shared.__annotations__:
            own = (signature[name].default for signature in defaults if name in signature)
            found[name] = next(own, inspect.Parameter.empty)
    return found
