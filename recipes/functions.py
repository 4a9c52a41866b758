"""Command lines whose subcommands are functions, and the words of a parser's errors, in one line as everywhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

from .start import one_line, program

__all__ = ["command_line", "shortly", "typed"]


def typed(value: Any) -> str:
    """An option's value as it is typed."""
    return json.dumps(value) if isinstance(value, (dict, list, bool)) else str(value)


NONE: Mapping[str, Sequence[str]] = MappingProxyType({})


def command_line(
    recipe: str, functions: Callable[..., Any] | dict[str, Callable[..., Any]], args: list[str] | None, description: str
) -> object:
    """Run the function, or the one that is the subcommand; its arguments are the options."""
    from jsonargparse import ArgumentParser, auto_cli

    class Parser(ArgumentParser):
        """A parser whose errors are the error, without the options before it."""

        def error(self, message: str, ex: Exception | None = None) -> NoReturn:
            raise SystemExit(f"error: {shortly(message)}; the options are listed by: {program(recipe)} --help")

    return auto_cli(functions, args=args, prog=program(recipe), description=description, parser_class=Parser)


def shortly(message: str, known: Mapping[str, Sequence[str]] = NONE) -> str:
    """The parser's account of an option that has the wrong value, as one line."""
    key = re.search(r'Parser key "(?:\w+\.)*?(\w+)":', message)
    if key is None:
        return one_line(ValueError(message))
    name, accepted = key[1], ", ".join(known.get(key[1], ()))
    missing = re.search(r"Expected a (?:path but|dot import path string:) (\S+)", message)
    if missing and accepted:
        return f"{name}: there is no class {missing[1]}; accepted are {accepted} or the dotted path of another"
    plain = re.search(r"^ *Expected an? (?:typing\.Literal\[(.+)\]|<class '(\w+)'>)\. Got value: (.*)$", message, re.M)
    if plain:
        return f"{name}: got {plain[3]}; accepted is {plain[1] or plain[2]}"
    reasons = re.findall(r"^ *- (.+)$", message, re.MULTILINE) or [message.split(":", 1)[1]]
    given = re.search(r"^ *Given value: (.+)$", message, re.MULTILINE)
    got = f"got {given[1]}: " if given else ""
    return f"{name}: {got}{one_line(ValueError('; or '.join(dict.fromkeys(reasons))))}"
