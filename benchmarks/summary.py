"""One table of everything: ours with the native library and without it, the peer, ratios, spread and memory.

    python -m benchmarks.summary [--only losses chains] [--repeats 9]

Each benchmark that has ``rows`` runs in a process of its own, once as installed and once with
``TORCH_MULTICLASS_NATIVE=0``. The table, and what was measured in numbers, are written to ``benchmarks/results``; a
benchmark that is run again replaces its lines there, and the table in the README is made from them.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.timing import Row, Timing, describe, table

FOLDER = Path(__file__).parent / "results"
README = Path(__file__).parents[1] / "README.md"
SHOWN = [
    r"chain \((32, 32, 17|8, 512, 20)\), (train|decode)",
    r"CrammerSingerLoss \(1024, 10000\)",
    r"AdaBoost.*real-valued stumps.*",
    r"averaged Perceptron, letter.*",
    r"DualSVM, prototypes.*",
    r"DualSVM, segmentation.*binary.*",
    r"tree letter.*",
    r"forest of 100, letter",
]
"""The lines that the README shows, by their whole names, or names and peers."""

BEGIN, END = "<!-- speed -->", "<!-- /speed -->"


@dataclass
class Line:
    """A line of the table, and what it comes from."""

    topic: str
    name: str
    ours: list[float]
    peer: str
    theirs: list[float]
    asked: float | None
    memory: float | None
    alone: list[float]
    """Ours without the native library, empty where that makes no difference."""
    alone_theirs: list[float]
    """The peer in that run."""


def seconds(measured: Timing | float | None) -> list[float]:
    """All that was measured."""
    if measured is None:
        return []
    return measured.seconds if isinstance(measured, Timing) else [float(measured)]


def median(measured: list[float]) -> float:
    """The figure to quote."""
    return sorted(measured)[len(measured) // 2]


def faster(ours: list[float], theirs: list[float]) -> float | None:
    """How many times faster than the peer."""
    return median(theirs) / median(ours) if ours and theirs else None


def topics() -> list[str]:
    """The benchmarks that have lines in the table; nothing is imported."""
    files = sorted(Path(__file__).parent.glob("[a-z]*.py"))
    return [file.stem for file in files if "\ndef rows(" in file.read_text(encoding="utf-8")]


def measure(topic: str, repeats: int) -> Iterator[dict[str, Any]]:
    """The rows of a benchmark in this process, as JSON would have them."""
    torch.set_num_threads(1)
    for row in importlib.import_module(f"benchmarks.{topic}").rows(repeats):
        given = Row(*row)
        yield {**given._asdict(), "ours": seconds(given.ours), "theirs": seconds(given.theirs)}


def elsewhere(topic: str, repeats: int, *, native: bool) -> list[dict[str, Any]]:
    """The rows of a benchmark in a process of its own; what it says goes to the terminal."""
    environment = {**os.environ, **({} if native else {"TORCH_MULTICLASS_NATIVE": "0"})}
    command = [sys.executable, "-m", "benchmarks.summary", "--measure", topic, "--repeats", str(repeats)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{topic}: the benchmark ended with {done.returncode}; what it said is above")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def lines(topic: str, repeats: int) -> list[Line]:
    """The lines of a benchmark, with the library and without."""
    installed = elsewhere(topic, repeats, native=True)
    without = elsewhere(topic, repeats, native=False) if uses_library(topic) else []
    alone = {(row["name"], row["peer"]): {"alone": row["ours"], "alone_theirs": row["theirs"]} for row in without}
    nothing = {"alone": [], "alone_theirs": []}
    return [Line(topic=topic, **row, **alone.get((row["name"], row["peer"]), nothing)) for row in installed]


def uses_library(topic: str) -> bool:
    """Whether the native library is there and the benchmark says that it makes a difference."""
    import torch_multiclass as tm

    source = (Path(__file__).parent / f"{topic}.py").read_text(encoding="utf-8")
    return "\nUSES_LIBRARY = True" in source and tm.backends()["native"].startswith("in use")


def times(ratio: float | None) -> str:
    """A ratio as the table has it."""
    if ratio is None:
        return ""
    return f"{ratio:.0f}×" if ratio >= 20 else f"{ratio:.1f}×" if ratio >= 2 else f"{ratio:.2f}×"


def in_words(ratio: float | None) -> str:
    """The same for who reads no more than the line."""
    if ratio is None:
        return ""
    return f"{times(ratio)} faster" if ratio >= 1 else f"{times(1 / ratio)} slower"


def milliseconds(measured: list[float]) -> str:
    """A time with three digits."""
    if not measured:
        return ""
    time = median(measured) * 1e3
    return f"{time:.0f}" if time >= 100 else f"{time:.3g}"


def spread(measured: list[float]) -> str:
    """Lowest and highest, of the median."""
    if len(measured) < 2:
        return ""
    middle = median(measured)
    return f"{min(measured) / middle:.2f}–{max(measured) / middle:.2f}"


def markdown(given: Sequence[Line], machine: str) -> str:
    """The table of everything."""
    header = [
        "",
        "ours, ms",
        "spread",
        "torch alone, ms",
        "peer",
        "peer, ms",
        "spread",
        "faster",
        "torch alone",
        "asked",
    ]
    rows = []
    for line in given:
        row = [line.name, milliseconds(line.ours), spread(line.ours), milliseconds(line.alone)]
        row += [line.peer, milliseconds(line.theirs), spread(line.theirs)]
        row += [times(faster(line.ours, line.theirs)), times(faster(line.alone, line.alone_theirs))]
        row += ["" if line.asked is None else f"≥ {line.asked:.2g}×" if line.asked < 1 else f"≥ {line.asked:g}×"]
        rows.append([*row, "" if line.memory is None else f"{line.memory:.3g}"])
    return table([*header, "MiB"], rows, f"Measured on: {machine}. Spread is lowest–highest over the median.")


def saved(folder: Path) -> dict[str, Any]:
    """What was measured before."""
    path = folder / "cpu.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"machine": "", "lines": []}


def save(folder: Path, given: list[Line], machine: str) -> None:
    """Write both files, whole or not at all."""
    folder.mkdir(exist_ok=True)
    rounded = [dataclasses.asdict(line) for line in given]
    for line in rounded:
        for key in ("ours", "theirs", "alone", "alone_theirs"):
            line[key] = [float(f"{value:.4g}") for value in line[key]]
    content = json.dumps({"machine": machine, "lines": rounded}, indent=None).replace('{"topic"', '\n{"topic"') + "\n"
    put(folder / "cpu.json", content)
    put(folder / "cpu.md", f"# Everything, measured\n\n`make bench` writes this page.\n\n{markdown(given, machine)}\n")


def put(path: Path, content: str) -> None:
    """Write a file so that whoever reads it finds the old or the new one."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(content, encoding="utf-8")
    os.replace(part, path)


def readme_table(given: Sequence[Line]) -> str:
    """The short table."""
    rows = [
        [
            line.name,
            line.peer,
            in_words(faster(line.ours, line.theirs)),
            in_words(faster(line.alone, line.alone_theirs)),
        ]
        for line in given
        if line.theirs
        and line.peer != "torch-struct"
        and any(re.fullmatch(part, name) for part in SHOWN for name in (line.name, line.peer))
    ]
    return table(["what", "peer", "ours", "ours, torch alone"], rows)


def write_readme(given: Sequence[Line], path: Path = README) -> None:
    """Put the short table between the marks in the README."""
    text = path.read_text(encoding="utf-8")
    before, mark, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise SystemExit(f"{path.name}: the marks {BEGIN} and {END} are not there")
    put(path, f"{before}{BEGIN}\n{readme_table(given)}\n{END}{after}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, write."""
    found = topics()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", metavar="NAME", choices=found, default=found, help=", ".join(found))
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--readme", action="store_true", help="write the table of the README from the saved figures")
    parser.add_argument("--measure", choices=found, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        for row in measure(options.measure, options.repeats):
            print(json.dumps(row), flush=True)
        return
    kept = [Line(**line) for line in saved(FOLDER)["lines"]]
    if options.readme:
        write_readme(kept)
        return
    for topic in options.only:
        print(f"{topic} ...", file=sys.stderr, flush=True)
        measured = lines(topic, options.repeats)
        kept = [line for line in kept if line.topic != topic] + measured
        kept.sort(key=lambda line: found.index(line.topic) if line.topic in found else len(found))
        save(FOLDER, kept, machine())
        print(markdown(measured, machine()), end="\n\n", flush=True)


def machine() -> str:
    """What the figures were measured on, without naming the machine."""
    import torch_multiclass as tm

    library = tm.backends()["native"]
    level = Path(library.removeprefix("in use: ")).stem if library.startswith("in use") else "none"
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text(encoding="utf-8") if cpuinfo.exists() else ""
    model = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return f"{model[1] if model else platform.processor()}; {describe('cpu')}; native library: {level}"


if __name__ == "__main__":
    main()
