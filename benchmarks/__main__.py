"""Run every benchmark: ``python -m benchmarks``, or ``make bench``."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks

NOT_A_BENCHMARK = {"__main__", "timing", "heads"}  # heads: on the CPU that is the demo


def main() -> None:
    """Run each module of this package that has a ``main``."""
    names = [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
    chosen = [name for name in names if name not in NOT_A_BENCHMARK]
    sys.argv = sys.argv[:1]
    for name in chosen:
        importlib.import_module(f"benchmarks.{name}").main()
        print(flush=True)


if __name__ == "__main__":
    main()
