"""Run the benchmarks: the table of everything and the pictures by ``make bench``, or those named, with their details.

    python -m benchmarks losses chains

Each has options of its own: ``python -m benchmarks.chains --help``.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

DEFAULT = ("summary", "scaling")


def benchmarks() -> dict[str, str]:
    """The first line of each module beside this one that has a ``main``, by its name; nothing is imported."""
    found = {}
    for file in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        if any(isinstance(part, ast.FunctionDef) and part.name == "main" for part in tree.body):
            found[file.stem] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run each module that was named."""
    found = benchmarks()
    width = max(map(len, found))
    listed = "\n".join(f"  {name:{width}}  {line}" for name, line in found.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog=f"benchmarks:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    default = " ".join(DEFAULT)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of a benchmark below; default: {default}")
    parser.add_argument("--list", action="store_true", help="print their names and go")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in found]
    if unknown:
        parser.error(f"NAME: got {unknown[0]!r}; accepted are {', '.join(found)}")
    if options.list:
        print(listed)
        return
    for name in options.names or DEFAULT:
        sys.argv = [f"benchmarks.{name}"]  # the options of each are its own, and none were given
        importlib.import_module(f"benchmarks.{name}").main()
        print(flush=True)


if __name__ == "__main__":
    main()
