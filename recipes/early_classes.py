"""What can be said of the classes that options name and of their arguments, read from their source."""

from __future__ import annotations

import ast
import re
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from .classes import CLASSES, package
from .early_files import DEFAULTS
from .names import rule
from .signatures import OTHERS, Arguments, accepts, found, parameters, parsed, spelled
from .start import program

__all__ = ["fits", "inner", "loss_meant", "loss_names"]

HERE = Path(__file__).parent

BY_NAME = ("MulticlassHead", "ContinuousCodeHead")
"""Heads that take losses of class scores by name; other heads take those of a binary margin."""
OWN = ("recipes", "torch", "torch_multiclass", "")
"""The first words of dotted paths whose source is looked at."""


def inner(given: dict[str, Any], recipe: str, command: str) -> None:
    """The names and values of the arguments of a class that an option names, where its source is at hand."""
    for name, value in given.items():
        owner, _, last = name.rpartition(".")
        if owner in CLASSES and owner not in given and owner not in DEFAULTS:
            raise SystemExit(f"error: {last}: whose is not said; accepted is --{name} beside --{owner} CLASS")
        path, _, kind = str(given.get(owner, DEFAULTS.get(owner, ""))).rpartition(".")
        if not owner.count("."):
            continue
        source = source_of(kind) if path.partition(".")[0] in OWN and kind.isidentifier() else None
        if source is not None:
            accepted = parameters(source, kind)
            has(name, kind, accepted, f"{program(recipe)} {command}")
            fits(last, value, accepted, source)


def source_of(kind: str) -> Path | None:
    """A file that defines or imports a class of a recipe, of the package or of torch."""
    sources = [HERE / "models/__init__.py", HERE / "models/encoders.py", package("torch_multiclass")]
    sources += [package("torch").parent / f"optim/{name}.py" for name in ("__init__", "lr_scheduler")]
    return next((one for one in sources if one.is_file() and found(kind, one) is not None), None)


def has(option: str, kind: str, accepted: Arguments, command: str) -> None:
    """Refuse an argument that a class does not have, and say which are like it."""
    owner, _, name = option.rpartition(".")
    name = name.removesuffix("+")
    if not accepted or OTHERS in accepted or name in {*accepted, "dict_kwargs", "help"}:
        return
    like = get_close_matches(name, [*accepted], 3, 0.5)
    hint = f"; like it are {', '.join(f'--{owner}.{one}' for one in like)}" if like else ""
    listed = f"those it has are listed by: {command} --{owner}.help {kind}"
    raise SystemExit(f"error: {option}: {kind} has no option {name}{hint}; {listed}")


def fits(name: str, value: Any, accepted: Arguments, path: Path) -> None:
    """Refuse a value of another type than an argument's."""
    kind = accepted.get(name)
    if kind is None or isinstance(value, dict) or accepts(kind, value, path):
        return
    shown = "null" if value is None else " ".join(str(value).split()) or "nothing"
    raise SystemExit(f"error: {name}: got {shown[:100]}; accepted is {spelled(kind, path)}")


def loss_names() -> dict[str, str]:
    """The names by which a head takes losses of class scores, and their classes."""
    file = package("torch_multiclass").parent / "losses/names.py"
    for node in ast.walk(parsed(file)) if file.is_file() else ():
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
            makers = [getattr(one, "args", [one])[0] for one in node.value.values]  # of `partial` the first argument
            return {
                key.value: one.id
                for key, one in zip(node.value.keys, makers, strict=True)
                if isinstance(key, ast.Constant) and isinstance(one, ast.Name)
            }
    return {}


def loss_meant(option: str, value: str, given: dict[str, Any], accepted: list[str]) -> str:
    """Which loss is meant by the class of another library, and which go by a name; nothing where that is not known."""
    if not option.endswith("loss"):
        return ""
    spelling, names = rule(), loss_names()
    head = str(given.get("model.head", DEFAULTS["model.head"])).rpartition(".")[2]
    if option == "model.head.loss":
        by_name = f"; by name also {', '.join(names)}" if head in BY_NAME else ""
        known = spelling.LOSSES if head in BY_NAME else spelling.MARGIN_LOSSES
        return by_name + str(spelling.loss_meant(value, known))
    meant = re.findall(r"'(\w+)'", spelling.loss_meant(value, spelling.LOSSES))
    classes = [names[one] for one in meant if names.get(one) in accepted]
    return f"; meant may be {' or '.join(classes)}" if classes else ""
