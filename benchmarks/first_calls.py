"""What a process waits for once: the package's own import, after torch, and the first call of what is called most.

    python -m benchmarks.first_calls [--repeats 5]

Each is measured in a process of its own; 50 ms are asked of a first call.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.timing import Row, Timing, describe, table

USES_LIBRARY = True
READY = """
import time, torch, numpy
torch.set_num_threads(1)
"""
IMPORTED = f"""{READY}
import torch_multiclass as tm
emissions, labels = torch.randn(4, 8, 5, requires_grad=True), torch.randint(5, (4, 8))
scores = tm.ChainScores(emissions, torch.zeros(5, 5))
"""
CALLS: dict[str, tuple[str, str, float | None]] = {
    "import, after torch and NumPy": (READY, "import torch_multiclass", None),
    "first ViterbiDecoder": (IMPORTED, "tm.ViterbiDecoder()(scores)", 0.05),
    "first step of CRFLoss": (IMPORTED, "tm.CRFLoss()(scores, labels).backward()", 0.05),
    "first step of CrammerSingerLoss": (IMPORTED, "tm.CrammerSingerLoss()(emissions[0], labels[0]).backward()", 0.05),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    lines = []
    for row in rows(parser.parse_args().repeats):
        assert isinstance(row.ours, Timing)
        lines.append([row.name, f"{row.ours.median * 1e3:.1f}", row.ours.spread])
    print(table(["", "CPU ms", "min–max"], lines, f"Once a process ({describe('cpu')})"))


def rows(repeats: int) -> Iterator[Row]:
    """The lines of the one table."""
    for name, (before, call, limit) in CALLS.items():
        once(before, call)  # the compiled files of Python, which an installation has
        seconds = [once(before, call) for _ in range(min(repeats, 5))]
        yield Row(name, Timing(seconds, seconds), "" if limit is None else "asked", limit, limit and 1.0)


def once(before: str, call: str) -> float:
    """CPU seconds of a call in a process of its own."""
    script = f"{before}\nstart = time.process_time()\n{call}\nprint(time.process_time() - start)"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command, folder = [sys.executable, "-c", script], Path(__file__).parents[1]
    found = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return float(found.stdout)


if __name__ == "__main__":
    main()
