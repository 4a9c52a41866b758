"""What can be said of a command line before anything slow is imported: options, files, and what the files hold."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).parent

PARTS = ("path", "train", "dev", "test", "predict")
FILES = ("ckpt_path", "config", "path", "fit", "resume", *(f"data.{part}" for part in PARTS))
"""Options that name a file to read."""

CLASSES = {"model.loss": "Loss", "model.head": "Head", "model.head.loss": "Loss"}
"""Options that name a class of the package, and how its name ends."""

LIGHTNING = {
    "classify": ("models/classifier.py", "Classifier", {"Digits": "digits", "Npz": "npz", "Table": "files"}),
    "tag": ("models/tagger.py", "Tagger", {"Treebank": "treebank"}),
}
"""Of the recipes that Lightning runs: file and name of the module, and the data modules, the first by default."""

FUNCTIONS = {
    "svm": ("fit", "tune", "cost", "predict"),
    "boost": ("fit", "tune", "predict"),
    "ocr": ("run", "report", "fit", "predict"),
}
"""The subcommands of the recipes where they are functions."""

LINKED = {"model.classes", "model.input_shape", "data.dict_kwargs"}
"""What no signature lists: what the command line takes from the data, and what it passes on."""

COMMON = {"help", "config", "print_config", "seed_everything", "ckpt_path", "output", "verbose", "weights_only"}
COMMON |= {"return_predictions", "trainer", "model", "data", "probabilities", "k_best", "print_shtab"}


def look(recipe: str, args: list[str]) -> None:
    """Raise for a command that names what is not there."""
    if any(option in ("-h", "--help") or option.endswith(".help") for option in args):
        return
    given = options(args)
    if recipe in LIGHTNING:
        names(recipe, args, given)
    elif recipe in FUNCTIONS:
        functions(recipe, args, given)
    for name in FILES:
        value = given.get(name)
        if isinstance(value, str) and not value.startswith(("{", "[")) and not exists(name, value):
            raise FileNotFoundError(f"{name.removeprefix('data.')}: there is no file {value}")
    if recipe in LIGHTNING and isinstance(given.get("ckpt_path"), str):
        from .files import checkpoint

        checkpoint(Path(given["ckpt_path"]), recipe)
    contents(recipe, args, given)


def exists(name: str, value: str) -> bool:
    """Whether there is such a file."""
    try:
        return Path(value).exists()
    except (OSError, ValueError) as problem:
        raise ValueError(f"{name.removeprefix('data.')}: {problem}; accepted is the path of a file") from None


def options(args: list[str]) -> dict[str, Any]:
    """The options by their dotted names, without ``init_args``: of the files that they name, then of the line."""
    from . import yaml_files

    given: dict[str, Any] = {}
    for option, following in zip(args, [*args[1:], ""], strict=False):
        if option == "-c":
            option = "--config"
        if option.startswith("--"):
            name, joined, value = option[2:].partition("=")
            name = name.replace(".init_args", "").removesuffix(".class_path")
            value = value if joined else following
            if name == "config" and Path(value).is_file():
                given |= flat(yaml_files.read(value))
            given[name] = value
    return given


def flat(value: Any, name: str = "") -> dict[str, Any]:
    """The leaves of a nested configuration by their dotted names."""
    if not isinstance(value, dict):
        return {name: value} if name else {}
    found: dict[str, Any] = {}
    for key, part in value.items():
        inner = name if key in ("init_args", "class_path") else f"{name}.{key}" if name else str(key)
        found |= flat(part, inner)
    return found


# ---------------------------------------------------------------------- names
def names(recipe: str, args: list[str], given: dict[str, Any]) -> None:
    """The subcommand, the options and the classes of a recipe that Lightning runs."""
    subcommand(args, ("fit", "validate", "test", "predict"))
    file, module, data = LIGHTNING[recipe]
    kind = str(given.get("data", next(iter(data)))).rpartition(".")[2]
    known = {"model": parameters(HERE / file, module), "trainer": of_trainer()}
    if kind in data:
        known["data"] = parameters(HERE / "data" / f"{data[kind]}.py", kind)
    elif "." not in str(given.get("data", "")) and not Path(str(given["data"])).exists():
        unknown("data", str(given["data"]), [*data])
    for name in given:
        first, _, rest = name.partition(".")
        if not rest and name not in COMMON:
            refuse(name, COMMON)
        second = rest.partition(".")[0].removesuffix("+")
        if rest and known.get(first) and second not in known[first] and f"{first}.{second}" not in LINKED:
            refuse(f"{first}.{second}", {f"{first}.{one}" for one in known[first]})
    for name, ending in CLASSES.items():
        value = given.get(name)
        if isinstance(value, str) and value.isidentifier() and value[0].isupper():
            ours = [one for one in public() if one.endswith(ending) and one != ending]
            if value not in ours:
                unknown(name.rpartition(".")[2], value, ours)


def functions(recipe: str, args: list[str], given: dict[str, Any]) -> None:
    """The subcommand and the options of a recipe whose subcommands are functions."""
    chosen = subcommand(args, FUNCTIONS[recipe])
    accepted = parameters(HERE / f"{recipe}.py", chosen)
    for name in given if accepted else ():
        if name.partition(".")[0] not in accepted | {"config", "print_config"}:
            refuse(name, accepted)


def subcommand(args: list[str], accepted: Any) -> str:
    """The first word that is no option."""
    word = next((word for word in args[:1] if not word.startswith("-")), None)
    if word is None and args:  # options before the subcommand: for the parser
        word = next((word for word in args if word in accepted), None)
    if word not in accepted:
        got = "none" if word is None else word
        raise SystemExit(f"error: there is no subcommand {got}; accepted are {', '.join(accepted)}")
    return str(word)


def refuse(name: str, accepted: set[str]) -> NoReturn:
    """Say that there is no such option, and which are like it."""
    like = get_close_matches(name, accepted, 3, 0.5)
    hint = f"; like it are {', '.join(f'--{one}' for one in like)}" if like else ""
    raise SystemExit(f"error: there is no option --{name}{hint}; all are listed by --help")


def unknown(name: str, value: str, accepted: list[str]) -> NoReturn:
    """Say that there is no such class."""
    raise SystemExit(
        f"error: {name}: there is no class {value}; accepted are {', '.join(accepted)} or the dotted path of another"
    )


@lru_cache
def parsed(path: Path) -> ast.Module:
    """A file of Python, read and not run."""
    return ast.parse(path.read_text(encoding="utf-8"))


def parameters(path: Path, name: str) -> set[str]:
    """The arguments of a function, or of the initialisation of a class, in a file; empty where it takes any."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ClassDef) and node.name == name:
            inner = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"]
            return arguments(inner[0]) if inner else set()
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return arguments(node)
    return set()


def arguments(function: ast.FunctionDef) -> set[str]:
    """Their names; empty where it takes any."""
    given = function.args
    return set() if given.kwarg else {one.arg for one in (*given.args, *given.kwonlyargs)} - {"self"}


def of_trainer() -> set[str]:
    """The options of Lightning's trainer; empty where its file is not found."""
    spec = importlib.util.find_spec("lightning")
    file = Path(spec.origin or "").parent / "pytorch" / "trainer" / "trainer.py" if spec else Path()
    return parameters(file, "Trainer") if file.is_file() else set()


def public() -> Iterator[str]:
    """The public names of the package."""
    spec = importlib.util.find_spec("torch_multiclass")
    for node in ast.walk(parsed(Path(spec.origin))) if spec and spec.origin else ():
        if isinstance(node, ast.Assign) and any(getattr(one, "id", None) == "__all__" for one in node.targets):
            yield from (one.value for one in getattr(node.value, "elts", []) if isinstance(one, ast.Constant))


# ---------------------------------------------------------------------- files
def contents(recipe: str, args: list[str], given: dict[str, Any]) -> None:
    """Read the files of rows or sentences; what they held is kept for the recipe."""
    predicts = "predict" in args
    if recipe == "tag":
        from .data.sentences import read

        kind, column = given.get("data.format"), given.get("model.column")
        for part in ("train", "dev", "test", "predict"):
            path = given.get(f"data.{part}")
            if not isinstance(path, str) or (part == "predict") != predicts:
                continue
            sentences = read(path, kind, untagged=predicts)
            if part == "train":
                for sentence in sentences:
                    sentence.tags(column)
    elif recipe == "classify" and str(given.get("data", "")).endswith(("Table", "Npz")) and not predicts:
        table(given.get("data.path"), given.get("data.label"))
    elif recipe in ("svm", "boost") and not predicts:
        table(given.get("path"), given.get("label"))


def table(path: Any, label: Any) -> None:
    """Read a table with labels."""
    if isinstance(path, str):
        from .data.table import Table

        Table.read(path, label)
