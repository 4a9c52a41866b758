"""Command lines whose subcommands are functions, and the words of a parser's errors, in one line as everywhere."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from types import MappingProxyType
from typing import Any, NoReturn

from .names import NETWORKS, networks
from .start import one_line, program, renamed

__all__ = ["called", "command_line", "misnamed", "needed", "shortly", "typed", "unlike"]


def typed(value: Any) -> str:
    """An option's value as it is typed."""
    return json.dumps(value) if isinstance(value, (dict, list, bool)) else str(value)


def unlike(function: Callable[..., Any], given: Mapping[str, Any]) -> list[str]:
    """The arguments of a function whose values are not its defaults."""
    return [name for name, one in signature(function).parameters.items() if given[name] != one.default]


NONE: Mapping[str, Sequence[str]] = MappingProxyType({})


def called(recipe: str, args: Sequence[str] | None, commands: Sequence[str]) -> str:
    """How the command that runs is written, its subcommand included."""
    given = sys.argv[1:] if args is None else args
    return " ".join([program(recipe), *(word for word in given[:1] if word in commands)])


def misnamed(message: str, given: Mapping[str, Any], command: str) -> str:
    """Of an option that a class does not have: which class, and where its options are listed; else nothing."""
    found = re.fullmatch(r"Option '(\w+)' is not accepted", message.strip())
    weight = next((one for one in given if re.search(r"\bweight(\.|$)", one)), "")
    if found and (f"{weight}.{found[1]}" in given or re.match(rf"\{{.*\b{found[1]}\b", str(given.get(weight, "")))):
        accepted = "balanced, or a number for each class in their order, as [1, 2, 1]"
        return f"{weight}: got a mapping with {found[1]}; accepted is {accepted}"
    name = next((one for one in given if found and one.endswith(f".{found[1]}")), "")
    place = name.rpartition(".")[0]
    if found is None or not isinstance(given.get(place), str):
        return ""
    owner = given[place].rpartition(".")[2]
    return f"{name}: {owner} has no option {found[1]}; those it has are listed by: {command} --{place}.help {owner}"


MADE = ("encoder", "backbone", "head", "head.loss", "loss", "optimizer", "schedule")
"""Options of a model that name a class."""


def needed(message: str, given: Mapping[str, Any]) -> str:
    """Of options that a class must have: which class, and how they are given; else nothing."""
    found = re.fullmatch(r"the following arguments are required: (\w+(?:, \w+)*)", message.strip())
    places = [
        f"model.{name}" for name in MADE if re.fullmatch(r"(\w+\.)*[A-Z]\w*", str(given.get(f"model.{name}", "")))
    ]
    if found is None or not places:
        return ""
    missing = found[1].split(", ")
    said = [
        f"{place.rpartition('.')[2]}: {given[place]} needs {', '.join(missing)}, as in --{place}.{missing[0]} VALUE"
        for place in places
    ]
    own = [f"; accepted are {networks(name)}" for name in NETWORKS if places == [f"model.{name}"]]
    return "".join([" or ".join(said), *own])


def command_line(
    recipe: str, functions: Callable[..., Any] | dict[str, Callable[..., Any]], args: list[str] | None, description: str
) -> object:
    """Run the function, or the one that is the subcommand; its arguments are the options."""
    from jsonargparse import ArgumentParser, auto_cli

    args = renamed(recipe, sys.argv[1:] if args is None else args)
    command = called(recipe, args, [*functions] if isinstance(functions, dict) else [])

    class Parser(ArgumentParser):
        """A parser whose errors are the error, without the options before it."""

        def error(self, message: str, ex: Exception | None = None) -> NoReturn:
            raise SystemExit(f"error: {shortly(message)}; the options are listed by: {command} --help")

    return auto_cli(functions, args=args, prog=program(recipe), description=description, parser_class=Parser)


def shortly(message: str, known: Mapping[str, Sequence[str]] = NONE) -> str:
    """The parser's account of an option that has the wrong value, as one line."""
    key = re.search(r'Parser key "(?:\w+\.)*?(\w+)":', message)
    if key is None:
        return one_line(ValueError(message))
    name, accepted = key[1], ", ".join(known.get(key[1], ()))
    missing = re.search(r"Expected a (?:path but|dot import path string:) (\S+)", message)
    if missing and accepted:
        other = re.search(r"does not correspond to a subclass of (\w+)", message)
        what = f"{missing[1]} is no subclass of {other[1]}" if other else f"there is no class {missing[1]}"
        return f"{name}: {what}; accepted are {accepted} or the dotted path of another"
    absent = re.search(r"No module named '[^']+'|module '[^']+' has no attribute '\w+'", message)
    given = re.search(r"^ *Given value: (.+)$", message, re.MULTILINE)
    if absent and given:
        path = "the dotted path of a class, as FILE.CLASS of a file of this folder"
        return f"{name}: got {given[1].strip()}: {absent[0]}; accepted is {path}"
    plain = re.search(r"^ *Expected an? (?:typing\.Literal\[(.+)\]|<class '(\w+)'>)\. Got value: (.*)$", message, re.M)
    if plain:
        return f"{name}: got {plain[3]}; accepted is {plain[1] or plain[2]}"
    reasons = re.findall(r"^ *- (.+)$", message, re.MULTILINE) or [message.split(":", 1)[1]]
    kinds = [re.fullmatch(r"Expected an? (?:typing\.Literal\[(.+)\]|<class '(\w+)'>)\.?", one) for one in reasons]
    if given and all(kinds):
        words = [one[1] or one[2] for one in kinds if one]
        return f"{name}: got {given[1]}; accepted is {' or '.join(word for word in words if word != 'NoneType')}"
    got = f"got {given[1]}: " if given else ""
    return f"{name}: {got}{one_line(ValueError('; or '.join(dict.fromkeys(reasons))))}"
