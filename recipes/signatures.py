"""The arguments of functions and classes and what they accept, read from the source, which is not run."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

__all__ = [
    "OTHERS",
    "accepts",
    "constant",
    "defaults",
    "docstring",
    "found",
    "is_number",
    "loaded",
    "parameters",
    "parsed",
    "spelled",
]

HERE = Path(__file__).parent
Place = tuple[Path, ast.AST]
Arguments = dict[str, ast.expr | None]

OTHERS = "**"
"""Stands for arguments that a function takes beside those it names."""
PLAIN = {"int": "a whole number", "float": "a number", "bool": "true, false", "str": "a text"}
CLASS = "the name of a class"
LISTS = ("list", "List", "Sequence", "Iterable", "tuple", "Tuple")


@lru_cache
def parsed(path: Path) -> ast.Module:
    """A file of Python, read and not run."""
    return ast.parse(path.read_text(encoding="utf-8"))


# ---------------------------------------------------------------------- where a name is defined
@lru_cache
def defined(path: Path) -> dict[str, ast.stmt]:
    """The classes, functions, assignments and imports of a file by their names, the first of each."""
    found: dict[str, ast.stmt] = {}
    for node in ast.walk(parsed(path)):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found.setdefault(node.name, node)
        elif isinstance(node, ast.Assign):
            for one in node.targets:
                if isinstance(one, ast.Name):
                    found.setdefault(one.id, node)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found.setdefault(alias.asname or alias.name, node)
    return found


def found(name: str, path: Path, depth: int = 8) -> Place | None:
    """The class, function or assignment of a name that a file defines or imports, and its file."""
    node = defined(path).get(name) if depth and path.is_file() else None
    if not isinstance(node, ast.ImportFrom):
        return None if node is None else (path, node)
    own = next(one.name for one in node.names if (one.asname or one.name) == name)
    file = module(node, path)
    return None if file is None else found(own, file, depth - 1)


def module(node: ast.ImportFrom, path: Path) -> Path | None:
    """The file that an import names, without importing it."""
    if node.level:
        folder = path.parents[node.level - 1]
    else:
        first, _, rest = (node.module or "").partition(".")
        if first == "recipes":
            folder = HERE
        else:
            spec = importlib.util.find_spec(first)
            if spec is None or spec.origin is None:
                return None
            folder = Path(spec.origin).parent
        node = ast.ImportFrom(rest, [], 0)
    place = folder.joinpath(*(node.module or "").split(".")) if node.module else folder
    return place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"


def parameters(path: Path, name: str) -> Arguments:
    """The arguments of a function, or of the initialisation of a class, of a file; `OTHERS` among them where it takes
    others.
    """
    place = function(path, name)
    return {} if place is None else arguments(place[1], place[0])


def function(path: Path, name: str) -> tuple[Path, ast.FunctionDef] | None:
    """A function of a file, or the initialisation of a class, its own or that of a base."""
    place = found(name, path)
    if place is None:
        return None
    file, node = place
    if isinstance(node, ast.FunctionDef):
        return file, node
    if not isinstance(node, ast.ClassDef):
        return None
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and one.name == "__init__":
            return file, one
    bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
    return next((given for base in bases if base != name and (given := function(file, base))), None)


def docstring(path: Path, name: str) -> str:
    """What a function or a class of a file says of itself, and its initialisation of its arguments."""
    place, made = found(name, path), function(path, name)
    nodes = [one[1] for one in (place, made) if one is not None]
    told = [ast.get_docstring(node) for node in nodes if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    return "\n\n".join(dict.fromkeys(text for text in told if text))


def defaults(path: Path, name: str) -> dict[str, ast.expr]:
    """The default values of the arguments that have one."""
    place = function(path, name)
    if place is None:
        return {}
    given = place[1].args
    last = given.args[len(given.args) - len(given.defaults) :]
    named = [(one.arg, value) for one, value in zip(last, given.defaults, strict=True)]
    named += [(one.arg, value) for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value]
    return dict(named)


def constant(value: ast.expr | None, path: Path) -> str:
    """A default as it is typed; nothing where it is no constant."""
    if isinstance(value, ast.Name):
        place = found(value.id, path)
        value = place[1].value if place is not None and isinstance(place[1], ast.Assign) else None
    try:
        known = None if value is None else ast.literal_eval(value)
    except ValueError:
        return ""
    if known is None:
        return ""
    return str(known).lower() if isinstance(known, bool) else str(known)


def arguments(function: ast.FunctionDef, path: Path) -> Arguments:
    """Their names and annotations, those of ``**options: Unpack[Options]`` among them."""
    given = function.args
    named = {one.arg: one.annotation for one in (*given.args, *given.kwonlyargs) if one.arg != "self"}
    if given.kwarg is None:
        return named
    kind: Any = given.kwarg.annotation
    known = subscripted(kind) == "Unpack" and isinstance(kind.slice, ast.Name)
    return named | ((known and fields(kind.slice.id, path)) or {OTHERS: None})


def fields(name: str, path: Path) -> Arguments:
    """Those of a dictionary with types, and of its bases."""
    place = found(name, path)
    if place is None or not isinstance(place[1], ast.ClassDef) or name == "TypedDict":
        return {}
    file, node = place
    known: Arguments = {}
    for base in node.bases:
        known |= fields(base.id, file) if isinstance(base, ast.Name) else {}
    own = [one for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)]
    return known | {one.target.id: one.annotation for one in own if isinstance(one.target, ast.Name)}


# ---------------------------------------------------------------------- what an annotation accepts
def accepts(kind: ast.expr | None, value: Any, path: Path) -> bool:
    """Whether a value on a command line or in a YAML file may be of a type that a file names; in doubt, yes."""
    return any(one_accepts(one, value, path) for one in either(kind, path))


def either(kind: ast.expr | None, path: Path, depth: int = 8) -> Iterator[ast.expr | None]:
    """The types of a union, names of them resolved."""
    if isinstance(kind, ast.BinOp) and isinstance(kind.op, ast.BitOr):
        yield from either(kind.left, path, depth)
        yield from either(kind.right, path, depth)
    elif isinstance(kind, ast.Constant) and isinstance(kind.value, str):
        yield from either(ast.parse(kind.value, mode="eval").body, path, depth)
    elif subscripted(kind) in ("Optional", "Union"):
        inner = kind.slice  # type: ignore[union-attr]
        for one in inner.elts if isinstance(inner, ast.Tuple) else (inner,):
            yield from either(one, path, depth)
        if subscripted(kind) == "Optional":
            yield ast.Constant(None)
    elif isinstance(kind, ast.Name) and kind.id not in PLAIN and depth:
        place = found(kind.id, path)
        if place is not None and isinstance(place[1], ast.Assign):
            yield from either(place[1].value, place[0], depth - 1)
        else:
            yield kind
    else:
        yield kind


def subscripted(kind: ast.expr | None) -> str | None:
    """``list`` of ``list[int]``."""
    return kind.value.id if isinstance(kind, ast.Subscript) and isinstance(kind.value, ast.Name) else None


def one_accepts(kind: ast.expr | None, value: Any, path: Path) -> bool:
    """Of one type."""
    read = loaded(value)
    if isinstance(kind, ast.Constant):
        return kind.value is not None or read is None
    if isinstance(kind, ast.Name):
        if kind.id == "int":
            return isinstance(read, int) and not isinstance(read, bool)
        if kind.id == "float":
            return is_number(read)
        if kind.id == "bool":
            return isinstance(read, bool)
        return kind.id != "Tensor"  # which no command line can spell
    name = subscripted(kind)
    if name == "Literal":
        return value in literals(kind) or read in literals(kind)
    if name == "Callable":
        return isinstance(read, dict) or (isinstance(read, str) and ("." in read or read[:1].isupper()))
    if name == "dict":
        return isinstance(read, dict)
    if name in LISTS:
        return isinstance(read, list) and all(accepts(entry(kind), one, path) for one in read)
    return True


def entry(kind: Any) -> ast.expr | None:
    """The type of the entries of a list, or of a tuple of any length; None of a pair, whose entries differ."""
    if not isinstance(kind.slice, ast.Tuple):
        return kind.slice
    first, *rest = kind.slice.elts
    return first if [getattr(one, "value", None) for one in rest] == [...] else None


def literals(kind: Any) -> list[Any]:
    """The values of a ``Literal``."""
    inner = kind.slice.elts if isinstance(kind.slice, ast.Tuple) else [kind.slice]
    return [one.value for one in inner if isinstance(one, ast.Constant)]


def loaded(value: Any) -> Any:
    """A text as YAML reads it."""
    if not isinstance(value, str):
        return value
    try:
        return yaml.safe_load(value)
    except (yaml.YAMLError, RecursionError, ValueError):
        return value


def is_number(value: Any) -> bool:
    """Whether it is one, or a text such as ``1e-3`` or ``inf``."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return False
    try:
        float(value)
    except ValueError:
        return False
    return True


def spelled(kind: ast.expr | None, path: Path) -> str:
    """What a type accepts, in words."""
    words: list[str] = []
    for one in either(kind, path):
        if isinstance(one, ast.Constant) and one.value is None:
            continue
        name = subscripted(one)
        if isinstance(one, ast.Name):
            words += [] if one.id == "Tensor" else PLAIN.get(one.id, one.id).split(", ")
        elif name == "Literal":
            words += map(str, literals(one))
        elif name == "Callable" and CLASS not in words:
            words.append(CLASS)
        elif name == "dict":
            words.append("a mapping, {NAME: VALUE, ...}")
        elif name in LISTS:
            words.append(f"a list, [{spelled(entry(one), path)}, ...]")
    return ", ".join(words[:-1]) + (" or " if words[:-1] else "") + words[-1] if words else "none"
