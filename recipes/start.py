"""Where every recipe starts: what is wrong is said in one line, before the slow imports where it can be."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import NoReturn, TypeVar

__all__ = ["RECIPES", "main", "run"]

Result = TypeVar("Result")

RECIPES = {
    "classify": "train, test and use a classifier: any backbone, any head, any loss",
    "tag": "train a tagger, measure it, and tag files",
    "svm": "support vector machines with a certificate",
    "boost": "boosted stumps and trees, a tree, a forest",
    "report": "a report of any head that a recipe trained",
    "demo": "each part on real data, with pictures",
    "ocr": "handwritten words: chain models under a kernel",
    "tables": "the published tables of multi-class margin learning",
}


def run(args: list[str]) -> object:
    """``torch-multiclass RECIPE ...``."""
    if not args or args[0] in ("-h", "--help"):
        print("usage: torch-multiclass RECIPE ...\n")
        for name, what in RECIPES.items():
            print(f"  {name:<10}{what}")
        print("\nthe options of one: torch-multiclass RECIPE --help")
        return None
    name, *rest = args
    if name not in RECIPES:
        raise SystemExit(f"error: there is no recipe {name}; accepted are {', '.join(RECIPES)}")
    guard()
    rest = [*configured(rest)]
    main(lambda: check_files(name, rest))
    module = f"{__package__}.{name}.__main__" if name == "tables" else f"{__package__}.{name}"
    sys.argv = [f"torch-multiclass {name}", *rest]
    return main(lambda: imported(module).main())


def configured(args: list[str]) -> Iterator[str]:
    """The options, a published configuration found by its name wherever the recipes are: ``--config digits_ecoc``."""
    follows = False
    for option in args:
        name, joined, value = option.partition("=") if option.startswith("--config=") else ("", "", option)
        ours = Path(__file__).parent / "configs" / f"{Path(value).name.removesuffix('.yaml')}.yaml"
        if (joined or follows) and not Path(value).exists() and ours.is_file():
            value = str(ours)
        yield f"{name}{joined}{value}"
        follows = option == "--config"


FILES = ("ckpt_path", "config", "path", "data.path", "data.train", "data.dev", "data.test", "data.predict")
"""Options that name a file to read."""


def check_files(recipe: str, args: list[str]) -> None:
    """Look at the files that the options name before anything slow is imported; a tagger's are read, and kept."""
    given: dict[str, str] = {}
    for option, following in zip(args, [*args[1:], ""], strict=True):
        if option.startswith("--"):
            name, joined, value = option[2:].partition("=")
            given[name.replace("init_args.", "")] = value if joined else following
    for name in FILES:
        if name in given and not Path(given[name]).exists() and not given[name].startswith(("{", "[")):
            raise FileNotFoundError(f"{name.removeprefix('data.')}: there is no file {given[name]}")
    if recipe == "tag":
        from .data.sentences import read

        kind = given.get("data.format")
        for part in ("train", "dev", "test", "predict"):
            sentences = read(given[f"data.{part}"], kind, untagged=part == "predict") if f"data.{part}" in given else []
            if part == "train" and "config" not in given:
                for sentence in sentences:
                    sentence.tags(given.get("model.column"))


def imported(module: str) -> ModuleType:
    """The recipe's module; from then on Ctrl-C is an exception, which solvers and trainers answer."""
    loaded = importlib.import_module(module)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return loaded


def guard() -> None:
    """Until the recipe runs, have Ctrl-C end the process in one line: imports turn it into errors of their own."""

    def stop(number: int, frame: object) -> NoReturn:
        os.write(2, b"stopped\n")
        os._exit(130)

    signal.signal(signal.SIGINT, stop)


def main(recipe: Callable[[], Result]) -> Result:
    """Run a recipe; what it raises for bad input, and Ctrl-C, are one line."""
    try:
        return recipe()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        raise SystemExit(130) from None
    except ImportError as problem:
        raise SystemExit(
            f"error: {problem}; install what recipes need: pip install 'torch_multiclass[recipes]'"
        ) from problem
    except (ValueError, TypeError, OSError) as problem:
        raise SystemExit(f"error: {first_cause(problem)}") from problem


def first_cause(problem: BaseException) -> BaseException:
    """What an exception began with, out of those that report it further up."""
    while problem.__cause__ is not None:
        problem = problem.__cause__
    return problem
