"""Where every recipe starts: what is wrong is said in one line, before the slow imports where it can be."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import NoReturn, TypeVar

__all__ = ["RECIPES", "command", "main", "renamed", "run"]

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


INSTALL = "install what recipes need: pip install 'torch_multiclass[recipes]'"


class Keyboard:
    """Whether Ctrl-C was pressed while a recipe ran, and whether that has been said."""

    pressed = said = False


WITHIN = {"tables": "tables.__main__", "demo": "demo.parts"}
"""Recipes that are folders, and the module in which their command line is."""


FORMER = {("boost", "predict", "--fit"): "--folder"}
"""Options that had another name."""


def run(args: list[str]) -> object:
    """``torch-multiclass RECIPE ...``."""
    guard()
    warnings.showwarning = show_warning
    if not args or args[0] in ("-h", "--help"):
        print("usage: torch-multiclass RECIPE ...\n")
        for name, what in RECIPES.items():
            print(f"  {name:<10}{what}")
        print("\nthe options of one: torch-multiclass RECIPE --help")
        return None
    name, *rest = args
    if name not in RECIPES:
        raise SystemExit(f"error: there is no recipe {name}; accepted are {', '.join(RECIPES)}")
    rest = [*configured(rest)]
    if any(option in ("-h", "--help") for option in rest):
        usage = importlib.import_module(f"{__package__}.usage")
        if usage.asked(rest):
            print(main(lambda: usage.text(name, rest)), end="")
            return None
    rest = main(lambda: importlib.import_module(f"{__package__}.completed").completed(name, rest))
    early = importlib.import_module(f"{__package__}.early")
    main(lambda: (early.look(name, rest), early.complete(name, rest)))
    module = f"{__package__}.{WITHIN.get(name, name)}"
    return main(lambda: imported(module).main(rest))


def command(name: str) -> NoReturn:
    """``python -m recipes.RECIPE ...``: what a recipe does first of all when it is run by its name."""
    run([name, *sys.argv[1:]])
    raise SystemExit


def program(name: str) -> str:
    """How the command that runs is written."""
    by_name = Path(sys.argv[0]).name.startswith("torch-multiclass")
    return f"torch-multiclass {name}" if by_name else f"python -m recipes.{name}"


def configured(args: list[str]) -> Iterator[str]:
    """The options, a published configuration found by its name wherever the recipes are: ``--config digits_ecoc``."""
    follows = False
    for option in args:
        name, joined, value = option.partition("=") if option.startswith("--config=") else ("", "", option)
        ours = Path(__file__).parent / "configs" / f"{Path(value).name.removesuffix('.yaml')}.yaml"
        if (joined or follows) and not Path(value).exists() and ours.is_file():
            value = str(ours)
        yield f"{name}{joined}{value}"
        follows = option in ("--config", "-c")


def renamed(recipe: str, args: list[str]) -> list[str]:
    """The command line of a recipe with the names that its options have now."""
    former = {option: now for (of, command, option), now in FORMER.items() if of == recipe and command in args}
    parts = [option.partition("=") for option in args]
    return ["".join((former.get(name, name), joined, value)) for name, joined, value in parts]


def imported(module: str) -> ModuleType:
    """The recipe's module; from then on Ctrl-C is an exception, which solvers and trainers answer."""
    loaded = importlib.import_module(module)

    def pressed(number: int, frame: object) -> NoReturn:
        Keyboard.pressed = True
        sys.unraisablehook = lambda _: None  # destructors that it ends have nothing to tell
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, pressed)
    return loaded


def guard() -> None:
    """Until the recipe runs and once it is done, have Ctrl-C end the process in one line: imports and the
    interpreter's own end turn the exception into errors of their own.
    """

    def stop(number: int, frame: object) -> NoReturn:
        if not Keyboard.said:
            os.write(2, b"stopped\n")
        os._exit(130)

    signal.signal(signal.SIGINT, stop)


def stopped(advice: str = "") -> None:
    """Say, once, that the keyboard ended it, and what to do."""
    if not Keyboard.said:
        Keyboard.said = True
        print(f"stopped; {advice}" if advice else "stopped", file=sys.stdout if advice else sys.stderr, flush=True)


def main(recipe: Callable[[], Result]) -> Result:
    """Run a recipe; what it raises for bad input, and Ctrl-C, are one line."""
    Keyboard.said = False
    try:
        return recipe()
    except KeyboardInterrupt:
        stopped()
        raise SystemExit(130) from None
    except SystemExit:
        if not Keyboard.pressed:
            raise
        stopped()
        raise SystemExit(130) from None
    except Exception as problem:
        if Keyboard.pressed:  # it struck inside an import or a callback, which raised what it likes
            stopped()
            raise SystemExit(130) from None
        if isinstance(problem, ImportError):
            said = one_line(problem)
            advice = "" if "pip install" in said else f"; {INSTALL}"
            raise SystemExit(f"error: {said}{advice}") from problem
        if isinstance(problem, (ValueError, TypeError, OSError, MemoryError, RecursionError)):
            raise SystemExit(f"error: {one_line(first_cause(problem))}") from problem
        raise
    finally:
        if Keyboard.pressed:
            guard()


def callers() -> int:
    """How many frames up is the line of whoever called the recipes: a warning's ``stacklevel``."""
    frame, level = sys._getframe(1), 1
    ours = str(Path(__file__).parent)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(ours):
        frame, level = frame.f_back, level + 1
    return level


class Heard:
    """Whether what is worth a line is said, or was when the model was fitted."""

    wanted = True


@contextmanager
def heard(wanted: bool) -> Iterator[None]:
    """Say notes and warnings, or not, as a fit has said them of the same file."""
    before, Heard.wanted = Heard.wanted, wanted
    try:
        yield
    finally:
        Heard.wanted = before


def speaks() -> bool:
    """Whether this process is the one of several that says what is worth a line, and this is the time."""
    return Heard.wanted and not any(int(os.environ.get(name) or 0) for name in ("LOCAL_RANK", "RANK", "SLURM_PROCID"))


def show_warning(message: Warning | str, *unused: object) -> None:
    """Show a warning as one line; whatever is imported later may format warnings as it likes (Lightning does)."""
    print(f"warning: {message}", file=sys.stderr, flush=True)


def note(text: str) -> None:
    """Say once what looks like a mistake, need not be one, and loses nothing."""
    if speaks():
        printed(f"note: {text}")


def warn(text: str) -> None:
    """Say that something of the data, or a file, is lost."""
    if speaks():
        warnings.warn(text, stacklevel=callers())


@lru_cache(maxsize=1000)
def printed(line: str) -> None:
    """Print a line, once, on standard error."""
    print(line, file=sys.stderr, flush=True)


def one_line(problem: BaseException, most: int = 600) -> str:
    """What an exception says, in one line of bounded length; its kind where it says nothing."""
    text = " ".join(str(problem).split())
    return (text if len(text) <= most else f"{text[:most]}…") or type(problem).__name__


def first_cause(problem: BaseException) -> BaseException:
    """What an exception began with, out of those that report it further up."""
    while problem.__cause__ is not None:
        problem = problem.__cause__
    return problem
