"""What ``make demo`` shows; nothing slow is imported before it starts."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import NoReturn

from ..start import program

__all__ = ["PARTS", "asked", "parser_of"]

PARTS = ("costs", "codes", "machine", "regions", "sequences", "heads")


class Parser(ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong."""
        raise SystemExit(f"error: {message}; accepted are [PART ...] and --output FOLDER")


def parser_of(parts: tuple[str, ...] = PARTS) -> ArgumentParser:
    """The command line."""
    parser = Parser(prog=program("demo"), description="Where each part is the right choice.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(parts)}; by default all")
    parser.add_argument("--output", default="demo", help="the folder for the pictures; default: demo")
    return parser


def asked(args: list[str] | None, parts: tuple[str, ...] = PARTS) -> Namespace:
    """The parts and the folder that a command names."""
    given = parser_of(parts).parse_args(args)
    unknown = [name for name in given.parts if name not in parts]
    if unknown:
        raise SystemExit(f"error: there is no part {unknown[0]}; accepted are {', '.join(parts)}")
    return given
