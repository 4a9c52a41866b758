"""The help of a recipe, read from its source, which is not run: nothing slow is imported for it."""

from __future__ import annotations

import ast
import re
import textwrap
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from types import MappingProxyType

from .classes import CLASSES, ours
from .early import FUNCTIONS, HERE, LIGHTNING, LINKED, WITHIN, trainer
from .early_files import DEFAULTS
from .given import options
from .signatures import OTHERS, Arguments, constant, defaults, docstring, parameters, parsed, spelled
from .start import program

__all__ = ["asked", "text"]

LIGHTNING_COMMANDS = MappingProxyType(
    {
        "fit": "train, and test the weights that were best",
        "validate": "measure a checkpoint on the part of the data that chose it",
        "test": "measure a checkpoint on the test part",
        "predict": "write the answers of a checkpoint into a file",
    }
)
SHARED = MappingProxyType(
    {
        "config": "a YAML file of options, or the name of a published one",
        "print_config": "print the options as YAML, and end",
        "seed_everything": "a whole number; default: 0",
        "ckpt_path": "the file of a checkpoint: to go on from (fit), or whose weights are meant",
    }
)
"""Options of every command of `classify` and `tag` that no signature lists."""
PREDICTED = MappingProxyType(
    {
        "classify": {
            "output": "the file to write, a line for each row, in their order; default: labels.txt, or of a table "
            "labels.csv",
            "probabilities": "true, false: write a CSV table of the label and the probability of each class",
            "keep": "a list of columns of the rows to write before the label, by their names or, without a heading, "
            "their numbers; default: those that fit left out, as an id. The file is then a CSV table",
        },
        "tag": {
            "output": "the file to write; default: tagged.conllu",
            "probabilities": "true, false: write one for each token",
            "k_best": "a whole number: write so many taggings of each sentence; default: 1",
        },
    }
)
"""Those of their `predict`."""


class Formatter(RawDescriptionHelpFormatter):
    """Lines of the description stay as they are."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26)


def asked(args: list[str]) -> bool:
    """Whether the help of a recipe or of one of its commands is wanted; that of a class needs the class."""
    return any(option in ("-h", "--help") for option in args) and not any(one.endswith(".help") for one in args)


def text(recipe: str, args: list[str]) -> str:
    """The help that a command asks for."""
    if recipe == "demo":
        from .demo import parser_of

        return parser_of().format_help()
    commands = (*LIGHTNING_COMMANDS,) if recipe in LIGHTNING else FUNCTIONS[recipe]
    word = next((word for word in args if word in commands), None)
    if word is None and commands:
        return overview(recipe, commands)
    if recipe in LIGHTNING:
        return trained(recipe, str(word), args)
    file = HERE / WITHIN.get(recipe, f"{recipe}.py")
    function = word or "write"
    about = docstring(file, function)
    parser = made(f"{program(recipe)} {word or 'CHECKPOINT'}", about.partition("\n")[0])
    parser.add_argument("--config", metavar="", help="a YAML file of options")
    listed(parser, "", parameters(file, function), file, function, about)
    return finished(parser)


def overview(recipe: str, commands: tuple[str, ...]) -> str:
    """What the commands of a recipe are."""
    file = HERE / WITHIN.get(recipe, f"{recipe}.py")
    about = (ast.get_docstring(parsed(HERE / recipe / "__init__.py" if recipe in WITHIN else file)) or "").split("::")[
        0
    ]
    trains = recipe in LIGHTNING
    whats = [LIGHTNING_COMMANDS[name] if trains else docstring(file, name).partition("\n")[0] for name in commands]
    lines = [
        f"usage: {program(recipe)} {{{','.join(commands)}}} ...",
        "",
        *textwrap.wrap(about, 78),
        "",
    ]
    for name, what in zip(commands, whats, strict=True):
        lines += textwrap.wrap(what, 78, initial_indent=f"  {name:<10}", subsequent_indent=" " * 12)
    return "\n".join([*lines, "", f"the options of one: {program(recipe)} {commands[0]} --help", ""])


def trained(recipe: str, command: str, args: list[str]) -> str:
    """The options of a command of a recipe that Lightning runs: those of its model, of its data, and of the trainer."""
    file, module, data = LIGHTNING[recipe]
    given = options(args)
    kind = str(given.get("data", next(iter(data)))).rpartition(".")[2]
    kind = kind if kind in data else next(iter(data))
    others = " or ".join(one for one in data if one != kind)
    others = f" (yours: --data.path FILE; others: --data {others})" if others else ""
    parser = made(f"{program(recipe)} {command}", f"{LIGHTNING_COMMANDS[command].capitalize()}.")
    classes = "model.head" if recipe == "classify" else "model.loss"
    parser.epilog = textwrap.fill(
        f"The arguments of a class that an option names follow it, as in --{classes}.weight "
        f"'[1, 2]'; those of one are listed by --{classes}.help CLASS, which takes longer.",
        78,
    )
    predicted = PREDICTED[recipe] if command == "predict" else {}
    for name, what in {**SHARED, **predicted}.items():
        parser.add_argument(f"--{name}", metavar="", help=what)
    for first, title, path, name in (
        ("model", "the model", HERE / file, module),
        ("data", f"the data: --data {kind}{others}", HERE / "data" / f"{data[kind]}.py", kind),
        ("trainer", "Lightning's trainer", trainer(), "Trainer"),
    ):
        group = parser.add_argument_group(title)
        about = docstring(path, name)
        if first == "trainer":  # of whose pages the first sentences are enough here
            about = re.sub(r"(?m)^(?= *\w+: )", "\n", about)
        listed(group, f"{first}.", parameters(path, name), path, name, about, short=first == "trainer")
    return finished(parser)


def finished(parser: ArgumentParser) -> str:
    """Its help, without blanks at the ends of lines."""
    return "".join(f"{line.rstrip()}\n" for line in parser.format_help().splitlines())


def made(prog: str, description: str) -> ArgumentParser:
    """A parser that only has to print its help."""
    return ArgumentParser(
        prog=prog,
        usage=f"{prog} [--OPTION VALUE ...]",
        description=textwrap.fill(description, 78),
        formatter_class=Formatter,
    )


def listed(
    group: object, prefix: str, accepted: Arguments, path: Path, name: str, about: str, short: bool = False
) -> None:
    """Add the arguments of a function or a class to a parser: what each accepts, what it is, and its default."""
    whats, given = described(about), defaults(path, name)
    for argument, kind in accepted.items():
        if argument in (OTHERS, "barebones") or f"{prefix}{argument}" in LINKED:
            continue
        what = whats.get(argument, "")
        what = re.split(r"(?<=[.;]) ", what)[0] if short else what
        value = DEFAULTS.get(f"{prefix}{argument}") or constant(given.get(argument), path)
        shown = "" if short or value in ("", "null") or "default" in what else f"; default: {value}"
        type_of = "" if kind is None else spelled(kind, path)
        if f"{prefix}{argument}" in CLASSES:
            type_of = f"one of {', '.join(ours(f'{prefix}{argument}'))}, or the dotted path of another"
        what = re.sub(r":\w+:(?=`)|(?<=:class):|`{1,2}", "", what)
        words = f"{type_of if type_of != 'none' else ''}: {what}".lstrip(": ").rstrip(". ") + shown
        place = argument if prefix == "" and argument == "checkpoint" else f"--{prefix}{argument}"
        group.add_argument(place, metavar=None if place == argument else "", help=words.replace("%", "%%"))  # type: ignore[attr-defined]


def described(about: str) -> dict[str, str]:
    """What a docstring says of each argument."""
    rest = re.split(r"(?m)^ *Args:\n", about, maxsplit=1)
    if len(rest) == 1:
        return {}
    body = textwrap.dedent(re.split(r"(?m)^(?:Raises|Returns|Example|Shape):", rest[1])[0])
    found = re.split(r"(?m)^(\w+): ", "\n" + body)[1:]
    return {name: " ".join(what.split()) for name, what in zip(found[::2], found[1::2], strict=True)}
